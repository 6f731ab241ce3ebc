//! A piece of a real RabbitMQ and Redis for one test: a virtual host and a key prefix of its own, removed at the end.
//!
//! Used by tests and benchmarks only.

mod call_host;
mod host;
mod namespace;
mod wait;

pub use call_host::{CallHost, Called, Handling};
pub use host::{Doing, TestHost};
pub use namespace::{Namespace, Servers};
pub use wait::wait_until;
