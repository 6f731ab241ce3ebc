/** Scripts and actions that somebody waits for, over the call queue that hosts of a version declare. */
import assert from "node:assert/strict";
import { after, test } from "node:test";

import { File, type Fleet, Host, working } from "../fleet.js";
import { until } from "../project.js";

const CODE = `
import { CogoverApiError, RetryableError, ValidationError, defineAction, defineScript, s } from "@cogover/sdk";
export const scripts = [
  defineScript({ name: "echo" }, ({ input }) => ({ input })),
  defineScript({ name: "nothing" }, () => {}),
  defineScript({ name: "large" }, () => "x".repeat(300_000)),
  defineScript({ name: "hangs" }, () => new Promise(() => {})),
  defineScript({ name: "exits" }, () => process.exit(1)),
  defineScript({ name: "throws" }, () => { throw new Error("s3cret"); }),
  defineScript({ name: "retry" }, () => { throw new RetryableError("s3cret"); }),
  defineScript({ name: "own" }, () => { throw new CogoverApiError("NO_STOCK", "s3cret"); }),
  defineScript({ name: "twice" }, async ({ processes }) => { await processes.get("PI1501JDX3Z8GF0000000000000000"); return 1; }),
];
export default defineAction({
  key: "price", effect: "write", input: s.object({ amount: s.number() }), output: s.object({ run: s.string() }),
  handler: ({ action }, input) => ({ run: input.amount > 100 ? (undefined as never) : action.runId }),
});
`;

const QUEUE = "calls.acme.shop.1";

function call(fleet: Fleet, callId: string, name: string, more: Readonly<Record<string, unknown>> = {}): void {
  const body = {
    callId, attempt: 1, workspace: "acme", project: "shop", version: "1", kind: "script", name, input: { a: 1 }, runId: null,
    deadline: Date.now() + 5_000, answerKey: "word", user: "ada", readOnly: false, ...more,
  };
  fleet.send(QUEUE, "host.call.v1", `${callId}.1`, body);
}

async function answers(fleet: Fleet, ...ids: readonly string[]): Promise<Map<unknown, unknown>> {
  const told = (): Map<unknown, unknown> => new Map(fleet.of("host.callanswer.v1").map(({ body }) => [body["callId"], body["outcome"]]));
  await until("the answers", () => ids.every((id) => told().has(id)));
  return told();
}

const file = new File();
after(() => file.end());
let begun: ReturnType<typeof working> | undefined;

/** One host for all tests that leave it as it is. Each has calls of its own. */
function standing(): ReturnType<typeof working> {
  begun ??= working(file, CODE);
  return begun;
}

test("a script is called and its value is the answer", async () => {
  const { fleet } = await standing();
  call(fleet, "c1", "echo");
  call(fleet, "c2", "nothing");
  const outcomes = await answers(fleet, "c1", "c2");
  assert.deepEqual(outcomes.get("c1"), { ok: { input: { a: 1 } } });
  assert.deepEqual(outcomes.get("c2"), { ok: null });
  const first = fleet.of("host.callanswer.v1").find(({ id }) => id === "answer:c1.1");
  assert.deepEqual(first?.body, {
    callId: "c1", attempt: 1, workspace: "acme", project: "shop", answerKey: "word", outcome: { ok: { input: { a: 1 } } },
  });
});

test("each way in which a script fails has its code, and no text of an error is told", async () => {
  const { fleet, host } = await standing();
  const failed: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ["throws", { code: "SCRIPT_ERROR" }],
    ["own", { code: "SCRIPT_ERROR", scriptErrorCode: "NO_STOCK" }],
    ["retry", { code: "RETRYABLE" }],
    ["exits", { code: "SCRIPT_ERROR", scriptErrorCode: "HANDLER_EXITED" }],
    ["not-there", { code: "NOT_FOUND" }],
  ];
  for (const [name] of failed) call(fleet, name, name);
  call(fleet, "large", "large");
  call(fleet, "hangs", "hangs", { deadline: Date.now() + 1_500 });
  const outcomes = await answers(fleet, "large", "hangs", ...failed.map(([name]) => name));
  for (const [name, outcome] of failed) assert.deepEqual(outcomes.get(name), { failed: outcome }, name);
  assert.equal((outcomes.get("large") as { failed: { code: string } }).failed.code, "OUTPUT_INVALID");
  assert.equal((outcomes.get("hangs") as { failed: { code: string } }).failed.code, "TIMEOUT");
  assert.ok(!JSON.stringify([fleet.told, host.lines]).includes("s3cret"));
});

