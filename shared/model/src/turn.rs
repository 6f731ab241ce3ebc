//! One turn of a model: what it is asked, and what it answers. Data only.
//!
//! What a model is told and what it says belongs to people: `Debug` shows sizes, never texts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model is asked for one turn.
#[derive(Clone, Default)]
pub struct TurnRequest {
    /// The model, as its provider calls it.
    pub model: String,
    /// What it is told before everything else; empty for nothing.
    pub system: String,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Tools that it may call. Without any it is not told of tools.
    pub tools: Vec<ToolSpec>,
    /// JSON Schema that its text should fit. A provider may fail to keep it: the answer is to be validated.
    pub response_schema: Option<Value>,
    /// How freely it chooses, 0 to 2; the provider's own default otherwise.
    pub temperature: Option<f64>,
    /// From which part of the likeliest words it chooses, 0 to 1; the provider's own default otherwise.
    pub top_p: Option<f64>,
    /// Most tokens that it may write; the provider's own default otherwise.
    pub max_tokens: Option<u32>,
    /// Bound of the whole call. The bound of the provider's settings counts as well.
    pub within: Duration,
    /// The turn of the run, from 1. Providers are not told; scripts choose by it.
    pub turn: u32,
    /// How often this turn was asked for, from 1. Providers are not told; scripts choose by it.
    pub attempt: u32,
}

impl fmt::Debug for TurnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnRequest")
            .field("model", &self.model)
            .field("turn", &self.turn)
            .field("attempt", &self.attempt)
            .field("system_bytes", &self.system.len())
            .field("messages", &self.messages)
            .field("tools", &self.tools.len())
            .field("response_schema", &self.response_schema.is_some())
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// One message of a conversation.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Message {
    /// From whoever has asked.
    User {
        /// What was said.
        text: String,
    },
    /// From the model.
    Assistant {
        /// What it has said; may be empty beside calls.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Tools that it has called. Each needs its result in the message that follows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What the tools have said, in the order of the calls.
    Tools {
        /// One for each call.
        results: Vec<ToolResult>,
    },
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { text } => write!(f, "User({} bytes)", text.len()),
            Self::Assistant { text, tool_calls } => {
                write!(f, "Assistant({} bytes, {} calls)", text.len(), tool_calls.len())
            }
            Self::Tools { results } => write!(f, "Tools({} results)", results.len()),
        }
    }
}

/// A call of a tool, as the model has written it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Tells it from the other calls of its answer, 1 to 256 bytes. Given by the provider, or made where it gives none. Not
    /// unique in a run.
    pub id: String,
    /// The tool, as the model has written it; perhaps none of those that it was offered.
    pub name: String,
    /// The arguments as JSON text. Whatever the model wrote: perhaps no JSON, perhaps no object.
    pub arguments: String,
    /// What some providers want to see again beside the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolCall({} bytes)", self.name.len() + self.arguments.len())
    }
}

/// What a tool has said to a call.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What the model is to read.
    pub content: String,
    /// Whether the tool has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolResult({} bytes, failed: {})", self.content.len(), self.failed)
    }
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, 64 characters at most, or some providers refuse it.
    pub name: String,
    /// What it is good for, for the model to read.
    pub description: String,
    /// JSON Schema of its arguments, of an object.
    pub parameters: Value,
}

/// What a model answers to one turn.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnAnswer {
    /// What it says; may be empty.
    pub text: String,
    /// Tools that it calls, in its order. Whether there are any decides what comes next, not [`TurnAnswer::stop`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What it has used.
    pub usage: Usage,
    /// Why it has stopped.
    pub stop: Stop,
}

impl fmt::Debug for TurnAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnAnswer")
            .field("text_bytes", &self.text.len())
            .field("tool_calls", &self.tool_calls)
            .field("usage", &self.usage)
            .field("stop", &self.stop)
            .finish()
    }
}

/// Tokens of one answer. Zero where the provider does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens that the model has read, with those that the provider had kept.
    pub input_tokens: u64,
    /// Tokens that it has written, with those of its thoughts.
    pub output_tokens: u64,
    /// Tokens among those read that the provider had kept from before.
    pub cached_tokens: u64,
}

/// Why a model has stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    /// It had said everything.
    #[default]
    End,
    /// It waits for tools.
    ToolCalls,
    /// It may not write more tokens: what it has said may be cut off anywhere.
    MaxTokens,
    /// The provider or the model refuses to say more.
    Filtered,
    /// The provider gives another reason, or none.
    Other,
}
