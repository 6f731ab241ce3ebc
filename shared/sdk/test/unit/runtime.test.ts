import assert from "node:assert/strict";
import { test } from "node:test";
import {
  and, CogoverApiError, NotFoundError, PermissionDeniedError, RetryableError, s, ValidationError, type AgentStartOptions,
} from "../../src/index.js";
import { createApis, type Apis, type ExecutionInfo } from "../../src/runtime/index.js";

/** A fleet that answers from a table and writes down what it was asked. */
function fleet(answers: Record<string, unknown> = {}, info: Partial<ExecutionInfo> = {}): { apis: Apis; asked: [string, unknown][] } {
  const asked: [string, unknown][] = [];
  const call = async (operation: string, payload: unknown): Promise<unknown> => {
    asked.push([operation, JSON.parse(JSON.stringify(payload))]);
    const answer = answers[operation];
    return typeof answer === "function" ? (answer as (payload: unknown) => unknown)(payload) : answer;
  };
  return { apis: createApis(call, { source: "script", user: "U1", workspace: "W1", ...info }), asked };
}

async function refused(work: Promise<unknown>, field: string): Promise<void> {
  await assert.rejects(work, (error: unknown) => error instanceof ValidationError && error.details?.["field"] === field, field);
}

/** CG-023, CG-024 */
test("a start sends what was given and nothing else", async () => {
  const { apis, asked } = fleet({ "processes.start": { instanceId: "PI1", duplicate: true }, "agents.start": { runId: "AR1", duplicate: false } });
  assert.deepEqual(await apis.processes.start("p"), { instanceId: "PI1", duplicate: true });
  await apis.processes.start("p", { input: { a: undefined, b: 1 }, instanceName: undefined as never, onComplete: { job: "done" } });
  assert.deepEqual(await apis.agents.start("a", { instruction: "i", resultSchema: s.object({ n: s.number() }) }), { runId: "AR1", duplicate: false });
  assert.deepEqual(asked, [
    ["processes.start", { processInfoId: "p" }],
    ["processes.start", { input: { b: 1 }, onComplete: { job: "done" }, processInfoId: "p" }],
    ["agents.start", {
      instruction: "i", agentId: "a",
      resultSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"], additionalProperties: false },
    }],
  ]);
});

/** CG-020, CG-025 */
test("wrong arguments of a Process are refused before anything is sent", async () => {
  const { apis, asked } = fleet();
  const start = (options: unknown, id: unknown = "p"): Promise<unknown> => apis.processes.start(id as string, options as never);
  for (const id of ["", "a b", "x".repeat(65), 5, null]) await refused(start({}, id), "processInfoId");
  await refused(start({ input: [1] }), "input");
  await refused(start({ input: null }), "input");
  await refused(start({ input: new Map() }), "input");
  await refused(start({ input: { when: new Date() } }), "input");
  await refused(start({ input: { n: Number.NaN } }), "input");
  await refused(start({ input: { text: "x".repeat(65_536) } }), "input");
  await refused(start({ instanceName: "" }), "instanceName");
  await refused(start({ instanceName: "x".repeat(256) }), "instanceName");
  await refused(start({ idempotencyKey: "-a" }), "idempotencyKey");
  await refused(start({ idempotencyKey: "a".repeat(129) }), "idempotencyKey");
  await refused(start({ onComplete: {} }), "onComplete.job");
  await refused(start({ onComplete: { job: "1" } }), "onComplete.job");
  await refused(start({ onComplete: { job: "done", payload: "x".repeat(8_191) } }), "onComplete.payload");
  await refused(start({ onComplete: { job: "done", retry: true } }), "onComplete");
  await refused(start({ retries: 3 }), "options");
  await refused(start("text"), "options");
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  await refused(start({ input: circle }), "input");
  await refused(apis.processes.get(5 as never), "instanceId");
  assert.deepEqual(asked, []);
});

