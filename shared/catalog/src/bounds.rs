//! Every number that bounds a catalog. Those that callers can see are part of the contract and are not settings.

use std::ops::RangeInclusive;

/// Largest document file and largest BPMN file, in bytes.
pub const FILE_BYTES_MAX: usize = 1_048_576;

/// Documents of one bundle, files of one bundle, and projects, Processes and agents of one workspace together.
pub const DOCUMENTS_MAX: usize = 1_000;

/// Agents of one project that answer model calls of its code.
pub(crate) const MODEL_AGENTS_MAX: usize = 16;

/// Jobs of one project.
pub const JOBS_MAX: usize = 50;

/// People of one workspace.
pub(crate) const PEOPLE_MAX: usize = 10_000;

/// Ids that one selector or one grant may list.
pub(crate) const SELECTOR_IDS_MAX: usize = 200;

/// Names for people to read, in characters.
pub(crate) const DISPLAY_CHARS_MAX: usize = 250;

/// The version of a project, in characters.
pub(crate) const VERSION_CHARS_MAX: usize = 64;

/// Mistakes that are kept; more are only counted.
pub(crate) const MISTAKES_MAX: usize = 200;

/// Nesting of one document.
pub(crate) const DEPTH_MAX: usize = 32;

/// Values of one file, so that repeated anchors cannot multiply it.
pub(crate) const NODES_MAX: usize = 100_000;

/// What an agent is for, in characters.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// The name of a model, in characters.
pub(crate) const MODEL_CHARS_MAX: usize = 128;

/// Models in a price table.
pub(crate) const PRICES_MAX: usize = 200;

/// Credits of a workspace, a limit of an agent, or a price.
pub(crate) const CREDITS: RangeInclusive<u32> = 0..=1_000_000_000;

/// Versions of a project whose approved policy is kept.
pub(crate) const POLICIES_MAX: usize = 20;

/// What a project may set for the calls of one execution.
pub(crate) const CAPABILITY_CALLS: RangeInclusive<u32> = 1..=100_000;

/// What a project may set for automation steps.
pub(crate) const HOPS: RangeInclusive<u32> = 1..=100;

/// What a project may set for levels of agents that start agents.
pub(crate) const AGENT_DEPTH: RangeInclusive<u32> = 1..=10;

/// What a project may set for links of a job chain.
pub(crate) const JOB_CHAIN: RangeInclusive<u32> = 1..=1_000_000;

/// One attempt of a job, in milliseconds.
pub(crate) const JOB_TIMEOUT_MS: RangeInclusive<u32> = 1_000..=60_000;

/// One attempt of a job when the project does not say, in milliseconds.
pub(crate) const JOB_TIMEOUT_MS_DEFAULT: u32 = 30_000;

/// Attempts of a job, the first included.
pub(crate) const JOB_ATTEMPTS: RangeInclusive<u32> = 1..=10;

/// Attempts of a job when the project does not say.
pub(crate) const JOB_ATTEMPTS_DEFAULT: u32 = 5;

/// `maxRunsPerDay` of an agent policy.
pub(crate) const AGENT_RUNS_PER_DAY: RangeInclusive<u32> = 1..=10_000;

/// `maxRunsPerDay` when the policy does not say.
pub(crate) const AGENT_RUNS_PER_DAY_DEFAULT: u32 = 200;

/// What a project may set for Process starts of one UTC day.
pub(crate) const STARTS_PER_DAY: RangeInclusive<u32> = 1..=10_000_000;

/// What a project may set for Process starts of one execution.
pub(crate) const STARTS_PER_EXECUTION: RangeInclusive<u32> = 1..=10_000;

/// What a project may set for job runs that wait or run. Each is a member of one set, so the set stays bounded.
pub(crate) const JOBS_WAITING: RangeInclusive<u32> = 1..=1_000_000;

