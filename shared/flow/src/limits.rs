//! Every bound of the engine in one place. They protect the worker that runs other people's documents; none of them is
//! a matter of taste, so none is a setting.

/// Longest BPMN document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Most XML nodes (elements, texts, comments) of a document, the drawing included.
pub const XML_NODES_MAX: u32 = 100_000;
/// Deepest nesting of XML elements.
pub const XML_DEPTH_MAX: usize = 64;
/// Most flow nodes and sequence flows of a process, together.
pub const ELEMENTS_MAX: usize = 2_000;
/// Longest element id, in bytes.
pub const ELEMENT_ID_BYTES_MAX: usize = 128;
/// Longest process id, in bytes.
pub const PROCESS_ID_BYTES_MAX: usize = 64;
/// Longest display name of a process, an element or a flow, in bytes.
pub const NAME_BYTES_MAX: usize = 1_000;
/// Most declared variables of a process.
pub const VARIABLES_MAX: usize = 200;
/// Longest variable name, in bytes.
pub const VARIABLE_NAME_BYTES_MAX: usize = 64;
/// Most problems reported for one document.
pub const PROBLEMS_MAX: usize = 100;
/// Longest text of a problem, in characters; texts repeat parts of the document.
pub const PROBLEM_CHARS_MAX: usize = 300;
/// Longest deadline a process may ask for, in seconds (365 days).
pub const DEADLINE_SECONDS_MAX: u32 = 365 * 24 * 60 * 60;

/// How deep sub-processes may nest.
pub const SUB_PROCESS_DEPTH_MAX: usize = 10;
/// Longest text that a document gives where it could compute one, and longest value of a task header, in bytes.
pub const GIVEN_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Longest name of a message or signal, in bytes.
pub const EVENT_NAME_BYTES_MAX: usize = 128;
/// Longest code of an error or escalation, in bytes.
pub const CODE_BYTES_MAX: usize = 128;
/// Longest type of a task, in bytes.
pub const WORK_BYTES_MAX: usize = 128;
/// Most headers of a task.
pub const HEADERS_MAX: usize = 50;
/// Most input and output mappings of an element.
pub const MAPPINGS_MAX: usize = 100;
/// Most words in the target of a mapping.
pub const TARGET_PARTS_MAX: usize = 8;
/// Most pauses between attempts that a task lists; the last one repeats.
pub const BACK_OFFS_MAX: usize = 20;
/// Longest pause between attempts, in seconds.
pub const BACK_OFF_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Longest time of one attempt of a task when it does not say, in seconds.
pub const TASK_TIMEOUT_SECONDS: u64 = 60 * 60;
/// Longest time that a task may ask for one attempt, in seconds.
pub const TASK_TIMEOUT_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Longest time of one HTTP call when it does not say, in seconds.
pub const HTTP_TIMEOUT_SECONDS: u64 = 30;
/// Longest time that an HTTP call may ask for, in seconds.
pub const HTTP_TIMEOUT_SECONDS_MAX: u64 = 300;

/// Longest time of a run of an agent when its task does not say, in seconds.
pub const AGENT_TIMEOUT_SECONDS: u64 = 300;
/// Longest time that a task may ask for a run of an agent, in seconds.
pub const AGENT_TIMEOUT_SECONDS_MAX: u64 = 1_800;
/// How much later than the run of an agent its task is given up, in milliseconds: the run tells its end itself.
pub const AGENT_GRACE_MS: u64 = 10_000;

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// All expressions of a process together, in bytes. Reading one takes up to 50 µs a byte.
pub const EXPRESSIONS_BYTES_MAX: usize = 128 * 1024;
/// Deepest nesting of brackets in an expression.
pub const EXPRESSION_BRACKETS_MAX: usize = 32;
/// Deepest nesting of operations in an expression; a sum of `n` terms nests `n` deep. Evaluation uses the stack in
/// proportion, and this many fit into 2 MiB even in an unoptimised build.
pub const EXPRESSION_DEPTH_MAX: usize = 64;
/// Work one evaluation may do, in units of roughly one visited value.
pub const EXPRESSION_WORK_MAX: u64 = 2_000_000;
/// Work after which a slice ends early, in the same units.
pub const SLICE_WORK_MAX: u64 = 4_000_000;
/// Size of what is sent in a slice after which it ends early, in bytes of JSON, approximately. What was sent is stored with the
/// state until the next slice.
pub const SLICE_SENT_BYTES_MAX: usize = 32 * 1024;
/// Most items that one `for`, `some` or `every` goes over.
pub const ITERATION_MAX: usize = 10_000;
/// Longest replacement of `replace` and delimiter of `string join`, in bytes.
pub const INSERTED_TEXT_BYTES_MAX: usize = 256;

/// Deepest nesting of lists and contexts in a variable.
pub const VALUE_DEPTH_MAX: usize = 64;
/// Size of all variables of a run together, in bytes of JSON, approximately.
pub const VARIABLES_BYTES_MAX: usize = 256 * 1024;
/// How often one element may be entered in a run.
pub const ELEMENT_VISITS_MAX: u32 = 10_000;
/// Most instances that are active in a run at a time. The state of a run has a bounded size, and this many fit.
pub const INSTANCES_MAX: usize = 1_500;
/// Most messages, signals and times that a run waits for at a time.
pub const WAITS_MAX: usize = 1_000;
/// Most items of a multi-instance activity.
pub const ITEMS_MAX: u32 = 10_000;
/// Items of a parallel multi-instance activity that are active at a time; the others begin as these end.
pub const PARALLEL_ITEMS_MAX: u32 = 200;
/// Longest computed text: a name, a correlation key, a person. In bytes.
pub const TEXT_BYTES_MAX: usize = 256;
/// Most candidates of a user task, of each kind.
pub const CANDIDATES_MAX: usize = 100;
/// Most attempts of a task that are granted at a time.
pub const ATTEMPTS_MAX: u32 = 100;
/// Longest pause before the next attempt of a task, in milliseconds (one day).
pub const PAUSE_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
