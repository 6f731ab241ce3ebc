//! Every number that bounds something, in one place, with its unit and its reason.
//!
//! Limits that an operator may need to change are defaults of a setting of the same meaning; the others are part of the
//! contract with callers or of stored data and do not change.

use std::time::Duration;

/// Number of Redis hash slots that workspaces are spread over. Part of ids and keys: never change it.
pub const SHARDS: u8 = 64;

/// Largest message body that any worker accepts, in bytes.
pub const BODY_BYTES_MAX: usize = 262_144;

/// `input` of `processes.start`, in bytes of its JSON text.
pub const INPUT_BYTES_MAX: usize = 65_536;

/// Nested arrays and objects in JSON that a caller sends.
pub const JSON_DEPTH_MAX: usize = 64;

/// `instanceName` of `processes.start`, in characters.
pub const INSTANCE_NAME_CHARS_MAX: usize = 255;

/// Payload of an outcome job given at start, in bytes of its JSON text.
pub const JOB_ECHO_BYTES_MAX: usize = 8_192;

/// Output of a Process handed to its job; larger becomes null. Bytes of the JSON text.
pub const PROCESS_OUTPUT_BYTES_MAX: usize = 49_152;

/// Name of a message or signal that a caller sends to runs, in bytes.
pub const SENT_NAME_BYTES_MAX: usize = 255;

/// `assignee` of a user task, in characters.
pub const ASSIGNEE_CHARS_MAX: usize = 255;

/// Entries of the history of a run in one answer.
pub const HISTORY_ENTRIES_AT_ONCE: u32 = 200;

/// Process starts per project and UTC day, unless the project says otherwise.
pub const PROCESS_STARTS_PER_DAY: u32 = 1_000;

/// `processes.start` calls of one execution.
pub const PROCESS_STARTS_PER_EXECUTION: u32 = 20;

/// `agents.start` calls of one execution.
pub const AGENT_STARTS_PER_EXECUTION: u32 = 5;

/// Levels of agents that start agents.
pub const AGENT_DEPTH_MAX: u32 = 3;

/// Calls of every kind that one execution may make.
pub const CAPABILITY_CALLS: CapabilityCalls =
    CapabilityCalls { route: 100, before_change: 20, after_change: 100, job: 1_000 };

/// `instruction` of `agents.start`, in characters.
pub const INSTRUCTION_CHARS_MAX: usize = 10_000;

/// Entries of `variables` of `agents.start`.
pub const VARIABLES_MAX: usize = 50;

/// One string of `variables`, in characters.
pub const VARIABLE_CHARS_MAX: usize = 32_768;

/// `variables` of `agents.start`, in bytes of the JSON text.
pub const VARIABLES_BYTES_MAX: usize = 65_536;

/// Items of `records` of `agents.start`.
pub const RECORDS_MAX: usize = 20;

/// `objectSlug` of a record, in characters.
pub const OBJECT_SLUG_CHARS_MAX: usize = 355;

/// `recordId` of a record, in characters.
pub const RECORD_ID_CHARS_MAX: usize = 128;

/// `resultSchema` of `agents.start`, in bytes of the JSON text.
pub const RESULT_SCHEMA_BYTES_MAX: usize = 16_384;

/// Nested arrays and objects that a `resultSchema` may describe.
pub const RESULT_SCHEMA_DEPTH_MAX: usize = 8;

/// `timeoutSeconds` of `agents.start`: shortest, longest, and when it is not given.
pub const AGENT_TIMEOUT_SECONDS: std::ops::RangeInclusive<u32> = 10..=1_800;

/// `timeoutSeconds` of `agents.start` when it is not given.
pub const AGENT_TIMEOUT_SECONDS_DEFAULT: u32 = 300;

/// `deliverTo.title` of `agents.start`, in characters.
pub const CONVERSATION_TITLE_CHARS_MAX: usize = 200;

