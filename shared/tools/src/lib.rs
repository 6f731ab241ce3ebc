//! What the tools of agents do.
//!
//! An [`Executor`] carries out the calls of one tool; [`perform`] makes one call within all bounds. Here are the tools that the
//! fleet has itself, records, FEEL, time and web search, and those that are an HTTP call. Whether a call is made at all, how
//! often, and what becomes of its [`ToolOutcome`] is for others to say.
//!
//! It must not speak AMQP or Redis, read a clock for a tool, nor let a value or an address into a failure.

mod calculate;
mod call;
mod http;
mod outcome;
mod records;
mod search;
mod template;
mod time;

pub use calculate::Calculate;
pub use call::{ARGUMENTS_BYTES_MAX, Caller, Calling, Executor, ToolCall, perform, texts};
pub use http::{Auth, HttpMistake, HttpSpec, HttpTool, failure, said_no};
pub use outcome::{RESULT_BYTES_MAX, ToolOutcome};
pub use records::{
    Documents, HttpRecords, Record, RecordQuery, RecordSource, RecordWrite, Recording, Records,
    SourceFailure, Writing,
};
pub use search::{SearchSpec, WebSearch};
pub use time::CurrentTime;

#[cfg(test)]
mod testing;
