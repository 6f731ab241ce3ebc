/** Processes and agents as project code sees them: the arguments, answers and job payloads of the contract, and nothing else. */
import type { ObjectSchema, ObjectShape } from "./schema/types.js";

/** A word that this SDK knows, or one that is newer than it. */
export type OpenWord<Known extends string> = Known | (string & Record<never, never>);

/** The job that gets an outcome. */
export interface OutcomeJobOptions {
  /** A job that the active version of the project declares. */
  readonly job: string;
  /** Given back to the job unchanged: JSON of at most 8,192 bytes. */
  readonly payload?: unknown;
}

/** Options of `processes.start`. */
export interface ProcessStartOptions {
  /** Values of the variables marked as input: at most 65,536 bytes of JSON. */
  readonly input?: Readonly<Record<string, unknown>>;
  /** A name for people: 1 to 255 characters. */
  readonly instanceName?: string;
  /** Makes two starts one run: 1 to 128 letters, digits, `.`, `_`, `:` or `-`. */
  readonly idempotencyKey?: string;
  /** The job that gets the outcome. */
  readonly onComplete?: OutcomeJobOptions;
}

/** Answer of `processes.start`. */
export interface ProcessStartResult {
  /** The run. */
  readonly instanceId: string;
  /** Whether an earlier start with the same key made this run. */
  readonly duplicate: boolean;
}

/** Where a Process run can stand. */
export type ProcessState = "NOT_STARTED" | "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELED" | "DELETED";

/** How a Process run can end. */
export type ProcessEnd = "COMPLETED" | "FAILED" | "CANCELED" | "DELETED";

/** Answer of `processes.get`. */
export interface ProcessInstanceState {
  /** The run. */
  readonly instanceId: string;
  /** The version of the Process that runs. */
  readonly processId: string;
  /** The Process. */
  readonly processInfoId: string;
  /** Where it stands: one of {@link ProcessState}. */
  readonly state: OpenWord<ProcessState>;
  /** Unix milliseconds; null until it has begun. */
  readonly startedAt: number | null;
  /** Unix milliseconds; null until it has ended. */
  readonly finishedAt: number | null;
}

/** An ended Process run, as its job sees it. */
export interface ProcessCompletion {
  /** The run. */
  readonly instanceId: string;
  /** The version of the Process that ran. */
  readonly processId: string;
  /** The Process. */
  readonly processInfoId: string;
  /** How it has ended. */
  readonly state: ProcessEnd;
  /** Variables marked as output; null when there are none or when they are larger than 48 KiB. */
  readonly output: Readonly<Record<string, unknown>> | null;
  /** Unix milliseconds, or null. */
  readonly finishedAt: number | null;
}

/** Payload of a job that is named in `onComplete`. */
export interface ProcessCompletionJobPayload<T = unknown> {
  /** What `onComplete.payload` said, or null. */
  readonly payload: T | null;
  /** The ended run. */
  readonly process: ProcessCompletion;
}

/** Starts Processes and looks at their runs. */
export interface ProcessesApi {
  /** Starts a Process. Answers once the run exists and does not wait for its end. */
  start(processInfoId: string, options?: ProcessStartOptions): Promise<ProcessStartResult>;
  /** Where a run stands that this project has started. */
  get(instanceId: string): Promise<ProcessInstanceState>;
}

/** A record that an agent gets to see. */
export interface AgentRecordReference {
  /** The kind of record. */
  readonly objectSlug: string;
  /** Which one. */
  readonly recordId: string;
  /** Whether its activities are shown too. */
  readonly withActivities?: boolean;
}

/** The person who may get a message of an agent, and where it lands. */
export interface AgentDeliveryTarget {
  /** The person. */
  readonly personnelId: string;
  /** `new` unless it is given; `latest` opens a new one when there is none. */
  readonly conversation?: "new" | "latest";
  /** Names a conversation that is opened: one line of 1 to 200 characters. */
  readonly title?: string;
}

