//! RabbitMQ and Redis restarted in the middle of the work, and messages lost for good.

use std::time::{Duration, Instant};

use anyhow::Result;
use runfleet_client::{Error, ProcessStartOptions};
use runfleet_domain::RunId;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, OwnServers, project};

use serde_json::json;

use crate::load::{all_ended_once, start_many};

const RUNS: usize = 500;

async fn fleet_on(servers: &OwnServers) -> Result<(Fleet, Jobs)> {
    let options = Options { servers: Some(servers.addresses()?), ..Options::default() };
    let fleet = Fleet::start(options).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    Ok((fleet, jobs))
}

/// Waits until some of the runs have ended, so that what follows hits the middle of the work.
async fn some_have_ended(jobs: &Jobs, count: usize) -> Result<()> {
    wait_until("some runs have ended", BOUND, || async {
        Ok((jobs.count() >= count).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_servers_restarted_in_the_middle_of_500_runs_lose_none_and_double_none() -> Result<()>
{
    let servers = OwnServers::start()?;
    let (fleet, jobs) = fleet_on(&servers).await?;
    let starting = tokio::spawn(start_many(fleet.client()?, RUNS, "outage"));
    some_have_ended(&jobs, 20).await?;
    tokio::task::block_in_place(|| servers.restart_rabbitmq())?;
    some_have_ended(&jobs, 60).await?;
    tokio::task::block_in_place(|| servers.restart_redis())?;
    let runs: Vec<RunId> = starting.await??;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}

/// CG-126, CG-127
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_away_for_seconds_costs_time_and_nothing_else() -> Result<()> {
    let servers = OwnServers::start()?;
    let (fleet, jobs) = fleet_on(&servers).await?;
    let starting = tokio::spawn(start_many(fleet.client()?, 100, "away"));
    some_have_ended(&jobs, 5).await?;
    tokio::task::block_in_place(|| servers.stop_redis())?;
    // Longer than an operation of the ledger may take, so that callers are told and messages go to the retry ladder.
    tokio::time::sleep(Duration::from_secs(8)).await;
    tokio::task::block_in_place(|| servers.start_redis())?;
    let runs = starting.await??;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_queue_emptied_costs_time_and_nothing_else() -> Result<()> {
    let options =
        Options { without: vec!["process-runner", "completion-dispatcher"], ..Options::default() };
    let mut fleet = Fleet::start(options).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    // Wake-ups lost.
    let runs = start_many(fleet.client()?, 50, "emptied").await?;
    fleet.purge("process-runner.interactive").await?;
    fleet.spawn("process-runner", None)?;
    wait_until("all outcomes wait for the dispatcher", BOUND, || async {
        Ok((fleet.depth("completion-dispatcher.interactive").await? >= 50).then_some(()))
    })
    .await?;
    // Outcomes lost.
    fleet.purge("completion-dispatcher.interactive").await?;
    fleet.spawn("completion-dispatcher", None)?;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}

fn options() -> Result<ProcessStartOptions, Error> {
    ProcessStartOptions::default().input(&json!({"amount": 120}))
}

/// CG-126, CG-127
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_hangs_is_told_in_time_and_the_retry_completes_that_start() -> Result<()> {
    let servers = OwnServers::start()?;
    let (fleet, _jobs) = fleet_on(&servers).await?;
    let client = fleet.client()?.deadline(Duration::from_secs(3));
    client.processes().start("approve-discount", options()?).await?;
    let keyed = || Ok::<_, Error>(options()?.idempotency_key("order:7"));
    let frozen = servers.freeze_redis()?;
    let begun = Instant::now();
    let error = client.processes().start("approve-discount", keyed()?).await.unwrap_err();
    // A busy machine may need a moment more to come back to this task.
    assert!(begun.elapsed() < Duration::from_millis(3_500), "{:?}", begun.elapsed());
    assert!(matches!(&error, Error::Retryable(_)), "{error}");
    assert!(error.writes_may_have_completed(), "the script may be on its way");
    drop(frozen);
    let patient = fleet.client()?;
    let first = patient.processes().start("approve-discount", keyed()?).await?;
    let second = patient.processes().start("approve-discount", keyed()?).await?;
    assert_eq!(first.instance_id, second.instance_id);
    fleet.remove().await
}
