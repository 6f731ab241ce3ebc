/** Tools of agents and tasks of Processes. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Fleet, Host } from "../fleet.js";
import { project, until } from "../project.js";

const AGENT_RUN = "AG1501JDX3Z8GF0000000000000000";
const TOOL = `
import { defineTools } from "@nocobase/ai";
export default defineTools({
  scope: "CUSTOM",
  definition: {
    name: "ignored",
    description: "Finds things.",
    schema: { type: "object", properties: { query: { type: "string" }, how: { type: "string" } }, required: ["query"] },
  },
  invoke: async (ctx, args, { toolCallId, writer }) => {
    writer("first ");
    writer({ second: args.query });
    writer("x".repeat(20_000));
    if (args.how === "throws") throw new Error("no such thing");
    if (args.how === "text") return "a text";
    return { status: "success", content: { query: args.query, toolCallId } };
  },
});
`;
const SCRIPT = `
import { CogoverApiError, RetryableError, defineScript } from "@cogover/sdk";
export const scripts = [
  defineScript({ name: "charge" }, ({ input }) => ({ charged: (input as { amount: number }).amount })),
  defineScript({ name: "no-stock" }, () => { throw new CogoverApiError("NO_STOCK", "s3cret"); }),
  defineScript({ name: "busy" }, () => { throw new RetryableError("s3cret"); }),
  defineScript({ name: "broken" }, () => { throw new Error("s3cret"); }),
];
`;

async function begin(context: { after(fn: () => unknown): void }) {
  const fleet = await Fleet.start(context);
  const root = project(context, { "ai/tools/find/index.ts": TOOL, "ai/tools/find/description.md": "Finds all things.\n", "src/main.ts": SCRIPT });
  const host = Host.start(context, fleet, root);
  await host.taking();
  const ask = (kind: string, name: string, instance: number, variables: unknown): void => {
    const requestId = `${AGENT_RUN}:${instance}:1`;
    fleet.send("tasks.acme.shop", "host.request.v1", requestId, {
      requestId, kind, name, workspace: "acme", project: "shop", runId: AGENT_RUN, elementId: `call_${instance}`, instance, attempt: 1, headers: {},
      variables, deadline: Date.now() + 5_000, answerKey: "word",
    });
  };
  const outcomes = async (count: number): Promise<Map<unknown, unknown>> => {
    await until(`${count} answers`, () => fleet.of("host.answer.v1").length >= count);
    return new Map(fleet.of("host.answer.v1").map(({ body }) => [body["instance"], body["outcome"]]));
  };
  return { fleet, host, ask, outcomes };
}

/** NB-01, NB-02, NB-05 */
test("a tool is registered under the name of its folder, with its description in full", async (context) => {
  const { fleet } = await begin(context);
  const [registered] = fleet.requests("projects.register");
  const [tool] = registered?.payload["tools"] as Record<string, unknown>[];
  assert.deepEqual([tool?.["name"], tool?.["permission"], tool?.["scope"]], ["find", "ASK", "CUSTOM"]);
  assert.equal(String(tool?.["description"]).trim(), "Finds all things.");
});

/** NB-17 */
test("a tool gets its arguments and its call, and what it writes is told before its answer, in order and in parts", async (context) => {
  const { fleet, ask, outcomes } = await begin(context);
  ask("tool", "find", 1, { query: "q" });
  assert.deepEqual((await outcomes(1)).get(1), { ok: { status: "success", content: { query: "q", toolCallId: "call_1" } } });
  const kinds = fleet.told.map(({ kind }) => kind);
  assert.equal(kinds.at(-1), "host.answer.v1");
  const chunks = fleet.of("host.progress.v1").map(({ body }) => String(body["chunk"]));
  assert.equal(chunks.join(""), `first {"second":"q"}${"x".repeat(20_000)}`);
  assert.ok(chunks.every((chunk) => Buffer.byteLength(chunk) <= 16_384));
  assert.deepEqual(fleet.of("host.accepted.v1").length, 1);
});

/** NB-13, NB-15 */
test("arguments that do not fit and errors become results that the model reads", async (context) => {
  const { ask, outcomes } = await begin(context);
  ask("tool", "find", 1, { query: 5 });
  ask("tool", "find", 2, { query: "q", how: "throws" });
  ask("tool", "find", 3, { query: "q", how: "text" });
  ask("tool", "not-there", 4, {});
  const found = await outcomes(4);
  assert.equal((found.get(1) as { ok: { status: string } }).ok.status, "error");
  assert.deepEqual(found.get(2), { ok: { status: "error", content: "no such thing" } });
  assert.deepEqual(found.get(3), { ok: { status: "success", content: "a text" } });
  assert.deepEqual(found.get(4), { failed: { code: "TOOL_NOT_DECLARED", retry: false } });
});

test("a task of a Process is carried out by the script of its name", async (context) => {
  const { fleet, ask, outcomes } = await begin(context);
  ask("task", "charge", 1, { amount: 7 });
  ask("task", "no-stock", 2, {});
  ask("task", "busy", 3, {});
  ask("task", "broken", 4, {});
  const found = await outcomes(4);
  assert.deepEqual(found.get(1), { ok: { charged: 7 } });
  assert.deepEqual(found.get(2), { error: { code: "NO_STOCK", variables: {} } });
  assert.deepEqual(found.get(3), { failed: { code: "RETRYABLE", retry: true } });
  assert.deepEqual(found.get(4), { failed: { code: "SCRIPT_ERROR", retry: false } });
  const [answer] = fleet.of("host.answer.v1");
  assert.deepEqual([answer?.body["answerKey"], answer?.body["runId"]], ["word", AGENT_RUN]);
  assert.ok(!JSON.stringify(fleet.told).includes("s3cret"));
});
