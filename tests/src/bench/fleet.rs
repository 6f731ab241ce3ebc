//! Rounds of real runs: start requests in, outcome jobs handled by a host of the project.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use runfleet_broker::{Management, Topology, TopologyAdmin};
use runfleet_client::Client;
use runfleet_contracts::agents::AgentStart;
use runfleet_contracts::message::Fresh;
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use runfleet_contracts::{Advance, JobRun, Operation, OutcomeReady, Reply, Request};
use runfleet_domain::{JobId, RunId};
use runfleet_testkit::Servers;
use secrecy::ExposeSecret;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::host::{self, Host, Says, ending};
use super::relay::{Round, Shape};
use crate::fleet::project;
use crate::{Fleet, Jobs, Options};

/// How long all outcomes of a round may take.
const ROUND_BOUND: Duration = Duration::from_mins(2);

/// The runs of a day and the jobs that wait: more than any benchmark makes.
const STARTS: u32 = 9_000_000;

/// A start of either kind.
#[derive(Clone)]
pub(crate) enum Start {
    /// Of a Process.
    Process(ProcessStart),
    /// Of an agent.
    Agent(AgentStart),
}

impl Start {
    pub(super) async fn make(&self, client: &Client) -> Result<RunId> {
        let id = match self {
            Self::Process(start) => client.processes().start_with(start).await?.instance_id,
            Self::Agent(start) => client.agents().start_with(start).await?.run_id,
        };
        Ok(id.parse()?)
    }
}

