//! The Process engine: reads BPMN 2.0 documents and runs them as pure functions of data.
//!
//! `(definition, state, event) -> (state, effects)`: this crate reads no clock, draws no random number and does no
//! input or output. Whoever calls it stores the [`State`] and performs the [`Effect`]s, so a run can be cut off after
//! any slice and go on elsewhere from its last stored state.
//!
//! - [`Definition::parse`] reads one executable process and reports every [`Problem`] it has. An element that the
//!   engine does not run is a problem, never skipped.
//! - [`Definition::start`] checks the input and gives the first [`State`] of a run.
//! - [`advance`] executes up to [`Slice::max_steps`] elements.
//! - [`calculate`] evaluates one expression by itself.
//!
//! What is run, and how the extensions of the modeler are understood, is said in `BPMN.md` beside this crate.

mod calculate;
mod definition;
mod describe;
mod engine;
mod failure;
mod feel;
mod history;
mod input;
pub mod limits;
mod problem;
mod read;
mod state;
mod timer;
mod value;
mod variable;
mod view;

pub use calculate::{CalculateError, calculate};
pub use definition::{Definition, ProcessKind, Summary};
pub use describe::Marks;
pub use engine::{AGENT_WORK, Advanced, Ask, Effect, Event, HTTP_WORK, Slice, Status, advance};
pub use failure::FailureCode;
pub use history::{Entry, What};
pub use input::InputProblem;
pub use problem::Problem;
pub use state::{Phase, State, StateProblem};
pub use variable::{Variable, VariableType};
pub use view::{ActiveElement, AwaitedView, Doing, RunView, Subscription};
