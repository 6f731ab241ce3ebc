//! SIGTERM with work in hand: everything is finished or given back, and each worker ends with 0.

use anyhow::Result;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, WORKERS, project};

use crate::load::{all_ended_once, start_many};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_are_asked_to_stop_drain_and_lose_nothing() -> Result<()> {
    let mut fleet = Fleet::start(Options::default()).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let starting = tokio::spawn(start_many(fleet.client()?, 200, "drain"));
    wait_until("some runs have ended", BOUND, || async { Ok((jobs.count() >= 10).then_some(())) })
        .await?;
    for worker in WORKERS {
        let status = fleet.stop(worker).await?;
        assert!(status.success(), "{worker} ended with {status}\n{}", fleet.logs());
    }
    for worker in WORKERS {
        fleet.spawn(worker, None)?;
    }
    let runs = starting.await??;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}
