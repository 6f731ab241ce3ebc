//! Outcome jobs whose dispatcher dies by `kill -9` at every step between the end of a run and the end of its job.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use runfleet_catalog::{Job as Declared, Schedule};
use runfleet_domain::JobId;
use runfleet_store::JobState;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Ending, Fleet, JobHost, Options, project};

use crate::load::start_many;

const DISPATCHER: &str = "completion-dispatcher";

/// Every point that a dispatcher passes with an outcome job, in its order.
const POINTS: [&str; 14] = [
    "dispatcher.before_commit",
    "dispatcher.committed",
    "publisher.sent",
    "publisher.confirmed",
    "dispatcher.published",
    "consumer.handled",
    "consumer.before_ack",
    "consumer.settled",
    "dispatcher.begun",
    "dispatcher.before_result",
    "dispatcher.attempt_failed",
    "dispatcher.before_due",
    "dispatcher.due",
    "dispatcher.result_committed",
];

/// Runs that are started for each point.
const STARTS: usize = 3;

fn host(fleet: &Fleet) -> JobHost {
    let (workspace, name) = project();
    JobHost::start(&fleet.broker, workspace, name, |run| match run.attempt {
        1 => Ending::AsksAgain,
        _ => Ending::Succeeds,
    })
}

/// CG-040, CG-110
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatcher_killed_at_every_step_runs_each_outcome_job_under_its_own_id() -> Result<()> {
    let without = vec!["agent-runner", "delivery", DISPATCHER];
    let mut fleet = Fleet::start(Options { without, ..Options::default() }).await?;
    let host = host(&fleet);
    let mut runs = Vec::new();
    for point in POINTS {
        fleet.spawn(DISPATCHER, Some(point))?;
        runs.extend(start_many(fleet.client()?, STARTS, point).await?);
        let status = fleet.ended(DISPATCHER).await.context(point)?;
        ensure!(status.signal() == Some(9), "the dispatcher was to be killed at {point}: {status}");
    }
    fleet.spawn(DISPATCHER, None)?;
    let jobs: BTreeSet<JobId> = runs.iter().map(|run| run.outcome_job()).collect();
    ensure!(jobs.len() == POINTS.len() * STARTS, "{} jobs", jobs.len());
    for id in &jobs {
        let record = wait_until("the job has ended", BOUND, || async {
            let job = fleet.store.load_job(*id).await?;
            Ok(job.filter(|job| job.state.is_final()))
        });
        let record = record.await.with_context(|| format!("{id}"))?;
        let ended = (record.state, record.attempt);
        ensure!(ended == (JobState::Succeeded, 2), "{id}: {:?} {}", record.state, record.attempt);
    }
    let came: BTreeSet<_> =
        host.attempts().iter().map(|came| (came.run.job_id, came.run.attempt)).collect();
    let expected = jobs.iter().flat_map(|id| [(*id, 1), (*id, 2)]).collect();
    ensure!(came == expected, "each attempt of each job has come, and nothing else");
    let (workspace, name) = project();
    ensure!(fleet.store.jobs_waiting(&workspace, &name).await? == 0);
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatcher_killed_between_a_scheduled_run_and_its_message_makes_one_of_the_minute()
-> Result<()> {
    let without = vec!["process-runner", "agent-runner", "delivery", DISPATCHER];
    let mut fleet = Fleet::start(Options { without, ..Options::default() }).await?;
    let schedule = Some(Schedule::parse("* * * * *", None)?);
    let (timeout_ms, max_attempts) = (1_000, 2);
    let declared = Declared { name: "Tick".to_owned(), timeout_ms, max_attempts, schedule };
    fleet.declare("tick", declared).await?;
    let host = host(&fleet);
    // Not over the end of a minute: the next one would make a run as well.
    let left = 60_000 - runfleet_runtime::clock::now_ms() % 60_000;
    if left < 30_000 {
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
    fleet.spawn(DISPATCHER, Some("dispatcher.scheduled"))?;
    let status = fleet.ended(DISPATCHER).await?;
    ensure!(status.signal() == Some(9), "the dispatcher was to be killed: {status}");
    ensure!(host.attempts().is_empty(), "its message came before the dispatcher died");
    fleet.spawn(DISPATCHER, None)?;
    let came = host.wait(2, BOUND).await?;
    let ids: BTreeSet<_> = came.iter().map(|came| came.run.job_id).collect();
    ensure!(ids.len() == 1, "{} runs of one minute", ids.len());
    let of = |came: &runfleet_tests::Attempt| (came.run.attempt, came.run.source.clone());
    let of: Vec<_> = came.iter().map(of).collect();
    ensure!(of == [(1, "schedule".to_owned()), (2, "schedule".to_owned())], "{of:?}");
    fleet.remove().await
}
