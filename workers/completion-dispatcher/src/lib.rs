//! Turns outcomes of runs into jobs of their projects, exactly one per run, and sees all jobs through: those of outcomes, those
//! that project code enqueues, and those of schedules. Attempts are published when they are due, timed, and tried again.

mod attempts;
mod handler;
mod hosts;
mod metrics;
mod outcomes;
mod places;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use runfleet_broker::{LaneConfig, names};
use runfleet_domain::Lane;
use runfleet_domain::limits::BODY_BYTES_MAX;
use runfleet_runtime::{Env, Process};
use runfleet_store::AlarmSet;
use runfleet_worker::{Fleet, Settings, TokenSettings, Tokens};

use crate::handler::{Deps, Done, GivenUp};
use crate::schedule::Scheduler;

/// Jobs in hand at once that hosts have given up.
const GIVEN_UP_PREFETCH: u16 = 16;

/// How long one of them may be worked on.
const GIVEN_UP_BOUND: Duration = Duration::from_secs(30);

/// Settings of completion-dispatcher.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
    tokens: TokenSettings,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let (fleet, tokens) =
            (Settings::from_env(env, "completion-dispatcher"), TokenSettings::from_env(env));
        Some(Self { fleet: fleet?, tokens: tokens? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let tokens = Tokens::open(&config.tokens)?;
    let mut fleet = Fleet::connect(config.fleet, process).await?;
    fleet.sweep(AlarmSet::Done)?;
    let deps = Arc::new(Deps::new(&fleet, tokens)?);
    let (tasks, shutdown) = (&fleet.process.tasks, &fleet.process.shutdown);
    tasks.spawn(Scheduler::new(Arc::clone(&deps))?.run(shutdown.clone()));
    tasks.spawn(hosts::watch(Arc::clone(&deps), shutdown.clone()));
    let parked = LaneConfig::new(names::DEAD_JOBS, Lane::Interactive, GIVEN_UP_PREFETCH);
    let own = Arc::clone(&deps);
    // A job with a full outcome is larger than any request.
    let bytes_max = 2 * BODY_BYTES_MAX;
    fleet.consume_large::<GivenUp, _, _>(vec![parked], GIVEN_UP_BOUND, bytes_max, move |message| {
        handler::given_up(Arc::clone(&own), message)
    });
    let lanes = fleet.lanes(&Lane::ALL);
    fleet
        .consume::<Done, _, _>(lanes, move |message| handler::handle(Arc::clone(&deps), message))
        .await
}
