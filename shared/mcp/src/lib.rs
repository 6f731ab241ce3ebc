//! A client of MCP servers: programs that offer tools over standard input and output, or over HTTP.
//!
//! An [`McpServer`] connects when it is asked for the first time, keeps its list of tools for a while, and starts again with
//! growing pauses when it breaks. One server that is broken is the trouble of its own tools alone. An [`McpTool`] is one tool as
//! an [`Executor`](runfleet_tools::Executor).
//!
//! Which programs are started is for the operator to say ([`Commands`]); documents of projects name one of them. Calls over HTTP go
//! through the guarded client. It must not decide whether a call needs approval, let anything that a server says into a log above debug,
//! nor wait or read without a bound.

mod command;
mod connection;
mod failure;
mod http;
mod process;
mod protocol;
mod result;
mod server;
mod stdio;
mod tools;

pub use command::{Command, Commands, CommandsError};
pub use failure::McpFailure;
pub use server::{BackOff, McpServer, McpTool, ServerConfig, Transport};
pub use tools::ToolInfo;

/// Largest message of a server that is read, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1_024 * 1_024;
