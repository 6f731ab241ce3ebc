import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { defineAction, defineJob, defineRoute, defineScript, defineTrigger, s } from "../../src/index.js";
import { collect, createApis, manifest } from "../../src/runtime/index.js";
import { checkJsonSchema } from "../../src/schema/json-schema.js";
import { prepareTool } from "../../src/tools/index.js";

const schemas = join(import.meta.dirname, "..", "..", "..", "..", "contracts", "schema");

/** Operations that the contract has to have a schema for; the others are held to theirs where there is one. */
const KNOWN = ["processes.start", "processes.get", "agents.start", "agents.get"];

/** CG-007 */
test("everything that is sent fits the schema of its operation, and is plain JSON", async () => {
  const sent: [string, unknown][] = [];
  const record = { objectSlug: "lead", recordId: "L1", fields: {} };
  const answer = { instanceId: "PI1", runId: "AR1", duplicate: false, status: "COMPLETED", result: null, record, records: [record] };
  const { processes, agents, jobs, data, models } = createApis(async (operation, payload) => {
    sent.push([operation, JSON.parse(JSON.stringify(payload))]);
    return answer;
  }, { source: "job" });
  const outcome = { job: "done", payload: { id: "L1", list: [1, null] } };
  const lead = data.object("lead");
  await processes.start("p");
  await processes.start("p", { input: { a: 1 }, instanceName: "n", idempotencyKey: "k:1", onComplete: outcome });
  await processes.get("PI1");
  await agents.start("a", { instruction: "i" });
  await agents.start("a", {
    instruction: "i", variables: { a: "b", n: 1, f: true }, records: [{ objectSlug: "lead", recordId: "L1", withActivities: true }],
    resultSchema: s.object({ a: s.array(s.recordId("lead"), { maxItems: 3 }) }), runAs: "agent", approvalPolicy: "autoApprove",
    timeoutSeconds: 10, idempotencyKey: "k", onResult: outcome, deliverTo: { personnelId: "P1", conversation: "new", title: "t" },
  });
  await agents.get("AR1");
  await jobs.enqueue("done");
  await jobs.enqueue("done", [1], { runAt: Date.now() + 1_000, idempotencyKey: "k" });
  await lead.records.get("L1");
  await lead.records.query();
  await lead.records.query({ where: lead.fields.id.in(["L1"]), search: "x", limit: 50 });
  await lead.records.create({ a: 1 });
  await lead.records.update("L1", { a: null });
  await models.invoke({ model: "fast", messages: [{ role: "user", content: "hi" }] });
  sent.push(["projects.register", await registration()]);
  let held = 0;
  for (const [operation, payload] of sent) {
    const file = join(schemas, `${operation}.json`);
    if (!existsSync(file)) {
      assert.ok(!KNOWN.includes(operation), `${operation} has no schema`);
      continue;
    }
    const result = checkJsonSchema(JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>, payload);
    assert.deepEqual(result.ok ? [] : result.problems, [], operation);
    held += 1;
  }
  assert.ok(held >= 7);
});

/** A version with one of everything. */
async function registration(): Promise<unknown> {
  const nothing = (): void => {};
  const exports = {
    default: defineScript(nothing),
    jobs: [defineJob({ key: "plain" }, nothing), defineJob({ key: "nightly", schedule: { cron: "0 2 * * *", timezone: "Asia/Tokyo" } }, nothing)],
    routes: [defineRoute({ method: "GET", path: "/orders/:orderId" }, nothing)],
    triggers: [defineTrigger({ key: "t", object: "o", timing: "afterChange", operations: ["create"], fields: ["a"] }, nothing)],
    actions: [defineAction({ key: "a", effect: "read", input: s.object({}), output: s.object({}), handler: () => ({}) })],
  };
  const { project, problems } = collect([{ file: "src/main.ts", exports }]);
  assert.deepEqual(problems, []);
  const options = { scope: "GENERAL", definition: { description: "d", schema: s.object({ q: s.string() }) }, invoke: nothing } as const;
  return manifest("1.0.0+abc", project, [await prepareTool(options, { name: "find", file: "ai/tools/find.ts" })]);
}
