//! Turns outcomes of runs into jobs of their projects, exactly one per run, and ends jobs when their host reports.

mod handler;
mod metrics;

use std::sync::Arc;

use runfleet_domain::Lane;
use runfleet_runtime::{Env, Process};
use runfleet_store::AlarmSet;
use runfleet_worker::{Fleet, Settings};

use crate::handler::{Deps, Done};

/// Settings of completion-dispatcher.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        Some(Self { fleet: Settings::from_env(env, "completion-dispatcher")? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let fleet = Fleet::connect(config.fleet, process).await?;
    fleet.sweep(AlarmSet::Done)?;
    let deps = Arc::new(Deps::new(&fleet)?);
    let lanes = fleet.lanes(&Lane::ALL);
    fleet
        .consume::<Done, _, _>(lanes, move |message| handler::handle(Arc::clone(&deps), message))
        .await
}
