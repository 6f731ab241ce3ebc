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
mod clock;
mod faults;
mod finishing;
mod held_keys;
mod holding;
mod inbox;
mod model;
mod outcomes;
mod proxy;
mod server;
mod shapes;
mod start;
mod world;
