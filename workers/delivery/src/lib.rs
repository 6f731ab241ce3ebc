//! Will bring an agent's messages to people. For now it takes its messages off the queues and parks each one with the reason,
//! so that nothing is lost and nothing waits unseen.

use runfleet_broker::{DecodeError, Inbound, Inbox, Verdict};
use runfleet_domain::Lane;
use runfleet_runtime::{Env, Process};
use runfleet_worker::{Fleet, Settings};

/// Settings of delivery.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        Some(Self { fleet: Settings::from_env(env, "delivery")? })
    }
}

/// Any message at all.
struct Anything {
    kind: String,
}

impl Inbox for Anything {
    fn decode(kind: &str, _body: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { kind: kind.to_owned() })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let fleet = Fleet::connect(config.fleet, process).await?;
    let lanes = fleet.lanes(&Lane::ALL);
    fleet.consume::<Anything, _, _>(lanes, |message| async move { Ok(park(&message)) }).await
}

fn park(message: &Inbound<Anything>) -> Verdict {
    let detail = format!("this version of delivery sends no messages; kind {}", message.body.kind);
    Verdict::Park("not_supported", detail)
}
