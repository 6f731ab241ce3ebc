import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createRouter, defineAction, defineJob, defineRoute, defineScript, defineTrigger, RetryableError, s, type JobInfo,
} from "../../src/index.js";
import { collect, invoke, manifest, type Call, type Definition } from "../../src/runtime/index.js";
import { prepareTool } from "../../src/tools/index.js";

const silent: Call = async () => ({ instanceId: "PI1", runId: "JB1", duplicate: false });

function run(definition: Definition, input?: unknown, more: { runId?: string; job?: JobInfo; call?: Call } = {}): ReturnType<typeof invoke> {
  const { call = silent, ...rest } = more;
  return invoke({ definition, input, ...rest }, call, { source: definition.kind === "job" ? "job" : "script", user: "U1", workspace: "W1" });
}

const job: JobInfo = { id: "JB1", key: "j", attempt: 2, maxAttempts: 5, source: "enqueue", runAt: 5, enqueuedAt: 4 };

/** CG-001 */
test("every kind of handler is given the same things to call", async () => {
  const names = ["agents", "data", "invocation", "jobs", "log", "processes", "signal"];
  const seen: Record<string, string[]> = {};
  const note = (kind: string) => (context: object): never => (seen[kind] = Object.keys(context).sort()) as never;
  const schema = s.object({});
  await run(defineScript(note("script")), 1);
  await run(defineJob({ key: "j" }, note("job")), 1, { job });
  await run(defineRoute({ method: "GET", path: "/" }, note("route")));
  await run(defineTrigger({ key: "t", object: "o", timing: "afterChange", operations: ["create"], fields: ["a"] }, note("trigger")), { operation: "create", records: [{ id: "R1", new: {} }] });
  await run(defineAction({ key: "a", effect: "write", input: schema, output: schema, handler: note("action") }), {}, { runId: "r" });
  assert.deepEqual(seen, {
    script: [...names, "input", "request", "response"].sort(),
    job: [...names, "job", "payload"].sort(),
    route: [...names, "input", "request", "response"].sort(),
    trigger: [...names, "records", "trigger"].sort(),
    action: ["action", ...names].sort(),
  });
});

/** CG-008, CG-110 */
test("a job gets its run and its payload, and what it returns is ignored", async () => {
  const given: unknown[] = [];
  const define = (work: () => void): Definition => defineJob({ key: "j" }, ({ payload, job }) => {
    given.push(payload, job);
    work();
  });
  assert.deepEqual(await run(define(() => 5), { process: {} }, { job }), { ok: null });
  assert.deepEqual(await run(define(() => undefined), undefined, { job }), { ok: null });
  assert.deepEqual(given, [{ process: {} }, job, null, job]);
  assert.deepEqual(await run(define(() => { throw new RetryableError("later"); }), 1, { job }), { failed: { code: "RETRYABLE", retryable: true } });
  assert.deepEqual(await run(define(() => { throw new Error("s3cret"); }), 1, { job }), { failed: { code: "SCRIPT_ERROR", retryable: false } });
});

test("a script gives JSON, and what JSON cannot carry is an invalid output", async () => {
  assert.deepEqual(await run(defineScript(({ input }) => ({ got: input })), { a: 1 }), { ok: { got: { a: 1 } } });
  assert.deepEqual(await run(defineScript(() => undefined)), { ok: null });
  for (const value of [new Map(), () => 1, Number.NaN, "x".repeat(200_000)]) {
    const ending = await run(defineScript(() => value));
    assert.ok("failed" in ending && ending.failed.code === "OUTPUT_INVALID");
  }
  assert.deepEqual(await run(defineScript(({ response }) => response.bytes(new Uint8Array([0, 255]), { status: 201 }))), {
    ok: { status: 201, headers: { "content-type": "application/octet-stream" }, body: "AP8=", encoding: "base64" },
  });
});

