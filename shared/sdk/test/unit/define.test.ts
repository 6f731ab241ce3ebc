import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createRouter, defineAction, defineJob, defineRoute, defineScript, defineTrigger, s, ValidationError, type JobConfig,
} from "../../src/index.js";

const nothing = (): void => {};

function refused(build: () => unknown, field: string): void {
  assert.throws(build, (error: unknown) => error instanceof ValidationError && error.details?.["field"] === field, field);
}

test("a job has the defaults of the contract and cannot be changed", () => {
  const job = defineJob({ key: "done" }, nothing);
  assert.deepEqual(job.config, { key: "done", name: "done", timeoutMs: 30_000, maxAttempts: 5 });
  assert.deepEqual([job.kind, job.key, job.handler], ["job", "done", nothing]);
  assert.ok(Object.isFrozen(job) && Object.isFrozen(job.config));
  const schedule = { cron: " 0  2 * *  1-5 " };
  const scheduled = defineJob({ key: "a", schedule }, nothing);
  schedule.cron = "changed later";
  assert.deepEqual(scheduled.config.schedule, { cron: "0 2 * * 1-5", timezone: "UTC" });
});

test("options of a job that are unknown or out of bounds are refused when it is defined", () => {
  const wrong: [unknown, string][] = [
    [{ key: "1a" }, "job.key"], [{ key: "a-b" }, "job.key"], [{ key: "a".repeat(101) }, "job.key"], [{}, "job.key"],
    [{ key: "a", name: "n".repeat(251) }, "job.name"], [{ key: "a", name: "" }, "job.name"],
    [{ key: "a", timeoutMs: 999 }, "job.timeoutMs"], [{ key: "a", timeoutMs: 60_001 }, "job.timeoutMs"], [{ key: "a", timeoutMs: 1_000.5 }, "job.timeoutMs"],
    [{ key: "a", maxAttempts: 0 }, "job.maxAttempts"], [{ key: "a", maxAttempts: 11 }, "job.maxAttempts"], [{ key: "a", maxAttempts: "5" }, "job.maxAttempts"],
    [{ key: "a", retries: 1 }, "job"], [null, "job"], [{ key: "a", schedule: "0 2 * * *" }, "job.schedule"],
    [{ key: "a", schedule: { cron: "0 2 * * *", zone: "UTC" } }, "job.schedule"],
    [{ key: "a", schedule: { cron: "0 2 * * *", timezone: "Mars/Olympus" } }, "job.schedule.timezone"],
    [{ key: "a", schedule: { cron: "0 2 * * *", timezone: "A".repeat(65) } }, "job.schedule.timezone"],
  ];
  for (const [config, field] of wrong) refused(() => defineJob(config as JobConfig, nothing), field);
  refused(() => defineJob({ key: "a" }, undefined as never), "job.handler");
});

test("cron has five fields of numbers, ranges, lists and steps", () => {
  const define = (cron: string): unknown => defineJob({ key: "a", schedule: { cron, timezone: "Asia/Ho_Chi_Minh" } }, nothing);
  for (const cron of ["* * * * *", "*/5 0-23/2 1,15 1-12 0", "59 23 31 12 7", "0-10,20-30/5 * * * *"]) define(cron);
  const wrong = [
    "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "@daily", "0 2 * * MON", "5-1 * * * *",
    "*/0 * * * *", "*/99 * * * *", "5/2 * * * *", "L * * * *", "1,,2 * * * *", "-1 * * * *", "1.5 * * * *", `${"1,".repeat(70)}1 * * * *`,
  ];
  for (const cron of wrong) refused(() => define(cron), "job.schedule.cron");
});

test("a script is named by its file unless it has a name", () => {
  assert.deepEqual({ ...defineScript(nothing) }, { kind: "script", handler: nothing });
  assert.equal(defineScript({ name: "reports/daily" }, nothing).name, "reports/daily");
  refused(() => defineScript({ name: "/x" }, nothing), "script.name");
  refused(() => defineScript({ title: "x" } as never, nothing), "script");
  refused(() => defineScript({} as never, "x" as never), "script.handler");
});

