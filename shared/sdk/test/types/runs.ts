/** What the types of runs accept and reject. */
import type {
  AgentDelivery, AgentDeliveryTarget, AgentRecordReference, AgentResultCompletion, AgentResultJobPayload, AgentRunState, AgentsApi,
  AgentStartOptions, CogoverRecordId, JobsApi, ObjectSchema, ObjectShape, ProcessCompletion, ProcessCompletionJobPayload, ProcessesApi,
  ProcessInstanceState, ProcessStartOptions,
} from "../../src/index.js";
import { s } from "../../src/index.js";
import { type Equal, holds } from "./equal.js";

declare const processes: ProcessesApi;
declare const agents: AgentsApi;
declare const jobs: JobsApi;
declare const recordId: CogoverRecordId;
declare const anything: unknown;

/** CG-023, CG-024 */
export async function starts(): Promise<void> {
  await processes.start("approve-discount");
  const { instanceId, duplicate } = await processes.start("approve-discount", {
    input: { amount: 5, lines: [1], customer: recordId },
    instanceName: "n",
    idempotencyKey: "k",
    onComplete: { job: "done", payload: anything },
  });
  holds<Equal<typeof instanceId, string>>();
  holds<Equal<typeof duplicate, boolean>>();
  // @ts-expect-error the Process is required
  await processes.start();
  // @ts-expect-error an id is a text
  await processes.start(5);
  // @ts-expect-error values have names
  await processes.start("p", { input: [1] });
  // @ts-expect-error values have names
  await processes.start("p", { input: "text" });
  // @ts-expect-error an option is not null
  await processes.start("p", { instanceName: null });
  // @ts-expect-error an option that is not given is left out
  await processes.start("p", { idempotencyKey: undefined });
  // @ts-expect-error there is no such option
  await processes.start("p", { retries: 3 });
  // @ts-expect-error the job has a name
  await processes.start("p", { onComplete: { payload: 1 } });
  // @ts-expect-error an agent has onResult
  await processes.start("p", { onResult: { job: "done" } });
}

/** CG-030, CG-031 */
export async function state(): Promise<void> {
  const run = await processes.get("PI1");
  holds<Equal<keyof typeof run, "instanceId" | "processId" | "processInfoId" | "state" | "startedAt" | "finishedAt">>();
  const text: string = run.state;
  const began: number | null = run.startedAt;
  // @ts-expect-error it may not have begun
  const time: number = run.startedAt;
  // @ts-expect-error an answer is not changed
  run.state = "RUNNING";
  const other: ProcessInstanceState = { ...run, state: text };
  void [began, time, other];
}

/** CG-051, CG-052 */
export async function agentStarts(): Promise<void> {
  const records: readonly AgentRecordReference[] = [{ objectSlug: "lead", recordId, withActivities: true }, { objectSlug: "lead", recordId: "x" }];
  const deliverTo: AgentDeliveryTarget = { personnelId: "p", conversation: "latest", title: "t" };
  const options: AgentStartOptions = {
    instruction: "Look at it",
    variables: { name: "n", count: 1, active: true },
    records,
    resultSchema: s.object({ summary: s.string(), next: s.enum(["call", "email"]).optional() }),
    runAs: "caller",
    approvalPolicy: "autoApprove",
    timeoutSeconds: 60,
    idempotencyKey: "k",
    onResult: { job: "advice", payload: { customer: recordId } },
    deliverTo,
  };
  await agents.start("scout", options);
  await agents.start("scout", { instruction: "i", records: [] as const });
  // @ts-expect-error the instruction is required
  await agents.start("scout", {});
  // @ts-expect-error the options are required
  await agents.start("scout");
  // @ts-expect-error a fact is simple
  await agents.start("scout", { instruction: "i", variables: { list: [1] } });
  // @ts-expect-error a fact is not null
  await agents.start("scout", { instruction: "i", variables: { name: null } });
  // @ts-expect-error the root of a result is not optional
  await agents.start("scout", { instruction: "i", resultSchema: s.object({ a: s.string() }).optional() });
  // @ts-expect-error the root of a result is an object
  await agents.start("scout", { instruction: "i", resultSchema: s.string() });
  // @ts-expect-error a schema is built
  await agents.start("scout", { instruction: "i", resultSchema: { type: "object" } });
  // @ts-expect-error there are two identities
  await agents.start("scout", { instruction: "i", runAs: "system" });
  // @ts-expect-error there are two answers to tools that want approval
  await agents.start("scout", { instruction: "i", approvalPolicy: "ask" });
  // @ts-expect-error a record has an id
  await agents.start("scout", { instruction: "i", records: [{ objectSlug: "lead" }] });
  // @ts-expect-error a message has a recipient
  await agents.start("scout", { instruction: "i", deliverTo: { title: "t" } });
  // @ts-expect-error a conversation is new or the latest one
  await agents.start("scout", { instruction: "i", deliverTo: { personnelId: "p", conversation: "first" } });
  // @ts-expect-error seconds are a number
  await agents.start("scout", { instruction: "i", timeoutSeconds: "60" });
}

