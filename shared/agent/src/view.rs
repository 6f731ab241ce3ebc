//! What a stored state says, for whoever looks at a run from outside. No text of the conversation is in it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::state::{Purpose, Stage, State, Step, Usage};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// What it is doing.
    pub doing: Doing,
    /// Turns that were answered.
    pub turns: u32,
    /// Tool calls that were taken.
    pub tool_calls: u32,
    /// Skills that were loaded.
    pub skills: Vec<String>,
    /// Exchanges that were left out of the conversation to save room.
    pub left_out: u32,
    /// What it has used.
    pub usage: Usage,
    /// When its time is over, in Unix milliseconds.
    pub deadline_ms: u64,
}

/// What a run is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Doing {
    /// It has not begun.
    Ready,
    /// A model was asked.
    Asking {
        /// Number of the question.
        turn: u32,
        /// Number of the attempt.
        attempt: u32,
        /// `turn`, `summary` or `judgement`.
        what: &'static str,
        /// When the answer is given up, in Unix milliseconds.
        expires_ms: u64,
    },
    /// A model is asked again after a pause.
    Pausing {
        /// Number of the question.
        turn: u32,
        /// Number of the attempt that comes.
        attempt: u32,
        /// When it comes, in Unix milliseconds.
        due_ms: u64,
    },
    /// Tools are called.
    Calling {
        /// The calls of the round, in their order.
        calls: Vec<CallView>,
    },
    /// It has ended.
    Ended,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallView {
    /// Unique in the run.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Where it stands.
    pub doing: CallDoing,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CallDoing {
    /// A person decides about it.
    Held,
    /// It comes when another one has ended.
    Waiting,
    /// It is carried out.
    Out,
    /// It has a result.
    Done,
    /// It has a result that is an error.
    Failed,
}

/// A call that a person is to decide about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    /// Unique in the run.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it would be called with.
    pub args: Map<String, Value>,
    /// When it is not carried out any more, in Unix milliseconds.
    pub expires_at: u64,
}

impl State {
    /// The calls that a person is to decide about, in their order.
    pub fn held(&self) -> Vec<HeldCall> {
        let Step::Calling { open, .. } = &self.step else { return Vec::new() };
        let calls = self.exchanges.last().map(|last| last.calls.as_slice()).unwrap_or_default();
        let held = open.iter().filter_map(|open| match (open.stage, calls.get(open.place)) {
            (Stage::Held { expires_ms }, Some(call)) => Some(HeldCall {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                args: open.arguments.clone(),
                // With the time of the run that for deciding is over too.
                expires_at: expires_ms.min(self.deadline_ms),
            }),
            _ => None,
        });
        held.collect()
    }

    /// Where the run stands, for people.
    pub fn view(&self) -> RunView {
        RunView {
            doing: self.doing(),
            turns: self.turns,
            tool_calls: self.tool_calls,
            skills: self.skills.iter().cloned().collect(),
            left_out: self.left_out,
            usage: self.usage(),
            deadline_ms: self.deadline_ms,
        }
    }

    fn doing(&self) -> Doing {
        match &self.step {
            Step::Ready => Doing::Ready,
            Step::Ended(_) => Doing::Ended,
            Step::Asking(ask) => {
                let (turn, attempt) = (ask.turn, ask.attempt);
                let what = match ask.purpose {
                    Purpose::Turn => "turn",
                    Purpose::Summary => "summary",
                    Purpose::JudgeInput | Purpose::JudgeOutput => "judgement",
                };
                match ask.due_ms {
                    Some(due_ms) => Doing::Pausing { turn, attempt, due_ms },
                    None => Doing::Asking { turn, attempt, what, expires_ms: ask.expires_ms },
                }
            }
            Step::Calling { open, .. } => {
                let calls = self.exchanges.last().map(|last| last.calls.as_slice());
                let view = |(place, call): (usize, &crate::state::Call)| {
                    let stage = open.iter().find(|open| open.place == place).map(|open| open.stage);
                    let failed = call.result.as_ref().is_some_and(|result| result.error);
                    CallView {
                        call_id: call.id.clone(),
                        name: call.name.clone(),
                        doing: match stage {
                            Some(Stage::Held { .. }) => CallDoing::Held,
                            Some(Stage::Waiting) => CallDoing::Waiting,
                            Some(Stage::Out { .. }) => CallDoing::Out,
                            None if failed => CallDoing::Failed,
                            None => CallDoing::Done,
                        },
                    }
                };
                Doing::Calling {
                    calls: calls.unwrap_or_default().iter().enumerate().map(view).collect(),
                }
            }
        }
    }
}
