//! The broker crate against a real RabbitMQ. Each test has a virtual host of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod acking;
mod consuming;
mod crashing;
mod draining;
mod facts;
mod fixture;
mod ladder;
mod private_server;
mod proxy;
mod publishing;
mod requesting;
mod session;
mod topology;