/** Options of `agents.start`. */
export interface AgentStartOptions {
  /** What the agent is to do: 1 to 10,000 characters, not blank. */
  readonly instruction: string;
  /** Facts for the agent: at most 50. */
  readonly variables?: Readonly<Record<string, string | number | boolean>>;
  /** Records that the agent gets to see: at most 20. */
  readonly records?: readonly AgentRecordReference[];
  /** What the result has to fit. The root cannot be optional. */
  readonly resultSchema?: ObjectSchema<ObjectShape, false>;
  /** As whom the agent acts: `caller` unless the execution has no user. */
  readonly runAs?: "caller" | "agent";
  /** What happens to tool calls that want a person's approval: `deny` unless it is given. */
  readonly approvalPolicy?: "deny" | "autoApprove";
  /** Longest time of the run, in seconds: 10 to 1,800; 300 unless it is given. */
  readonly timeoutSeconds?: number;
  /** Makes two starts one run: 1 to 128 letters, digits, `.`, `_`, `:` or `-`. */
  readonly idempotencyKey?: string;
  /** The job that gets the outcome. */
  readonly onResult?: OutcomeJobOptions;
  /** The person who may get a message. */
  readonly deliverTo?: AgentDeliveryTarget;
}

/** Answer of `agents.start`. */
export interface AgentStartResult {
  /** The run. */
  readonly runId: string;
  /** Whether an earlier start with the same key made this run. */
  readonly duplicate: boolean;
}

/** Where an agent run can stand. Treat any other word as an end. */
export type AgentRunStatus = OpenWord<"QUEUED" | "RUNNING" | "COMPLETED" | "FAILED" | "TIMEOUT" | "CANCELLED">;

/** Why an agent run failed. */
export interface AgentRunError {
  /** A word of the contract. */
  readonly code: string;
  /** The fixed English sentence of that word. */
  readonly message: string;
}

/** What became of the message to a person. */
export interface AgentDelivery {
  /** Whether it was sent, and who or what prevented it. */
  readonly status: "SENT" | "NOT_SENT" | "BLOCKED" | "FAILED";
  /** Why it was blocked or failed, or null. */
  readonly errorCode: string | null;
  /** Null unless a message was sent. */
  readonly chatSessionId: string | null;
  /** Null unless a message was sent. */
  readonly conversationId: string | null;
  /** Whether the message opened a conversation. */
  readonly newConversation: boolean;
}

/** Answer of `agents.get`. */
export interface AgentRunState<R = unknown> {
  /** The run. */
  readonly runId: string;
  /** Where it stands. */
  readonly status: AgentRunStatus;
  /** The last answer of the agent, at most 32 KiB; null when there is none. */
  readonly text: string | null;
  /** The result, which fits `resultSchema`; null when there is none. */
  readonly result: R | null;
  /** Why it failed, or null. */
  readonly error: AgentRunError | null;
  /** What became of the message; null without `deliverTo`, and provisional until the run has ended. */
  readonly delivery: AgentDelivery | null;
}

/** What an agent run has used. */
export interface AgentUsage {
  /** Tokens that models have read. */
  readonly inputTokens: number;
  /** Tokens that models have written. */
  readonly outputTokens: number;
  /** Answers of the model. */
  readonly iterations: number;
  /** From the start to the end, in milliseconds. */
  readonly durationMs: number;
}

/** An ended agent run, as its job sees it. */
export interface AgentResultCompletion<R = unknown> extends AgentRunState<R> {
  /** What it has used; null for a run that has not begun. */
  readonly usage: AgentUsage | null;
}

/** Payload of a job that is named in `onResult`. */
export interface AgentResultJobPayload<T = unknown, R = unknown> {
  /** What `onResult.payload` said, or null. */
  readonly payload: T | null;
  /** The ended run. */
  readonly agentRun: AgentResultCompletion<R>;
}

/** Starts agents and looks at their runs. */
export interface AgentsApi {
  /** Starts an agent. Answers once the run exists and does not wait for its end. */
  start(agentId: string, options: AgentStartOptions): Promise<AgentStartResult>;
  /** Where a run stands that this project has started. */
  get<R = unknown>(runId: string): Promise<AgentRunState<R>>;
}

/** Options of `jobs.enqueue`. */
export interface EnqueueOptions {
  /** Runs the job not before this many milliseconds: 0 to 2,592,000,000 (30 days). */
  readonly delayMs?: number;
  /** Runs the job not before this time, in Unix milliseconds, at most 30 days ahead. Not together with `delayMs`. */
  readonly runAt?: number;
  /** Makes two runs of the job one, as long as the first is stored. */
  readonly idempotencyKey?: string;
}

/** Answer of `jobs.enqueue`. */
export interface EnqueueResult {
  /** The job run. */
  readonly runId: string;
  /** Whether an earlier call with the same key made this run. */
  readonly duplicate: boolean;
}

/** Runs background jobs of the project. */
export interface JobsApi {
  /** Puts a run of a job into the queue. The payload is JSON of at most 65,536 bytes. */
  enqueue(jobKey: string, payload?: unknown, options?: EnqueueOptions): Promise<EnqueueResult>;
}
