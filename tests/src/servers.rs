//! A RabbitMQ and Redis of one test alone, for tests that stop and restart them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use runfleet_testkit::Servers;
use tempfile::TempDir;

/// Stopped when dropped.
pub struct OwnServers {
    script: PathBuf,
    dir: TempDir,
}

impl OwnServers {
    /// Starts them through the project's own script.
    pub fn start() -> Result<Self> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let dir = tempfile::Builder::new().prefix("runfleet-servers.").tempdir()?;
        let servers = Self { script: root.join("deploy/local/services"), dir };
        servers.call("start", &[])?;
        Ok(servers)
    }

    /// Their addresses.
    pub fn addresses(&self) -> Result<Servers> {
        let text = std::fs::read_to_string(self.dir.path().join("services.env"))
            .context("reading services.env")?;
        Servers::from_file(&text)
    }

    /// Kills RabbitMQ and starts it again with its data.
    pub fn restart_rabbitmq(&self) -> Result<()> {
        self.call("restart-rabbitmq", &["--kill"])
    }

    /// Kills Redis and starts it again with its data.
    pub fn restart_redis(&self) -> Result<()> {
        self.call("restart-redis", &["--kill"])
    }

    /// Stops Redis; it stays away until [`OwnServers::start_redis`].
    pub fn stop_redis(&self) -> Result<()> {
        self.call("stop-redis", &[])
    }

    /// Starts Redis again.
    pub fn start_redis(&self) -> Result<()> {
        self.call("start-redis", &[])
    }

    fn call(&self, verb: &str, options: &[&str]) -> Result<()> {
        let output =
            Command::new(&self.script).arg(verb).arg(self.dir.path()).args(options).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "services {verb}: {said}");
        Ok(())
    }
}

impl Drop for OwnServers {
    fn drop(&mut self) {
        let _ = self.call("stop", &[]);
    }
}
