//! Will run AI agents. For now it takes its messages off the queues and parks each one with the reason, so that nothing is
//! lost and nothing waits unseen.

use runfleet_broker::{Inbound, Verdict};
use runfleet_domain::Lane;
use runfleet_runtime::{Env, Process};
use runfleet_worker::inbox::AdvanceInbox;
use runfleet_worker::{Fleet, Settings};

/// Settings of agent-runner.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        Some(Self { fleet: Settings::from_env(env, "agent-runner")? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let fleet = Fleet::connect(config.fleet, process).await?;
    let lanes = fleet.lanes(&Lane::ALL);
    fleet.consume::<AdvanceInbox, _, _>(lanes, |message| async move { Ok(park(&message)) }).await
}

fn park(message: &Inbound<AdvanceInbox>) -> Verdict {
    let detail = format!(
        "this version of agent-runner does not execute agents; run {}",
        message.body.0.run_id
    );
    Verdict::Park("not_supported", detail)
}