/** CG-090, CG-091, CG-096 */
export async function agentState(): Promise<void> {
  const run = await agents.get<{ summary: string }>("AR1");
  holds<Equal<typeof run.result, { summary: string } | null>>();
  holds<Equal<typeof run.text, string | null>>();
  holds<Equal<typeof run.delivery, AgentDelivery | null>>();
  const unknown = await agents.get("AR1");
  holds<Equal<typeof unknown.result, unknown>>();
  // The list of words is open.
  const status: string = run.status;
  if (run.status === "A_NEWER_WORD") return;
  // @ts-expect-error the result may be missing
  const summary: string = run.result.summary;
  // @ts-expect-error a delivery has four outcomes
  if (run.delivery?.status === "READ") return;
  void [status, summary];
}

/** CG-008, CG-041, CG-042, CG-043, CG-100, CG-104 */
export function payloads(process: ProcessCompletionJobPayload<{ orderId: string }>, agent: AgentResultJobPayload<{ id: string }, { ok: boolean }>): void {
  holds<Equal<typeof process.payload, { orderId: string } | null>>();
  holds<Equal<typeof process.process, ProcessCompletion>>();
  holds<Equal<typeof process.process.state, "COMPLETED" | "FAILED" | "CANCELED" | "DELETED">>();
  const approved: unknown = process.process.output?.["approved"];
  holds<Equal<typeof agent.agentRun, AgentResultCompletion<{ ok: boolean }>>>();
  holds<Equal<typeof agent.agentRun.result, { ok: boolean } | null>>();
  const tokens: number | undefined = agent.agentRun.usage?.inputTokens;
  const same: AgentRunState<{ ok: boolean }> = agent.agentRun;
  // @ts-expect-error what was echoed may be missing
  const id: string = agent.payload.id;
  // @ts-expect-error a Process that has ended does not run
  if (process.process.state === "RUNNING") return;
  const open: ProcessCompletionJobPayload = process;
  void [approved, tokens, same, id, open];
}

export async function enqueues(): Promise<void> {
  await jobs.enqueue("done");
  await jobs.enqueue("done", anything, { delayMs: 5, idempotencyKey: "k" });
  // @ts-expect-error there is no such option
  await jobs.enqueue("done", null, { priority: 1 });
  // @ts-expect-error a time is a number
  await jobs.enqueue("done", null, { runAt: new Date() });
}

// A schema of one shape is an object schema.
const narrow: ObjectSchema<ObjectShape, false> = s.object({ a: s.string() });
const start: ProcessStartOptions = {};
void [narrow, start];

/** Options and lists can be handed over as they are kept: nothing here may change them. */
export function kept(options: AgentStartOptions, process: ProcessStartOptions): void {
  // @ts-expect-error an option is not changed
  options.instruction = "i";
  // @ts-expect-error an option is not changed
  options.onResult = { job: "done" };
  // @ts-expect-error a list is not changed
  options.records?.push({ objectSlug: "lead", recordId: "x" });
  // @ts-expect-error a fact is not changed
  if (options.variables !== undefined) options.variables["name"] = "n";
  // @ts-expect-error an option is not changed
  process.input = {};
  // @ts-expect-error a value is not changed
  if (process.input !== undefined) process.input["amount"] = 5;
  // @ts-expect-error the job is not changed
  if (process.onComplete !== undefined) process.onComplete.job = "done";
}

/** The shapes have these fields and no others. */
export function shapes(): void {
  holds<Equal<keyof ProcessStartOptions, "input" | "instanceName" | "idempotencyKey" | "onComplete">>();
  holds<Equal<keyof AgentStartOptions,
    | "instruction" | "variables" | "records" | "resultSchema" | "runAs" | "approvalPolicy" | "timeoutSeconds" | "idempotencyKey"
    | "onResult" | "deliverTo">>();
  holds<Equal<keyof ProcessCompletion, "instanceId" | "processId" | "processInfoId" | "state" | "output" | "finishedAt">>();
  holds<Equal<keyof AgentRunState, "runId" | "status" | "text" | "result" | "error" | "delivery">>();
  holds<Equal<keyof AgentResultCompletion, keyof AgentRunState | "usage">>();
  holds<Equal<keyof AgentDelivery, "status" | "errorCode" | "chatSessionId" | "conversationId" | "newConversation">>();
  holds<Equal<keyof AgentDeliveryTarget, "personnelId" | "conversation" | "title">>();
  holds<Equal<keyof AgentRecordReference, "objectSlug" | "recordId" | "withActivities">>();
  // Nobody has checked what a payload holds.
  holds<Equal<ProcessCompletionJobPayload["payload"], unknown>>();
  holds<Equal<AgentResultJobPayload["payload"], unknown>>();
  holds<Equal<AgentResultJobPayload["agentRun"]["result"], unknown>>();
  holds<Equal<AgentDelivery["status"], "SENT" | "NOT_SENT" | "BLOCKED" | "FAILED">>();
  holds<Equal<AgentDelivery["errorCode"], string | null>>();
}

export async function answers(): Promise<void> {
  const enqueued = await jobs.enqueue("done");
  holds<Equal<keyof typeof enqueued, "runId" | "duplicate">>();
  const started = await agents.start("scout", { instruction: "i" });
  holds<Equal<keyof typeof started, "runId" | "duplicate">>();
  // @ts-expect-error a start is not its outcome
  void started.result;
  const delivery = (await agents.get(started.runId)).delivery;
  // @ts-expect-error there may be no delivery
  void delivery.status;
}
