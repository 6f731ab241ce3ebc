//! The bounded fault suite: real workers killed between any two steps, servers restarted under load, bad messages, drains.
//!
//! What must hold in each: every accepted start ends once, its outcome job arrives, and there is one job id a run.

#![recursion_limit = "256"]

mod agents;
mod bad_messages;
mod calls;
mod delivery;
mod drain;
mod jobs;
mod kills;
mod load;
mod outages;
mod processes;
mod starts;
mod turns;
mod waiting;

mod outcomes;
