//! Five real worker processes for fleet tests and the benchmark, and the bare relay that the benchmark compares with.

mod bad_model;
pub mod bench;
mod callers;
mod certificates;
mod documents;
pub mod drawn;
mod fleet;
mod hearing;
mod job_host;
mod jobs;
mod mail;
mod mock;
mod node;
mod platform;
mod post;
pub mod processes;
mod provider;
mod runs;
mod servers;
mod web;
mod wire;

pub use bad_model::{ANSWER, BadModel, CANARY, RETRY_AFTER};
pub use certificates::Authority;
pub use documents::AGENTS;
pub use fleet::{Fleet, Options, WORKERS};
pub use hearing::{Hearing, Told};
pub use job_host::{Attempt, Ending, JobHost};
pub use jobs::Jobs;
pub use mail::{Login, Mail, MailServer, Mood, Protection, base64};
pub use mock::ModelMock;
pub use node::{NodeHost, example, sdk};
pub use platform::Platform;
pub use post::{Post, sink_documents};
pub use provider::{Asked, Provider};
pub use runs::{code, ended};
pub use servers::OwnServers;
pub use web::{Web, WebAnswer, WebRequest};
pub use wire::Wire;
mod options;

pub use fleet::{BOUND, project};
pub use options::{request, start};
