//! The project host of the example, in TypeScript: started beside the workers when Node.js and the built SDK are there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runfleet_client::Client;
use runfleet_contracts::claims::Source;
use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret;
use tokio::process::{Child, Command};

use super::{demo, keys};
use crate::context::{Context, Identity};

/// How long the host may take until it is seen by the fleet.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

/// How long it may take to stop: its own time for draining, and a little more.
const STOPPED_WITHIN: Duration = Duration::from_secs(15);

/// How long its project key is valid, in seconds.
const KEY_SECONDS: u64 = 30 * 86_400;

/// Oldest version of Node.js that runs it.
const NODE_LEAST: u32 = 20;

/// The running host.
pub(crate) struct Host {
    child: Child,
    dir: PathBuf,
    checkout: PathBuf,
}

/// Why no host can be started here; nothing when one can.
pub(crate) async fn missing(checkout: &Path) -> Option<String> {
    if !checkout.join("shared/sdk/dist/host/main.js").is_file() {
        return Some("`make sdk` builds the SDK that runs its code".to_owned());
    }
    let version = Command::new("node").arg("--version").stderr(Stdio::null()).output().await;
    let text = version.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let major = text.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    match major.parse::<u32>() {
        Ok(major) if major >= NODE_LEAST => None,
        _ => Some(format!("Node.js {NODE_LEAST} or later runs its code, and is not here")),
    }
}

impl Host {
    /// Starts the host of the example and waits until the fleet sees it.
    pub(crate) async fn start(checkout: &Path, dir: &Path) -> Result<Self> {
        keys::write(&key_file(dir), &key()?)?;
        let child = spawn(checkout, dir)?;
        let mut host = Self { child, dir: dir.to_owned(), checkout: checkout.to_owned() };
        host.seen().await?;
        Ok(host)
    }

    async fn seen(&mut self) -> Result<()> {
        let mut context = Context::load()?;
        let token = context.project_key(&identity())?;
        let broker = context.broker()?;
        let client = Client::new(&broker, token);
        let until = Instant::now() + SEEN_WITHIN;
        let seen = loop {
            let shown = client.projects().show(None).await;
            if shown.is_ok_and(|shown| shown.active.is_some() && !shown.hosts.is_empty()) {
                break Ok(());
            }
            let ended = self.child.try_wait()?.is_some();
            if ended || Instant::now() > until {
                break Err(anyhow::anyhow!(
                    "no host is seen; see {}",
                    log_file(&self.dir).display()
                ));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        broker.close().await;
        seen
    }

    /// Whether its log says that the handler of a job has ended.
    pub(crate) fn has_handled(&self, job: &str) -> bool {
        let log = std::fs::read_to_string(log_file(&self.dir)).unwrap_or_default();
        log.lines().any(|line| line.contains(job) && line.contains("a handler has ended"))
    }

    /// Starts it again when it has ended by itself; whether it had.
    pub(crate) fn restart_ended(&mut self) -> Result<bool> {
        if self.child.try_wait()?.is_none() {
            return Ok(false);
        }
        self.child = spawn(&self.checkout, &self.dir)?;
        Ok(true)
    }

    /// Asks it to stop and waits for it; returns how it ended.
    pub(crate) async fn stop(mut self) -> String {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process(id, Signal::TERM);
        }
        match tokio::time::timeout(STOPPED_WITHIN, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => "drained".to_owned(),
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                let _ = self.child.kill().await;
                "killed: it did not stop in time".to_owned()
            }
        }
    }
}

/// The project of the example, as its developer.
fn identity() -> Identity {
    Identity {
        workspace: Some(demo::WORKSPACE.into()),
        project: Some(demo::PROJECT.into()),
        user: Some("ada".into()),
    }
}

fn key() -> Result<String> {
    let mut context = Context::load()?;
    let mut claims = context.claims(&identity())?;
    claims.source = Source::Host;
    claims.exp = claims.iat.saturating_add(KEY_SECONDS);
    let key = context.signer()?.mint(&claims).context("minting the project key of the example")?;
    Ok(key.expose_secret().to_owned())
}

fn key_file(dir: &Path) -> PathBuf {
    dir.join("keys/project.key")
}

fn log_file(dir: &Path) -> PathBuf {
    dir.join("logs/host.log")
}

fn spawn(checkout: &Path, dir: &Path) -> Result<Child> {
    let log = log_file(dir);
    let log = File::options().create(true).append(true).open(&log).context("opening a log file")?;
    let program = checkout.join("shared/sdk/bin/runfleet-host.js");
    if !program.is_file() {
        bail!("{} is missing", program.display());
    }
    let mut context = Context::load()?;
    let amqp = context.amqp_url()?;
    Command::new("node")
        .arg(program)
        .args(["--activate", "--show-errors", "--drain-seconds", "5", "--project"])
        .arg(checkout.join("deploy/example/shop"))
        .env("RUNFLEET_AMQP_URL", amqp.expose_secret())
        .env("RUNFLEET_PROJECT_KEY_FILE", key_file(dir))
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("opening a log file")?)
        .stderr(log)
        // Ctrl-C at the terminal goes to `runfleet dev` alone, which stops everything in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("starting the host of the example")
}
