import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { s } from "../../src/index.js";
import { createApis } from "../../src/runtime/index.js";
import { checkJsonSchema } from "../../src/schema/json-schema.js";

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
