/** Tools of agents and tasks of Processes. */
import assert from "node:assert/strict";
import { after, test } from "node:test";

import { File, Fleet, Host } from "../fleet.js";
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
    if (args.how === "values") return { status: "success", content: { values: ctx.action.params.values } };
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

async function begin(context: { after(fn: () => unknown): void }, env: Readonly<Record<string, string>> = {}) {
  const fleet = await Fleet.start(context);
  const root = project(context, { "ai/tools/find/index.ts": TOOL, "ai/tools/find/description.md": "Finds all things.\n", "src/main.ts": SCRIPT });
  const host = Host.start(context, fleet, root, [], env);
  await host.taking();
  const ask = (kind: string, name: string, instance: number, variables: unknown, more: Readonly<Record<string, unknown>> = {}): void => {
    const requestId = `${AGENT_RUN}:${instance}:1`;
    fleet.send("tasks.acme.shop", "host.request.v1", requestId, {
      requestId, kind, name, workspace: "acme", project: "shop", runId: AGENT_RUN, elementId: `call_${instance}`, instance, attempt: 1, headers: {},
      variables, deadline: Date.now() + 20_000, answerKey: "word", ...more,
    });
  };
  const told = (): Map<unknown, unknown> => new Map(fleet.of("host.answer.v1").map(({ body }) => [body["instance"], body["outcome"]]));
  const outcomes = async (...instances: number[]): Promise<Map<unknown, unknown>> => {
    await until("the answers", () => instances.every((instance) => told().has(instance)));
    return told();
  };
  return { fleet, host, root, ask, outcomes };
}

const file = new File();
after(() => file.end());
let begun: ReturnType<typeof begin> | undefined;

/** One host for all tests that leave it as it is. Each asks with instances of its own. */
function standing(): ReturnType<typeof begin> {
  begun ??= begin(file);
  return begun;
}

/** NB-01, NB-02, NB-05 */
test("a tool is registered under the name of its folder, with its description in full", async () => {
  const { fleet } = await standing();
  const [registered] = fleet.requests("projects.register");
  const [tool] = registered?.payload["tools"] as Record<string, unknown>[];
  assert.deepEqual([tool?.["name"], tool?.["permission"], tool?.["scope"]], ["find", "ASK", "CUSTOM"]);
  assert.equal(String(tool?.["description"]).trim(), "Finds all things.");
});

/** NB-17 */
test("a tool gets its arguments and its call, and what it writes is told before its answer, in order and in parts", async () => {
  const { fleet, ask, outcomes } = await standing();
  ask("tool", "find", 1, { query: "q" });
  assert.deepEqual((await outcomes(1)).get(1), { ok: { status: "success", content: { query: "q", toolCallId: "call_1" } } });
  const own = fleet.told.filter(({ body }) => body["requestId"] === `${AGENT_RUN}:1:1`);
  assert.equal(own.at(-1)?.kind, "host.answer.v1");
  const chunks = own.filter(({ kind }) => kind === "host.progress.v1").map(({ body }) => String(body["chunk"]));
  assert.equal(chunks.join(""), `first {"second":"q"}${"x".repeat(20_000)}`);
  assert.ok(chunks.every((chunk) => Buffer.byteLength(chunk) <= 8_192));
  // A report says what an answer says, so that nobody else can make one.
  const facts = own.filter(({ kind }) => kind === "host.progress.v1").map(({ body: { chunk, ...facts } }) => facts);
  const requestId = `${AGENT_RUN}:1:1`;
  assert.deepEqual(facts, facts.map((_, at) => ({ requestId, workspace: "acme", project: "shop", answerKey: "word", seq: at + 1 })));
  assert.equal(own.filter(({ kind }) => kind === "host.accepted.v1").length, 1);
});

/** NB-13, NB-15 */
test("arguments that do not fit and errors become results that the model reads", async () => {
  const { ask, outcomes } = await standing();
  ask("tool", "find", 11, { query: 5 });
  ask("tool", "find", 12, { query: "q", how: "throws" });
  ask("tool", "find", 13, { query: "q", how: "text" });
  const found = await outcomes(11, 12, 13);
  assert.equal((found.get(11) as { ok: { status: string } }).ok.status, "error");
  assert.deepEqual(found.get(12), { ok: { status: "error", content: "no such thing" } });
  assert.deepEqual(found.get(13), { ok: { status: "success", content: "a text" } });
});

