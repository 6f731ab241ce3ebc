//! Five real worker processes for fleet tests and the benchmark, and the bare relay that the benchmark compares with.

pub mod bench;
mod documents;
pub mod drawn;
mod fleet;
mod jobs;
mod platform;
mod provider;
mod servers;
mod web;
mod wire;

pub use documents::AGENTS;
pub use fleet::{Fleet, Options, WORKERS};
pub use jobs::Jobs;
pub use platform::Platform;
pub use provider::{Asked, Provider};
pub use servers::OwnServers;
pub use web::{Web, WebAnswer, WebRequest};
pub use wire::Wire;
mod options;

pub use fleet::{BOUND, project};
pub use options::{request, start};
