//! State of a run between two slices: everything that is needed to go on, and nothing else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::{ErrorCode, Outcome};
use crate::definition::FoundTool;

/// Version of the stored form that this code writes.
const VERSION: u32 = 1;

/// A run as it is stored: JSON of at most 256 KiB. Fields unknown to this version are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub(crate) v: u32,
    pub(crate) begun_ms: u64,
    pub(crate) deadline_ms: u64,
    #[serde(default)]
    pub(crate) approval: Approval,
    /// The system prompt, filled in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) system: String,
    /// What was said in the conversation before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<Earlier>,
    /// The first message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) first: String,
    /// What a model is to judge before or after everything else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) judged: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result_schema: Option<Value>,
    /// Tools that the run may use, fixed at its start.
    #[serde(default)]
    pub(crate) allowed: BTreeSet<String>,
    /// Whether there is a person whom the run may write to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deliver: bool,
    /// Tools that MCP servers have brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) found: Vec<FoundTool>,
    /// Skills that were loaded.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) skills: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) exchanges: Vec<Exchange>,
    /// Exchanges that were left out to save room.
    #[serde(default)]
    pub(crate) left_out: u32,
    pub(crate) step: Step,
    /// Number of the last model call.
    #[serde(default)]
    pub(crate) asks: u32,
    /// Turns that were answered.
    #[serde(default)]
    pub(crate) turns: u32,
    #[serde(default)]
    pub(crate) repairs: u32,
    #[serde(default)]
    pub(crate) tool_calls: u32,
    #[serde(default)]
    pub(crate) tool_bytes: u64,
    /// What the last rounds called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rounds: Vec<u64>,
    #[serde(default)]
    pub(crate) denied_rounds: u32,
    /// Why the turn that is under way is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ending: Option<ErrorCode>,
    #[serde(default)]
    pub(crate) usage: Usage,
}

/// What somebody has said in a conversation before a run that goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Earlier {
    /// Whether the agent has said it; otherwise the person has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// What was said.
    pub text: String,
    /// What the agent has told itself with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What happens to calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// They are refused: nobody watches the run.
    #[default]
    Deny,
    /// They are carried out.
    AutoApprove,
    /// A person decides.
    Person,
}

/// What a run has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens that models have read.
    pub input_tokens: u64,
    /// Tokens that models have written.
    pub output_tokens: u64,
    /// Those of the tokens read that came from a cache.
    pub cached_tokens: u64,
    /// Answers of the model.
    pub iterations: u32,
    /// From the start to the end; 0 while it runs.
    pub duration_ms: u64,
}

/// One answer of the model and what became of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Exchange {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<Call>,
    /// What the model is told after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
}

/// A call in the order of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON of an object.
    pub(crate) arguments: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<CallResult>,
}

/// What the model is told about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallResult {
    pub(crate) content: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) error: bool,
}

/// What a run is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Step {
    /// Nothing has been asked.
    Ready,
    /// A model was asked, or will be.
    Asking(Ask),
    /// Calls of the last exchange are under way.
    Calling {
        /// Calls without a result, in their order.
        open: Vec<Open>,
        /// Bytes of one result.
        cap: usize,
        /// Whether some call was refused because the run may make no more.
        over: bool,
    },
    /// It has ended.
    Ended(End),
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ask {
    pub(crate) turn: u32,
    pub(crate) attempt: u32,
    pub(crate) purpose: Purpose,
    /// It is asked then, after a pause; none when it has been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due_ms: Option<u64>,
    pub(crate) expires_ms: u64,
    /// The last attempt that was answered, with something that was of no use.
    #[serde(default)]
    pub(crate) heard: u32,
    #[serde(default)]
    pub(crate) shortened: u32,
    /// What follows when the judgement of the end is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<Box<Draft>>,
}

impl Ask {
    /// Whether an answer to this attempt is news.
    pub(crate) fn awaits(&self, attempt: u32) -> bool {
        let asked =
            if self.due_ms.is_some() { self.attempt.saturating_sub(1) } else { self.attempt };
        attempt > self.heard && attempt <= asked
    }
}

/// Why a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Purpose {
    /// May the run begin?
    JudgeInput,
    /// The next turn.
    Turn,
    /// The last turn, without tools.
    Summary,
    /// May the end be told?
    JudgeOutput,
}

/// An end that has not been judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) result: Option<Value>,
    pub(crate) code: Option<ErrorCode>,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// Its place in the exchange.
    pub(crate) place: usize,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) stage: Stage,
}

/// Where an open call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Stage {
    /// A person decides.
    Held { expires_ms: u64 },
    /// Its turn has not come.
    Waiting,
    /// Somebody was asked to carry it out.
    Out { expires_ms: u64, began: bool },
}

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The word for callers.
    pub outcome: Outcome,
    /// Why it failed. Its sentence is [`ErrorCode::message`].
    pub error: Option<ErrorCode>,
    /// What the agent said last, at most 32 KiB.
    pub text: Option<String>,
    /// What fits `resultSchema`.
    pub result: Option<Value>,
    /// What the run has used.
    pub usage: Usage,
}

/// Why a stored state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateProblem {
    /// A newer release wrote it. Wait: this worker is about to be replaced.
    #[error("the state has version {0}, newer than {VERSION}")]
    Newer(u32),
    /// It is not a state.
    #[error("the state cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

impl State {
    pub(crate) fn new(begun_ms: u64, deadline_ms: u64) -> Self {
        Self {
            v: VERSION,
            begun_ms,
            deadline_ms,
            approval: Approval::Deny,
            system: String::new(),
            earlier: Vec::new(),
            first: String::new(),
            judged: String::new(),
            result_schema: None,
            allowed: BTreeSet::new(),
            deliver: false,
            found: Vec::new(),
            skills: BTreeSet::new(),
            exchanges: Vec::new(),
            left_out: 0,
            step: Step::Ready,
            asks: 0,
            turns: 0,
            repairs: 0,
            tool_calls: 0,
            tool_bytes: 0,
            rounds: Vec::new(),
            denied_rounds: 0,
            ending: None,
            usage: Usage::default(),
        }
    }

    /// Reads a stored state.
    pub fn from_json(json: &str) -> Result<Self, StateProblem> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
        }
        let Head { v } = serde_json::from_str(json).map_err(StateProblem::Unreadable)?;
        if v > VERSION {
            return Err(StateProblem::Newer(v));
        }
        serde_json::from_str(json).map_err(StateProblem::Unreadable)
    }

    /// The text to store, at most 256 KiB. The same state always gives the same text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// How the run has ended, if it has.
    pub fn end(&self) -> Option<&End> {
        match &self.step {
            Step::Ended(end) => Some(end),
            Step::Ready | Step::Asking(_) | Step::Calling { .. } => None,
        }
    }

    /// What the run was asked: its first message.
    pub fn asked(&self) -> &str {
        &self.first
    }

    /// What the run has used so far.
    pub fn usage(&self) -> Usage {
        self.end().map_or(self.usage, |end| end.usage)
    }

    /// Bytes of JSON that are left for exchanges.
    pub(crate) fn room(&self) -> usize {
        let fixed = crate::text::json_bytes(&self.system)
            + crate::text::json_bytes(&self.first)
            + crate::text::json_bytes(&self.result_schema)
            + crate::text::json_bytes(&self.found);
        crate::limits::STATE_BYTES_MAX.saturating_sub(fixed + 4_096)
    }
}