test("a route has a method, a path and a name for callers", () => {
  const route = defineRoute({ method: "GET", path: "/orders/:orderId/lines" }, nothing);
  assert.deepEqual([route.name, route.config], ["GET/orders/orderId/lines", { method: "GET", path: "/orders/:orderId/lines" }]);
  assert.equal(defineRoute({ method: "POST", path: "/" }, nothing).name, "POST");
  for (const path of ["orders", "/a/", "/a//b", "/a/../b", "/a?b", "/:a/:a", "/%20", "/*"]) {
    refused(() => defineRoute({ method: "GET", path }, nothing), "route.path");
  }
  refused(() => defineRoute({ method: "HEAD" as never, path: "/" }, nothing), "route.method");
  const router = createRouter().get("/a/:b", nothing);
  refused(() => router.get("/a/:c", nothing), "route.path");
  const before = router.toHandler();
  router.post("/a/:c", nothing);
  assert.deepEqual([before.kind, before.routes.length, router.toHandler().routes.length], ["router", 1, 2]);
});

test("an action keeps its schemas and has the limits of a route", () => {
  const action = defineAction({ key: "score", effect: "read", input: s.object({ a: s.string() }), output: s.object({}), handler: () => ({}) });
  assert.deepEqual(action.config, {
    key: "score", label: "score", description: "", exposeTo: ["process", "agent"], effect: "read", timeoutMs: 8_000,
    inputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false },
    outputSchema: { type: "object", properties: {}, required: [], additionalProperties: false },
  });
  const good = { key: "score", effect: "write", input: s.object({}), output: s.object({}), handler: () => ({}) } as const;
  refused(() => defineAction({ ...good, key: "Score" }), "action.key");
  refused(() => defineAction({ ...good, effect: "both" as never }), "action.effect");
  refused(() => defineAction({ ...good, timeoutMs: 8_001 }), "action.timeoutMs");
  refused(() => defineAction({ ...good, input: s.object({}).optional() as never }), "action.input");
  refused(() => defineAction({ ...good, output: { type: "object" } } as never), "action.output");
  refused(() => defineAction({ ...good, exposeTo: [] }), "action.exposeTo");
  refused(() => defineAction({ ...good, handler: undefined as never }), "action.handler");
  refused(() => defineAction({ ...good, retries: 1 } as never), "action");
  const deep = (levels: number): ReturnType<typeof s.object> => (levels === 1 ? s.object({}) : s.object({ a: deep(levels - 1) }));
  defineAction({ ...good, input: deep(8) });
  refused(() => defineAction({ ...good, input: deep(9) }), "action.input");
});

test("a trigger has defaults, and what makes no sense is refused", () => {
  const good = { key: "t", object: "order", timing: "beforeChange", operations: ["update"], fields: ["status"] } as const;
  const trigger = defineTrigger({ ...good, writableFields: ["level"], when: { op: "and", conditions: [{ op: "=", field: "status", params: "new" }] } }, nothing);
  const { runWhen, order, timeoutMs, writableFields } = trigger.config;
  assert.deepEqual([runWhen, order, timeoutMs, writableFields], ["always", 5_000, 2_000, ["level"]]);
  const define = (change: object): unknown => defineTrigger({ ...good, ...change } as never, nothing);
  refused(() => define({ operations: [] }), "trigger.operations");
  refused(() => define({ operations: ["update", "update"] }), "trigger.operations");
  refused(() => define({ timing: "during" }), "trigger.timing");
  refused(() => define({ fields: [] }), "trigger.fields");
  refused(() => define({ timing: "afterChange", writableFields: ["a"] }), "trigger.writableFields");
  refused(() => define({ operations: ["delete"], writableFields: ["a"] }), "trigger.writableFields");
  refused(() => define({ operations: ["create"], changedFields: ["a"] }), "trigger.changedFields");
  refused(() => define({ runWhen: "onEnter" }), "trigger.runWhen");
  refused(() => define({ timeoutMs: 3_001 }), "trigger.timeoutMs");
  refused(() => define({ order: 999 }), "trigger.order");
  for (const when of [{ op: "=" }, { op: "and", conditions: [] }, { op: "in", field: "a", params: [] }, { op: "is null", field: "a", params: 1 }, { op: "between", field: "a", params: [1] }]) {
    refused(() => define({ when }), "trigger.when");
  }
});
