//! What happens to a run from outside. Events are stored until they are taken in, so each has a form of bounded size.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::limits::{CALLS_PER_ANSWER_MAX, PROBLEMS_MAX, TOOL_NAME_BYTES_MAX};
use crate::schema::Problem;
use crate::text::{clean, json_bytes};

/// Size of a stored event, in bytes of JSON: what an inbox takes, less what is written around it.
const EVENT_BYTES_MAX: usize = 65_536;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// The model has answered.
    ModelAnswered {
        /// What was asked.
        turn: u32,
        /// The attempt that it answers.
        attempt: u32,
        /// The answer.
        answer: Answer,
    },
    /// The model has not answered.
    ModelFailed {
        /// What was asked.
        turn: u32,
        /// The attempt that failed; another one is ignored.
        attempt: u32,
        /// Why.
        failure: ModelFailure,
    },
    /// A call that must not be repeated is about to be carried out.
    ToolBegan {
        /// The call.
        call_id: String,
    },
    /// A tool has answered.
    ToolDone {
        /// The call.
        call_id: String,
        /// What it returned: `{status, content}`, or anything else, which counts as a success.
        output: Value,
    },
    /// A tool could not do it.
    ToolFailed {
        /// The call.
        call_id: String,
        /// Why.
        fault: ToolFault,
        /// What the model is told; never a value, an address or a stack.
        #[serde(default)]
        problems: Vec<Problem>,
    },
    /// A person has decided about a call that was held.
    Approval {
        /// The call.
        call_id: String,
        /// The decision.
        decision: Decision,
    },
    /// The person who was to decide about calls has written something else instead.
    PassedOver,
    /// The run is not wanted any more.
    Cancelled {
        /// Whether whoever waited for it gave up, and nobody cancelled it.
        #[serde(default)]
        caller_gave_up: bool,
    },
    /// The run must not go on: money, rights, or a fault of ours.
    Stop {
        /// The code that it ends with.
        code: ErrorCode,
    },
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What it says.
    #[serde(default)]
    pub text: String,
    /// What it wants to be called, in its order. Ids of the provider are not kept: calls get ids of their own.
    #[serde(default)]
    pub calls: Vec<AnswerCall>,
    /// What it cost.
    #[serde(default)]
    pub usage: AnswerUsage,
    /// Why it ends.
    #[serde(default)]
    pub stop: Stop,
}

/// A call that a model wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerCall {
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them; perhaps no JSON.
    pub arguments: String,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerUsage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Those of the tokens read that came from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    /// The model had said everything.
    #[default]
    End,
    /// The limit of one answer was reached.
    Length,
    /// The provider withheld the rest.
    Filtered,
}

/// Why a model has not answered. Fixed words: nothing that a provider wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFailure {
    /// What went wrong.
    pub kind: FailureKind,
    /// Least pause that the provider asks for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// What went wrong with a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// Too many requests.
    RateLimited,
    /// The provider has a fault.
    Unavailable,
    /// It could not be reached, or the connection broke.
    Network,
    /// It took too long.
    Timeout,
    /// The provider does not take the request.
    Refused,
    /// The provider does not take the key.
    Auth,
    /// The request is longer than the model can read.
    ContextTooLong,
    /// The answer cannot be read.
    Malformed,
    /// The answer holds nothing.
    Empty,
    /// The answer is larger than anything that is wanted.
    TooLarge,
}

impl FailureKind {
    /// Attempts that make sense, the first included.
    pub(crate) fn attempts(self) -> u32 {
        match self {
            Self::RateLimited | Self::Unavailable | Self::Network | Self::Timeout => {
                crate::limits::MODEL_ATTEMPTS_MAX
            }
            Self::Malformed | Self::Empty => 3,
            Self::Refused | Self::Auth | Self::ContextTooLong | Self::TooLarge => 1,
        }
    }

    pub(crate) fn code(self) -> ErrorCode {
        match self {
            Self::RateLimited
            | Self::Unavailable
            | Self::Refused
            | Self::Auth
            | Self::ContextTooLong => ErrorCode::LlmHttpError,
            Self::Network | Self::Timeout => ErrorCode::LlmNetwork,
            Self::Malformed => ErrorCode::LlmParse,
            Self::Empty | Self::TooLarge => ErrorCode::LlmResponseFailed,
        }
    }
}

/// Why a tool could not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolFault {
    /// It said no, or failed.
    Failed,
    /// It took too long.
    Timeout,
    /// It answered too much.
    TooLarge,
    /// It could not be reached.
    Unavailable,
    /// The run may no longer use it.
    NotAllowed,
    /// It was begun and cut off, and nobody knows whether it was done; it must not be repeated.
    OutcomeUnknown,
}

impl ToolFault {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Failed => "could not be done",
            Self::Timeout => "took too long; it may have been done all the same",
            Self::TooLarge => "gave a larger result than is allowed",
            Self::Unavailable => "cannot be reached at the moment",
            Self::NotAllowed => "Tool unavailable.",
            Self::OutcomeUnknown => "was cut off; it may have been done all the same",
        }
    }
}

/// What a person decides about a call that was held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Decision {
    /// Carry it out.
    Approve,
    /// Carry it out with these arguments.
    Edit {
        /// What is checked like the arguments of a model.
        arguments: Map<String, Value>,
    },
    /// Do not carry it out.
    Reject {
        /// What the model is told.
        #[serde(default)]
        reason: Option<String>,
    },
}

impl Event {
    /// The event in a size that can be stored. Nothing changes if it has it already; otherwise texts are cut, and arguments
    /// that are too long become unreadable to the run, which tells the model so.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if json_bytes(&self) <= EVENT_BYTES_MAX {
            return self;
        }
        match &mut self {
            Self::ModelAnswered { answer, .. } => {
                answer.text = clean(&answer.text, EVENT_BYTES_MAX / 4);
                answer.calls.truncate(CALLS_PER_ANSWER_MAX + 1);
                let share = EVENT_BYTES_MAX / 4 / answer.calls.len().max(1);
                for call in &mut answer.calls {
                    call.name = clean(&call.name, TOOL_NAME_BYTES_MAX + 1);
                    if json_bytes(&call.arguments) > share {
                        "\u{2026}".clone_into(&mut call.arguments);
                    }
                }
            }
            Self::ToolDone { output, .. } => {
                let text = match &*output {
                    Value::String(text) => clean(text, EVENT_BYTES_MAX / 4),
                    other => clean(&other.to_string(), EVENT_BYTES_MAX / 4),
                };
                *output = Value::String(text);
            }
            Self::ToolFailed { problems, .. } => {
                problems.truncate(PROBLEMS_MAX);
                for problem in problems {
                    *problem = Problem::new(&problem.path, &problem.message);
                }
            }
            Self::Approval { decision, .. } => {
                *decision = Decision::Reject { reason: None };
            }
            Self::ModelFailed { .. }
            | Self::ToolBegan { .. }
            | Self::PassedOver
            | Self::Cancelled { .. }
            | Self::Stop { .. } => {}
        }
        self
    }
}
