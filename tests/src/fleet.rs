//! Five worker processes in a namespace of their own, with the example catalog, killed when the test ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use prometheus::Registry;
use runfleet_broker::{Broker, BrokerConfig, Management, Topology, TopologyAdmin};
use runfleet_catalog::{Bundle, Job, Project};
use runfleet_domain::{JobKey, Name};
use runfleet_identity::Signer;
use runfleet_store::Store;
use runfleet_testkit::{Namespace, Servers};
use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret;
use tempfile::TempDir;

use crate::wire::Wire;

/// The five workers.
pub const WORKERS: [&str; 5] =
    ["start-intake", "process-runner", "agent-runner", "delivery", "completion-dispatcher"];

/// How long anything in a fleet test may take before it counts as lost.
pub const BOUND: Duration = Duration::from_mins(1);

/// After what time the workers look for changes of the catalog, unless a test says otherwise.
pub(crate) const CATALOG_EVERY: Duration = Duration::from_millis(100);

/// What is special about a fleet.
#[derive(Default)]
pub struct Options {
    /// Servers other than those of the environment.
    pub servers: Option<Servers>,
    /// Settings for all workers, over the defaults of tests.
    pub settings: Vec<(String, String)>,
    /// A worker that dies at a named point, the first time it is started.
    pub fail_at: Option<(&'static str, String)>,
    /// Workers that are not started.
    pub without: Vec<&'static str>,
    /// Use the programs of the release profile.
    pub release: bool,
    /// Process starts allowed per day and project; the contract's default if absent.
    pub starts_per_day: Option<u32>,
}

impl Options {
    /// A fleet of these workers alone.
    pub fn only(workers: &[&str]) -> Self {
        let others = WORKERS.into_iter().filter(|worker| !workers.contains(worker));
        Self { without: others.collect(), ..Self::default() }
    }

    /// A fleet of what Processes need.
    pub fn of_processes() -> Self {
        Self::only(&["start-intake", "process-runner", "completion-dispatcher"])
    }
}

struct Running {
    child: Child,
}

/// A running fleet.
pub struct Fleet {
    /// Its place on the servers.
    pub namespace: Namespace,
    /// The ledger, for a look from outside.
    pub store: Store,
    /// A broker session of the test.
    pub broker: Broker,
    pub(crate) signer: Signer,
    dir: TempDir,
    env: BTreeMap<String, String>,
    workers: BTreeMap<&'static str, Running>,
    release: bool,
}

/// Workspace and project of the example.
pub fn project() -> (Name, Name) {
    let name = |text: &str| text.parse().unwrap_or_else(|_| unreachable!("{text} is a name"));
    (name("demo"), name("shop"))
}

impl Fleet {
    /// Starts everything and waits until all workers are ready.
    pub async fn start(options: Options) -> Result<Self> {
        let servers = match options.servers {
            Some(servers) => servers,
            None => Servers::from_env()?,
        };
        let namespace = Namespace::new(servers, Some(&Topology::standard())).await?;
        let dir = tempfile::Builder::new().prefix("runfleet-fleet.").tempdir()?;
        let (private, public) = runfleet_identity::generate("test")?;
        let keys = dir.path().join("token-keys.json");
        std::fs::write(&keys, public)?;
        let signing = dir.path().join("signing.pem");
        std::fs::write(&signing, private.expose_secret())?;
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/example/scripts");
        let mut env: BTreeMap<String, String> = [
            ("RUNFLEET_AMQP_URL", namespace.amqp.expose_secret().to_owned()),
            ("RUNFLEET_REDIS_URL", namespace.redis().expose_secret().to_owned()),
            ("RUNFLEET_NAMESPACE", namespace.name.clone()),
            ("RUNFLEET_TOKEN_KEYS_FILE", keys.display().to_string()),
            ("RUNFLEET_TOKEN_SIGNING_KEY_FILE", signing.display().to_string()),
            ("RUNFLEET_TOKEN_SIGNING_KID", "test".to_owned()),
            ("RUNFLEET_ADMIN_ADDR", "127.0.0.1:0".to_owned()),
            ("RUNFLEET_LOG", "warn".to_owned()),
            // What heals faults in minutes in production heals them in seconds here.
            ("RUNFLEET_LEASE_MS", "2000".to_owned()),
            ("RUNFLEET_ALARM_UNCLAIMED_MS", "3000".to_owned()),
            ("RUNFLEET_ALARM_HANDOVER_MS", "3000".to_owned()),
            ("RUNFLEET_SWEEP_EVERY_MS", "300".to_owned()),
            ("RUNFLEET_CATALOG_EVERY_MS", CATALOG_EVERY.as_millis().to_string()),
            ("RUNFLEET_SHUTDOWN_GRACE_MS", "10000".to_owned()),
            ("RUNFLEET_MODEL_SCRIPTS_DIR", scripts.display().to_string()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        env.extend(options.settings);
        let store = namespace.store()?;
        let mut config = BrokerConfig::new(namespace.amqp.clone(), "test");
        config.required = Vec::new();
        let broker = Broker::start(config, &Registry::new())?;
        let signer = Signer::new("test", &private)?;
        let (release, workers) = (options.release, BTreeMap::new());
        let mut fleet = Self { namespace, store, broker, signer, dir, env, workers, release };
        fleet.apply(options.starts_per_day).await?;
        for worker in WORKERS.into_iter().filter(|worker| !options.without.contains(worker)) {
            let point = options
                .fail_at
                .as_ref()
                .filter(|(name, _)| *name == worker)
                .map(|(_, point)| point.as_str());
            fleet.spawn(worker, point)?;
        }
        let started: Vec<_> = fleet.workers.keys().copied().collect();
        for worker in started {
            fleet.ready(worker).await?;
        }
        Ok(fleet)
    }

    /// Applies the example project, as `runfleet apply` does.
    async fn apply(&self, starts_per_day: Option<u32>) -> Result<()> {
        self.apply_changed(|project| {
            if let Some(limit) = starts_per_day {
                project.limits.process_starts_per_day = limit;
                project.limits.jobs_waiting = limit;
            }
        })
        .await
    }

    /// Applies the example project with one more job.
    pub async fn declare_job(&self, key: &str) -> Result<()> {
        let job = Job { name: key.to_owned(), timeout_ms: 30_000, max_attempts: 5, schedule: None };
        self.declare(key, job).await
    }

    /// The same with everything that the job is.
    pub async fn declare(&self, key: &str, job: Job) -> Result<()> {
        let key: JobKey = key.parse()?;
        self.apply_changed(|project| {
            project.jobs.insert(key.clone(), job.clone());
        })
        .await
    }

    /// Applies the example project with one more Process.
    pub async fn apply_process(&self, id: &str, bpmn: &str) -> Result<()> {
        let dir = self.dir.path().join("more");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join(format!("{id}.bpmn")), bpmn)?;
        let document = format!(
            "apiVersion: runfleet/v1\nkind: Process\nmetadata:\n  name: {id}\nspec:\n  file: {id}.bpmn\n"
        );
        std::fs::write(dir.join(format!("{id}.yaml")), document)?;
        self.apply_changed(|_| ()).await
    }

    /// Applies the example project with more documents.
    pub async fn apply_documents(&self, name: &str, documents: &str) -> Result<()> {
        let dir = self.dir.path().join("more");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join(format!("{name}.yaml")), documents)?;
        self.apply_changed(|_| ()).await
    }

