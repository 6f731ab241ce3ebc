//! Jobs whose dispatcher or intake dies by `kill -9` between two steps: each runs at least once, under one id, and ends.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use runfleet_client::{Client, Job};
use runfleet_domain::JobId;
use runfleet_store::JobState;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Ending, Fleet, JobHost, Options, project};

const JOBS: usize = 8;

/// Enqueues one job and keeps trying, like a caller that wants its answer.
async fn enqueue(client: Client, number: usize) -> Result<JobId> {
    let began = std::time::Instant::now();
    loop {
        let job = Job::new("discount_decided").idempotency_key(format!("job:{number}"));
        match client.jobs().enqueue(job).await {
            Ok(enqueued) => return Ok(enqueued.run_id.parse()?),
            Err(error) => {
                let passing = error.body().is_some_and(|body| body.code.as_str() == "RETRYABLE");
                ensure!(passing && began.elapsed() < BOUND, "refused: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Every job fails once and then succeeds, while `worker` dies at `point`.
async fn dies(worker: &'static str, point: &str) -> Result<()> {
    let options = Options {
        fail_at: Some((worker, point.to_owned())),
        without: vec!["process-runner", "agent-runner", "delivery"],
        ..Options::default()
    };
    let mut fleet = Fleet::start(options).await?;
    let (workspace, name) = project();
    let host = JobHost::start(&fleet.broker, workspace, name, |run| match run.attempt {
        1 => Ending::AsksAgain,
        _ => Ending::Succeeds,
    });
    let client = fleet.client()?.deadline(Duration::from_secs(5));
    let enqueueing: Vec<_> =
        (0..JOBS).map(|number| tokio::spawn(enqueue(client.clone(), number))).collect();
    let status = fleet.ended(worker).await?;
    ensure!(status.signal() == Some(9), "{worker} was to be killed at {point}: {status}");
    fleet.spawn(worker, None)?;
    let mut jobs = BTreeSet::new();
    for job in enqueueing {
        jobs.insert(job.await??);
    }
    ensure!(jobs.len() == JOBS, "{} job runs for {JOBS} keys", jobs.len());
    for job in &jobs {
        let record = wait_until("the job has ended", BOUND, || async {
            let job = fleet.store.load_job(*job).await?.context("a job has vanished")?;
            Ok(job.state.is_final().then_some(job))
        });
        let record = record.await.with_context(|| format!("{job}"))?;
        ensure!(
            (record.state, record.attempt) == (JobState::Succeeded, 2),
            "{job}: {:?} {}",
            record.state,
            record.attempt
        );
    }
    let came: BTreeSet<_> = host.attempts().iter().map(|came| came.run.job_id).collect();
    ensure!(came == jobs, "other jobs than were enqueued have come");
    let (workspace, name) = project();
    ensure!(fleet.store.jobs_waiting(&workspace, &name).await? == 0);
    fleet.remove().await
}

macro_rules! kills {
    ($($name:ident: $worker:literal at $point:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            dies($worker, $point).await
        }
    )*};
}

kills! {
    intake_killed_before_it_enqueues_loses_no_job: "start-intake" at "intake.before_enqueue@3";
    intake_killed_between_enqueue_and_publish_loses_no_job: "start-intake" at "intake.enqueued@3";
    intake_killed_between_publish_and_answer_loses_no_job: "start-intake" at "intake.enqueue_published@3";
    dispatcher_killed_before_it_looks_at_a_job_loses_none: "completion-dispatcher" at "dispatcher.before_due@3";
    dispatcher_killed_before_it_publishes_an_attempt_loses_none: "completion-dispatcher" at "dispatcher.due@3";
    dispatcher_killed_after_it_has_published_an_attempt_loses_none: "completion-dispatcher" at "dispatcher.published@3";
    dispatcher_killed_when_an_attempt_has_begun_loses_none: "completion-dispatcher" at "dispatcher.begun@3";
    dispatcher_killed_before_it_stores_a_result_loses_none: "completion-dispatcher" at "dispatcher.before_result@3";
    dispatcher_killed_after_it_has_failed_an_attempt_loses_none: "completion-dispatcher" at "dispatcher.attempt_failed@3";
    dispatcher_killed_after_it_has_ended_a_job_loses_none: "completion-dispatcher" at "dispatcher.result_committed@3";
}
