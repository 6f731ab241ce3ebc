//! The private RabbitMQ and Redis of a development fleet, through the scripts in `deploy/local`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// The servers of one state directory. They outlive this value: call [`Servers::stop`].
pub(crate) struct Servers {
    script: PathBuf,
    dir: PathBuf,
}

/// The checkout that holds `deploy/local`: the current directory or one above it.
pub(crate) fn checkout() -> Result<PathBuf> {
    let here = std::env::current_dir().context("reading the current directory")?;
    here.ancestors()
        .find(|dir| dir.join("deploy/local/services").is_file())
        .map(Path::to_owned)
        .context("`deploy/local/services` is not here: run this inside a checkout of runfleet")
}

impl Servers {
    /// Starts the servers of `dir`, or finds them running, and returns their addresses.
    pub(crate) async fn start(
        checkout: &Path,
        dir: &Path,
    ) -> Result<(Self, BTreeMap<String, String>)> {
        let servers = Self { script: checkout.join("deploy/local/services"), dir: dir.to_owned() };
        servers.call("start").await.context("starting RabbitMQ and Redis")?;
        let file = dir.join("services.env");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        let variables = text.lines().filter_map(|line| line.split_once('='));
        Ok((servers, variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }

    /// Stops them.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.call("stop").await.context("stopping RabbitMQ and Redis")
    }

    async fn call(&self, verb: &str) -> Result<()> {
        // A process group of its own: Ctrl-C at the terminal must not interrupt the script half way.
        let output = Command::new(&self.script)
            .arg(verb)
            .arg(&self.dir)
            .stdin(Stdio::null())
            .process_group(0)
            .output()
            .await
            .with_context(|| format!("running {}", self.script.display()))?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }
}
