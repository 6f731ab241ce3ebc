/** Messages that come back: what a host does with them the more often they do. No broker, no thread. */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { Handler } from "../../../src/host/amqp/consumer.js";
import type { Publisher } from "../../../src/host/amqp/publisher.js";
import type { Shop } from "../../../src/host/work/execute.js";
import { jobs } from "../../../src/host/work/jobs.js";
import { requests } from "../../../src/host/work/requests.js";

const RUN = "AG1501JDX3Z8GF0000000000000000";
/** A host of a version that declares `here` of each kind, and would fail if it executed any. */
const SHOP = {
  workspace: "acme", project: "shop", index: new Map([["tool:here", "a"], ["script:here", "a"], ["job:here", "a"]]), log: () => undefined,
} as unknown as Shop;

/** The verdict about a message that has come back so often, and the outcome that was told. */
async function handled(of: (shop: Shop, publisher: Publisher) => Handler, kind: string, message: object, returns: number) {
  const told: unknown[] = [];
  const publisher = {
    once: async () => "confirmed",
    surely: async ({ body }: { body: Buffer }) => {
      const answer = JSON.parse(body.toString()) as { outcome?: unknown; error?: unknown };
      told.push(answer.outcome ?? answer.error);
      return "confirmed";
    },
  } as unknown as Publisher;
  const whole = { workspace: "acme", project: "shop", attempt: 1, deadline: Date.now() + 60_000, ...message };
  const body = Buffer.from(JSON.stringify(whole));
  const verdict = await of(SHOP, publisher)({ kind, body, replyTo: "answers", headers: {}, lost: new AbortController().signal, returns });
  return [verdict, ...told];
}

const request = (kind: string, name: string) =>
  ({ requestId: `${RUN}:1:1`, kind, name, runId: RUN, instance: 1, elementId: "c1", variables: {} });

test("what this version does not declare goes back four times, for a host that does, and is told then", async () => {
  const of = (kind: string, returns: number) => handled(requests, "host.request.v1", request(kind, "elsewhere"), returns);
  for (const kind of ["tool", "task"]) {
    for (const returns of [0, 1, 2, 3]) assert.deepEqual(await of(kind, returns), ["again"], `${kind} ${returns}`);
  }
  assert.deepEqual(await of("tool", 4), ["done", { failed: { code: "TOOL_NOT_DECLARED", retry: false } }]);
  // The Process has attempts of its own.
  assert.deepEqual(await of("task", 4), ["done", { failed: { code: "TASK_NOT_DECLARED", retry: true } }]);
});

test("a message that comes back again and again is taken to kill its hosts and given up", async () => {
  const crashed = { code: "HOST_CRASHED", retry: false };
  for (const kind of ["tool", "task"]) {
    assert.deepEqual(await handled(requests, "host.request.v1", request(kind, "here"), 20), ["done", { failed: crashed }]);
  }
  const job = { jobId: "JB1", job: "here", source: "enqueue", payload: null, user: null };
  assert.deepEqual(await handled(jobs, "job.run.v1", job, 20), ["done", { code: "HOST_CRASHED", retryable: false }]);
});