/** CG-050, CG-051, CG-052, CG-056 */
test("wrong arguments of an agent are refused before anything is sent", async () => {
  const { apis, asked } = fleet();
  const start = (options: unknown, id = "a"): Promise<unknown> =>
    apis.agents.start(id, (options === null ? null : { instruction: "i", ...(options as object) }) as AgentStartOptions);
  await refused(start({}, "a/b"), "agentId");
  await refused(start(null), "options");
  for (const instruction of [undefined, "", "  ", "x".repeat(10_001), 5]) await refused(start({ instruction }), "instruction");
  await refused(start({ variables: { list: [1] } }), "variables.list");
  await refused(start({ variables: { none: null } }), "variables.none");
  await refused(start({ variables: { "bad name": 1 } }), "variables");
  await refused(start({ variables: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`v${n}`, n])) }), "variables");
  await refused(start({ variables: { text: "x".repeat(32_769) } }), "variables.text");
  await refused(start({ variables: { a: "x".repeat(32_768), b: "x".repeat(32_768) } }), "variables");
  await refused(start({ variables: { n: Number.POSITIVE_INFINITY } }), "variables");
  const lead = { objectSlug: "lead", recordId: "L1" };
  await refused(start({ records: [lead, lead] }), "records[1]");
  await refused(start({ records: Array.from({ length: 21 }, (_, n) => ({ objectSlug: "lead", recordId: `${n}` })) }), "records");
  await refused(start({ records: [{ objectSlug: "9", recordId: "L1" }] }), "records[0].objectSlug");
  await refused(start({ records: [{ ...lead, activities: true }] }), "records[0]");
  await refused(start({ resultSchema: { type: "object" } }), "resultSchema");
  await refused(start({ resultSchema: s.string() }), "resultSchema");
  await refused(start({ resultSchema: s.object({}).optional() }), "resultSchema");
  await refused(start({ runAs: "system" }), "runAs");
  await refused(start({ approvalPolicy: "ask" }), "approvalPolicy");
  for (const timeoutSeconds of [9, 1_801, 10.5, "60"]) await refused(start({ timeoutSeconds }), "timeoutSeconds");
  await refused(start({ deliverTo: {} }), "deliverTo.personnelId");
  await refused(start({ deliverTo: { personnelId: "p", conversation: "first" } }), "deliverTo.conversation");
  await refused(start({ deliverTo: { personnelId: "p", title: "a\nb" } }), "deliverTo.title");
  await refused(start({ onResult: { job: "a".repeat(101) } }), "onResult.job");
  await refused(start({ onResult: { job: "done", payload: undefined, more: 1 } }), "onResult");
  assert.deepEqual(asked, []);
});

test("an error of an argument never repeats what was sent", async () => {
  const { apis } = fleet();
  const wrong: Promise<unknown>[] = [
    apis.processes.start("s3cret id"), apis.processes.start("p", { "s3cret name": 1 } as never),
    apis.agents.start("a", { instruction: "i", variables: { "s3cret name": 1 } }), apis.jobs.enqueue("s3cret key"),
    apis.agents.start("a", { instruction: "i", runAs: "s3cret" as never }),
  ];
  for (const work of wrong) {
    await assert.rejects(work, (error: CogoverApiError) => {
      assert.equal(error.code, "VALIDATION_ERROR");
      assert.doesNotMatch(error.message + JSON.stringify(error.details), /s3cret/);
      return true;
    });
  }
});

/** CG-002 */
test("before a change nothing can be called, and records can be read", async () => {
  const { apis, asked } = fleet({ "data.get": { record: null } }, { source: "trigger-before" });
  const calls = [
    apis.processes.start("p"), apis.processes.get("PI1"), apis.agents.start("a", { instruction: "i" }), apis.agents.get("AR1"),
    apis.jobs.enqueue("j"), apis.data.object("lead").records.update("L1", { a: 1 }), apis.models.invoke({ messages: [] }),
  ];
  for (const call of calls) {
    await assert.rejects(call, (error: unknown) => error instanceof PermissionDeniedError && error.details?.["reason"] === "TRIGGER_READ_ONLY");
  }
  assert.equal(await apis.data.object("lead").records.get("L1"), null);
  assert.equal(asked.length, 1);
});

/** CG-003 */
test("an execution that only reads can get and cannot start", async () => {
  for (const [source, reason] of [["action", "READ_ONLY"], ["development", "DEVELOPMENT_SESSION_READ_ONLY"]] as const) {
    const { apis, asked } = fleet({ "agents.get": { runId: "AR1", status: "QUEUED", result: null } }, { source, readOnly: true });
    for (const call of [apis.processes.start("not valid"), apis.agents.start("a", { instruction: "" }), apis.jobs.enqueue("j")]) {
      await assert.rejects(call, (error: unknown) => error instanceof PermissionDeniedError && error.details?.["reason"] === reason);
    }
    await apis.agents.get("AR1");
    assert.equal(asked.length, 1);
  }
});

/** CG-172 */
test("in local development an outcome job is refused and a start is not", async () => {
  const { apis, asked } = fleet({ "processes.start": { instanceId: "PI1", duplicate: false } }, { source: "development" });
  const refusals: [Promise<unknown>, string][] = [
    [apis.processes.start("p", { onComplete: { job: "done" } }), "onComplete"],
    [apis.agents.start("a", { instruction: "i", onResult: { job: "done" } }), "onResult"],
  ];
  for (const [work, field] of refusals) {
    await assert.rejects(work, (error: CogoverApiError) => error.code === "NOT_SUPPORTED" && error.details?.["field"] === field);
  }
  await apis.processes.start("p");
  assert.equal(asked.length, 1);
});

