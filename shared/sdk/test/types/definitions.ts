/** What the define functions accept, reject and infer. */
import type {
  ActionContext, ActionDefinition, ActionHandler, AgentResultJobPayload, CogoverRecordId, InferSchema, JobDefinition,
  ProcessCompletionJobPayload, SandboxHandler, ScriptContext, ScriptDefinition,
} from "../../src/index.js";
import {
  createRouter, defineAction, defineJob, defineRoute, defineScript, defineTrigger, NotFoundError, RetryableError, s,
} from "../../src/index.js";
import { type Equal, holds } from "./equal.js";

export const script: ScriptDefinition = defineScript(async ({ input, processes, agents, jobs, data, log }) => {
  holds<Equal<typeof input, unknown>>();
  log.info("fields may be empty", { id: null, nothing: undefined });
  log.warn("no details");
  const { instanceId } = await processes.start("p");
  await agents.start("a", { instruction: "i" });
  await jobs.enqueue("j", { instanceId });
  const lead = await data.object("lead").records.get("L1", { fields: ["name"] });
  if (lead === null) throw new NotFoundError("lead", "L1");
  holds<Equal<typeof lead.id, CogoverRecordId>>();
  await data.object("lead").records.update(lead.id, { name: "n", owner: null });
  return { name: lead.fields["name"] };
});

export const typed = defineScript<{ recordId: string }, { total: number }>(({ input }) => ({ total: input.recordId.length }));
export const named = defineScript<{ n: number }>({ name: "reports/daily" }, ({ input }) => input.n);
// @ts-expect-error the output is what was declared
defineScript<unknown, { total: number }>(() => ({ total: "1" }));
// @ts-expect-error a handler is a function
defineScript({ handler: 1 });

export const jobs: readonly JobDefinition[] = [
  defineJob({ key: "plain" }, ({ payload, job }) => {
    holds<Equal<typeof payload, unknown>>();
    holds<Equal<typeof job.source, "enqueue" | "schedule">>();
    if (job.attempt > 1) throw new RetryableError("later", { attempt: job.attempt });
  }),
  defineJob<ProcessCompletionJobPayload<{ orderId: CogoverRecordId }>>({ key: "done", maxAttempts: 3 }, async ({ payload, data }) => {
    // @ts-expect-error there may be no payload
    void payload.process;
    if (payload?.payload == null) return;
    await data.object("order").records.update(payload.payload.orderId, { state: payload.process.state });
  }),
  defineJob<AgentResultJobPayload<null, { next: "call" | "email" }>>({
    key: "advice", schedule: { cron: "*/5 * * * *", timezone: "Asia/Ho_Chi_Minh" },
  }, ({ payload }) => {
    const next = payload?.agentRun.result?.next;
    holds<Equal<typeof next, "call" | "email" | undefined>>();
  }),
];
// @ts-expect-error a job has a key
defineJob({}, () => {});
// @ts-expect-error there is no such option
defineJob({ key: "k", retries: 3 }, () => {});
// @ts-expect-error a job has a handler
defineJob({ key: "k" });

const input = s.object({ leadId: s.recordId("lead"), rating: s.integer(), strict: s.boolean().optional() });
const output = s.object({ score: s.number(), tier: s.enum(["A", "B"]) });
export const action: ActionDefinition = defineAction({
  key: "score_lead",
  label: "Score lead",
  description: "Scores a lead.",
  exposeTo: ["process", "agent"],
  effect: "read",
  input,
  output,
  timeoutMs: 5_000,
  handler({ action, log }, given) {
    holds<Equal<typeof given, InferSchema<typeof input>>>();
    log.info("scored", { runId: action.runId, effect: action.effect });
    return { score: given.rating, tier: given.strict === true ? "A" : "B" };
  },
});
const handler: ActionHandler<typeof input, typeof output> = async ({ action }: ActionContext, given) => ({ score: given.rating + action.runId.length, tier: "A" });
defineAction({ key: "k", effect: "write", input, output, handler });
// @ts-expect-error the output fits its schema
defineAction({ key: "k", effect: "write", input, output, handler: () => ({ score: 1, tier: "C" }) });
// @ts-expect-error an action reads or writes
defineAction({ key: "k", effect: "both", input, output, handler });
// @ts-expect-error an input is not optional
defineAction({ key: "k", effect: "read", input: input.optional(), output, handler });

export const triggers = [
  defineTrigger({
    key: "confirmed", object: "order", timing: "afterChange", operations: ["create", "update"], fields: ["status", "amount"],
    changedFields: ["status"], when: { op: "=", field: "status", params: "confirmed" }, runWhen: "onEnter",
  }, async ({ records, trigger, processes }) => {
    holds<Equal<typeof trigger.operation, "create" | "update">>();
    for (const record of records) await processes.start("ship", { input: { id: record.id, status: record.new["status"] }, idempotencyKey: `${trigger.changeId}:${record.key}` });
  }),
  defineTrigger({ key: "gone", object: "order", timing: "beforeChange", operations: ["delete"], fields: ["status"] }, ({ records }) => {
    for (const record of records) {
      // @ts-expect-error a record that is deleted has no new values
      void record.new.status;
      record.addError(null, "NOT_ALLOWED", "Keep it.");
    }
  }),
];
// @ts-expect-error a trigger runs before or after
defineTrigger({ key: "k", object: "o", timing: "during", operations: ["create"], fields: ["a"] }, () => {});

export const route = defineRoute({ method: "GET", path: "/orders/:orderId" }, ({ request, response }) =>
  response.json({ id: request.params["orderId"] }, { status: 201, headers: { location: "/x" } }));
const router = createRouter();
router.post("/hello", async ({ request, jobs, response }) => response.json(await jobs.enqueue("plain", request.body), { status: 202 }))
  .get("/", () => ({ ok: true }));
export default router.toHandler();

export const handlers: readonly SandboxHandler[] = [
  defineScript<{ readonly name?: unknown }, { greeting: string }>(({ request }: ScriptContext<{ readonly name?: unknown }>) => ({ greeting: `${String(request.body.name)}` })),
  createRouter().toHandler(),
  // @ts-expect-error a job is not called
  defineJob({ key: "k" }, () => {}),
];

/** Lists that are kept elsewhere may be readonly, and a field of the log may be null or missing. */
const OPERATIONS = ["create", "update"] as const;
const FIELDS = ["status"] as const;
const CALLERS = ["agent"] as const;
defineTrigger({ key: "listed", object: "order", timing: "afterChange", operations: OPERATIONS, fields: FIELDS, changedFields: FIELDS }, ({ log, records }) => {
  log.debug("seen", { owner: null, count: records.length, missing: undefined });
  // @ts-expect-error records are not changed
  records.push(records[0]);
});
defineAction({ key: "listed", effect: "write", exposeTo: CALLERS, input, output, handler });
defineScript(async ({ input, data }) => {
  // @ts-expect-error nobody has checked the input
  void input.id;
  const many = await data.object("lead").records.getMany(["L1"] as const);
  for (const { id } of many.records) await data.object("lead").records.update(id, { seen: true });
  // @ts-expect-error a record is named
  await data.object("lead").records.update({ id: "L1" }, {});
  return null;
});
// @ts-expect-error a level of the log has a message
defineScript(({ log }) => log.info());
