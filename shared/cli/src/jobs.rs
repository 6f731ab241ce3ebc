//! `runfleet jobs tail`, a stand-in for a project host: it takes jobs, prints them and reports them done. And `runfleet jobs
//! enqueue`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_broker::{
    Broker, Classify, ConsumerConfig, Failure, Inbound, LaneConfig, Outgoing, Publisher, Route,
    Verdict,
};
use runfleet_client::Job;
use runfleet_contracts::{JobResult, JobRun, Message};
use runfleet_domain::{Lane, Name};
use runfleet_worker::inbox::JobInbox;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::calls::{client, json, print};
use crate::context::{Context, Identity};

/// Arguments of `jobs tail`.
#[derive(clap::Args)]
pub(crate) struct TailArgs {
    /// End after so many jobs.
    #[arg(long)]
    count: Option<usize>,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `jobs enqueue`.
#[derive(clap::Args)]
pub(crate) struct EnqueueArgs {
    /// The job.
    job: String,
    /// What its handler gets: JSON.
    #[arg(long)]
    payload: Option<String>,
    /// How long the first attempt waits, in milliseconds.
    #[arg(long)]
    delay_ms: Option<u64>,
    /// When the first attempt begins at the earliest, in Unix milliseconds.
    #[arg(long, conflicts_with = "delay_ms")]
    run_at: Option<u64>,
    /// Idempotency key: two calls for the job with one key are one job run.
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn enqueue(args: EnqueueArgs) -> Result<ExitCode> {
    let mut job = Job::new(args.job);
    if let Some(payload) = json("--payload", args.payload)? {
        job = job.payload(&payload)?;
    }
    if let Some(delay) = args.delay_ms {
        job = job.delay(Duration::from_millis(delay));
    }
    if let Some(at) = args.run_at {
        job = job.run_at(at);
    }
    if let Some(key) = args.key {
        job = job.idempotency_key(key);
    }
    let (client, broker) = client(&args.identity)?;
    let answer = client.jobs().enqueue(job).await;
    broker.close().await;
    print(answer)
}

/// Takes the jobs of one project until `shutdown`; each is sent to the receiver before it is reported done.
pub(crate) async fn host(
    broker: Broker,
    workspace: Name,
    project: Name,
    jobs: mpsc::Sender<JobRun>,
    shutdown: CancellationToken,
) -> Result<()> {
    let queue = Route::Job { workspace, project }.queue().into_owned();
    let mut config = ConsumerConfig::new(vec![LaneConfig::new(queue, Lane::Interactive, 16)]);
    // A job with a full outcome is larger than any request.
    config.body_bytes_max *= 2;
    let publisher = broker.publisher();
    let consumer = broker.consumer(config);
    let take = move |message: Inbound<JobInbox>| take(message, jobs.clone(), publisher.clone());
    consumer
        .run::<JobInbox, _, _>(take, shutdown, Duration::from_secs(5))
        .await
        .context("consuming jobs")?;
    Ok(())
}

async fn take(
    message: Inbound<JobInbox>,
    jobs: mpsc::Sender<JobRun>,
    publisher: Publisher,
) -> Result<Verdict, Failure> {
    let job = message.body.0;
    let result =
        JobResult { job_id: job.job_id, attempt: job.attempt, succeeded: true, error: None };
    let body = serde_json::to_vec(&result).permanent("writing a job result")?;
    let id = format!("result:{}:{}", result.job_id, result.attempt);
    // The receiver is gone when enough jobs have been seen: this one goes back to the queue.
    if jobs.send(job).await.is_err() {
        return Ok(Verdict::Snooze(Duration::ZERO));
    }
    let message = Outgoing::new(JobResult::KIND, id, body).in_lane(message.lane);
    publisher
        .publish(&Route::JobAnswer(message.lane), message)
        .await
        .transient("reporting a job")?;
    Ok(Verdict::Done)
}

#[expect(clippy::print_stderr, reason = "what the command does, apart from its data")]
pub(crate) async fn tail(args: TailArgs) -> Result<()> {
    let mut context = Context::load()?;
    let (workspace, project) = context.project(&args.identity)?;
    let broker = context.broker()?;
    eprintln!(
        "taking jobs of {workspace}/{project} off the broker's queue and reporting them done; Ctrl-C ends"
    );
    let (send, mut receive) = mpsc::channel(1);
    let shutdown = CancellationToken::new();
    let hosting = tokio::spawn(host(broker.clone(), workspace, project, send, shutdown.clone()));
    let mut left = args.count.unwrap_or(usize::MAX);
    while left > 0 {
        let job = tokio::select! {
            job = receive.recv() => job,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(job) = job else { break };
        crate::out::line(serde_json::to_string(&job)?);
        left -= 1;
    }
    shutdown.cancel();
    drop(receive);
    hosting.await.context("waiting for the consumer")??;
    broker.close().await;
    Ok(())
}