/** CG-031, CG-091, CG-096 */
test("an answer has every field of the contract, null where the fleet says nothing", async () => {
  const { apis } = fleet({
    "processes.get": { instanceId: "PI1", processId: "v1", processInfoId: "p", state: "RUNNING", startedAt: 5, newer: 1 },
    "agents.get": { runId: "AR1", status: "COMPLETED", result: { n: 1 }, delivery: { status: "SENT", newConversation: true } },
  });
  assert.deepEqual(await apis.processes.get("PI1"), {
    instanceId: "PI1", processId: "v1", processInfoId: "p", state: "RUNNING", startedAt: 5, finishedAt: null,
  });
  assert.deepEqual(await apis.agents.get("AR1"), {
    runId: "AR1", status: "COMPLETED", text: null, result: { n: 1 }, error: null,
    delivery: { status: "SENT", errorCode: null, chatSessionId: null, conversationId: null, newConversation: true },
  });
});

/** CG-032, CG-126 */
test("an error body becomes its class, and other failures stay what they are", async () => {
  const lost = new Error("connection lost");
  const { apis } = fleet({
    "processes.get": () => Promise.reject({ code: "NOT_FOUND", message: "None.", details: { resource: "process_instance", resourceId: "PI1" } }),
    "processes.start": () => Promise.reject(new RetryableError("later", { writesMayHaveCompleted: true })),
    "agents.get": () => Promise.reject(lost),
  });
  await assert.rejects(apis.processes.get("PI1"), (error: unknown) => error instanceof NotFoundError && error.resourceId === "PI1");
  await assert.rejects(apis.processes.start("p"), (error: unknown) => error instanceof RetryableError && error.details?.["writesMayHaveCompleted"] === true);
  await assert.rejects(apis.agents.get("AR1"), lost);
});

test("calls that are started together run one after another, and a failed one does not stop the next", async () => {
  let running = 0;
  const most: number[] = [];
  const work = async (): Promise<unknown> => {
    running += 1;
    most.push(running);
    await new Promise((done) => setImmediate(done));
    running -= 1;
    if (most.length === 1) throw new Error("first");
    return { runId: "JB1", duplicate: false };
  };
  const { apis } = fleet({ "jobs.enqueue": work });
  const ended = await Promise.allSettled(["a", "b", "c"].map((job) => apis.jobs.enqueue(job)));
  assert.deepEqual(ended.map(({ status }) => status), ["rejected", "fulfilled", "fulfilled"]);
  assert.deepEqual(most, [1, 1, 1]);
});

test("an execution that was ended sends nothing more", async () => {
  const stop = new AbortController();
  const { apis, asked } = fleet({}, { signal: stop.signal });
  stop.abort();
  await assert.rejects(apis.processes.get("PI1"), RetryableError);
  assert.deepEqual(asked, []);
});

test("a job is enqueued with its payload and one time at most", async () => {
  const { apis, asked } = fleet({ "jobs.enqueue": { runId: "JB1", duplicate: false } });
  await apis.jobs.enqueue("done", null);
  await apis.jobs.enqueue("done", { a: [1] }, { delayMs: 5, idempotencyKey: "k:1" });
  assert.deepEqual(asked.map(([, payload]) => payload), [{ job: "done" }, { job: "done", payload: { a: [1] }, delayMs: 5, idempotencyKey: "k:1" }]);
  await refused(apis.jobs.enqueue("1"), "job");
  await refused(apis.jobs.enqueue("a", "x".repeat(65_535)), "payload");
  await refused(apis.jobs.enqueue("a", { when: new Date() }), "payload");
  await refused(apis.jobs.enqueue("a", 1, { delayMs: 1, runAt: Date.now() }), "runAt");
  await refused(apis.jobs.enqueue("a", 1, { delayMs: 2_592_000_001 }), "delayMs");
  await refused(apis.jobs.enqueue("a", 1, { runAt: Date.now() + 2_592_100_000 }), "runAt");
  await refused(apis.jobs.enqueue("a", 1, { idempotencyKey: "?" }), "idempotencyKey");
  await refused(apis.jobs.enqueue("a", 1, { priority: 1 } as never), "options");
});