/// A start of `process`, whose outcome becomes a job.
pub(crate) fn start_of(process: &str, input: &str) -> Result<ProcessStart> {
    Ok(ProcessStart {
        process_info_id: process.into(),
        input: Some(RawValue::from_string(input.to_owned())?),
        instance_name: None,
        idempotency_key: None,
        on_complete: Some(OutcomeJob {
            job: "discount_decided".into(),
            payload: Some(RawValue::from_string(r#"{"order": 7}"#.into())?),
        }),
    })
}

/// A start of the example Process, which goes straight to its end.
pub(crate) fn example() -> Result<ProcessStart> {
    start_of("approve-discount", r#"{"amount": 120, "customerTier": "gold"}"#)
}

/// Settings to try out, from `RUNFLEET_BENCH_SETTINGS`: `NAME=value` separated by commas.
fn extra_settings() -> Vec<(String, String)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an option of the benchmark, not a setting of a worker"
    )]
    let text = std::env::var("RUNFLEET_BENCH_SETTINGS").unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A fleet to be measured.
pub(crate) struct Bench {
    pub(super) fleet: Fleet,
    pub(super) servers: Servers,
    pub(super) client: Client,
    /// What the host says that takes the outcome jobs.
    pub(super) says: Says,
}

/// What was started.
pub(crate) struct Started {
    /// How long each answer took.
    pub(crate) replies: Vec<Duration>,
    /// When each start began, by the job of its outcome.
    pub(crate) began: HashMap<JobId, Instant>,
    /// One of the runs.
    pub(crate) one: RunId,
}

impl Bench {
    pub(crate) async fn start(servers: Servers, says: Says) -> Result<Self> {
        let own = servers.clone();
        let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
        // Two cores for five workers: more threads would only take turns.
        let mut settings = vec![
            ("RUNFLEET_LOG".to_owned(), "error".to_owned()),
            // What is late must not come again while something else is measured.
            ("RUNFLEET_ALARM_UNCLAIMED_MS".to_owned(), "3600000".to_owned()),
            ("RUNFLEET_ALARM_HANDOVER_MS".to_owned(), "3600000".to_owned()),
            ("RUNFLEET_SWEEP_EVERY_MS".to_owned(), "1000".to_owned()),
            ("RUNFLEET_PREFETCH_INTERACTIVE".to_owned(), "256".to_owned()),
            ("RUNFLEET_THREADS".to_owned(), "1".to_owned()),
            ("RUNFLEET_REDIS_CONNECTIONS".to_owned(), "1".to_owned()),
            // Runs that wait for their model all do so at the same time.
            ("RUNFLEET_PREFETCH_TURNS".to_owned(), "1000".to_owned()),
            ("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts),
        ];
        settings.extend(extra_settings());
        let options = Options {
            servers: Some(servers),
            // A build for debugging measures its like, which shows nothing but that the benchmark works.
            release: !cfg!(debug_assertions),
            starts_per_day: Some(STARTS),
            settings,
            ..Options::default()
        };
        let fleet = Fleet::start(options).await?;
        let client = fleet.client()?.deadline(Duration::from_secs(30));
        let bench = Self { fleet, servers: own, client, says };
        bench.apply_models().await?;
        Ok(bench)
    }

    /// Applies the Processes and agents of the benchmark beside the example.
    async fn apply_models(&self) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let places = [root.join("../deploy/example"), root.join("src/bench/models")];
        let mut bundle = runfleet_cli::apply::read(&places)?;
        for project in bundle.projects.values_mut() {
            project.limits.process_starts_per_day = STARTS;
            project.limits.jobs_waiting = STARTS;
            if let Some(agents) = &mut project.policy.agents {
                agents.max_runs_per_day = STARTS;
            }
        }
        let namespace = &self.fleet.namespace;
        let management = Management::new(namespace.management())?;
        let admin = TopologyAdmin::new(namespace.amqp.clone(), management, Topology::standard())?;
        runfleet_cli::apply::store_bundle(&self.fleet.store, &admin, &bundle).await?;
        Ok(())
    }

    pub(crate) fn relay_url(&self) -> String {
        self.servers.amqp.expose_secret().to_owned()
    }

    /// The sizes of the bodies of one real run, for the relay.
    pub(crate) async fn shape(&self) -> Result<Shape> {
        let (workspace, project) = project();
        let jobs = Jobs::take(&self.fleet.broker, workspace.clone(), project.clone(), true);
        let options = example()?;
        let payload = serde_json::value::to_raw_value(&options)?;
        let request =
            serde_json::to_vec(&Request { operation: Operation::ProcessesStart, payload })?.len();
        let started = self.client.processes().start_with(&options).await?;
        let run_id: RunId = started.instance_id.parse()?;
        let job = jobs.wait(run_id.outcome_job(), Duration::from_secs(30)).await?;
        let ready = OutcomeReady {
            run_id,
            workspace,
            project,
            job: job.job.clone(),
            hops: job.hops + 1,
            chain: 0,
        };
        let result = host::done(run_id.outcome_job(), 1);
        let fresh = Fresh {
            workspace: ready.workspace.clone(),
            project: ready.project.clone(),
            target: options.process_info_id.parse()?,
            target_version: 1,
            input: options.input.clone(),
            job: Some(ready.job.clone()),
            hops: ready.hops,
            chain: 0,
        };
        let mut hops = vec![
            serde_json::to_vec(&Advance { run_id, fresh: Some(fresh) })?.len(),
            serde_json::to_vec(&ready)?.len(),
            serde_json::to_vec(&job)?.len(),
        ];
        if self.says != Says::Nothing {
            hops.push(serde_json::to_vec(&result)?.len());
        }
        Ok(Shape { request, reply: serde_json::to_vec(&Reply::Done(started))?.len(), hops })
    }

    /// Starts `count` runs with `in_flight` unanswered at any time, and waits for all their jobs.
    pub(crate) async fn round(
        &self,
        start: &Start,
        count: usize,
        in_flight: usize,
    ) -> Result<Round> {
        let arrivals = Arrivals::take(&self.fleet, self.says);
        let first = Instant::now();
        let Started { replies, began, .. } = self.start_many(start, count, in_flight).await?;
        let arrived = arrivals.all(count, ROUND_BOUND).await?;
        let last = arrived.values().max().copied().context("no job has arrived")?;
        let ends: Vec<_> = arrived
            .iter()
            .filter_map(|(job, at)| began.get(job).map(|start| at.duration_since(*start)))
            .collect();
        ensure!(ends.len() == count, "{} of {count} runs gave their outcome", ends.len());
        Ok(Round { wall: last.duration_since(first), replies, ends })
    }

    /// Makes the starts, `in_flight` at a time.
    pub(crate) async fn start_many(
        &self,
        start: &Start,
        count: usize,
        in_flight: usize,
    ) -> Result<Started> {
        let mut callers = JoinSet::new();
        for caller in 0..in_flight {
            let share = count / in_flight + usize::from(caller < count % in_flight);
            let (client, options) = (self.client.clone(), start.clone());
            callers.spawn(async move {
                let mut taken = Vec::with_capacity(share);
                for _ in 0..share {
                    let start = Instant::now();
                    let run_id = options.make(&client).await?;
                    taken.push((run_id, start, start.elapsed()));
                }
                anyhow::Ok(taken)
            });
        }
        let (mut replies, mut began) = (Vec::with_capacity(count), HashMap::with_capacity(count));
        let mut one = None;
        while let Some(done) = callers.join_next().await {
            for (run_id, start, answered) in done?? {
                replies.push(answered);
                began.insert(run_id.outcome_job(), start);
                one = Some(run_id);
            }
        }
        Ok(Started { replies, began, one: one.context("nothing was started")? })
    }

    /// A round in which the runner stands still until all starts have been answered: what a start takes by itself. The runs
    /// are brought to their end afterwards.
    pub(crate) async fn starts_alone(&mut self, count: usize, in_flight: usize) -> Result<Round> {
        self.fleet.pause("process-runner")?;
        let arrivals = Arrivals::take(&self.fleet, self.says);
        let first = Instant::now();
        let started = self.start_many(&Start::Process(example()?), count, in_flight).await;
        let wall = first.elapsed();
        self.fleet.resume("process-runner")?;
        let replies = started?.replies;
        arrivals.all(count, ROUND_BOUND).await?;
        Ok(Round { wall, replies, ends: Vec::new() })
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.fleet.remove().await
    }
}

/// What a host has handled.
#[derive(Default)]
struct Arrived {
    /// When the broker had the result of each job.
    at: HashMap<JobId, Instant>,
    /// How the first run has ended that did not end well.
    failed: Option<String>,
}

/// When each job was handled: it arrived, its handler returned, and the broker has what its host says of that. No more are taken when
/// this is dropped.
pub(super) struct Arrivals {
    arrived: Arc<Mutex<Arrived>>,
    _host: Host,
}

impl Arrivals {
    pub(super) fn take(fleet: &Fleet, says: Says) -> Self {
        let arrived = Arc::<Mutex<Arrived>>::default();
        let seen = Arc::clone(&arrived);
        let told = move |job: &JobRun| {
            let (how, now) = (ending(job), Instant::now());
            let mut arrived = seen.lock().unwrap_or_else(PoisonError::into_inner);
            arrived.at.entry(job.job_id).or_insert(now);
            if how != "COMPLETED" {
                arrived.failed.get_or_insert(how);
            }
        };
        Self { arrived, _host: Host::start(fleet, says, |_| (), told) }
    }

    /// Waits until `count` different jobs have arrived, and tells when the last of them did.
    pub(super) async fn last_of(&self, count: usize, bound: Duration) -> Result<Instant> {
        self.wait(count, bound).await?;
        let last = self.arrived().at.values().max().copied();
        last.context("no job has arrived")
    }

    /// Waits until `count` different jobs have arrived.
    pub(super) async fn all(
        self,
        count: usize,
        bound: Duration,
    ) -> Result<HashMap<JobId, Instant>> {
        self.wait(count, bound).await?;
        Ok(std::mem::take(&mut self.arrived().at))
    }

    /// Fails at once when a run has not ended well.
    async fn wait(&self, count: usize, bound: Duration) -> Result<()> {
        let began = Instant::now();
        loop {
            let so_far = {
                let arrived = self.arrived();
                if let Some(how) = &arrived.failed {
                    bail!("a run has ended as {how}");
                }
                arrived.at.len()
            };
            if so_far >= count {
                return Ok(());
            }
            ensure!(began.elapsed() < bound, "{so_far} of {count} outcomes have arrived");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
