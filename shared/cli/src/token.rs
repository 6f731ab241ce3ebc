//! `runfleet token`: mint execution tokens and make key pairs, for development and for whoever runs the platform.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use runfleet_domain::Source;
use secrecy::{ExposeSecret, SecretString};

use crate::context::{Context, Identity};
use crate::dev::keys;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Print a token for one execution: of a script and valid for an hour unless options say otherwise.
    Mint(Mint),
    /// Make a key pair: `signing.pem` (private) and `token-keys.json` (key set) in a directory.
    NewKey {
        /// Where the two files go.
        dir: PathBuf,
    },
}

/// What a token says.
#[derive(clap::Args)]
pub(crate) struct Mint {
    #[command(flatten)]
    identity: Identity,
    /// What is executed: script, route, trigger-before, trigger-after, job, action, webhook, schedule or development.
    #[arg(long, conflicts_with = "batch")]
    source: Option<String>,
    /// A token for a backfill of this name: no counts per execution, may be revoked with `runfleet batch revoke`.
    #[arg(long)]
    batch: Option<String>,
    /// For a backfill: starts that meet a daily limit wait for the next day instead of being refused.
    #[arg(long, requires = "batch")]
    wait_for_day: bool,
    /// The execution may only read.
    #[arg(long)]
    read_only: bool,
    /// Automation steps left.
    #[arg(long)]
    hops: Option<u32>,
    /// The version of the project whose code is executed; the active one unless it is given.
    #[arg(long)]
    project_version: Option<String>,
    /// How long it is valid, in seconds: an hour, and 30 days for a backfill, unless it is given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    seconds: Option<u64>,
}

/// How long a token of a backfill is valid, in seconds.
const BATCH_SECONDS: u64 = 30 * 86_400;

impl Mint {
    fn mint(self) -> Result<SecretString> {
        let mut context = Context::load()?;
        let mut claims = context.claims(&self.identity)?;
        if let Some(source) = self.source {
            claims.source =
                serde_json::from_value(source.into()).context("--source is not known")?;
        }
        let mut seconds = self.seconds;
        if let Some(batch) = self.batch {
            claims.source = Source::Batch;
            claims.execution = batch.parse().map_err(|error| anyhow::anyhow!("--batch {error}"))?;
            seconds = seconds.or(Some(BATCH_SECONDS));
        }
        if let Some(seconds) = seconds {
            claims.exp = claims.iat.saturating_add(seconds);
        }
        claims.wait_for_day = self.wait_for_day;
        claims.read_only = self.read_only;
        claims.hops = self.hops.unwrap_or(claims.hops);
        claims.version = self.project_version;
        context.signer()?.mint(&claims).context("minting a token")
    }
}

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Mint(mint) => crate::out::line(mint.mint()?.expose_secret()),
        Command::NewKey { dir } => {
            let made = keys::prepare(&dir)
                .with_context(|| format!("making a key pair in {}", dir.display()))?;
            crate::out::line(format_args!("{}\n{}", made.signing.display(), made.set.display()));
        }
    }
    Ok(())
}
