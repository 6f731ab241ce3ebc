//! Moves Process runs: takes `run.advance.v1`, evaluates one slice of the Process, commits it, and publishes what follows.

mod definitions;
mod events;
mod handler;
mod held;
mod metrics;
mod perform;
mod slice;
#[cfg_attr(not(test), expect(dead_code, reason = "the handler takes up the threads next"))]
mod threads;

use std::sync::Arc;

use runfleet_broker::LaneConfig;
use runfleet_domain::Lane;
use runfleet_domain::limits::SLICE_STEPS;
use runfleet_runtime::{Env, Process};
use runfleet_store::AlarmSet;
use runfleet_worker::inbox::RunnerInbox;
use runfleet_worker::{Fleet, Settings};

use crate::handler::Deps;

/// Settings of process-runner.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
    slice_steps: u32,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let fleet = Settings::from_env(env, "process-runner");
        let slice_steps = env.or(
            "RUNFLEET_SLICE_STEPS",
            SLICE_STEPS,
            "Steps of a Process in one delivery of its message.",
        );
        env.check(
            slice_steps.is_none_or(|steps| steps > 0),
            "RUNFLEET_SLICE_STEPS must be at least 1",
        );
        Some(Self { fleet: fleet?, slice_steps: slice_steps? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let fleet = Fleet::connect(config.fleet, process).await?;
    fleet.sweep(AlarmSet::Process)?;
    let deps = Arc::new(Deps::new(&fleet, config.slice_steps)?);
    let mut lanes = fleet.lanes(&Lane::ALL);
    // One at a time: what waits here was in hand when a runner died, and the next crash must tell which one it was.
    lanes.push(LaneConfig::new(handler::QUARANTINE, Lane::Interactive, 1));
    fleet
        .consume::<RunnerInbox, _, _>(lanes, move |message| {
            handler::handle(Arc::clone(&deps), message)
        })
        .await
}
