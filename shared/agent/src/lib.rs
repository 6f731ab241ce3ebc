//! A run of an agent as a pure state machine of turns: `(definition, state, events, time) -> (state, effects, status)`.
//!
//! This crate reads no clock, draws no random number and does no input or output. Whoever calls it stores the [`State`],
//! performs the [`Effect`]s and brings back what came of them as [`Event`]s, so a run can be cut off anywhere and go on
//! elsewhere from its last stored state. What is recorded in a state is never asked for again.
//!
//! - [`Definition::parse`] reads one stored version of an agent.
//! - [`Definition::begin`] gives the first [`State`] of a run.
//! - [`advance`] takes in events and says what is to be done next.
//! - [`State::outstanding`] says that once more, after a crash.

mod code;
mod compact;
mod definition;
mod engine;
mod event;
pub mod limits;
mod offer;
mod request;
mod result;
mod schema;
mod state;
mod text;
mod view;

pub use code::{ErrorCode, Outcome};
pub use definition::{Begin, Definition, DefinitionError, FoundTool, RecordText};
pub use engine::{Advanced, Effect, Status, advance};
pub use event::{
    Answer, AnswerCall, AnswerUsage, Decision, Event, FailureKind, ModelFailure, Stop, ToolFault,
};
pub use request::{Message, MessageCall, ModelRequest, ToolOffer};
pub use schema::Problem;
pub use state::{Approval, Earlier, End, State, StateProblem, Usage};
pub use view::{CallDoing, CallView, Doing, HeldCall, RunView};
