/** Jobs that a host takes from a real broker: what it tells, and that no crash and no lost connection loses one. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Host, working } from "../fleet.js";
import { until } from "../project.js";

const RUN = "PI1501JDX3Z8GF0000000000000000";
const STATE = { instanceId: RUN, processId: "p1", processInfoId: "p", state: "RUNNING", startedAt: 1, finishedAt: null };
const CODE = `
import { defineJob, RetryableError } from "@cogover/sdk";
export const jobs = [
  defineJob({ key: "fine" }, async ({ payload, job, processes }) => {
    if (payload.a !== 1 || job.id === "" || job.attempt !== 1) throw new Error("payload or job is wrong");
    await processes.get("${RUN}");
  }),
  defineJob({ key: "plain" }, () => {}),
  defineJob({ key: "retry" }, () => { throw new RetryableError("s3cret"); }),
  defineJob({ key: "throws" }, () => { throw new Error("s3cret"); }),
  defineJob({ key: "hangs" }, () => new Promise(() => {})),
  defineJob({ key: "slow" }, async ({ processes }) => {
    await processes.get("${RUN}");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }),
];
`;

/** CG-110 */
test("a job is accepted, executed with its own token, told and then acknowledged", async (context) => {
  const { fleet } = await working(context, CODE);
  fleet.operations.set("processes.get", () => STATE);
  fleet.job("fine", "JB1");
  await until("the result", () => fleet.of("job.result.v1").length > 0);
  assert.deepEqual(fleet.of("job.accepted.v1"), [{ kind: "job.accepted.v1", id: "accepted:JB1:1", body: { jobId: "JB1", attempt: 1 } }]);
  assert.deepEqual(fleet.of("job.result.v1"), [
    { kind: "job.result.v1", id: "result:JB1:1", body: { jobId: "JB1", attempt: 1, succeeded: true } },
  ]);
  const [asked] = fleet.requests("processes.get");
  assert.deepEqual([asked?.token, asked?.payload], ["execution-token", { instanceId: RUN }]);
});

test("a failed attempt says its code and whether another one can help, and nothing of its text", async (context) => {
  const { fleet, host } = await working(context, CODE);
  fleet.job("retry", "JB1");
  fleet.job("throws", "JB2");
  fleet.job("hangs", "JB3", { timeoutMs: 200 });
  fleet.job("not_there", "JB4");
  await until("four results", () => fleet.of("job.result.v1").length === 4);
  const errors = new Map(fleet.of("job.result.v1").map(({ body }) => [body["jobId"], body["error"]]));
  assert.deepEqual(errors.get("JB1"), { code: "RETRYABLE", retryable: true });
  assert.deepEqual(errors.get("JB2"), { code: "SCRIPT_ERROR", retryable: false });
  assert.deepEqual(errors.get("JB3"), { code: "JOB_TIMEOUT", retryable: true });
  assert.deepEqual(errors.get("JB4"), { code: "JOB_NOT_DECLARED", retryable: true });
  assert.ok(!JSON.stringify([fleet.told, host.lines]).includes("s3cret"));
});

test("a job that comes twice is executed once and told twice, also while it runs", async (context) => {
  const { fleet } = await working(context, CODE);
  fleet.operations.set("processes.get", () => STATE);
  fleet.job("slow", "JB1");
  fleet.job("slow", "JB1");
  await until("two results", () => fleet.of("job.result.v1").length === 2);
  fleet.job("slow", "JB1");
  await until("three results", () => fleet.of("job.result.v1").length === 3);
  assert.equal(fleet.requests("processes.get").length, 1);
  fleet.job("slow", "JB1", { attempt: 2 });
  await until("the second attempt", () => fleet.of("job.result.v1").some(({ body }) => body["attempt"] === 2));
  assert.equal(fleet.requests("processes.get").length, 2);
});

/** CG-110 */
test("hosts that are killed when a job is taken, executed and told leave it to the next one, under the same id", async (context) => {
  const { fleet, host, root } = await working(context, CODE, [], { TEST_DIES_AT: "taken" });
  fleet.job("plain", "JB1");
  assert.equal(await host.ended, null);
  for (const place of ["executed", "told"]) {
    const next = Host.start(context, fleet, root, [], { TEST_DIES_AT: place });
    assert.equal(await next.ended, null, place);
  }
  const told = fleet.of("job.result.v1").length;
  assert.ok(told > 0, "a host that dies when a job is told has told it");
  await Host.start(context, fleet, root).taking();
  await until("the result", () => fleet.of("job.result.v1").length > told);
  const results = fleet.of("job.result.v1").map(({ id, body }) => [id, body]);
  for (const result of results) assert.deepEqual(result, ["result:JB1:1", { jobId: "JB1", attempt: 1, succeeded: true }]);
  await until("an empty queue", async () => (await fleet.waiting("jobs.acme.shop")) === 0);
});

