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
  | "DELIVERY_UNAVAILABLE"
  | "JOBS_DISABLED"
  | "INPUT_INVALID"
  | "OUTPUT_INVALID"
  | "TIMEOUT"
  | "SCRIPT_ERROR"
  | "STATE_CONFLICT";
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
export type ReplyOfJobEnqueued =
  | {
      ok: true;
      data: JobEnqueued;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfRecordFound =
  | {
      ok: true;
      data: RecordFound;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfRecordsFound =
  | {
      ok: true;
      data: RecordsFound;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
/**
 * Who has said something.
 */
export type Role = "system" | "user" | "assistant";
/**
 * Whether an action may change anything.
 */
export type Access = "read" | "write";
/**
 * Whether calls of a tool run at once or need approval.
 */
export type ToolPermission = "ALLOW" | "ASK";
/**
 * How a tool gets to an agent.
 */
export type ToolScope = "GENERAL" | "SPECIFIED" | "CUSTOM";
export type ReplyOfVersionRegistered =
  | {
      ok: true;
      data: VersionRegistered;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfProjectShown =
  | {
      ok: true;
      data: ProjectShown;
    }
  | {
      ok: false;
      error: ErrorBody;
    };
export type ReplyOfSessionOpened =
  | {
      ok: true;
      data: SessionOpened;
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
  | "development"
  | "host";
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
 * What of a project is called.
 */
export type CallKind = "script" | "route" | "trigger" | "action";
/**
 * How a call went.
 */
export type CallOutcome =
  | {
      ok: unknown;
    }
  | {
      failed: CallFailure;
    };
/**
 * Codes that a host may tell.
 */
export type CallCode =
  | "INPUT_INVALID"
  | "OUTPUT_INVALID"
  | "TIMEOUT"
  | "SCRIPT_ERROR"
  | "PERMISSION_DENIED"
  | "RATE_LIMITED"
  | "MAX_HOP_EXCEEDED"
  | "RETRYABLE"
  | "NOT_FOUND"
  | "VALIDATION_ERROR"
  | "STATE_CONFLICT";

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
 * Options of `jobs.enqueue` as they travel.
 */
export interface EnqueueJob {
  /**
   * A job that the active version of the project declares.
   */
  job: string;
  /**
   * What the handler gets: JSON of at most 65,536 bytes. Null, and nothing, is no payload.
   */
  payload?: unknown;
  /**
   * How long the first attempt waits, in milliseconds: at most 30 days. Not together with `runAt`.
   */
  delayMs?: number;
  /**
   * Unix milliseconds at which the first attempt begins at the earliest: at most 30 days ahead; in the past means at once.
   */
  runAt?: number;
  /**
   * Makes two calls for the same job one job run, for as long as that is stored.
   */
  idempotencyKey?: string;
}
/**
 * Answer to `jobs.enqueue`.
 */
export interface JobEnqueued {
  /**
   * The job run.
   */
  runId: string;
  /**
   * Whether an earlier call with the same key made it.
   */
  duplicate: boolean;
}
/**
 * Options of `data.get`.
 */
export interface GetRecord {
  /**
   * The kind of record.
   */
  objectSlug: string;
  /**
   * Which one.
   */
  recordId: string;
}
/**
 * Answer to `data.get`, `data.update` and `data.create`.
 */
export interface RecordFound {
  /**
   * The record; null when there is none that the caller may see.
   */
  record?: RecordShown | null;
}
/**
 * A record.
 */
export interface RecordShown {
  /**
   * The kind of record.
   */
  objectSlug: string;
  /**
   * Which one.
   */
  recordId: string;
  /**
   * Its fields.
   */
  fields: {
    [k: string]: unknown;
  };
}
/**
 * Options of `data.query`.
 */
export interface QueryRecords {
  /**
   * The kind of record.
   */
  objectSlug: string;
  /**
   * Those of these ids, at most 20; any unless it is given.
   *
   * @maxItems 20
   */
  recordIds?: string[];
  /**
   * Those in which this text is found: at most 1,000 characters.
   */
  search?: string;
  /**
   * Those whose fields have these values: at most 20.
   */
  filter?: {
    [k: string]: unknown;
  };
  /**
   * How many at most: 1 to 50; 10 unless it is given.
   */
  limit?: number;
}
/**
 * Answer to `data.query`.
 */
export interface RecordsFound {
  /**
   * The records.
   */
  records: RecordShown[];
}
/**
 * Options of `data.create`.
 */
export interface CreateRecord {
  /**
   * The kind of record.
   */
  objectSlug: string;
  /**
   * Its fields: an object of at most 65,536 bytes.
   */
  fields: {
    [k: string]: unknown;
  };
}
/**
 * Options of `data.update`.
 */
export interface UpdateRecord {
  /**
   * The kind of record.
   */
  objectSlug: string;
  /**
   * Which one.
   */
  recordId: string;
  /**
   * The new values of its fields: an object of at most 65,536 bytes. Fields that are not named stay as they are.
   */
  fields: {
    [k: string]: unknown;
  };
}
/**
 * One message of a conversation with a model.
 */
export interface ModelMessage {
  role: Role;
  /**
   * What.
   */
  content: string;
}
/**
 * Options of `models.invoke`.
 */
export interface InvokeModel {
  /**
   * The model, as the price table names it; that of the first agent which the project has for model calls unless it is given.
   */
  model?: string;
  /**
   * The conversation: 1 to 50 messages, the last one of a user and of at most 10,000 characters; those of the system together, and
   * all others together, at most 32,768.
   *
   * @minItems 1
   * @maxItems 50
   */
  messages: ModelMessage[];
}
/**
 * A background job of a version.
 */
export interface JobDeclared {
  /**
   * Its key.
   */
  key: string;
  /**
   * A name for people, 1 to 250 characters; the key unless it is given.
   */
  name?: string;
  /**
   * One attempt, in milliseconds; 30,000 unless it is given.
   */
  timeoutMs?: number;
  /**
   * Attempts, the first included; 5 unless it is given.
   */
  maxAttempts?: number;
  schedule?: ScheduleDeclared;
}
/**
 * When a job runs by itself.
 */
export interface ScheduleDeclared {
  /**
   * Five fields: minute, hour, day of the month, month, day of the week. At most 128 characters.
   */
  cron: string;
  /**
   * The IANA time zone; UTC unless it is given.
   */
  timeZone?: string;
}
/**
 * A trigger after a change.
 */
export interface TriggerDeclared {
  /**
   * Its key.
   */
  key: string;
  /**
   * One call, in milliseconds; 2,000 unless it is given.
   */
  timeoutMs?: number;
}
/**
 * An action.
 */
export interface ActionDeclared {
  /**
   * Its key.
   */
  key: string;
  access: Access;
  /**
   * One call, in milliseconds; 8,000 unless it is given.
   */
  timeoutMs?: number;
}
/**
 * A tool for agents, carried out by the hosts of the project.
 */
export interface ToolDeclared {
  /**
   * Its name, by which agents and skills name it.
   */
  name: string;
  /**
   * A name for people, 1 to 250 characters.
   */
  title?: string;
  /**
   * What the model reads about it: 1 to 8,192 bytes.
   */
  description: string;
  /**
   * JSON Schema of its arguments, an object of at most 16,384 bytes; any object unless it is given.
   */
  schema?: {
    [k: string]: unknown;
  };
  permission?: ToolPermission;
  scope?: ToolScope;
  /**
   * Whether a call whose outcome is unknown may be repeated.
   */
  idempotent?: boolean;
  /**
   * Longest time of one call, in seconds; 60 unless it is given.
   */
  timeoutSeconds?: number;
}
/**
 * Options of `projects.register`: everything that a version declares.
 */
export interface RegisterVersion {
  /**
   * The version: 1 to 64 letters, digits, `.`, `_`, `+` and `-`. What was registered once does not change.
   */
  version: string;
  /**
   * Its background jobs, at most 50; no two keys are equal when case is ignored.
   *
   * @maxItems 50
   */
  jobs?: JobDeclared[];
  /**
   * The names of its scripts, at most 200.
   *
   * @maxItems 200
   */
  scripts?: string[];
  /**
   * The names of its HTTP routes, at most 200.
   *
   * @maxItems 200
   */
  routes?: string[];
  /**
   * Its triggers after a change, at most 200.
   *
   * @maxItems 200
   */
  triggers?: TriggerDeclared[];
  /**
   * Its actions, at most 50.
   *
   * @maxItems 50
   */
  actions?: ActionDeclared[];
  /**
   * Its tools for agents, at most 64.
   *
   * @maxItems 64
   */
  tools?: ToolDeclared[];
}
/**
 * Answer to `projects.register`.
 */
export interface VersionRegistered {
  /**
   * The version.
   */
  version: string;
  /**
   * Whether it is new; false when the same was registered before.
   */
  created: boolean;
}
/**
 * A host and the version that it has loaded.
 */
export interface HostSeen {
  /**
   * What tells it from other hosts of the project: 1 to 64 letters, digits, `_` and `-`.
   */
  id: string;
  /**
   * The version that it has loaded.
   */
  version: string;
}
/**
 * Options of `projects.show`.
 */
export interface ShowProject {
  host?: HostSeen;
}
/**
 * Answer to `projects.show`.
 */
export interface ProjectShown {
  /**
   * The registered version that is active, or null.
   */
  active?: string | null;
  /**
   * What is registered, the newest first.
   */
  versions: VersionShown[];
  /**
   * Hosts that have given a sign of life in the last minute, the latest first.
   */
  hosts: HostShown[];
}
/**
 * A registered version, and how much of everything it declares.
 */
export interface VersionShown {
  /**
   * The version.
   */
  version: string;
  /**
   * Unix milliseconds.
   */
  registeredAt: number;
  /**
   * Whether it is active.
   */
  active: boolean;
  /**
   * Background jobs.
   */
  jobs: number;
  /**
   * Scripts.
   */
  scripts: number;
  /**
   * HTTP routes.
   */
  routes: number;
  /**
   * Triggers.
   */
  triggers: number;
  /**
   * Actions.
   */
  actions: number;
  /**
   * Tools.
   */
  tools: number;
}
/**
 * A host that was seen lately.
 */
export interface HostShown {
  /**
   * What tells it from other hosts of the project.
   */
  id: string;
  /**
   * The version that it has loaded.
   */
  version: string;
  /**
   * Unix milliseconds of its last sign of life.
   */
  seenAt: number;
}
/**
 * Options of `projects.session`.
 */
export interface OpenSession {
  /**
   * Whether the session may only read.
   */
  readOnly?: boolean;
}
/**
 * Answer to `projects.session`.
 */
export interface SessionOpened {
  /**
   * An execution token of the source `development`.
   */
  token: string;
  /**
   * Unix milliseconds until which it is valid.
   */
  expiresAt: number;
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
  /**
   * What `enqueuedBy` says of jobs that this execution enqueues, such as `job:KEY` or `trigger:KEY`; absent means a word for
   * its source.
   */
  origin?: string | null;
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
 * One attempt of a background job, on the queue of its project. `reply_to` of the message is the routing key, on the exchange
 * `x.answers`, of everything that the host says about it.
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
  /**
   * Attempts that the job has, the first included.
   */
  maxAttempts?: number;
  /**
   * How long the attempt may take, in milliseconds.
   */
  timeoutMs?: number;
  /**
   * Unix milliseconds before which the first attempt was not to begin; null for a job that was to begin at once.
   */
  runAt?: number | null;
  /**
   * Unix milliseconds after which the attempt must not be begun by this message any more; another one comes.
   */
  deadline?: number | null;
  /**
   * The version of the project that was active when the message was published.
   */
  version?: string | null;
}
/**
 * A host has begun an attempt of a job. From now on its time counts.
 */
export interface JobAccepted {
  /**
   * The job run.
   */
  jobId: string;
  /**
   * The attempt that has begun.
   */
  attempt: number;
}
/**
 * Why an attempt of a job failed.
 */
export interface JobFailure {
  /**
   * Capital letters, digits and `_`, at most 64; anything else, or nothing, is `SCRIPT_ERROR`.
   */
  code?: string | null;
  /**
   * For the host's own use: neither stored nor logged by the fleet, because it may hold data of the payload.
   */
  message?: string | null;
  /**
   * Whether the next attempt can help.
   */
  retryable?: boolean;
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
  /**
   * Why it failed. Without it, a failure is for good.
   */
  error?: JobFailure | null;
}
/**
 * What an agent is working on while it calls a tool.
 */
export interface ToolConversation {
  /**
   * The conversation with a person, or the run when there is none.
   */
  sessionId: string;
  /**
   * The model that the run asks.
   */
  model: string;
  /**
   * Whether the agent can search the web.
   */
  webSearch: boolean;
  /**
   * What it was asked: one message of a user, cut at 32 KiB. Empty for a tool of another project than that of the run.
   */
  messages: ModelMessage[];
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
  /**
   * For a tool: what its agent is working on.
   */
  conversation?: ToolConversation | null;
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
 * How far a host has got. For a tool live readers are told, if the report says what an answer would have to say: the answer key of
 * the request, or the workspace and project where the fleet has no keys. For a task it is taken note of and not kept.
 */
export interface HostProgress {
  /**
   * The request.
   */
  requestId: string;
  /**
   * The workspace, as the request said.
   */
  workspace?: string | null;
  /**
   * The project, as the request said.
   */
  project?: string | null;
  /**
   * What the request said, if it said one.
   */
  answerKey?: string | null;
  /**
   * Number of the report among those of the request, from 1.
   */
  seq?: number | null;
  /**
   * A text of at most 16 KiB, of which readers get the first 8.
   */
  chunk: string;
}
/**
 * A call, as the hosts of the active version get it. Message id: `<callId>.<attempt>`; `reply_to` is the routing key of the
 * answer on the exchange `x.answers`. The execution token for what the handler does is in the header `authorization`.
 */
export interface HostCall {
  /**
   * Names the call; with the attempt the same on every repetition of this message. Also the execution of the token.
   */
  callId: string;
  /**
   * Counts the attempts of an action that did not end, from 1.
   */
  attempt: number;
  /**
   * The workspace.
   */
  workspace: string;
  /**
   * The project.
   */
  project: string;
  /**
   * The version that declares it.
   */
  version: string;
  kind: CallKind;
  /**
   * Its name or key.
   */
  name: string;
  /**
   * What it gets.
   */
  input: unknown;
  /**
   * For actions: what makes two calls one. Else null.
   */
  runId?: string | null;
  /**
   * Unix milliseconds after which nobody waits for the answer. A host that takes the call later drops it.
   */
  deadline: number;
  /**
   * What the answer has to repeat, so that nobody else can give it.
   */
  answerKey: string;
  /**
   * The person on whose behalf it is called, or null.
   */
  user?: string | null;
  /**
   * Whether the handler may only read.
   */
  readOnly: boolean;
}
/**
 * Why a handler did not return.
 */
export interface CallFailure {
  code: CallCode;
  /**
   * The code of the error that escaped the handler: capital letters, digits and `_`, at most 64.
   */
  scriptErrorCode?: string | null;
  /**
   * What was wrong with input or output; at most 20.
   */
  problems?: CallProblem[];
  /**
   * Whether the handler has sent anything that may have changed something.
   */
  writesMayHaveCompleted?: boolean;
}
/**
 * One problem of an input or output. Repeats no value.
 */
export interface CallProblem {
  /**
   * Where.
   */
  path: string;
  /**
   * What.
   */
  message: string;
}
/**
 * How a call went. Message id: `answer:<callId>.<attempt>`.
 */
export interface CallAnswer {
  /**
   * The call.
   */
  callId: string;
  /**
   * The attempt.
   */
  attempt: number;
  /**
   * The workspace, as the call said.
   */
  workspace: string;
  /**
   * The project, as the call said.
   */
  project: string;
  /**
   * What the call said.
   */
  answerKey: string;
  outcome: CallOutcome;
}
