//! Executes a run: one slice at a time, as a function of its definition and state.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::definition::Definition;
use crate::failure::FailureCode;
use crate::limits;
use crate::state::{Phase, State};

mod step;
mod variables;

/// What happened since the state was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Event {
    /// Nothing: go on.
    Continue,
}

/// Something the caller must do because of the new state. None exists yet: every element that runs today is done when
/// [`advance`] returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Effect {}

/// How far to go before returning. A slice also ends early after [`limits::SLICE_WORK_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Most elements to execute; 0 counts as 1.
    pub max_steps: u32,
}

/// How a run stands after a slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Status {
    /// The slice is used up; call again with [`Event::Continue`].
    Running,
    /// The run came to its end.
    Completed {
        /// The declared output variables, or none when none are declared. What was never assigned is null.
        output: Option<Map<String, Json>>,
    },
    /// The run ended early.
    Failed {
        /// Why.
        code: FailureCode,
        /// Id of the element where it happened.
        element: Option<String>,
        /// Fixed text for people, without any value of the run.
        message: String,
    },
}

/// Result of a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced {
    /// State to store.
    pub state: State,
    /// How the run stands.
    pub status: Status,
    /// What to do, in this order, once the state is stored.
    pub effects: Vec<Effect>,
}

/// Executes up to a slice of the run in `state`.
///
/// The result depends on nothing but the arguments, and the end of a run not on where its slices were cut. A run that
/// ended is given back as it is. Never panics.
#[expect(
    clippy::needless_pass_by_value,
    reason = "later events carry data that ends up in the state"
)]
pub fn advance(definition: &Definition, state: State, event: Event, slice: Slice) -> Advanced {
    match event {
        Event::Continue => {}
    }
    let state = if state.phase == Phase::Running { run(definition, state, slice) } else { state };
    let status = status(definition, &state);
    Advanced { state, status, effects: Vec::new() }
}

fn run(definition: &Definition, state: State, slice: Slice) -> State {
    let mut run = step::Run::open(definition, state);
    let mut left = slice.max_steps.max(1);
    while run.state.phase == Phase::Running && left > 0 && run.work <= limits::SLICE_WORK_MAX {
        run.step();
        left -= 1;
    }
    run.state
}

fn status(definition: &Definition, state: &State) -> Status {
    match &state.phase {
        Phase::Running => Status::Running,
        Phase::Completed => {
            let outputs = &definition.summary.outputs;
            let output = outputs.iter().map(|output| {
                let value = state.variables.get(&output.name).cloned().unwrap_or(Json::Null);
                (output.name.clone(), value)
            });
            Status::Completed { output: (!outputs.is_empty()).then(|| output.collect()) }
        }
        Phase::Failed { code, element } => Status::Failed {
            code: *code,
            element: element.clone(),
            message: code.message().to_owned(),
        },
    }
}
