//! What travels between callers, workers and projects: message kinds, bodies, replies and errors.
//!
//! Metadata is in AMQP properties and headers ([`header`]); the body is business JSON in `camelCase`, ids are strings, times
//! are Unix milliseconds. Bodies inside the fleet ignore unknown fields, so that a newer sender can add one; options of
//! callers reject them, so that a misspelt option is not silently ignored. Each kind has a golden file and a JSON Schema
//! generated from its type.

pub mod address;
pub mod agent_run;
pub mod agents;
pub mod asyncapi;
pub mod chat;
pub mod claims;
pub mod data;
pub mod deliver;
pub mod error;
pub mod facts;
#[cfg(test)]
mod golden;
pub mod header;
pub mod history;
pub mod host;
pub mod host_call;
pub mod job;
mod json;
pub mod message;
pub mod models;
pub mod operations;
pub mod processes;
pub mod projects;
mod refusal;
pub mod request;
pub mod result_schema;
pub mod run_event;
pub mod schema;
mod strict;

pub use agent_run::{AgentTool, AgentTurn};
pub use claims::Claims;
pub use deliver::DeliverMessage;
pub use error::{ErrorBody, ErrorCode, Reply};
pub use facts::Fact;
pub use host::{
    AskId, HostAnswer, HostOutcome, HostRequest, HostWork, ProcessCall, ToolConversation,
};
pub use host_call::{CallAnswer, CallFailure, CallKind, CallOutcome, HostCall};
pub use job::{JobAccepted, JobDue, JobResult, JobRun};
pub use message::{Advance, Message, OutcomeReady};
pub use request::{Operation, Request};
pub use run_event::RunEvent;
