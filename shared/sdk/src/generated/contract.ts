// Generated from the contract of the fleet by `npm run generate`. Do not edit.

/**
 * Why a request was not done. The word is the contract; the text is fixed English.
 */
export type ErrorCode =
  | "VALIDATION_ERROR"
  | "PERMISSION_DENIED"
  | "NOT_FOUND"
  | "RATE_LIMITED"
  | "RETRYABLE"
  | "IDEMPOTENCY_CONFLICT"
  | "MAX_HOP_EXCEEDED"
  | "AGENT_DEPTH_EXCEEDED"
  | "PROCESSES_DISABLED"
  | "AGENTS_DISABLED"
  | "NOT_SUPPORTED"
  | "INSUFFICIENT_CREDITS"
  | "AI_SUBSCRIPTION_REQUIRED"
  | "AI_SEAT_REQUIRED"
  | "AGENT_CREDIT_LIMIT_EXCEEDED"
  | "MODEL_NOT_PRICED"
  | "RECIPIENT_NOT_FOUND"
  | "RECIPIENT_ACCESS_DENIED"
  | "RECIPIENT_AI_SEAT_REQUIRED"
  | "DELIVERY_UNAVAILABLE";
export type ReplyOfProcessStarted =
  | {
      ok: true;
      data: ProcessStarted;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfProcessState =
  | {
      ok: true;
      data: ProcessState;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
/**
 * As whom an agent acts.
 */
export type RunAs = "caller" | "agent";
/**
 * What happens to tool calls that want a person's approval.
 */
export type ApprovalPolicy = "deny" | "autoApprove";
/**
 * Which conversation a message lands in.
 */
export type Conversation = "new" | "latest";
export type ReplyOfAgentStarted =
  | {
      ok: true;
      data: AgentStarted;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfAgentRunState =
  | {
      ok: true;
      data: AgentRunState;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
/**
 * What kind of execution of project code makes a call.
 */
export type Source =
  | "script"
  | "route"
  | "trigger-before"
  | "trigger-after"
  | "job"
  | "action"
  | "webhook"
  | "schedule"
  | "batch"
  | "development";
/**
 * What a host is asked for.
 */
export type HostWork = "task" | "tool";
/**
 * How a request went.
 */
export type HostOutcome =
  | {
      ok: {
        [k: string]: unknown;
      };
    }
  | {
      error: {
        /**
         * Its code: 1 to 128 characters.
         */
        code: string;
        /**
         * What it carries.
         */
        variables?: {
          [k: string]: unknown;
        };
      };
    }
  | {
      failed: {
        /**
         * A fixed word: capital letters, digits and `_`, at most 64.
         */
        code: string;
        /**
         * Whether another attempt can help.
         */
        retry: boolean;
        /**
         * Milliseconds that the next attempt should wait, at most a day.
         */
        retryAfterMs?: number | null;
      };
    };

/**
 * The job that gets the outcome.
 */
export interface OutcomeJob {
  /**
   * A job that the active version of the project declares.
   */
  job: string;
  /**
   * Given back to the job unchanged: JSON of at most 8,192 bytes.
   */
  payload?: unknown;
}
/**
 * Options of `processes.start` as they travel.
 */
export interface ProcessStart {
  /**
   * The Process: 1 to 64 letters, digits, `_` or `-`.
   */
  processInfoId: string;
  /**
   * Values of the variables marked as input: a JSON object of at most 65,536 bytes.
   */
  input?: {
    [k: string]: unknown;
  };
  /**
   * A name for people: 1 to 255 characters.
   */
  instanceName?: string;
  /**
   * Makes two starts one run.
   */
  idempotencyKey?: string;
  onComplete?: OutcomeJob;
}
/**
 * Answer to `processes.start`.
 */
export interface ProcessStarted {
  /**
   * The run.
   */
  instanceId: string;
  /**
   * Whether an earlier start with the same key made this run.
   */
  duplicate: boolean;
}
/**
 * An error as it travels.
 */
export interface ErrorBody {
  code: ErrorCode;
  /**
   * The fixed English sentence of the code.
   */
  message: string;
  /**
   * Facts that a program can use: field, limit, size, reason. Never a value that the caller sent.
   */
  details?: {
    [k: string]: unknown;
  };
}
/**
 * Options of `processes.get`.
 */
export interface ProcessGet {
  /**
   * The run.
   */
  instanceId: string;
}
/**
 * Answer to `processes.get`.
 */
export interface ProcessState {
  /**
   * The run.
   */
  instanceId: string;
  /**
   * The version of the Process that runs.
   */
  processId: string;
  /**
   * The Process.
   */
  processInfoId: string;
  /**
   * `NOT_STARTED`, `RUNNING`, `PAUSED`, `COMPLETED`, `FAILED`, `CANCELED` or `DELETED`.
   */
  state: string;
  /**
   * Unix milliseconds, or null before the run has begun.
   */
  startedAt?: number | null;
  /**
   * Unix milliseconds, or null before the run has ended.
   */
  finishedAt?: number | null;
}
/**
 * A record that an agent gets to see.
 */
export interface AgentRecord {
  /**
   * The kind of record: a letter or `_`, then letters, digits and `_`, at most 355 characters.
   */
  objectSlug: string;
  /**
   * Which one: 1 to 128 characters.
   */
  recordId: string;
  /**
   * Whether its activities are shown too.
   */
  withActivities?: boolean;
}
/**
 * The person who may get a message of an agent, and where it lands.
 */
export interface DeliverTo {
  /**
   * The person.
   */
  personnelId: string;
  conversation?: Conversation;
  /**
   * Names a conversation that is opened: one line of 1 to 200 characters.
   */
  title?: string;
}
/**
 * Options of `agents.start` as they travel.
 */
export interface AgentStart {
  /**
   * The agent: 1 to 64 letters, digits, `_` or `-`.
   */
  agentId: string;
  /**
   * What the agent is to do: 1 to 10,000 characters, not blank.
   */
  instruction: string;
  /**
   * Facts for the agent: at most 50 strings, numbers and booleans, 65,536 bytes of JSON in all, a string at most 32,768
   * characters.
   */
  variables?: {
    [k: string]: unknown;
  };
  /**
   * Records that the agent gets to see: at most 20, each once.
   *
   * @maxItems 20
   */
  records?: AgentRecord[];
  /**
   * JSON Schema that the result must fit: an object, at most 16,384 bytes, 8 levels deep.
   */
  resultSchema?: {
    [k: string]: unknown;
  };
  runAs?: RunAs;
  approvalPolicy?: ApprovalPolicy;
  /**
   * Longest time of the run, in seconds: 10 to 1,800; 300 unless it is given.
   */
  timeoutSeconds?: number;
  /**
   * Makes two starts one run.
   */
  idempotencyKey?: string;
  onResult?: OutcomeJob;
  deliverTo?: DeliverTo;
}
/**
 * Answer to `agents.start`.
 */
export interface AgentStarted {
  /**
   * The run.
   */
  runId: string;
  /**
   * Whether an earlier start with the same key made this run.
   */
  duplicate: boolean;
}
/**
 * Options of `agents.get`.
 */
export interface AgentGet {
  /**
   * The run.
   */
  runId: string;
}
/**
 * Answer to `agents.get`.
 */
export interface AgentRunState {
  /**
   * The run.
   */
  runId: string;
  /**
   * `QUEUED`, `RUNNING`, `COMPLETED`, `FAILED`, `TIMEOUT` or `CANCELLED`; treat any other word as final.
   */
  status: string;
  /**
   * The last answer of the agent, or null.
   */
  text?: string | null;
  /**
   * The result, or null. Fits `resultSchema`.
   */
  result: unknown;
  /**
   * Why it failed, or null.
   */
  error?: AgentRunError | null;
  /**
   * What became of the message to a person; null for runs without `deliverTo`, and provisional until the run has ended.
   */
  delivery?: AgentDelivery | null;
}
/**
 * Why an agent run failed.
 */
export interface AgentRunError {
  /**
   * A word of the contract.
   */
  code: string;
  /**
   * The fixed English sentence of that word.
   */
  message: string;
}
/**
 * What became of the message to a person.
 */
export interface AgentDelivery {
  /**
   * `SENT`, `NOT_SENT`, `BLOCKED` or `FAILED`.
   */
  status: string;
  /**
   * Why it was blocked or failed, or null.
   */
  errorCode?: string | null;
  /**
   * Null unless a message was sent.
   */
  chatSessionId?: string | null;
  /**
   * Null unless a message was sent.
   */
  conversationId?: string | null;
  /**
   * Whether the message opened a conversation.
   */
  newConversation: boolean;
}
/**
 * The claims of an execution token (a JWT signed with EdDSA). Identity comes from here and from the stored run only.
 */
export interface Claims {
  /**
   * Always [`AUDIENCE`].
   */
  aud: string;
  /**
   * Unix seconds after which the token is refused.
   */
  exp: number;
  /**
   * Unix seconds at which it was made.
   */
  iat: number;
  /**
   * The workspace.
   */
  workspace: string;
  /**
   * The project whose code is executed.
   */
  project: string;
  /**
   * The version of the project whose code is executed; absent means the active one.
   */
  version?: string | null;
  /**
   * Names the execution; its calls are counted under this name.
   */
  execution: string;
  source: Source;
  /**
   * The person on whose behalf it runs, or null for an execution without a user. Never absent.
   */
  user?: string | null;
  /**
   * Whether the execution may only read.
   */
  readOnly?: boolean;
  /**
   * Steps left of the automation budget.
   */
  hops: number;
  /**
   * How many agents are around this execution.
   */
  depth?: number;
  /**
   * Links of the job chain that led here.
   */
  chain?: number;
  /**
   * For a backfill: a start that meets a daily limit waits for the next UTC day instead of being refused.
   */
  waitForDay?: boolean;
}
/**
 * A Process run that has ended, as its job sees it.
 */
export interface EndedProcess {
  /**
   * The run.
   */
  instanceId: string;
  /**
   * The version of the Process that ran.
   */
  processId: string;
  /**
   * The Process.
   */
  processInfoId: string;
  /**
   * `COMPLETED`, `FAILED`, `CANCELED` or `DELETED`.
   */
  state: string;
  /**
   * Output variables; null when there are none or when they are too large.
   */
  output: unknown;
  /**
   * Unix milliseconds.
   */
  finishedAt?: number | null;
}
/**
 * The payload of a Process completion job.
 */
export interface ProcessCompletion {
  /**
   * What `onComplete.payload` said, or null.
   */
  payload: unknown;
  process: EndedProcess;
}
/**
 * An agent run that has ended, as its job sees it.
 */
export interface EndedAgentRun {
  /**
   * The run.
   */
  runId: string;
  /**
   * `COMPLETED`, `FAILED`, `TIMEOUT` or `CANCELLED`.
   */
  status: string;
  /**
   * The last answer of the agent, cut at 32 KiB, or null.
   */
  text?: string | null;
  /**
   * The result; null when there is none or when it is larger than 16 KiB.
   */
  result: unknown;
  /**
   * Why it failed, or null.
   */
  error?: AgentRunError | null;
  /**
   * What it has used; null for a run that has not begun.
   */
  usage?: AgentUsage | null;
  /**
   * What became of the message to a person; null for runs without `deliverTo`.
   */
  delivery?: AgentDelivery | null;
}
/**
 * What an agent run has used.
 */
export interface AgentUsage {
  /**
   * Tokens that models have read.
   */
  inputTokens: number;
  /**
   * Tokens that models have written.
   */
  outputTokens: number;
  /**
   * Answers of the model.
   */
  iterations: number;
  /**
   * From the start to the end, in milliseconds.
   */
  durationMs: number;
}
/**
 * The payload of an agent result job.
 */
export interface AgentResult {
  /**
   * What `onResult.payload` said, or null.
   */
  payload: unknown;
  agentRun: EndedAgentRun;
}
/**
 * One attempt of a background job, on the queue of its project.
 */
export interface JobRun {
  /**
   * The job run; the same for every attempt and every repetition of this message.
   */
  jobId: string;
  /**
   * Which job of the project.
   */
  job: string;
  /**
   * The project.
   */
  project: string;
  /**
   * The workspace.
   */
  workspace: string;
  /**
   * Which attempt this is, from 1.
   */
  attempt: number;
  /**
   * `enqueue` or `schedule`.
   */
  source: string;
  /**
   * What enqueued it: `process:<instanceId>` or `agent:<runId>` for outcomes.
   */
  enqueuedBy: string;
  /**
   * Unix milliseconds.
   */
  enqueuedAt: number;
  /**
   * The person it runs as, or null.
   */
  user?: string | null;
  /**
   * Automation steps it has.
   */
  hops: number;
  /**
   * Agents around it.
   */
  depth: number;
  /**
   * Links of its job chain, itself included.
   */
  chain: number;
  /**
   * What the handler gets.
   */
  payload: unknown;
}
/**
 * How one attempt of a job ended, as its host reports it.
 */
export interface JobResult {
  /**
   * The job run.
   */
  jobId: string;
  /**
   * The attempt that ended.
   */
  attempt: number;
  /**
   * Whether the handler returned without an error.
   */
  succeeded: boolean;
}
/**
 * A request to the hosts of a project. Published to the queue of the project; `reply_to` names the routing key of the answer
 * on the exchange `x.answers`.
 */
export interface HostRequest {
  /**
   * `<run>:<instance>:<attempt>`, also the message id. The same on every repetition of this message.
   */
  requestId: string;
  kind: HostWork;
  /**
   * Which work of that kind: the type of the task.
   */
  name: string;
  /**
   * The workspace.
   */
  workspace: string;
  /**
   * The project.
   */
  project: string;
  /**
   * The run.
   */
  runId: string;
  /**
   * The element of the Process.
   */
  elementId: string;
  /**
   * The instance of the task in the run.
   */
  instance: number;
  /**
   * Which attempt this is, from 1.
   */
  attempt: number;
  /**
   * Fixed settings of the task.
   */
  headers: {
    [k: string]: string;
  };
  /**
   * Variables of the task.
   */
  variables: {
    [k: string]: unknown;
  };
  /**
   * Unix milliseconds after which nobody waits for the answer. A host that takes the request later drops it.
   */
  deadline: number;
  /**
   * What the answer has to repeat, so that nobody else can give it. Absent where the fleet has no key for it.
   */
  answerKey?: string | null;
}
/**
 * A host has begun. For a task it is taken note of and changes nothing: its attempt has the time that the Process gives it.
 */
export interface HostAccepted {
  /**
   * The request.
   */
  requestId: string;
  /**
   * Unix milliseconds by which the host means to be done.
   */
  until: number;
}
/**
 * How a host has done what it was asked for. Message id: `answer:<requestId>`.
 */
export interface HostAnswer {
  /**
   * The request.
   */
  requestId: string;
  /**
   * The workspace, as the request said.
   */
  workspace: string;
  /**
   * The project, as the request said.
   */
  project: string;
  /**
   * The run, as the request said.
   */
  runId: string;
  /**
   * The instance, as the request said.
   */
  instance: number;
  /**
   * The attempt, as the request said.
   */
  attempt: number;
  /**
   * What the request said, if it said one.
   */
  answerKey?: string | null;
  outcome: HostOutcome;
}
/**
 * How far a host has got. For a task it is taken note of and not kept.
 */
export interface HostProgress {
  /**
   * The request.
   */
  requestId: string;
  /**
   * A text of at most 16 KiB.
   */
  chunk: string;
}
