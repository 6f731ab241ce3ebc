//! The store against a real Redis.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test fails the test"
)]

mod alarms;
mod at_random;
mod batches;
mod calls;
mod catalog;
mod chat;
mod chat_caps;
mod chat_model;
mod chat_turns;
mod chat_waiting;
mod chat_world;
mod children;
mod clock;
mod credits;
mod family_model;
mod faults;
mod finishing;
mod held_keys;
mod history;
mod holding;
mod inbox;
mod jobs;
mod messages;
mod model;
mod outcomes;
mod projects;
mod proxy;
mod server;
mod shapes;
mod signals;
mod start;
mod storm;
mod waiting_model;
mod world;
