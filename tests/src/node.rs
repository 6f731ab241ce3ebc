//! The project host of the TypeScript SDK as a process beside a fleet, killed when the test ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use runfleet_contracts::claims::Source;
use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;

use crate::{BOUND, Fleet};

/// A running host.
pub struct NodeHost {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    _key: TempDir,
}

/// The folder of the SDK.
pub fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/sdk")
}

/// The code of the example project.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/example/shop")
}

/// The program of a host with a key of the example project behind which Ada is, and the folder that holds the key.
fn command(fleet: &Fleet, folder: &Path) -> Result<(Command, TempDir)> {
    NodeHost::built()?;
    let dir = tempfile::Builder::new().prefix("runfleet-key.").tempdir()?;
    let mut claims = fleet.claims();
    claims.source = Source::Host;
    claims.user = Some("ada".parse()?);
    let key = dir.path().join("key");
    std::fs::write(&key, fleet.token(&claims)?.expose_secret())?;
    let mut command = Command::new("node");
    command
        .arg(sdk().join("bin/runfleet-host.js"))
        .arg("--project")
        .arg(folder)
        .env("RUNFLEET_AMQP_URL", fleet.namespace.amqp.expose_secret())
        .env("RUNFLEET_PROJECT_KEY_FILE", key);
    Ok((command, dir))
}

impl NodeHost {
    /// Starts a host of the example project's key that runs the code in `folder`, makes its version active, and waits until it takes
    /// jobs, tasks and calls.
    pub async fn start(fleet: &Fleet, folder: &Path) -> Result<Self> {
        Self::start_heard(fleet, folder, |_| ()).await
    }

    /// The same; `heard` gets each line of its log as it comes.
    pub async fn start_heard(
        fleet: &Fleet,
        folder: &Path,
        heard: impl Fn(&Value) + Send + 'static,
    ) -> Result<Self> {
        let (mut command, dir) = command(fleet, folder)?;
        let mut child = command
            .args(["--activate", "--show-errors"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("starting node: is Node.js 20 installed?")?;
        let out = child.stdout.take().context("the host has no standard output")?;
        let lines = Arc::<Mutex<Vec<Value>>>::default();
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                heard(&line);
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let mut host = Self { child, lines, _key: dir };
        host.wait("a host that takes messages", 3, |line| line["message"] == "taking messages")
            .await?;
        Ok(host)
    }

    /// Fails when there is no host that could be started, and says what to do.
    pub fn built() -> Result<()> {
        let program = sdk().join("dist/host/main.js");
        if !program.is_file() {
            bail!("{} is missing: run `make sdk`, which builds it", program.display());
        }
        Ok(())
    }

    /// Waits until it has ended by itself, and tells what it said last.
    pub async fn gone(&mut self) -> anyhow::Error {
        loop {
            match self.child.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(Some(status)) => {
                    let last = self.lines(|_| true).pop();
                    return anyhow!(
                        "the host has ended by itself ({status}); its last line is {last:?}"
                    );
                }
                Err(error) => return error.into(),
            }
        }
    }

    /// Runs one piece of the code in `folder` as its developer, Ada. Returns what was printed, and the exit code.
    pub async fn dev(fleet: &Fleet, folder: &Path, what: &[&str]) -> Result<(String, Option<i32>)> {
        let (mut command, _key) = command(fleet, folder)?;
        command.arg("dev").args(what).stdin(Stdio::null()).stderr(Stdio::inherit());
        let done = tokio::task::spawn_blocking(move || command.output()).await??;
        Ok((String::from_utf8(done.stdout)?.trim_end().to_owned(), done.status.code()))
    }

    /// What it has logged so far that fits.
    pub fn lines(&self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| fits(line)).cloned().collect()
    }

    /// Waits until so many lines fit; fails at once when the host has ended.
    pub async fn wait(
        &mut self,
        what: &str,
        count: usize,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>> {
        let began = Instant::now();
        loop {
            let found = self.lines(&fits);
            if found.len() >= count {
                return Ok(found);
            }
            if self.child.try_wait()?.is_some() || began.elapsed() > BOUND {
                bail!("not seen: {what}; the host said {:#?}", self.lines(|_| true));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a handler has ended without an error; returns the ids of its executions.
    pub async fn handled(&mut self, unit: &str, count: usize) -> Result<Vec<String>> {
        let ended = |line: &Value| line["unit"] == unit && line["message"] == "a handler has ended";
        let lines = self.wait(unit, count, ended).await?;
        Ok(lines.iter().filter_map(|line| line["id"].as_str().map(str::to_owned)).collect())
    }

    /// `kill -9`, and wait until it is gone.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop, and waits for its end.
    pub async fn stop(&mut self) -> Result<ExitStatus> {
        let id = Pid::from_raw(i32::try_from(self.child.id())?).context("a process has no id")?;
        kill_process(id, Signal::TERM)?;
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > BOUND {
                bail!("the host has not ended within {BOUND:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for NodeHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
