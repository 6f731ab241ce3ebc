//! Execution: takes in events, notices what is overdue, and goes on until something outside is awaited.
//!
//! What happens is split by topic: `ask` is about questions to models, `answer` about what they say, `calls` about tools.

mod answer;
mod approval;
mod ask;
mod calls;

use runfleet_catalog::ToolKind;
use serde_json::{Map, Value};

use crate::code::{ErrorCode, Outcome};
use crate::compact;
use crate::definition::{Definition, breaks};
use crate::event::Event;
use crate::limits::{GRACE_MS, STATE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::offer::{self, Work};
use crate::request::{self, ModelRequest};
use crate::state::{Draft, End, Purpose, Stage, State, Step};
use crate::text::{clean, json_bytes};

/// Something to do outside, once the state is stored. All of it can be had again from the stored state, by
/// [`State::outstanding`], under ids that stay the same.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Ask a model; comes back as [`Event::ModelAnswered`] or [`Event::ModelFailed`].
    AskModel {
        /// Number of the question in the run, from 1.
        turn: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The question.
        request: Box<ModelRequest>,
    },
    /// Carry out a call; comes back as [`Event::ToolDone`] or [`Event::ToolFailed`], at the deadline at the latest.
    ///
    /// Whoever carries out a call that is not idempotent first has [`Event::ToolBegan`] recorded.
    CallTool {
        /// Unique in the run, and the same whenever it is asked for.
        call_id: String,
        /// The tool.
        name: String,
        /// Who does the work.
        kind: ToolKind,
        /// The arguments, checked and with defaults.
        arguments: Map<String, Value>,
        /// Whether it may be repeated when its outcome is unknown.
        idempotent: bool,
        /// Unix milliseconds.
        deadline_ms: u64,
    },
    /// Send a message to the person of the run; comes back as [`Event::ToolDone`] or [`Event::ToolFailed`], at the deadline at
    /// the latest. Sent once for each call, however often it is asked for.
    SendMessage {
        /// Unique in the run, and the same whenever it is asked for.
        call_id: String,
        /// What the person reads.
        message: String,
        /// What the agent tells itself.
        note: Option<String>,
        /// Unix milliseconds.
        deadline_ms: u64,
    },
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Status {
    /// Nothing happens before an event, or this time.
    Waiting {
        /// Unix milliseconds at which it must be looked at again.
        wake_ms: u64,
    },
    /// It has ended; see [`State::end`].
    Ended,
}

/// Result of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced {
    /// State to store.
    pub state: State,
    /// How the run stands.
    pub status: Status,
    /// What became due in this slice.
    pub effects: Vec<Effect>,
    /// Events that changed nothing, because what they are about is over or was never asked.
    pub ignored: u32,
}

/// Takes in `events` in their order and goes on at `now_ms` (Unix milliseconds) until something outside is awaited.
///
/// The result depends on nothing but the arguments. A run that has ended is given back as it is. Never panics.
pub fn advance(definition: &Definition, state: State, events: Vec<Event>, now_ms: u64) -> Advanced {
    let before = keys(&state);
    let mut run = Run { definition, state, now_ms, ignored: 0 };
    for event in events {
        run.take_in(event);
    }
    if run.is_live() && now_ms >= run.state.deadline_ms {
        run.end(Some(ErrorCode::Timeout));
    }
    run.overdue();
    run.go_on();
    let Run { mut state, ignored, .. } = run;
    if json_bytes(&state) > STATE_BYTES_MAX {
        let room = state.room();
        compact::shrink(&mut state, room);
    }
    let effects = keys(&state)
        .into_iter()
        .filter(|key| !before.iter().any(|known| known.is(key)))
        .filter_map(|key| effect(definition, &state, &key))
        .collect();
    let status = state.status();
    Advanced { state, status, effects, ignored }
}

impl State {
    /// Everything that was asked for and has not come: what is to be done again after a crash.
    ///
    /// A call that must not be repeated is not among it once it has begun.
    pub fn outstanding(&self, definition: &Definition) -> Vec<Effect> {
        keys(self).iter().filter_map(|key| effect(definition, self, key)).collect()
    }

    /// How the run stands.
    pub fn status(&self) -> Status {
        let soonest = match &self.step {
            Step::Ended(_) => return Status::Ended,
            Step::Ready => Some(self.begun_ms),
            Step::Asking(ask) => {
                Some(ask.due_ms.unwrap_or(ask.expires_ms.saturating_add(GRACE_MS)))
            }
            Step::Calling { open, .. } => open
                .iter()
                .filter_map(|open| match open.stage {
                    Stage::Held { expires_ms } => Some(expires_ms),
                    Stage::Out { expires_ms, .. } => Some(expires_ms.saturating_add(GRACE_MS)),
                    Stage::Waiting => None,
                })
                .min(),
        };
        Status::Waiting { wake_ms: soonest.map_or(self.deadline_ms, |at| at.min(self.deadline_ms)) }
    }
}

/// Something that is outstanding, by its id.
#[derive(PartialEq, Eq)]
enum Key {
    Model(u32, u32),
    Tool(usize, String),
}

fn keys(state: &State) -> Vec<Key> {
    let mut keys = Vec::new();
    match &state.step {
        Step::Asking(ask) if ask.due_ms.is_none() => keys.push(Key::Model(ask.turn, ask.attempt)),
        Step::Calling { open, .. } => {
            let calls =
                state.exchanges.last().map(|last| last.calls.as_slice()).unwrap_or_default();
            for (index, open) in open.iter().enumerate() {
                if let (Stage::Out { .. }, Some(call)) = (open.stage, calls.get(open.place)) {
                    keys.push(Key::Tool(index, call.id.clone()));
                }
            }
        }
        Step::Ready | Step::Asking(_) | Step::Ended(_) => {}
    }
    keys
}