test("a failure says whether something may have been changed", async () => {
  const started = await run(defineScript(async ({ processes }) => {
    await processes.start("p");
    throw new Error("after");
  }));
  assert.deepEqual(started, { failed: { code: "SCRIPT_ERROR", retryable: false, writesMayHaveCompleted: true } });
  const refused = await run(defineScript(async ({ processes }) => processes.start("not valid")));
  assert.deepEqual(refused, { failed: { code: "VALIDATION_ERROR", retryable: false } });
});

test("a route sees the request and gives status, headers and body", async () => {
  const route = defineRoute({ method: "GET", path: "/orders/:orderId" }, ({ request, input }) => ({ ...request, input }));
  const input = { params: { orderId: "a b" }, query: { q: ["1", "2"] }, headers: { "X-A": "v" }, body: { n: 1 } };
  assert.deepEqual(await run(route, input), {
    ok: {
      status: 200,
      headers: { "content-type": "application/json; charset=utf-8" },
      body: { method: "GET", path: "/orders/a%20b", params: { orderId: "a b" }, query: { q: ["1", "2"] }, headers: { "x-a": "v" }, body: { n: 1 }, input: { n: 1 } },
    },
  });
  const missing = await run(route, {});
  assert.deepEqual(missing, { failed: { code: "INPUT_INVALID", problems: [{ path: "/params/orderId", message: "is required" }], retryable: false } });
  const away = await run(defineRoute({ method: "POST", path: "/" }, ({ response }) => response.redirect("/x")), null);
  assert.deepEqual(away, { ok: { status: 302, headers: { location: "/x" }, body: null } });
  for (const bad of [(r: any) => r.json({}, { status: 99 }), (r: any) => r.json({}, { headers: { "set-cookie": "a" } }), (r: any) => r.text("a", { headers: { a: "b\nc" } })]) {
    const ending = await run(defineRoute({ method: "GET", path: "/" }, ({ response }) => bad(response)));
    assert.ok("failed" in ending && ending.failed.code === "VALIDATION_ERROR");
  }
});

test("an action is held to its schemas on both sides", async () => {
  const schema = s.object({ n: s.integer(), note: s.string().optional() });
  const define = (give: (n: number) => unknown): Definition =>
    defineAction({ key: "a", effect: "write", input: schema, output: schema, handler: ({ action }, { n }) => give(n + action.runId.length) as never });
  assert.deepEqual(await run(define((n) => ({ n, note: null })), { n: 1, note: null }, { runId: "r" }), { ok: { n: 2 } });
  const wrongInput = await run(define((n) => ({ n })), { n: "1", more: 1 }, { runId: "r" });
  assert.deepEqual(wrongInput, {
    failed: {
      code: "INPUT_INVALID", retryable: false,
      problems: [{ path: "/more", message: "is not a property that is known" }, { path: "/n", message: "must be a whole number" }],
    },
  });
  const wrongOutput = await run(define(() => ({ n: "1" })), { n: 1 }, { runId: "r" });
  assert.deepEqual(wrongOutput, { failed: { code: "OUTPUT_INVALID", retryable: false, problems: [{ path: "/n", message: "must be a whole number" }] } });
});

/** CG-003 */
test("an action that reads cannot start anything, whatever its token says", async () => {
  const schema = s.object({});
  const action = defineAction({
    key: "a", effect: "read", input: schema, output: schema,
    handler: async ({ processes }) => {
      await processes.start("p");
      return {};
    },
  });
  assert.deepEqual(await run(action, {}, { runId: "r" }), { failed: { code: "PERMISSION_DENIED", retryable: false } });
});