test("an action checks its input and its output, and knows its run", async () => {
  const { fleet } = await standing();
  const action = { kind: "action", runId: "r1" };
  call(fleet, "good", "price", { ...action, input: { amount: 5 } });
  call(fleet, "input", "price", { ...action, input: { amount: "s3cret" } });
  call(fleet, "output", "price", { ...action, input: { amount: 500 } });
  const outcomes = await answers(fleet, "good", "input", "output");
  assert.deepEqual(outcomes.get("good"), { ok: { run: "r1" } });
  const { failed } = outcomes.get("input") as { failed: { code: string; problems: { path: string }[] } };
  assert.deepEqual([failed.code, failed.problems.map(({ path }) => path)], ["INPUT_INVALID", ["/amount"]]);
  assert.equal((outcomes.get("output") as { failed: { code: string } }).failed.code, "OUTPUT_INVALID");
  assert.ok(!JSON.stringify(fleet.told).includes("s3cret"));
});

test("a call that comes twice is executed once, and one that comes too late not at all", async () => {
  const { fleet } = await standing();
  const state = { instanceId: "PI1501JDX3Z8GF0000000000000000", processId: "p1", processInfoId: "p", state: "RUNNING", startedAt: 1, finishedAt: null };
  fleet.operations.set("processes.get", () => state);
  call(fleet, "late", "twice", { deadline: Date.now() - 1 });
  call(fleet, "again", "twice");
  call(fleet, "again", "twice");
  const told = (id: string): number => fleet.of("host.callanswer.v1").filter(({ body }) => body["callId"] === id).length;
  await until("two answers", () => told("again") === 2);
  assert.equal(fleet.requests("processes.get").length, 1);
  assert.equal(told("late"), 0);
});

test("calls do not wait behind jobs", async (context) => {
  const code = `${CODE}
    import { defineJob } from "@cogover/sdk";
    export const jobs = [defineJob({ key: "hangs" }, () => new Promise(() => {}))];`;
  const { fleet } = await working(context, code, ["--concurrency", "2"]);
  for (const id of ["JB1", "JB2", "JB3"]) fleet.job("hangs", id, { timeoutMs: 60_000 });
  await until("a job runs", () => fleet.of("job.accepted.v1").length > 0);
  call(fleet, "c1", "echo");
  await answers(fleet, "c1");
});

/** CG-233 */
test("hosts that are killed when a call is taken, executed or told leave it to another host of their version, under the same id", async (context) => {
  const { fleet, root } = await working(context, CODE);
  const told = (): Set<unknown> => new Set(fleet.of("host.callanswer.v1").map(({ body }) => body["callId"]));
  for (const [number, place] of ["taken", "executed", "told"].entries()) {
    const other = Host.start(context, fleet, root, [], { TEST_DIES_AT: place });
    await other.taking();
    // One for each host, whichever gets which.
    const deadline = Date.now() + 30_000;
    for (const host of ["a", "b"]) call(fleet, `${place}-${host}`, "echo", { deadline });
    assert.equal(await other.ended, null, place);
    await until("both answers", () => told().size === 2 * (number + 1));
  }
  await until("an empty queue", async () => (await fleet.waiting(QUEUE)) === 0);
  for (const { id, body } of fleet.of("host.callanswer.v1")) {
    assert.equal(id, `answer:${String(body["callId"])}.1`);
    assert.deepEqual(body["outcome"], { ok: { input: { a: 1 } } });
  }
});
