//! `runfleet keys`: what an idempotency key of a project stands for, and letting go of it. The ledger's view.

use anyhow::{Context as _, Result, bail};
use runfleet_domain::IdempotencyKey;
use runfleet_runtime::clock::now_ms;
use runfleet_store::HeldKey;

use crate::context::{Context, Identity};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Which run a key names, and until when it is held.
    Show(Args),
    /// Free a key at once. Its run goes on; the next start with the key makes another run.
    Release(Args),
}

/// Arguments of both.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The idempotency key.
    key: String,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(command: Command) -> Result<()> {
    let (Command::Show(args) | Command::Release(args)) = &command;
    let key: IdempotencyKey =
        args.key.parse().map_err(|error| anyhow::anyhow!("the idempotency key {error}"))?;
    let mut context = Context::load()?;
    let (workspace, project) = context.project(&args.identity)?;
    let store = context.store().await?;
    let free = || format!("the key is free: no run of {workspace}/{project} holds it");
    match command {
        Command::Show(_) => {
            let held = store.show_key(&workspace, &project, &key).await;
            let Some(held) = held.context("asking the ledger")? else { bail!(free()) };
            for (name, value) in facts(&held) {
                crate::out::line(format_args!("{name:<10} {value}"));
            }
        }
        Command::Release(_) => {
            let released = store.release_key(&workspace, &project, &key).await;
            let Some(run) = released.context("asking the ledger")? else { bail!(free()) };
            crate::out::line(format_args!("released from run {run}, which goes on as before"));
        }
    }
    Ok(())
}

fn facts(held: &HeldKey) -> [(&'static str, String); 7] {
    let time = |at: Option<u64>| at.map_or_else(|| "–".to_owned(), at_and_distance);
    [
        ("run", held.run.to_string()),
        ("state", held.state.public(held.run.kind()).to_owned()),
        ("target", format!("{} ({})", held.target, held.run.kind())),
        ("identity", held.identity.clone()),
        ("created", time(Some(held.created_at_ms))),
        ("finished", time(held.finished_at_ms)),
        (
            "held",
            match held.held_until_ms {
                Some(until) => format!("until {}", at_and_distance(until)),
                None => "while the run goes on and seven days longer".to_owned(),
            },
        ),
    ]
}

/// A time, and how far away it is by the clock of this machine.
pub(crate) fn at_and_distance(at_ms: u64) -> String {
    let now = now_ms();
    if at_ms > now {
        format!("{at_ms} (Unix ms), in {} min", (at_ms - now) / 60_000)
    } else {
        format!("{at_ms} (Unix ms), {} s ago", (now - at_ms) / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_whether_it_is_ahead_or_past() {
        assert!(at_and_distance(now_ms() + 120_000).ends_with("min"));
        assert!(at_and_distance(1_000).starts_with("1000 (Unix ms), "));
        assert!(at_and_distance(1_000).ends_with("s ago"));
    }
}