/** CG-002 */
test("a trigger before a change may set and refuse, and cannot start anything", async () => {
  const input = { operation: "update", records: [{ key: "0", id: "R1", old: { a: 1, hidden: 1 }, new: { a: 2, hidden: 2 } }, { key: "1", id: "R2", old: { a: 1 }, new: { a: 9 } }] };
  const define = (work: (context: any) => unknown): Definition =>
    defineTrigger({ key: "t", object: "o", timing: "beforeChange", operations: ["update"], fields: ["a"], writableFields: ["b"] }, work as never);
  const seen: unknown[] = [];
  const set = define(({ records }) => {
    for (const record of records) {
      seen.push(record.new, record.old, record.changedFields);
      record.new.b = "set";
      if (record.new.a > 5) record.addError("a", "TOO_MUCH", "Too much.");
    }
  });
  assert.deepEqual(await run(set, input), {
    ok: { records: [{ key: "0", changes: { b: "set" } }, { key: "1", errors: [{ field: "a", code: "TOO_MUCH", message: "Too much." }] }] },
  });
  assert.deepEqual(seen.slice(1, 3), [{ a: 1 }, ["a"]]);
  const foreign = await run(define(({ records }) => { records[0].new.a = 3; }), input);
  assert.deepEqual(foreign, { failed: { code: "VALIDATION_ERROR", retryable: false } });
  assert.deepEqual(await run(define(({ processes }) => processes.start("p")), input), { failed: { code: "PERMISSION_DENIED", retryable: false } });
  const unknown = await run(set, { operation: "create", records: [{}] });
  assert.ok("failed" in unknown && unknown.failed.code === "INPUT_INVALID");
});

test("files define what they export as default and in lists, each thing once", () => {
  const nothing = (): void => {};
  const first = defineJob({ key: "first" }, nothing);
  const { project, problems } = collect([
    { file: "src/jobs/first.ts", exports: { default: first, helper: defineJob({ key: "helper" }, nothing) } },
    { file: "src/jobs/index.ts", exports: { jobs: [first, defineJob({ key: "second" }, nothing)] } },
    { file: "src/jobs/other.ts", exports: { default: defineJob({ key: "FIRST" }, nothing) } },
    { file: "src/scripts/reports/daily.ts", exports: { default: defineScript(nothing) } },
    { file: "src/onboard.ts", exports: { default: defineScript({ name: "start" }, nothing) } },
    { file: "src/main.ts", exports: { default: createRouter().get("/a", nothing).toHandler(), jobs: "none" } },
    { file: "src/bad name.ts", exports: { default: defineScript(nothing) } },
    { file: "src/plain.ts", exports: { default: 5, actions: [{ key: "x" }] } },
  ]);
  assert.deepEqual([...project.jobs.keys()], ["first", "second"]);
  assert.deepEqual([...project.scripts.keys()], ["reports/daily", "start"]);
  assert.deepEqual([...project.routes.keys()], ["GET/a"]);
  assert.deepEqual(problems.map(({ file }) => file), ["src/jobs/other.ts", "src/main.ts", "src/bad name.ts", "src/plain.ts"]);
});

/** NB-09 */
test("a version is registered with what the fleet has to know, and without tools that only a browser can carry out", async () => {
  const nothing = (): void => {};
  const { project } = collect([{
    file: "src/index.ts",
    exports: {
      default: defineScript(nothing),
      jobs: [defineJob({ key: "j", schedule: { cron: "0 2 * * *", timezone: "Asia/Tokyo" } }, nothing)],
      triggers: [defineTrigger({ key: "t", object: "o", timing: "afterChange", operations: ["create"], fields: ["a"] }, nothing)],
      actions: [defineAction({ key: "a", effect: "read", input: s.object({}), output: s.object({}), handler: () => ({}) })],
    },
  }]);
  const tool = await prepareTool({ scope: "GENERAL", definition: { description: "d" }, invoke: nothing }, { name: "find", file: "ai/tools/find.ts" });
  const window = await prepareTool({ scope: "GENERAL", execution: "frontend", defaultPermission: "ALLOW", definition: { description: "d" }, invoke: nothing }, { name: "window", file: "x" });
  assert.deepEqual(manifest("1.0.0", project, [tool, window]), {
    version: "1.0.0",
    jobs: [{ key: "j", name: "j", timeoutMs: 30_000, maxAttempts: 5, schedule: { cron: "0 2 * * *", timeZone: "Asia/Tokyo" } }],
    scripts: ["index"], routes: [], triggers: [{ key: "t", timeoutMs: 2_000 }], actions: [{ key: "a", access: "read", timeoutMs: 8_000 }],
    tools: [{ name: "find", title: "find", description: "d", schema: { type: "object", properties: {} }, permission: "ASK", scope: "GENERAL" }],
  });
});