/// What admission and ledger allow one project; every number may be set by the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartLimits {
    /// Process starts of one UTC day. (Agent runs of a day are a number of the policy.)
    pub process_starts_per_day: u32,
    /// Process starts of one execution.
    pub process_starts_per_execution: u32,
    /// Agent starts of one execution.
    pub agent_starts_per_execution: u32,
    /// Calls of every kind of one execution.
    pub capability_calls: CapabilityCalls,
    /// Automation steps that an execution may have at most, whatever its token says.
    pub hops: u32,
    /// Levels of agents that start agents.
    pub agent_depth: u32,
}

impl StartLimits {
    /// The limits of a project that sets none.
    pub const DEFAULT: Self = Self {
        process_starts_per_day: PROCESS_STARTS_PER_DAY,
        process_starts_per_execution: PROCESS_STARTS_PER_EXECUTION,
        agent_starts_per_execution: AGENT_STARTS_PER_EXECUTION,
        capability_calls: CAPABILITY_CALLS,
        hops: HOPS_START,
        agent_depth: AGENT_DEPTH_MAX,
    };
}

/// Calls of every kind that one execution may make, by what is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapabilityCalls {
    /// A route, script, action, inbound webhook or development session.
    pub route: u32,
    /// A trigger before a change.
    pub before_change: u32,
    /// A trigger after a change.
    pub after_change: u32,
    /// A background job, also one that a schedule started.
    pub job: u32,
}

/// Job runs of one project that may wait or run, unless the project says otherwise.
pub const JOBS_WAITING_MAX: u32 = 10_000;

/// Links of a job chain without an outside event.
pub const JOB_CHAIN_MAX: u32 = 1_000;

/// Steps of the automation budget that a direct change by a person starts with.
pub const HOPS_START: u32 = 10;

/// How long an idempotency key stays held, and a run can be asked for, after the run has ended.
pub const RETENTION: Duration = Duration::from_hours(7 * 24);

/// How much later than [`RETENTION`] the stored record disappears. A margin for clock steps.
pub const RETENTION_MARGIN: Duration = Duration::from_hours(24);

/// How long a message id is remembered, so that a repeated request is answered and not executed again.
pub const MESSAGE_ID_MEMORY: Duration = Duration::from_hours(8 * 24);

/// How long the calls of one execution are counted: longer than any execution lives.
pub const EXECUTION_MEMORY: Duration = Duration::from_hours(48);

/// How long a daily counter is kept: the day itself, and the next one for whoever looks.
pub const DAY_COUNTER_MEMORY: Duration = Duration::from_hours(72);

/// First alarm of a start that nobody has claimed; doubles each time. Late on purpose: a backlog must not be amplified.
pub const ALARM_UNCLAIMED: Duration = Duration::from_mins(5);

/// First alarm of an outcome that has not been handed over, and of a job that has not ended; doubles each time.
pub const ALARM_HANDOVER: Duration = Duration::from_mins(5);

/// Alarms double up to this.
pub const ALARM_MAX: Duration = Duration::from_hours(6);

/// How long one claim of a run lasts without renewal.
pub const LEASE: Duration = Duration::from_mins(1);

/// Events that may wait for one run.
pub const INBOX_EVENTS_MAX: u32 = 1_000;

/// Size of one event that waits for a run, in bytes: 64 KiB of variables fit, with what is written around them.
pub const INBOX_EVENT_BYTES_MAX: usize = 66_560;

/// Size of the stored position of a run, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 262_144;

/// Name of a BPMN message or signal, and correlation key of a message, in bytes.
pub const EVENT_NAME_BYTES_MAX: usize = 256;

/// Variables that a message or signal brings, in bytes of the JSON text.
pub const EVENT_VARIABLES_BYTES_MAX: usize = 65_536;

/// Messages and signals that one run waits for at the same time.
pub const RUN_WAITS_MAX: usize = 1_000;

/// Children of one run that have not ended.
pub const RUN_CHILDREN_MAX: u32 = 1_000;

/// Entries in the history of a run; the oldest are dropped.
pub const RUN_HISTORY_MAX: usize = 1_000;

/// One entry in the history of a run, in bytes.
pub const HISTORY_ENTRY_BYTES_MAX: usize = 512;

