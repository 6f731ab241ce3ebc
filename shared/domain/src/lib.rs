//! The rules of the fleet: ids, limits, the run state machine, retry schedules.
//!
//! Everything here is pure. There is no I/O, no clock, no randomness and no async: time and ids come in as data, decisions
//! go out as values. Other crates log, store and publish them.

pub mod admission;
pub mod caller;
pub mod cron;
pub mod id;
pub mod job;
pub mod lane;
pub mod limits;
pub mod name;
pub mod outcome;
pub mod policy;
pub mod retry;
pub mod run;

pub use caller::{Caller, Source};
pub use id::{ConversationId, JobId, RunId, RunKind, Shard};
pub use lane::Lane;
pub use name::{IdempotencyKey, JobKey, MessageId, Name, NameError};
pub use run::{RunEvent, RunState};