/// What an agent is told first, and the guide of a skill, in bytes.
pub(crate) const PROMPT_BYTES_MAX: usize = 16_384;

/// What the model reads about a tool, in bytes.
pub(crate) const TOOL_DESCRIPTION_BYTES_MAX: usize = 8_192;

/// Schema of the arguments of a tool, in bytes of its JSON text.
pub(crate) const TOOL_SCHEMA_BYTES_MAX: usize = 16_384;

/// Tools that one agent names.
pub(crate) const AGENT_TOOLS_MAX: usize = 64;

/// Skills that one agent names, and tools that one skill names.
pub(crate) const AGENT_SKILLS_MAX: usize = 32;

/// MCP servers that one agent names.
pub(crate) const AGENT_SERVERS_MAX: usize = 8;

/// Answers of the model in one run.
pub(crate) const TURNS: RangeInclusive<u32> = 1..=100;

/// Tokens of one run, or of one answer.
pub(crate) const TOKENS: RangeInclusive<u32> = 1..=100_000_000;

/// Tool calls of one run.
pub(crate) const TOOL_CALLS: RangeInclusive<u32> = 0..=1_000;

/// Bytes of tool results of one run.
pub(crate) const TOOL_BYTES: RangeInclusive<u32> = 1_024..=67_108_864;

/// Tool calls of one answer that run at a time.
pub(crate) const PARALLEL: RangeInclusive<u32> = 1..=16;

/// Longest time of a run, in seconds.
pub(crate) const RUN_SECONDS: RangeInclusive<u32> = 10..=1_800;

/// Longest time of one call of a tool or a service, in seconds.
pub(crate) const CALL_SECONDS: RangeInclusive<u32> = 1..=600;

/// Longest time of one model call that a document may give, in seconds: no call may last longer.
pub(crate) const MODEL_SECONDS: RangeInclusive<u32> = 1..=300;

/// One call of a tool that does not say, in seconds.
pub(crate) const CALL_SECONDS_DEFAULT: u32 = 60;

/// Patterns of one direction.
pub(crate) const PATTERNS_MAX: usize = 32;

/// One pattern or topic, in characters.
pub(crate) const PATTERN_CHARS_MAX: usize = 500;

/// A compiled pattern, in bytes of memory.
pub(crate) const PATTERN_MEMORY_MAX: usize = 1_048_576;

/// Topics of one direction.
pub(crate) const TOPICS_MAX: usize = 16;

/// What a guardrail may set for characters.
pub(crate) const GUARD_CHARS: RangeInclusive<u32> = 1..=1_000_000;

/// Header fields, arguments and variables of one tool or server.
pub(crate) const HEADERS_MAX: usize = 32;

/// A header field, an address, a command, an argument or a place of a secret, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 2_048;

/// Models of one provider, and tools that an MCP server's document names.
pub(crate) const LISTED_MAX: usize = 128;

/// Records that a document writes down.
pub(crate) const DOCUMENT_RECORDS_MAX: usize = 200;

/// One record that a document writes down, in bytes of its JSON text.
pub(crate) const DOCUMENT_RECORD_BYTES_MAX: usize = 16_384;

/// Longest time of one attempt to send a message to a person, in seconds. Well within the time that a message
/// is worked on.
pub(crate) const SINK_SECONDS: RangeInclusive<u32> = 1..=20;

/// One attempt of a sink that does not say, in seconds.
pub(crate) const SINK_SECONDS_DEFAULT: u32 = 10;

/// Messages on their way to one sink at once, from one worker.
pub(crate) const SINK_PARALLEL: RangeInclusive<u32> = 1..=64;

/// The same of a sink that does not say.
pub(crate) const SINK_PARALLEL_DEFAULT: u32 = 16;

/// Sinks by which one person is reached.
pub(crate) const REACH_MAX: usize = 16;

/// By what a sink knows a person, in characters.
pub(crate) const REACH_CHARS_MAX: usize = 320;
