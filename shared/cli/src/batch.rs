//! `runfleet batch`: how far a batch has got, and revoking it. The ledger's view.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use runfleet_domain::Name;
use runfleet_store::{BATCH_REVOKED_MAX, BatchProgress};

use crate::context::{Context, Identity};
use crate::keys::at_and_distance;

/// Longest span for which a batch can be revoked, in days.
const DAYS_MAX: u64 = BATCH_REVOKED_MAX.as_secs() / 86_400;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// How many starts of a batch have a run, how many were refused, and whether it is revoked.
    Show(Args),
    /// Refuse all further starts of a batch. Runs that it has made go on.
    Revoke {
        #[command(flatten)]
        batch: Args,
        /// For how many days: as long as a token of the batch is valid.
        #[arg(long, default_value_t = DAYS_MAX, value_parser = clap::value_parser!(u64).range(1..=DAYS_MAX))]
        days: u64,
        /// Let it start again instead.
        #[arg(long, conflicts_with = "days")]
        undo: bool,
    },
}

/// Which batch.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of the batch: the execution in its tokens.
    name: String,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(command: Command) -> Result<()> {
    let (Command::Show(batch) | Command::Revoke { batch, .. }) = &command;
    let name: Name =
        batch.name.parse().map_err(|error| anyhow::anyhow!("the name of the batch {error}"))?;
    let mut context = Context::load()?;
    let (workspace, project) = context.project(&batch.identity)?;
    let store = context.store().await?;
    match command {
        Command::Show(_) => {
            let progress = store.show_batch(&workspace, &project, &name).await;
            let Some(progress) = progress.context("asking the ledger")? else {
                bail!(
                    "the ledger knows no batch {name} of {workspace}/{project}: it has started nothing in 30 days"
                );
            };
            for (name, value) in facts(&progress) {
                crate::out::line(format_args!("{name:<10} {value}"));
            }
        }
        Command::Revoke { undo: true, .. } => {
            let done = store.unrevoke_batch(&workspace, &project, &name).await;
            done.context("asking the ledger")?;
            crate::out::line(format_args!("batch {name} of {workspace}/{project} may start again"));
        }
        Command::Revoke { days, .. } => {
            let keep = Duration::from_hours(24 * days);
            let done = store.revoke_batch(&workspace, &project, &name, keep).await;
            done.context("asking the ledger")?;
            crate::out::line(format_args!(
                "batch {name} of {workspace}/{project} is revoked for {days} days; its runs go on"
            ));
        }
    }
    Ok(())
}

fn facts(progress: &BatchProgress) -> [(&'static str, String); 5] {
    let time = |at: Option<u64>| at.map_or_else(|| "–".to_owned(), at_and_distance);
    [
        ("accepted", format!("{} starts have a run", progress.accepted)),
        ("refused", format!("{} starts have none", progress.refused)),
        ("first", time(progress.first_at_ms)),
        ("last", time(progress.last_at_ms)),
        (
            "revoked",
            progress.revoked_for.map_or_else(
                || "no".to_owned(),
                |left| format!("for {} h", left.as_secs() / 3_600),
            ),
        ),
    ]
}