/// How long a message that nobody waits for may be kept for who comes later.
pub const MESSAGE_TTL_MAX: Duration = Duration::from_hours(7 * 24);

/// Kept messages of one name and correlation key.
pub const MESSAGES_KEPT_OF_KEY_MAX: u32 = 100;

/// Kept messages of one project.
pub const MESSAGES_KEPT_OF_PROJECT_MAX: u32 = 10_000;

/// Steps of a Process in one delivery of its message.
pub const SLICE_STEPS: u32 = 1_000;

/// Slices in quarantine that were cut off by a crash before a run is given up.
pub const CRASHES_MAX: u32 = 5;

/// Text of a message of an agent to a person, in characters.
pub const CHAT_MESSAGE_CHARS_MAX: usize = 8_000;

/// Private note of an agent beside its message, in characters.
pub const CHAT_NOTE_CHARS_MAX: usize = 2_000;

/// Messages that one run may send, unless a setting says otherwise.
pub const CHAT_MESSAGES_PER_RUN: u32 = 3;

/// Messages that one agent may send one person in a UTC day, unless a setting says otherwise.
pub const CHAT_MESSAGES_PER_DAY: u32 = 20;

/// How long a message may wait until its person may be written to, counted from the moment when it began to wait.
pub const CHAT_WAIT_MAX: Duration = Duration::from_hours(24);

/// How long a message that has waited is tried after its time has come.
pub const CHAT_LATE_MAX: Duration = Duration::from_hours(2);

/// Messages that one agent may send one person in a row before [`CHAT_RATE_PERIOD`] spaces them out.
pub const CHAT_RATE_BURST: u32 = 5;

/// One more message of an agent to a person becomes possible after each of these.
pub const CHAT_RATE_PERIOD: Duration = Duration::from_secs(30);

/// How long one attempt to send a message may take before another worker may take it over.
pub const CHAT_SEND_LEASE: Duration = Duration::from_mins(2);

/// Messages that one conversation holds; the oldest are dropped.
pub const CONVERSATION_MESSAGES_MAX: u32 = 500;

/// All messages of one conversation, in bytes as they are stored; the oldest are dropped.
pub const CONVERSATION_BYTES_MAX: usize = 2_097_152;

/// Conversations between one agent and one person; the oldest are dropped.
pub const CONVERSATIONS_OF_PAIR_MAX: u32 = 200;

/// How long a conversation is kept after its last message, unless a setting says otherwise.
pub const CHAT_RETENTION: Duration = Duration::from_hours(90 * 24);

/// Messages of a person that may wait for their turn in one conversation.
pub const CHAT_TURNS_WAITING_MAX: u32 = 20;

/// Conversations in one answer.
pub const CONVERSATIONS_AT_ONCE: u32 = 100;

/// Messages of a conversation in one answer.
pub const CHAT_MESSAGES_AT_ONCE: u32 = 100;

/// Messages of a conversation in one answer, in bytes of their JSON. One message is given in any case.
pub const CHAT_MESSAGES_BYTES_AT_ONCE: usize = 131_072;

/// `jobs.enqueue` calls of one execution.
pub const ENQUEUES_PER_EXECUTION: u32 = 50;

/// Payload of `jobs.enqueue`, in bytes of its JSON text.
pub const JOB_PAYLOAD_BYTES_MAX: usize = 65_536;

/// How far ahead a job may be enqueued.
pub const JOB_DELAY_MAX: Duration = Duration::from_hours(30 * 24);

/// How long after its publication the message of an attempt may be taken to begin it; then the dispatcher publishes another.
pub const JOB_BEGIN_WITHIN: Duration = Duration::from_hours(24);

/// How much longer than an attempt may take its result is waited for.
pub const JOB_RESULT_GRACE: Duration = Duration::from_secs(10);

/// Ended job runs of one project that its history holds; the oldest go first.
pub const JOB_HISTORY_MAX: u32 = 100_000;

/// Job runs in one answer of the listing.
pub const JOBS_LISTED_MAX: u32 = 200;
