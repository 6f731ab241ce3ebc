//! A RabbitMQ and Redis of one test alone, for tests that stop and restart them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use runfleet_testkit::Servers;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A process that stands still until this is dropped.
pub struct Frozen(Pid);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

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

    /// The process of one of them, `rabbitmq` or `redis`.
    pub(crate) fn process(&self, server: &str) -> Result<Pid> {
        let text = std::fs::read_to_string(self.dir.path().join(server).join("pid"))
            .with_context(|| format!("reading the process id of {server}"))?;
        let pid = text.split_whitespace().next().unwrap_or_default().parse()?;
        Pid::from_raw(pid).context("a process id")
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

    /// Redis takes nothing and answers nothing until the result is dropped; its connections stay.
    pub fn freeze_redis(&self) -> Result<Frozen> {
        let pid = self.process("redis")?;
        kill_process(pid, Signal::STOP)?;
        Ok(Frozen(pid))
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
