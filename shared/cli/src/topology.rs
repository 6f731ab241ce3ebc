//! `runfleet topology`: exchanges, queues and policies, wanted and present. The broker's view.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::apply::topology;
use crate::context::Context;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Print every queue with what is in it.
    Show,
    /// Declare what is missing and set the policies. Repeating it changes nothing.
    Apply,
    /// Print the difference between what the fleet wants and what the broker has; exit 1 if there is any.
    Diff,
}

pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let admin = Context::load()?.topology_admin()?;
    match command {
        Command::Show => {
            crate::out::line(format_args!(
                "{:<40} {:>9} {:>9} {:>9}",
                "queue", "ready", "unacked", "consumers"
            ));
            for depth in admin.show().await.context("asking the broker")? {
                crate::out::line(format_args!(
                    "{:<40} {:>9} {:>9} {:>9}",
                    depth.queue, depth.ready, depth.unacked, depth.consumers
                ));
            }
        }
        Command::Apply => {
            admin.apply().await.context("declaring the topology")?;
            let wanted = topology();
            crate::out::line(format_args!(
                "{} exchanges, {} queues, {} policies are there",
                wanted.exchanges.len(),
                wanted.queues.len(),
                wanted.policies.len()
            ));
        }
        Command::Diff => {
            let differences = admin.diff().await.context("asking the broker")?;
            for difference in &differences {
                crate::out::line(format_args!("{difference}"));
            }
            return Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
    Ok(ExitCode::SUCCESS)
}