    /// Applies the example project with a change, and every document that was applied beside it.
    pub async fn apply_changed(&self, change: impl Fn(&mut Project)) -> Result<()> {
        self.apply_bundle(|bundle| bundle.projects.values_mut().for_each(change)).await
    }

    /// Applies the example project, and what was applied beside it before, with changes.
    pub async fn apply_bundle(&self, change: impl FnOnce(&mut Bundle)) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut places = vec![root.join("deploy/example")];
        places.extend(Some(self.dir.path().join("more")).filter(|more| more.is_dir()));
        let mut bundle = runfleet_cli::apply::read(&places)?;
        change(&mut bundle);
        let management = Management::new(self.namespace.management())?;
        let admin =
            TopologyAdmin::new(self.namespace.amqp.clone(), management, Topology::standard())?;
        runfleet_cli::apply::store_bundle(&self.store, &admin, &bundle).await?;
        Ok(())
    }

    fn program(&self, worker: &str) -> Result<PathBuf> {
        let profile = if self.release { "release" } else { "debug" };
        let this = std::env::current_exe()?;
        let target = this
            .ancestors()
            .find(|dir| dir.join("debug").is_dir() || dir.join("release").is_dir())
            .context("finding the build directory")?;
        let program = match worker.split('.').next().unwrap_or(worker) {
            "runfleet" => "runfleet".to_owned(),
            worker => format!("runfleet-{worker}"),
        };
        let program = target.join(profile).join(program);
        if !program.is_file() {
            bail!("{} is missing: run `make test`, which builds it", program.display());
        }
        Ok(program)
    }

    fn address_file(&self, worker: &str) -> PathBuf {
        self.dir.path().join(format!("{worker}.addr"))
    }

    /// Starts a worker, which dies at `fail_at` if that is given. More processes of the same worker have a point and anything
    /// after its name, as in `start-intake.2`.
    pub fn spawn(&mut self, worker: &'static str, fail_at: Option<&str>) -> Result<()> {
        let address = self.address_file(worker);
        let _ = std::fs::remove_file(&address);
        let log = std::fs::File::options().create(true).append(true).open(self.log_file(worker))?;
        let mut command = Command::new(self.program(worker)?);
        command.env_clear().envs(&self.env).env("RUNFLEET_ADMIN_FILE", address);
        if let Some(point) = fail_at {
            command.env("RUNFLEET_FAIL_AT", point);
        }
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        self.workers.insert(worker, Running { child });
        Ok(())
    }

    fn log_file(&self, worker: &str) -> PathBuf {
        self.dir.path().join(format!("{worker}.log"))
    }

    /// Everything that the workers have logged.
    pub fn logs(&self) -> String {
        let log = |worker| std::fs::read_to_string(self.log_file(worker)).unwrap_or_default();
        self.workers.keys().map(|worker| log(worker)).collect()
    }

