//! `runfleet token`: mint execution tokens and make key pairs, for development and for whoever runs the platform.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use secrecy::ExposeSecret;

use crate::context::{Context, Identity};
use crate::dev::keys;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Print a token for one execution of a script, valid for an hour.
    Mint(Identity),
    /// Make a key pair: `signing.pem` (private) and `token-keys.json` (key set) in a directory.
    NewKey {
        /// Where the two files go.
        dir: PathBuf,
    },
}

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Mint(identity) => {
            let token = Context::load()?.token(&identity)?;
            crate::out::line(token.expose_secret());
        }
        Command::NewKey { dir } => {
            let made = keys::prepare(&dir)
                .with_context(|| format!("making a key pair in {}", dir.display()))?;
            crate::out::line(format_args!("{}\n{}", made.signing.display(), made.set.display()));
        }
    }
    Ok(())
}