impl Key {
    /// The place of a call changes as others before it end; its id does not.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tool(_, one), Self::Tool(_, other)) => one == other,
            _ => self == other,
        }
    }
}

fn effect(definition: &Definition, state: &State, key: &Key) -> Option<Effect> {
    match (key, &state.step) {
        (Key::Model(turn, attempt), Step::Asking(ask)) => Some(Effect::AskModel {
            turn: *turn,
            attempt: *attempt,
            request: Box::new(request::build(definition, state, ask)),
        }),
        (Key::Tool(index, id), Step::Calling { open, .. }) => {
            let open = open.get(*index)?;
            let call = state.exchanges.last()?.calls.get(open.place)?;
            let tool = offer::tool(definition, state, &call.name)?;
            let Stage::Out { expires_ms, began } = open.stage else { return None };
            let kind = match tool.work {
                Work::Outside(kind) => kind,
                Work::Message => return Some(message(id.clone(), &open.arguments, expires_ms)),
                Work::Skill => return None,
            };
            if began && !tool.idempotent {
                return None;
            }
            Some(Effect::CallTool {
                call_id: id.clone(),
                name: call.name.clone(),
                kind,
                arguments: open.arguments.clone(),
                idempotent: tool.idempotent,
                deadline_ms: expires_ms,
            })
        }
        _ => None,
    }
}

fn message(call_id: String, arguments: &Map<String, Value>, deadline_ms: u64) -> Effect {
    let text = |name| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    let note = text("note").filter(|note| !note.is_empty());
    Effect::SendMessage { call_id, message: text("message").unwrap_or_default(), note, deadline_ms }
}

struct Run<'d> {
    definition: &'d Definition,
    state: State,
    now_ms: u64,
    ignored: u32,
}

impl Run<'_> {
    fn is_live(&self) -> bool {
        !matches!(self.state.step, Step::Ended(_))
    }

    fn take_in(&mut self, event: Event) {
        let live = self.is_live();
        let taken = live
            && match event {
                Event::ModelAnswered { turn, attempt, answer } => {
                    self.answered(turn, attempt, answer)
                }
                Event::ModelFailed { turn, attempt, failure } => {
                    self.failed(turn, attempt, failure)
                }
                Event::ToolBegan { call_id } => self.began(&call_id),
                Event::ToolDone { call_id, output } => self.tool_done(&call_id, &output),
                Event::ToolFailed { call_id, fault, problems } => {
                    self.tool_failed(&call_id, fault, &problems)
                }
                Event::Approval { call_id, decision } => self.decided(&call_id, decision),
                Event::PassedOver => self.passed_over(),
                Event::Cancelled { caller_gave_up } => {
                    let code = if caller_gave_up {
                        ErrorCode::CallerTimeout
                    } else {
                        ErrorCode::Cancelled
                    };
                    self.end(Some(code));
                    true
                }
                Event::Stop { code } => {
                    self.end(Some(code));
                    true
                }
            };
        if taken {
            // An answer that fits frees what waited behind it, for the events that follow.
            self.go_on();
        } else {
            self.ignored = self.ignored.saturating_add(1);
        }
    }

    /// Notices what should have come by now.
    fn overdue(&mut self) {
        self.ask_overdue();
        self.calls_overdue();
    }

    /// Goes on until something outside is awaited.
    fn go_on(&mut self) {
        if self.is_live() && self.now_ms >= self.state.deadline_ms {
            return;
        }
        match self.state.step {
            Step::Ready if self.state.judged.is_empty() => self.ask(Purpose::Turn),
            Step::Ready => self.ask(Purpose::JudgeInput),
            Step::Calling { .. } => self.round(),
            Step::Asking(_) | Step::Ended(_) => {}
        }
    }

    /// Ends the run without a text.
    fn end(&mut self, code: Option<ErrorCode>) {
        end(&mut self.state, self.now_ms, code, None, None);
    }

    /// Ends the run with what the agent says, if the rules of the agent let that out.
    fn finish(&mut self, text: &str, result: Option<Value>, code: Option<ErrorCode>) {
        let rules = &self.definition.blueprint.spec.guardrails.output;
        let told = match &result {
            Some(result) => format!("{text}\n{result}"),
            None => text.to_owned(),
        };
        if breaks(rules, &self.definition.output, &told) {
            return self.end(Some(ErrorCode::GuardrailRejected));
        }
        let text = clean(text, TEXT_BYTES_MAX);
        if rules.blocked_topics.is_empty() {
            return end(&mut self.state, self.now_ms, code, Some(text), result);
        }
        // Nothing of the conversation is needed any more.
        self.state.exchanges.clear();
        self.state.first.clear();
        self.state.system.clear();
        self.state.found.clear();
        self.state.result_schema = None;
        self.state.judged = clean(&told, crate::definition::JUDGED_BYTES_MAX);
        self.ask_about(Draft { text, result, code });
    }
}

/// Ends a run. What only a live run needs is dropped.
pub(crate) fn end(
    state: &mut State,
    now_ms: u64,
    code: Option<ErrorCode>,
    text: Option<String>,
    result: Option<Value>,
) {
    let mut usage = state.usage;
    usage.duration_ms = now_ms.saturating_sub(state.begun_ms);
    let mut ended = State::new(state.begun_ms, state.deadline_ms);
    ended.asks = state.asks;
    ended.turns = state.turns;
    ended.tool_calls = state.tool_calls;
    ended.usage = usage;
    ended.step = Step::Ended(End {
        outcome: code.map_or(Outcome::Completed, ErrorCode::outcome),
        error: code,
        text: text.filter(|text| !text.is_empty()),
        result,
        usage,
    });
    *state = ended;
}
