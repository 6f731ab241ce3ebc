//! Every bound of an agent run in one place. What an agent may set itself is in its definition.

/// Stored form of a run, in bytes of JSON; a position may have 256 KiB, the rest is a margin.
pub const STATE_BYTES_MAX: usize = 240 * 1024;
/// System prompt and first message together, in bytes of JSON.
pub const PROMPT_BYTES_MAX: usize = 128 * 1024;
/// What was said in a conversation before a run, in bytes of JSON; the oldest are left out.
pub const EARLIER_BYTES_MAX: usize = 48 * 1024;
/// All records together, in bytes of text. Each gets an equal share, and what one leaves is not given to others.
pub const RECORDS_BYTES_MAX: usize = 48 * 1024;
/// Tools that MCP servers have brought to one run, in bytes of JSON.
pub const FOUND_BYTES_MAX: usize = 48 * 1024;
/// Tools that MCP servers have brought to one run.
pub const FOUND_MAX: usize = 64;
/// The text of a run, in bytes; cut at a character boundary.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;
/// The result of a run, in bytes of JSON.
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// Result of one tool call as the model gets it, in bytes; cut at a character boundary.
pub const TOOL_RESULT_BYTES_MAX: usize = 32 * 1024;
/// Tool calls that are taken of one answer.
pub const CALLS_PER_ANSWER_MAX: usize = 32;
/// Name of a tool as a model calls it, in bytes.
pub const TOOL_NAME_BYTES_MAX: usize = 128;
/// Mistakes that a model is told at once.
pub const PROBLEMS_MAX: usize = 20;
/// Text of one mistake, in bytes.
pub const PROBLEM_BYTES_MAX: usize = 300;
/// Attempts of one model call, the first included.
pub const MODEL_ATTEMPTS_MAX: u32 = 8;
/// First pause between attempts, in milliseconds; doubles each time.
pub const BACK_OFF_MS: u64 = 5_000;
/// Longest pause between attempts that we choose, in milliseconds.
pub const BACK_OFF_MS_MAX: u64 = 160_000;
/// How much later than its deadline an answer is given up, in milliseconds: whoever was asked tells a timeout itself.
pub const GRACE_MS: u64 = 10_000;
/// Turns in which a result may be put right.
pub const REPAIRS_MAX: u32 = 2;
/// How often the same calls may come one after another; the last time they are not carried out.
pub const REPETITIONS_MAX: usize = 3;
/// Longest sequence of rounds whose repetition is noticed.
pub const CYCLE_MAX: usize = 3;
/// Rounds in a row in which nothing but refused calls came, after which a run cannot go on.
pub const DENIED_ROUNDS_MAX: u32 = 3;
/// How often one model call that is too long is shortened.
pub const SHORTENINGS_MAX: u32 = 2;
/// How long a person may take to approve a call, in milliseconds.
pub const APPROVAL_MS: u64 = 15 * 60 * 1_000;
/// Reason that a person gives for a rejection, in bytes.
pub const REASON_BYTES_MAX: usize = 2_000;
/// How long a message to a person may be on its way, in milliseconds, if the run lives that long: it may have to wait until the
/// person can be disturbed. Whoever sends it gives up in time for the run to go on.
pub const SEND_MS: u64 = 30 * 60 * 1_000;
