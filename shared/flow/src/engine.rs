//! Execution: `(definition, state, events, time) -> (state, effects)`.
//!
//! A run executes until nothing is ready or its slice is used up. What happens to an instance is split by topic:
//! `enter` begins elements, `leave` ends them and takes their flows, `join` is about gateways that wait for several
//! flows, `repeat` about multi-instance, `ask` about work for others, `occur` about what the run waited for, `throw` about
//! errors, escalations and early ends.

mod ask;
mod enter;
mod join;
mod leave;
mod occur;
mod repeat;
mod run;
mod throw;
mod variables;

use serde_json::{Map, Value as Json};

use crate::definition::Definition;
use crate::failure::FailureCode;
use crate::history::Entry;
use crate::state::{Phase, State};
pub use ask::{AGENT_WORK, HTTP_WORK};
use run::Run;

/// Something that has happened to a run from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A message has come to a subscription; see [`crate::Subscription`].
    Message {
        /// The subscription.
        subscription: u64,
        /// What it carries.
        variables: Map<String, Json>,
    },
    /// A signal was sent to everybody who waits for it.
    Signal {
        /// Its name.
        name: String,
        /// What it carries.
        variables: Map<String, Json>,
    },
    /// Whoever was asked has answered.
    TaskDone {
        /// The instance.
        task: u64,
        /// The attempt that it answers; another one is ignored.
        attempt: u32,
        /// The answer.
        answer: Json,
    },
    /// Whoever was asked could not do it.
    TaskFailed {
        /// The instance.
        task: u64,
        /// The attempt that failed; another one is ignored.
        attempt: u32,
        /// A fixed word.
        code: String,
        /// Whether another attempt makes sense.
        retry: bool,
        /// Least pause before it, in milliseconds.
        after_ms: Option<u64>,
    },
    /// Whoever was asked reports an error of the drawing.
    TaskError {
        /// The instance.
        task: u64,
        /// The attempt; another one is ignored.
        attempt: u32,
        /// Code of the error.
        code: String,
        /// What goes with it.
        variables: Map<String, Json>,
    },
    /// A person has done a user task.
    UserDone {
        /// The instance.
        task: u64,
        /// What the person gave.
        variables: Map<String, Json>,
    },
    /// A user task was given to somebody, or to nobody.
    UserAssigned {
        /// The instance.
        task: u64,
        /// Who has it now.
        assignee: Option<String>,
    },
    /// A called process has ended.
    ChildEnded {
        /// The instance that called it.
        task: u64,
        /// Its output, if it has completed.
        output: Option<Map<String, Json>>,
        /// Why it did not complete: the code of an error that nobody in it caught, or a fixed word.
        failed: Option<String>,
    },
    /// Somebody wants failed tasks tried again.
    Retry {
        /// The instance; all when there is none.
        task: Option<u64>,
    },
    /// Somebody changes variables.
    Set {
        /// Instance of the sub-process or activity whose own variables they are; the run's when there is none.
        scope: Option<u64>,
        /// New values.
        variables: Map<String, Json>,
    },
}

/// How much one call of [`advance`] may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Elements to execute at most; at least one is executed. A slice also ends when its expressions have done a fixed
    /// amount of work, or when what was sent has a fixed size.
    pub max_steps: u32,
}

