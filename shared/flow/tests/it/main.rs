//! The engine from outside: documents in, states and outcomes out.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod accepted;
mod blocks;
mod boundaries;
mod bounds;
mod data;
mod examples;
mod expressions;
mod feel_table;
mod fuzz;
mod hostile;
mod joins;
mod journeys;
mod model;
mod mutations;
mod page;
mod parts;
mod patterns;
mod play;
mod random;
mod refusals;
mod repeats;
mod runs;
mod scopes;
mod shapes;
mod support;
mod tasks;
mod trips;
mod watch;
