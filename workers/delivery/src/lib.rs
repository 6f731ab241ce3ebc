//! Brings messages of agents to people: takes `deliver.message.v1`, asks the rules, reserves the message in the ledger, sends it
//! through the sink of its agent, records what became of it, and tells the run that waits.
//!
//! A message is sent at most once for each id, and never beyond the caps: both are decided by the ledger, in the script that
//! reserves it. What an attempt means is decided by `outcome`, whether a message may go by `rules`; both touch nothing.

mod config;
mod handler;
mod metrics;
mod outcome;
mod quiet;
mod recipients;
mod rules;
mod sinks;
mod told;

use std::sync::Arc;

use runfleet_contracts::DeliverMessage;
use runfleet_domain::Lane;
use runfleet_runtime::Process;
use runfleet_store::AlarmSet;
use runfleet_worker::Fleet;
use runfleet_worker::inbox::Only;

pub use crate::config::Config;
use crate::handler::Deps;

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let Config { fleet, caps, lease, allow, places, recipients } = config;
    let fleet = Fleet::connect(fleet, process).await?;
    let (sinks, recipients) = handler::sinks(&fleet, allow, places, recipients)?;
    let deps = Arc::new(Deps::new(&fleet, sinks, recipients, caps, lease)?);
    fleet.sweep(AlarmSet::Chat)?;
    let lanes = fleet.lanes(&Lane::ALL);
    fleet
        .consume::<Only<DeliverMessage>, _, _>(lanes, move |message| {
            handler::handle(Arc::clone(&deps), message)
        })
        .await
}
