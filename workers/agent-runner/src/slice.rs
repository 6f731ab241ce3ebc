//! One slice of a run: from the stored position and what has happened to what has to be committed. Pure.

use runfleet_agent::{
    Advanced, Definition, Effect, End as AgentEnd, ErrorCode, Event, Outcome, State, StateProblem,
    Status, Usage, advance,
};
use runfleet_contracts::agent_run::{AgentOutput, AgentUsage};
use runfleet_domain::RunState;
use runfleet_domain::limits::BODY_BYTES_MAX;
use runfleet_store::{End, Wake};
use serde_json::value::to_raw_value;

/// How a run ends, before it is committed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// A final state.
    pub(crate) state: RunState,
    /// Output as JSON.
    output: Option<String>,
    error: Option<ErrorCode>,
}

impl Ending {
    /// An end without a text, by its code. The ledger knows what was used.
    pub(crate) fn failed(code: ErrorCode) -> Self {
        Self { state: state(code.outcome()), output: None, error: Some(code) }
    }

    fn of(end: &AgentEnd) -> Self {
        let result = end.result.as_ref().and_then(|result| to_raw_value(result).ok());
        let output = AgentOutput { text: end.text.clone(), result, usage: Some(told(end.usage)) };
        Self { state: state(end.outcome), output: written(&output), error: end.error }
    }

    /// The same as the ledger takes it.
    pub(crate) fn as_end(&self) -> End<'_> {
        let error = self.error.map(|code| (code.as_str(), code.message()));
        End { state: self.state, output: self.output.as_deref(), error, history: &[] }
    }
}

fn state(outcome: Outcome) -> RunState {
    match outcome {
        Outcome::Completed => RunState::Completed,
        Outcome::Failed => RunState::Failed,
        Outcome::Timeout => RunState::TimedOut,
        Outcome::Cancelled => RunState::Canceled,
    }
}

fn told(usage: Usage) -> AgentUsage {
    let Usage { input_tokens, output_tokens, iterations, duration_ms, .. } = usage;
    AgentUsage { input_tokens, output_tokens, iterations, duration_ms }
}

/// Text and result are bounded, so that all of it fits; without them what was used is kept.
fn written(output: &AgentOutput) -> Option<String> {
    let whole = serde_json::to_string(output).ok();
    whole.filter(|json| json.len() <= BODY_BYTES_MAX).or_else(|| {
        let usage = AgentOutput { usage: output.usage, ..AgentOutput::default() };
        serde_json::to_string(&usage).ok()
    })
}

/// What a slice leads to.
#[derive(Debug)]
pub(crate) struct Worked {
    /// How the run stands.
    pub(crate) step: Step,
    /// What to do outside, once that is committed.
    pub(crate) effects: Vec<Effect>,
    /// Events that changed nothing.
    pub(crate) ignored: u32,
}

/// How a run stands after a slice.
#[derive(Debug)]
pub(crate) enum Step {
    /// It has reached its end.
    End(Ending),
    /// It goes on later.
    Save(Box<Save>),
}

/// What has to be stored of a run that goes on.
#[derive(Debug)]
pub(crate) struct Save {
    /// The state.
    pub(crate) state: State,
    /// The same as JSON.
    pub(crate) position: String,
    /// When to look at it again.
    pub(crate) wake: Wake,
}

/// A stored position was written by a newer version: this runner must not touch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored position was written by a newer version")]
pub(crate) struct Newer;

/// The state in a stored position, or how the run ends because it cannot be read.
pub(crate) fn state_of(position: &str) -> Result<Result<State, Ending>, Newer> {
    match State::from_json(position) {
        Ok(state) => Ok(Ok(state)),
        Err(StateProblem::Newer(_)) => Err(Newer),
        Err(StateProblem::Unreadable(_)) => Ok(Err(Ending::failed(ErrorCode::InternalError))),
    }
}

/// Whether there is something to be done at `now_ms` although nothing has happened.
pub(crate) fn is_due(state: &State, now_ms: u64) -> bool {
    match state.status() {
        Status::Waiting { wake_ms } => wake_ms <= now_ms,
        _ => true,
    }
}

/// Takes in events and goes on until something outside is awaited.
pub(crate) fn work(
    definition: &Definition,
    state: State,
    events: Vec<Event>,
    now_ms: u64,
) -> Worked {
    let Advanced { state, status, effects, ignored } = advance(definition, state, events, now_ms);
    let step = match (status, state.end()) {
        (_, Some(end)) => Step::End(Ending::of(end)),
        (Status::Waiting { wake_ms }, None) => save(state, Wake::At(wake_ms)),
        // The state machine may learn more before this worker does; such a run must not be lost in silence.
        _ => Step::End(Ending::failed(ErrorCode::InternalError)),
    };
    Worked { step, effects, ignored }
}

fn save(state: State, wake: Wake) -> Step {
    match state.to_json() {
        Ok(position) => Step::Save(Box::new(Save { state, position, wake })),
        Err(_) => Step::End(Ending::failed(ErrorCode::InternalError)),
    }
}