    /// Waits until a worker is ready; fails at once when it has ended.
    pub async fn ready(&mut self, worker: &'static str) -> Result<()> {
        let began = std::time::Instant::now();
        while !self.is_ready(worker).await {
            if self.has_ended(worker)? || began.elapsed() > BOUND {
                let log = std::fs::read_to_string(self.log_file(worker)).unwrap_or_default();
                bail!("{worker} has ended, or is not ready after {:?}\n{log}", began.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn is_ready(&self, worker: &str) -> bool {
        let Ok(address) = std::fs::read_to_string(self.address_file(worker)) else { return false };
        let answer = reqwest::get(format!("http://{}/ready", address.trim())).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The metrics of a worker as text.
    pub async fn metrics(&self, worker: &str) -> Result<String> {
        let address = std::fs::read_to_string(self.address_file(worker))?;
        Ok(reqwest::get(format!("http://{}/metrics", address.trim())).await?.text().await?)
    }

    /// The value of one series of a worker, for instance `name{label="value"}`; 0 when it is not there.
    pub async fn metric(&self, worker: &str, series: &str) -> Result<f64> {
        let text = self.metrics(worker).await?;
        let line = text
            .lines()
            .find(|line| line.starts_with(series) && line[series.len()..].starts_with(' '));
        Ok(line
            .and_then(|line| line.rsplit(' ').next())
            .and_then(|value| value.parse().ok())
            .unwrap_or(0.0))
    }

    fn running(&mut self, worker: &str) -> Result<&mut Running> {
        self.workers.get_mut(worker).with_context(|| format!("{worker} was never started"))
    }

    fn signal(&mut self, worker: &str, signal: Signal) -> Result<()> {
        if self.has_ended(worker)? {
            // Its process id may belong to somebody else by now.
            bail!("{worker} has ended already");
        }
        let id = i32::try_from(self.running(worker)?.child.id())?;
        kill_process(Pid::from_raw(id).context("a process has no id")?, signal)?;
        Ok(())
    }

    /// Stops a worker where it is, as a very slow machine would.
    pub fn pause(&mut self, worker: &str) -> Result<()> {
        self.signal(worker, Signal::STOP)
    }

    /// Lets a paused worker go on.
    pub fn resume(&mut self, worker: &str) -> Result<()> {
        self.signal(worker, Signal::CONT)
    }

    /// `kill -9`, and wait until it is gone.
    pub fn kill(&mut self, worker: &str) -> Result<()> {
        self.signal(worker, Signal::KILL)?;
        self.running(worker)?.child.wait()?;
        Ok(())
    }

    /// Asks a worker to stop and waits for its end.
    pub async fn stop(&mut self, worker: &str) -> Result<ExitStatus> {
        self.signal(worker, Signal::TERM)?;
        self.ended(worker).await
    }

    /// Waits until a worker has ended.
    pub async fn ended(&mut self, worker: &str) -> Result<ExitStatus> {
        let began = std::time::Instant::now();
        loop {
            if let Some(status) = self.running(worker)?.child.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > BOUND {
                bail!("{worker} has not ended within {BOUND:?}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether a worker has ended.
    pub fn has_ended(&mut self, worker: &str) -> Result<bool> {
        Ok(self.running(worker)?.child.try_wait()?.is_some())
    }

    /// Whoever signs its tokens.
    pub fn signer(&self) -> Result<Signer> {
        let pem = std::fs::read_to_string(self.dir.path().join("signing.pem"))?;
        Ok(Signer::new("test", &pem.into())?)
    }

    /// What the command line prints for these words, by somebody who may sign tokens.
    pub async fn said(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(self.program("runfleet")?);
        command.args(words).env_clear().envs(&self.env);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let (told, printed) = (output.stderr, String::from_utf8(output.stdout)?);
        if !output.status.success() {
            bail!("{words:?}: {printed}{}", String::from_utf8_lossy(&told));
        }
        Ok(printed)
    }

    /// A bare connection to the fleet's broker.
    pub async fn wire(&self) -> Result<Wire> {
        Wire::connect(self.namespace.amqp.expose_secret()).await
    }

    /// Messages that are ready in a queue.
    pub async fn depth(&self, queue: &str) -> Result<u32> {
        self.wire().await?.depth(queue).await
    }

    /// Removes the messages of a queue.
    pub async fn purge(&self, queue: &str) -> Result<()> {
        self.wire().await?.purge(queue).await
    }

    /// The broker's password, to look for it where it must not be.
    pub fn password(&self) -> &str {
        let url = self.namespace.amqp.expose_secret();
        url.split(['@']).next().and_then(|login| login.rsplit(':').next()).unwrap_or(url)
    }

    /// Ends all workers and removes the namespace.
    pub async fn remove(mut self) -> Result<()> {
        for running in self.workers.values_mut() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        self.workers.clear();
        self.broker.close().await;
        self.namespace.clone().remove().await
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for running in self.workers.values_mut() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "a failed test shows what its workers said")]
            {
                eprintln!("{}", self.logs());
            }
        }
    }
}