/// Something to do outside, once the state is stored. All of it can be had again from the stored state, by
/// [`State::outstanding`], and carries ids that stay the same, so that doing it twice can be told from doing it for the
/// first time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Ask somebody to carry out a task.
    Ask(Ask),
    /// Start a run of another process; its end comes back as [`Event::ChildEnded`].
    Call {
        /// The instance that calls.
        task: u64,
        /// Id of the process.
        process: String,
        /// Variables for its input: those that it declares are taken, the others left.
        input: Map<String, Json>,
        /// Whether `input` must fit exactly, being what the drawing names; otherwise it is all there is.
        exact: bool,
    },
    /// The run of another process is no longer wanted.
    CancelCall {
        /// The instance that called.
        task: u64,
    },
    /// Send a message to whoever waits for it.
    Message {
        /// The instance that sends.
        by: u64,
        /// Its name.
        name: String,
        /// Correlation key.
        key: Option<String>,
        /// What it carries.
        variables: Map<String, Json>,
    },
    /// Send a signal to everybody who waits for it.
    Signal {
        /// The instance that sends.
        by: u64,
        /// Its name.
        name: String,
        /// What it carries.
        variables: Map<String, Json>,
    },
}

/// A task for somebody outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The instance.
    pub task: u64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Id of the element.
    pub element: String,
    /// What has to be done, in the words of the drawing.
    pub work: String,
    /// Fixed settings of the task.
    pub headers: Vec<(String, String)>,
    /// The task's own variables, or all that it sees when it has none.
    pub variables: Map<String, Json>,
    /// Unix milliseconds at which the attempt is given up.
    pub expires_ms: u64,
}

/// How a run stands after a slice.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Status {
    /// There is more to execute at once.
    Running,
    /// Nothing can be executed before an event, or the time given.
    Waiting {
        /// Unix milliseconds of the next timer.
        wake_ms: Option<u64>,
    },
    /// The run came to its end.
    Completed {
        /// The declared outputs, none when none are declared. What was never assigned is null.
        output: Option<Map<String, Json>>,
    },
    /// The run ended early.
    Failed {
        /// Why.
        code: FailureCode,
        /// Id of the element where it happened.
        element: Option<String>,
        /// For an error of the drawing that nobody caught: its code.
        error: Option<String>,
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
    /// What to do once the state is stored.
    pub effects: Vec<Effect>,
    /// What happened to elements, in order.
    pub history: Vec<Entry>,
    /// Events that changed nothing, because what they are about is over or they do not fit.
    pub ignored: u32,
}

/// Takes in `events`, lets timers ring that are due at `now_ms` (Unix milliseconds), and executes up to a slice.
///
/// The result depends on nothing but the arguments, and the end of a run not on where its slices were cut. A run that
/// ended is given back as it is. Events are taken in whole, also beyond the slice. Never panics.
pub fn advance(
    definition: &Definition,
    state: State,
    events: Vec<Event>,
    now_ms: u64,
    slice: Slice,
) -> Advanced {
    if state.phase != Phase::Running {
        let status = status(definition, &state, false);
        let ignored = u32::try_from(events.len()).unwrap_or(u32::MAX);
        return Advanced { state, status, effects: Vec::new(), history: Vec::new(), ignored };
    }
    let mut run = Run::open(definition, state, now_ms);
    run.take_in(events);
    let mut left = slice.max_steps.max(1);
    while run.goes_on() && left > 0 && !run.is_full() {
        run.step();
        left -= 1;
    }
    let more = run.goes_on();
    let Run { state, effects, history, ignored, .. } = run;
    let status = status(definition, &state, more);
    Advanced { state, status, effects, history, ignored }
}

fn status(definition: &Definition, state: &State, more: bool) -> Status {
    match &state.phase {
        Phase::Running if more => Status::Running,
        Phase::Running => Status::Waiting {
            wake_ms: state.waits.iter().filter_map(|wait| wait.awaited.due_ms()).min(),
        },
        Phase::Completed => {
            let outputs = &definition.summary.outputs;
            let output = outputs.iter().map(|output| {
                let value = state.variables.get(&output.name).cloned().unwrap_or(Json::Null);
                (output.name.clone(), value)
            });
            Status::Completed { output: (!outputs.is_empty()).then(|| output.collect()) }
        }
        Phase::Failed { code, element, error } => Status::Failed {
            code: *code,
            element: element.clone(),
            error: error.clone(),
            message: code.message().to_owned(),
        },
    }
}
