//! `runfleet credits`: what a workspace and its agents have used up, and how much there is. The ledger's view.

use anyhow::{Context as _, Result, bail};
use runfleet_catalog::Snapshot;
use runfleet_domain::admission::CreditsUsed;

use crate::context::{Context, Identity};

/// Which workspace.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let mut context = Context::load()?;
    let (workspace, _) = context.project(&args.identity)?;
    let store = context.store().await?;
    let stored = store.load_catalog(&workspace).await.context("asking the ledger")?;
    let Some(stored) = stored else { bail!("the ledger has no catalog of {workspace}") };
    let snapshot = Snapshot::from_json(stored.json.as_bytes()).context("reading the catalog")?;
    let given = snapshot.workspace.billing.as_ref().and_then(|billing| billing.credits);
    let mut lines = Vec::new();
    let mut whole = CreditsUsed::default();
    for (agent, declared) in &snapshot.agents {
        let used = store.credits_used(&workspace, agent).await.context("asking the ledger")?;
        whole = used;
        lines.push(line(&format!("agent {agent}"), used.agent, declared.credit_limit));
    }
    crate::out::line(line("workspace", whole.workspace, given));
    lines.into_iter().for_each(crate::out::line);
    Ok(())
}

fn line(of: &str, used: u64, given: Option<u32>) -> String {
    let given = given.map_or_else(|| "without a limit".to_owned(), |given| format!("of {given}"));
    format!("{of:<30} {} used, {given}", credits(used))
}

/// Credits, in full.
pub(crate) fn credits(millionths: u64) -> String {
    let unit = CreditsUsed::PER_CREDIT;
    format!("{}.{:06}", millionths / unit, millionths % unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_are_shown_in_full_with_how_many_there_are() {
        assert_eq!(credits(0), "0.000000");
        let shown = line("workspace", 1_000_007, Some(9));
        assert!(
            shown.starts_with("workspace  ") && shown.ends_with(" 1.000007 used, of 9"),
            "{shown}"
        );
        assert!(line("agent coach", 5, None).ends_with(" 0.000005 used, without a limit"));
    }
}
