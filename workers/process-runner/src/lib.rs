//! Moves Process runs: takes `run.advance.v1`, evaluates one slice of the Process, commits it, and publishes what follows.
//! Takes the answers of hosts (`host.answer.v1`) into the inboxes of runs, and makes the HTTP calls of tasks
//! (`process.call.v1`).

mod agents;
mod answers;
mod call;
mod definitions;
mod events;
mod handler;
mod held;
mod metrics;
mod perform;
mod slice;
#[cfg(test)]
mod testing;
mod threads;

use std::sync::Arc;

use runfleet_broker::LaneConfig;
use runfleet_domain::Lane;
use runfleet_domain::limits::SLICE_STEPS;
use runfleet_runtime::{Env, Process};
use runfleet_store::AlarmSet;
use runfleet_worker::inbox::{CallInbox, RunnerInbox};
use runfleet_worker::{Fleet, Settings};

use crate::call::{CallConfig, Caller};
use crate::definitions::Definitions;
use crate::handler::{Deps, StoredAsks};
use crate::threads::{ThreadSettings, Threads};

/// Settings of process-runner.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
    slice_steps: u32,
    calls: CallConfig,
    threads: ThreadSettings,
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
        let (calls, threads) = (CallConfig::from_env(env), ThreadSettings::from_env(env));
        Some(Self { fleet: fleet?, slice_steps: slice_steps?, calls: calls?, threads: threads? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let mut fleet = Fleet::connect(config.fleet, process).await?;
    fleet.sweep(AlarmSet::Process)?;
    let definitions = Definitions::new(fleet.store.clone());
    let threads = Threads::start(config.threads, &fleet.process.registry)?;
    let calls = config.calls.lanes();
    let caller = Arc::new(Caller::new(&fleet, config.calls, StoredAsks(definitions.clone()))?);
    let answers = Arc::clone(&caller.answers);
    let deps = Arc::new(Deps::new(&fleet, definitions, threads, config.slice_steps, answers)?);
    fleet.consume_beside::<CallInbox, _, _>(calls, call::HANDLER_BOUND, move |message| {
        call::handle(Arc::clone(&caller), message)
    });
    let mut lanes = fleet.lanes(&Lane::ALL);
    // One at a time: what waits here was in hand when a runner died, and the next crash must tell which one it was.
    lanes.push(LaneConfig::new(handler::QUARANTINE, Lane::Interactive, 1));
    fleet
        .consume::<RunnerInbox, _, _>(lanes, move |message| {
            handler::handle(Arc::clone(&deps), message)
        })
        .await
}