test("a lost connection loses no job and asks no call under another id", async (context) => {
  const { fleet, host } = await working(context, CODE);
  let unanswered = true;
  fleet.operations.set("processes.get", () => (unanswered ? undefined : STATE));
  fleet.job("slow", "JB1", { timeoutMs: 30_000 });
  await until("the call", () => fleet.requests("processes.get").length === 1);
  unanswered = false;
  await until("connections to cut", async () => (await fleet.cut()) > 0);
  await until("the result", () => fleet.of("job.result.v1").length > 0, 20_000);
  const ids = new Set(fleet.requests("processes.get").map(({ id }) => id));
  assert.equal(ids.size, 1, "each repetition of a call has its message id");
  assert.ok(fleet.requests("processes.get").length > 1);
  await until("an empty queue", async () => (await fleet.waiting("jobs.acme.shop")) === 0);
  for (const { body } of fleet.of("job.result.v1")) assert.deepEqual(body, { jobId: "JB1", attempt: 1, succeeded: true });
  assert.equal(host.process.exitCode, null);
});

test("a host that is told to stop finishes what runs and ends with 0", async (context) => {
  const { fleet, host } = await working(context, CODE);
  fleet.operations.set("processes.get", () => STATE);
  fleet.job("slow", "JB1");
  await until("the job runs", () => fleet.requests("processes.get").length === 1);
  host.process.kill("SIGTERM");
  assert.equal(await host.ended, 0);
  assert.deepEqual(fleet.of("job.result.v1").map(({ body }) => body["succeeded"]), [true]);
  assert.equal(await fleet.take("jobs.acme.shop"), false);
});

test("what does not finish in the time for draining goes back to its queue", async (context) => {
  const { fleet, host } = await working(context, CODE, ["--drain-seconds", "0"]);
  fleet.job("hangs", "JB1", { timeoutMs: 60_000 });
  await until("the job runs", () => fleet.of("job.accepted.v1").length === 1);
  host.process.kill("SIGTERM");
  assert.equal(await host.ended, 0);
  assert.equal(fleet.of("job.result.v1").length, 0);
  await until("the job is back", () => fleet.take("jobs.acme.shop"));
});

test("a host works only while its version is the active one", async (context) => {
  const { fleet } = await working(context, CODE);
  fleet.active = "2";
  await until("it stops", async () => {
    fleet.job("plain", `JB${Date.now()}`);
    return (await fleet.waiting("jobs.acme.shop")) > 0;
  });
  const told = fleet.of("job.result.v1").length;
  fleet.active = "1";
  await until("it goes on", () => fleet.of("job.result.v1").length > told);
});

test("a newer version takes over: its host works, and the older one finishes what it has", async (context) => {
  const { fleet, host, root } = await working(context, CODE);
  fleet.operations.set("processes.get", () => STATE);
  fleet.job("slow", "JB1");
  await until("the job runs", () => fleet.requests("processes.get").length === 1);
  const newer = Host.start(context, fleet, root, ["--version-name", "2"]);
  await newer.taking();
  await until("the older one takes no more", () => host.lines.filter((line) => line.message === "taking no more messages").length === 3);
  await until("the result of the older one", () => fleet.of("job.result.v1").length === 1);
  fleet.job("plain", "JB2");
  await until("the result of the newer one", () => fleet.of("job.result.v1").length === 2);
  const by = (one: Host): unknown[] => one.lines.filter((line) => line.message === "a handler has ended").map((line) => line["id"]);
  assert.deepEqual([by(host), by(newer)], [["JB1"], ["JB2"]]);
});

test("a job of an older fleet, which names no address, is told where results went then", async (context) => {
  const { fleet } = await working(context, CODE);
  await fleet.older();
  fleet.job("plain", "JB1", { maxAttempts: undefined, timeoutMs: undefined, deadline: undefined, runAt: undefined, version: undefined }, false);
  await until("the result", () => fleet.told.length > 0);
  assert.deepEqual(fleet.told, [{ kind: "job.result.v1", id: "result:JB1:1", body: { jobId: "JB1", attempt: 1, succeeded: true } }]);
});

test("a message that cannot be read is put aside and holds nothing up", async (context) => {
  const { fleet } = await working(context, CODE);
  fleet.send("jobs.acme.shop", "job.run.v1", "x", { jobId: 1 });
  fleet.send("jobs.acme.shop", "other.v1", "y", {});
  fleet.job("plain", "JB1", { workspace: "other" });
  fleet.job("plain", "JB2", { deadline: Date.now() - 1 });
  fleet.job("plain", "JB3");
  await until("the result", () => fleet.of("job.result.v1").length > 0);
  assert.deepEqual(fleet.of("job.result.v1").map(({ body }) => body["jobId"]), ["JB3"]);
  await until("an empty queue", async () => (await fleet.waiting("jobs.acme.shop")) === 0);
});