test("records are read and written as the source of records has it", async () => {
  const record = { objectSlug: "lead", recordId: "L1", fields: { name: "n", score: 1 } };
  const { apis, asked } = fleet({ "data.get": { record }, "data.query": { records: [record] }, "data.update": { record }, "data.create": { record } });
  const leads = apis.data.object("lead");
  assert.deepEqual(await leads.records.get("L1", { fields: ["name"] }), { id: "L1", fields: { name: "n" } });
  const { fields } = leads;
  const where = and(fields["name"]!.eq("n"), fields.id.in(["L1"]));
  assert.deepEqual(await leads.records.query({ where, limit: 5 }), { items: [{ id: "L1", fields: { name: "n", score: 1 } }] });
  await leads.records.update("L1", { owner: { id: "P1", name: "Ann" }, gone: null });
  assert.equal(await leads.records.create({ name: "n" }), "L1");
  assert.deepEqual(asked, [
    ["data.get", { objectSlug: "lead", recordId: "L1" }],
    ["data.query", { objectSlug: "lead", recordIds: ["L1"], filter: { name: "n" }, limit: 5 }],
    ["data.update", { objectSlug: "lead", recordId: "L1", fields: { owner: "P1", gone: null } }],
    ["data.create", { objectSlug: "lead", fields: { name: "n" } }],
  ]);
  assert.equal(apis.writesSent(), true);
  assert.throws(() => apis.data.object("no slug"), ValidationError);
  await refused(leads.records.update("L1", {}), "fields");
  await refused(leads.records.get(" "), "recordId");
  await refused(leads.records.query({ limit: 51 }), "limit");
  await assert.rejects(leads.records.query({ where: fields["score"]!.gte(1) }), (error: CogoverApiError) => error.code === "NOT_SUPPORTED");
});

test("many records are asked for twenty at a time, and those that are not there are named", async () => {
  const { apis, asked } = fleet({ "data.query": ({ recordIds }: any) => ({ records: recordIds.filter((id: string) => id !== "L7").map((recordId: string) => ({ recordId, fields: {} })) }) });
  const ids = Array.from({ length: 25 }, (_, n) => `L${n}`);
  const { records, missingIds } = await apis.data.object("lead").records.getMany([...ids, "L1"]);
  assert.deepEqual([records.length, missingIds], [24, ["L7"]]);
  assert.deepEqual(asked.map(([, payload]) => (payload as { limit: number }).limit), [20, 5]);
  assert.deepEqual(await apis.data.object("lead").records.getMany([]), { records: [], missingIds: [] });
  await refused(apis.data.object("lead").records.getMany(Array.from({ length: 201 }, (_, n) => `L${n}`)), "ids");
});

test("fields that equal values can be named in one object", async () => {
  const { apis, asked } = fleet({ "data.query": { records: [] } });
  const orders = apis.data.object("order");
  await orders.records.query({ filter: { state: "open", owner: null, other: undefined as never } });
  assert.deepEqual(asked, [["data.query", { objectSlug: "order", filter: { state: "open", owner: null } }]]);
  await assert.rejects(orders.records.query({ filter: { a: 1 }, where: orders.fields["a"]!.eq(2) }), (error: CogoverApiError) => error.code === "NOT_SUPPORTED");
});

test("no other identity is granted", async () => {
  const { apis, asked } = fleet();
  const calls = [
    apis.data.asUser("P2").object("lead").records.get("L1"), apis.data.asSystem().object("lead").records.update("L1", { a: 1 }),
    apis.data.asSystem().asUser("P2").object("lead").records.query(),
  ];
  for (const call of calls) {
    await assert.rejects(call, (error: unknown) => error instanceof PermissionDeniedError && error.details?.["reason"] === "IDENTITY_NOT_GRANTED");
  }
  assert.throws(() => apis.data.asUser(" "), ValidationError);
  assert.deepEqual(asked, []);
});

test("a model is asked through a run of its own", async () => {
  const states = ["QUEUED", "COMPLETED"];
  const { apis, asked } = fleet({ "models.invoke": { runId: "AR1" }, "agents.get": () => ({ runId: "AR1", status: states.shift(), text: "hello", result: null }) });
  assert.deepEqual(await apis.models.invoke({ model: "fast", messages: [{ role: "user", content: "hi" }] }), { text: "hello" });
  assert.deepEqual(asked.map(([operation]) => operation), ["models.invoke", "agents.get", "agents.get"]);
  const failed = fleet({ "models.invoke": { runId: "AR1" }, "agents.get": { status: "FAILED", error: { code: "LLM_NETWORK", message: "No." } } });
  await assert.rejects(failed.apis.models.invoke({ messages: [{ role: "user", content: "hi" }] }), (error: CogoverApiError) => error.code === "LLM_NETWORK");
});

test("the log never fails the code that writes it", () => {
  const lines: unknown[] = [];
  const { apis } = fleet({}, { log: (level, message, details) => void lines.push([level, message, details]) });
  apis.log.info("a", { b: null });
  apis.log.error("c");
  assert.deepEqual(lines, [["info", "a", { b: null }], ["error", "c", undefined]]);
  fleet({}, { log: () => { throw new Error("full"); } }).apis.log.warn("lost");
});
