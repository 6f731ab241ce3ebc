//! `runfleet jobs list` and `runfleet jobs show`: where job runs stand. A payload is never shown, only its size.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use runfleet_broker::Route;
use runfleet_domain::job::sentence;
use runfleet_domain::{JobId, Name};
use runfleet_store::{JobEntry, JobPage, JobRecord, JobState};
use serde_json::{Value, json};

use crate::context::{Context, Identity};

/// How long it is waited for the broker.
const BROKER_WITHIN: Duration = Duration::from_secs(5);

/// Arguments of `jobs list`.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// Most job runs of the list: 1 to 200.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    count: u32,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn list(args: ListArgs) -> Result<()> {
    let mut context = Context::load()?;
    let (workspace, project) = context.project(&args.identity)?;
    let store = context.store().await?;
    let page = store.list_jobs(&workspace, &project, args.count).await;
    let page = page.context("listing the jobs")?;
    let hosts = hosts(&mut context, workspace, project).await?;
    crate::out::line(serde_json::to_string_pretty(&listed(&page, hosts))?);
    Ok(())
}

/// Hosts that take the jobs of a project; none when the project has no queue.
async fn hosts(context: &mut Context, workspace: Name, project: Name) -> Result<Option<u32>> {
    let broker = context.broker()?;
    if !broker.wait_connected(BROKER_WITHIN).await {
        bail!("rabbitmq does not answer");
    }
    let queue = broker.queue(&Route::Job { workspace, project }.queue()).await;
    broker.close().await;
    Ok(queue?.map(|queue| queue.consumers))
}

fn listed(page: &JobPage, hosts: Option<u32>) -> Value {
    json!({
        "waiting": page.waiting,
        "hosts": hosts,
        "jobs": page.jobs.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(job: &JobEntry) -> Value {
    json!({
        "runId": job.id.to_string(),
        "job": job.job.as_str(),
        "state": job.state.as_str(),
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "enqueuedBy": job.enqueued_by,
        "enqueuedAt": job.enqueued_at_ms,
        "dueAt": job.due_at_ms,
        "startedAt": job.began_at_ms,
        "finishedAt": job.ended_at_ms,
        "lastError": job.last_error.as_deref().map(error),
        "payloadBytes": job.payload_bytes,
    })
}

fn error(code: &str) -> Value {
    json!({"code": code, "message": sentence(code)})
}

pub(crate) async fn show(id: &str) -> Result<()> {
    let id: JobId = id.parse().context("reading the id of a job run")?;
    let store = Context::load()?.store().await?;
    let Some(job) = store.load_job(id).await.context("loading the job run")? else {
        bail!("there is no job run {id}: it never was, or it ended more than seven days ago");
    };
    crate::out::line(serde_json::to_string_pretty(&shown(&job))?);
    Ok(())
}

fn shown(job: &JobRecord) -> Value {
    let next = match job.state {
        JobState::Pending => "waits for its time, or for a host to begin it",
        JobState::Running => "a host is at it; when its time is over it has failed",
        JobState::Succeeded | JobState::Failed => "nothing",
    };
    json!({
        "runId": job.id.to_string(),
        "job": job.job.as_str(),
        "workspace": job.workspace.as_str(),
        "project": job.project.as_str(),
        "state": job.state.as_str(),
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "timeoutMs": job.timeout_ms,
        "source": job.source(),
        "enqueuedBy": job.enqueued_by,
        "enqueuedAt": job.enqueued_at_ms,
        "runAt": job.run_at_ms,
        "dueAt": job.due_at_ms,
        "user": job.user.as_ref().map(Name::as_str),
        "hops": job.hops,
        "depth": job.depth,
        "chain": job.chain,
        "lastError": job.last_error.as_deref().map(error),
        "next": next,
    })
}