test("a request goes to the host that declares what it asks for, whichever takes it first", async (context) => {
  const { fleet, host, ask, outcomes } = await standing();
  const SHIP = `import { defineScript } from "@cogover/sdk";
    export default defineScript({ name: "ship" }, ({ input }) => ({ shipped: input }));`;
  const other = Host.start(context, fleet, project(context, { "src/ship.ts": SHIP }));
  await other.taking();
  const instances = [31, 32, 33];
  for (const instance of instances) ask("task", "ship", instance, { order: instance });
  const found = await outcomes(...instances);
  for (const instance of instances) assert.deepEqual(found.get(instance), { ok: { shipped: { order: instance } } });
  assert.deepEqual(host.lines.filter((line) => line["unit"] === "script:ship"), []);
});

/** CG-110 */
test("hosts that are killed when a tool or a task is taken, executed and told leave both to the next one, under the same ids", async (context) => {
  const { fleet, host, root, ask } = await begin(context, { TEST_DIES_AT: "taken" });
  const deadline = Date.now() + 100_000;
  ask("tool", "find", 1, { query: "q" }, { deadline });
  ask("task", "charge", 2, { amount: 7 }, { deadline });
  assert.equal(await host.ended, null);
  for (const place of ["executed", "told"]) {
    const next = Host.start(context, fleet, root, [], { TEST_DIES_AT: place });
    assert.equal(await next.ended, null, place);
  }
  await Host.start(context, fleet, root).taking();
  const told = (): Set<unknown> => new Set(fleet.of("host.answer.v1").map(({ body }) => body["instance"]));
  await until("both answers", () => told().size === 2);
  await until("an empty queue", async () => (await fleet.waiting("tasks.acme.shop")) === 0);
  const results = { 1: { status: "success", content: { query: "q", toolCallId: "call_1" } }, 2: { charged: 7 } };
  for (const { id, body } of fleet.of("host.answer.v1")) {
    const instance = body["instance"] as 1 | 2;
    assert.equal(id, `answer:${AGENT_RUN}:${instance}:1`);
    assert.deepEqual(body["outcome"], { ok: results[instance] });
  }
});

test("a tool sees the request of its conversation where the fleet tells of one", async () => {
  const { ask, outcomes } = await standing();
  const conversation = { sessionId: "S1", model: "anthropic/claude", webSearch: true, messages: [{ role: "user", content: "Find it." }] };
  ask("tool", "find", 41, { query: "q", how: "values" }, { conversation });
  ask("tool", "find", 42, { query: "q", how: "values" });
  const found = await outcomes(41, 42);
  const values = { ...conversation, model: { model: "anthropic/claude" } };
  assert.deepEqual(found.get(41), { ok: { status: "success", content: { values } } });
  assert.deepEqual(found.get(42), { ok: { status: "success", content: {} } });
});

test("a task of a Process is carried out by the script of its name", async () => {
  const { fleet, ask, outcomes } = await standing();
  ask("task", "charge", 51, { amount: 7 });
  ask("task", "no-stock", 52, {});
  ask("task", "busy", 53, {});
  ask("task", "broken", 54, {});
  const found = await outcomes(51, 52, 53, 54);
  assert.deepEqual(found.get(51), { ok: { charged: 7 } });
  assert.deepEqual(found.get(52), { error: { code: "NO_STOCK", variables: {} } });
  assert.deepEqual(found.get(53), { failed: { code: "RETRYABLE", retry: true } });
  assert.deepEqual(found.get(54), { failed: { code: "SCRIPT_ERROR", retry: false } });
  const answer = fleet.of("host.answer.v1").find(({ body }) => body["instance"] === 51);
  assert.deepEqual([answer?.body["answerKey"], answer?.body["runId"]], ["word", AGENT_RUN]);
  assert.ok(!JSON.stringify(fleet.told).includes("s3cret"));
});
