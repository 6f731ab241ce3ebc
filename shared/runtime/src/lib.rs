//! The frame of every worker process: settings, logs, metrics, health, signals and the exit code.
//!
//! [`main`] is all that a worker's `main.rs` calls. Nothing here knows a broker, a store or a rule of the fleet, and
//! nothing here retries: a worker that cannot go on says so with its exit code and is started again.

mod admin;
pub mod clock;
mod env;
pub mod exit;
mod frame;
mod logs;
mod process;
mod readiness;
mod report;
mod run;
mod secret_file;

pub use env::{Env, Fallback, Setting, SettingsError};
pub use exit::Lost;
pub use frame::{DRAIN_MARGIN, reference_of};
pub use logs::init_logs_for_cli;
pub use process::Process;
pub use readiness::Readiness;
pub use report::chain;
pub use run::main;
pub use secrecy::{ExposeSecret, SecretString};
