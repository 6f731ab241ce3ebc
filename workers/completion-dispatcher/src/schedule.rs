//! Jobs that run by themselves: looks at every minute once and makes a job run for each job whose schedule names it.
//!
//! Any number of dispatchers may do this at once: the minute is the message id under which the ledger makes one run. A minute
//! that nobody looked at while it lasted, or in the few minutes after it, is not made up for.

use std::sync::Arc;
use std::time::Duration;

use runfleet_catalog::{Project, Snapshot};
use runfleet_contracts::JobDue;
use runfleet_domain::limits::HOPS_START;
use runfleet_domain::{JobId, JobKey, Lane, MessageId, Name, Shard};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{EnqueueJob, Enqueued, JobTime, NewJobOrigin, Verdict};
use runfleet_worker::effects;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use crate::attempts::Declared;
use crate::handler::Deps;
use crate::places::Workspaces;

const MINUTE_MS: u64 = 60_000;

/// How often it is looked whether a minute has begun.
const EVERY: Duration = Duration::from_secs(1);

/// Minutes after which one that could not be looked at is left out.
const LATE_MINUTES_MAX: u64 = 5;

/// What all runs of schedules are executions of.
const EXECUTION: &str = "schedule";

/// Looks at every minute until it is told to stop.
pub(crate) struct Scheduler {
    deps: Arc<Deps>,
    workspaces: Workspaces,
    execution: Name,
    /// The last minute that was looked at.
    last: u64,
}

impl Scheduler {
    /// Begins with the minute that goes on: whoever looked before may have been stopped in it.
    pub(crate) fn new(deps: Arc<Deps>) -> anyhow::Result<Self> {
        let execution = EXECUTION.parse()?;
        let last = (now_ms() / MINUTE_MS).saturating_sub(1);
        Ok(Self { deps, workspaces: Workspaces::default(), execution, last })
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        while shutdown.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
            let now = now_ms() / MINUTE_MS;
            let first = (self.last + 1).max(now.saturating_sub(LATE_MINUTES_MAX));
            for minute in first..=now {
                // A minute that was not looked at as a whole is looked at again: what it has made is found.
                if let Err(error) = self.look(minute).await {
                    tracing::warn!(%error, "schedules could not be looked at; soon again");
                    break;
                }
                self.last = minute;
            }
        }
    }

    async fn look(&mut self, minute: u64) -> anyhow::Result<()> {
        for workspace in self.workspaces.all(&self.deps.store).await? {
            let Some(snapshot) = self.deps.catalog.get(&workspace).await? else { continue };
            for (name, project, job) in ringing(&snapshot, minute) {
                self.make(&workspace, name, project, job, minute).await?;
            }
        }
        Ok(())
    }

    async fn make(
        &self,
        workspace: &Name,
        name: &Name,
        project: &Project,
        job: &JobKey,
        minute: u64,
    ) -> anyhow::Result<()> {
        let Some(declared) = Declared::of(project, job) else { return Ok(()) };
        let message_id: MessageId = format!("schedule:{job}:{minute}").parse()?;
        let new = EnqueueJob {
            id: JobId::new(Shard::of_workspace(workspace.as_str()), Ulid::generate()),
            workspace,
            project: name,
            job,
            origin: NewJobOrigin::Scheduled,
            enqueued_by: "schedule",
            message_id: &message_id,
            key: None,
            time: JobTime::After(Duration::ZERO),
            execution: &self.execution,
            batch: false,
            calls_budget: None,
            calls_limit: None,
            verdict: Verdict::Accept,
            jobs_waiting_max: project.limits.jobs_waiting,
            max_attempts: declared.max_attempts,
            timeout_ms: declared.timeout_ms,
            lane: Lane::Interactive,
            user: None,
            identity: "system",
            hops: HOPS_START.min(project.limits.hops),
            depth: 0,
            chain: 1,
            traceparent: None,
        };
        let made = self.deps.store.enqueue_job(&new).await?;
        runfleet_faults::point("dispatcher.scheduled");
        let count = |result| self.deps.metrics.scheduled.with_label_values(&[result]).inc();
        match made {
            Enqueued::Created { job: job_id, .. } => {
                count("created");
                self.publish(JobDue {
                    job_id,
                    workspace: workspace.clone(),
                    project: name.clone(),
                    job: job.clone(),
                })
                .await?;
            }
            Enqueued::Full { .. } => {
                count("full");
                tracing::warn!(%workspace, project = %name, %job, "too many jobs wait: a scheduled run is left out");
            }
            // Another dispatcher was faster.
            Enqueued::Replayed { .. }
            | Enqueued::Duplicate { .. }
            | Enqueued::BudgetExceeded { .. }
            | Enqueued::CallsExceeded { .. }
            | Enqueued::Revoked
            | Enqueued::Refused => {}
        }
        Ok(())
    }

    /// Has the job looked at. When that cannot be said now, its alarm says it later.
    async fn publish(&self, due: JobDue) -> anyhow::Result<()> {
        let effect = effects::job_due(&due, Lane::Interactive, None)?;
        if let Err(error) = effects::publish(&self.deps.publisher, effect).await {
            tracing::warn!(job_id = %due.job_id, %error, "a scheduled job comes late");
        }
        Ok(())
    }
}

/// The jobs of a workspace whose schedule names a minute.
fn ringing(snapshot: &Snapshot, minute: u64) -> impl Iterator<Item = (&Name, &Project, &JobKey)> {
    snapshot.projects.iter().flat_map(move |(name, project)| {
        let jobs = project.jobs.iter().filter(move |(_, job)| {
            let clock = job.schedule.as_ref().and_then(runfleet_catalog::Schedule::clock);
            clock.is_some_and(|clock| clock.rings(minute))
        });
        jobs.map(move |(key, _)| (name, project, key))
    })
}
