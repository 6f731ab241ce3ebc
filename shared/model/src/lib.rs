#![doc = include_str!("../README.md")]

mod chat;
mod draft;
mod failure;
mod frames;
mod price;
mod provider;
mod refusal;
mod scripted;
mod turn;
mod wire;

pub use self::chat::{Answering, ChatModel, Progress};
pub use self::failure::{FailureKind, ModelFailure, TimeoutPhase};
pub use self::price::cost;
pub use self::provider::{HttpModel, ProviderSettings, Timeouts};
pub use self::scripted::{ScriptError, ScriptedModel};
pub use self::turn::{
    Message, Stop, ToolCall, ToolResult, ToolSpec, TurnAnswer, TurnRequest, Usage,
};
pub use self::wire::Protocol;
