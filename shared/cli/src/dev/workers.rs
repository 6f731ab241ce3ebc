//! The five workers as child processes: started, waited for, restarted when they die, drained at the end.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

/// The five workers, in the order in which a run meets them.
pub(crate) const WORKERS: [&str; 5] =
    ["start-intake", "process-runner", "agent-runner", "delivery", "completion-dispatcher"];

/// How long a worker may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long a worker may take to stop: its own grace and margin, and a little more.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

struct Worker {
    name: &'static str,
    child: Child,
}

/// The running workers.
pub(crate) struct Workers {
    programs: PathBuf,
    dir: PathBuf,
    env: BTreeMap<String, String>,
    running: Vec<Worker>,
}

impl Workers {
    /// Starts all five from the directory of this program, with their logs under `dir`.
    pub(crate) fn start(dir: &Path, env: BTreeMap<String, String>) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let programs =
            program.parent().context("finding the directory of this program")?.to_owned();
        std::fs::create_dir_all(dir.join("logs")).context("making the directory for logs")?;
        let mut workers = Self { programs, dir: dir.to_owned(), env, running: Vec::new() };
        for name in WORKERS {
            let child = workers.spawn(name)?;
            workers.running.push(Worker { name, child });
        }
        Ok(workers)
    }

    fn address_file(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.addr"))
    }

    fn spawn(&self, name: &str) -> Result<Child> {
        let program = self.programs.join(format!("runfleet-{name}"));
        if !program.is_file() {
            bail!("{} is missing: run `cargo build --bins` first", program.display());
        }
        let address = self.address_file(name);
        let _ = std::fs::remove_file(&address);
        let log = self.dir.join(format!("logs/{name}.log"));
        let log =
            File::options().create(true).append(true).open(&log).context("opening a log file")?;
        Command::new(program)
            .envs(&self.env)
            .env("RUNFLEET_ADMIN_ADDR", "127.0.0.1:0")
            .env("RUNFLEET_ADMIN_FILE", address)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("opening a log file")?)
            .stderr(log)
            // Ctrl-C at the terminal goes to this program alone, which stops the workers in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {name}"))
    }

    /// Waits until all are ready; returns the address of each one's metrics.
    pub(crate) async fn ready(&mut self) -> Result<Vec<(&'static str, String)>> {
        let mut addresses = Vec::new();
        for index in 0..self.running.len() {
            let name = self.running[index].name;
            let until = Instant::now() + READY_WITHIN;
            loop {
                if let Some(status) = self.running[index].child.try_wait()? {
                    bail!(
                        "{name} ended with {status}; see {}",
                        self.dir.join(format!("logs/{name}.log")).display()
                    );
                }
                if let Ok(address) = std::fs::read_to_string(self.address_file(name))
                    && is_ready(address.trim()).await
                {
                    addresses.push((name, format!("http://{}/metrics", address.trim())));
                    break;
                }
                if Instant::now() > until {
                    bail!(
                        "{name} is not ready; see {}",
                        self.dir.join(format!("logs/{name}.log")).display()
                    );
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(addresses)
    }

    /// Starts again whatever has ended by itself; returns what was restarted.
    pub(crate) fn restart_ended(&mut self) -> Result<Vec<(&'static str, ExitStatus)>> {
        let mut ended = Vec::new();
        for index in 0..self.running.len() {
            if let Some(status) = self.running[index].child.try_wait()? {
                let name = self.running[index].name;
                ended.push((name, status));
                self.running[index].child = self.spawn(name)?;
            }
        }
        Ok(ended)
    }

    /// Asks all to stop, waits for them; returns how each one ended.
    pub(crate) async fn stop(mut self) -> Vec<(&'static str, String)> {
        for worker in &self.running {
            if let Some(pid) =
                worker.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let mut ended = Vec::new();
        for worker in &mut self.running {
            let how = match tokio::time::timeout(STOPPED_WITHIN, worker.child.wait()).await {
                Ok(Ok(status)) if status.success() => "drained".to_owned(),
                Ok(Ok(status)) => status.to_string(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => {
                    let _ = worker.child.kill().await;
                    "killed: it did not stop in time".to_owned()
                }
            };
            ended.push((worker.name, how));
        }
        ended
    }
}

/// Asks `/ready`. A few lines of HTTP over a socket: a client library for one status line would be the larger thing.
async fn is_ready(address: &str) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream
            .write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        std::io::Result::Ok(head.ends_with(b" 200"))
    };
    tokio::time::timeout(Duration::from_secs(2), ask)
        .await
        .is_ok_and(|answer| answer.unwrap_or(false))
}
