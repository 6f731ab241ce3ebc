//! Starts under faults, and the check that nothing was lost and nothing was done twice.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use runfleet_client::Client;
use runfleet_domain::{RunId, RunState};
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, request, start};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// How long a caller keeps trying one start.
const PATIENCE: Duration = Duration::from_secs(90);

/// An input that is larger than what the first message of a run repeats of it, in bytes.
const LARGE: usize = 5_000;

/// Makes `count` starts at once, each with its own message id and key, and keeps trying like a caller that wants its answer:
/// the same message again after a time-out or a passing fault. Every second one has an input that does not travel: its runner
/// claims the run and reads its record, while the others are ended from what their first message says. Returns the accepted runs.
pub(crate) async fn start_many(
    client: Client,
    count: usize,
    name: &'static str,
) -> Result<Vec<RunId>> {
    let mut callers = JoinSet::new();
    for number in 0..count {
        let client = client.clone().deadline(Duration::from_secs(5));
        let tier = "x".repeat(if number % 2 == 1 { LARGE } else { 1 });
        let mut options = start(&json!({"amount": number, "customerTier": tier}));
        options.idempotency_key = Some(format!("{name}:{number}"));
        let (message_id, body) = (format!("{name}-{number}"), request(&options)?);
        callers.spawn(async move {
            let began = std::time::Instant::now();
            loop {
                if let Ok(answer) = client.send(message_id.clone(), body.clone()).await {
                    let answer: Value = serde_json::from_slice(&answer)?;
                    if let Some(id) = answer["data"]["instanceId"].as_str() {
                        ensure!(
                            answer["data"]["duplicate"] == false,
                            "the same message gets the first answer: {answer}"
                        );
                        return Ok(id.parse::<RunId>()?);
                    }
                    ensure!(answer["error"]["code"] == "RETRYABLE", "refused: {answer}");
                }
                ensure!(began.elapsed() < PATIENCE, "no answer for {message_id}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
    let mut runs = Vec::with_capacity(count);
    while let Some(done) = callers.join_next().await {
        runs.push(done??);
    }
    runs.sort();
    runs.dedup();
    ensure!(runs.len() == count, "{} runs for {count} starts", runs.len());
    Ok(runs)
}

/// Waits until every run has ended and its job has come; checks that there is one job a run and no other. When it fails, it says
/// what the workers have written.
pub(crate) async fn all_ended_once(fleet: &Fleet, jobs: &Jobs, runs: &[RunId]) -> Result<()> {
    ended_once(fleet, jobs, runs).await.with_context(|| fleet.logs())
}

async fn ended_once(fleet: &Fleet, jobs: &Jobs, runs: &[RunId]) -> Result<()> {
    for run in runs {
        let job =
            jobs.wait(run.outcome_job(), BOUND).await.with_context(|| format!("run {run}"))?;
        let payload: Value = serde_json::from_str(job.payload.get())?;
        ensure!(
            payload["process"]["instanceId"] == run.to_string(),
            "a job with the outcome of another run"
        );
        ensure!(payload["process"]["state"] == "COMPLETED", "{payload}");
        let record = fleet.store.load_run(*run).await?.context("an ended run has vanished")?;
        ensure!(record.state == RunState::Completed, "{run} is {:?}", record.state);
    }
    ensure!(jobs.count() == runs.len(), "{} jobs for {} runs", jobs.count(), runs.len());
    nothing_left(fleet).await
}

/// Waits until no alarm is left: every run and every job has ended in the ledger's eyes too.
async fn nothing_left(fleet: &Fleet) -> Result<()> {
    let (workspace, _) = runfleet_tests::project();
    let shard = runfleet_domain::Shard::of_workspace(workspace.as_str());
    wait_until("no alarm is left", BOUND, || async {
        let mut left = 0;
        for set in runfleet_store::AlarmSet::ALL {
            left += fleet.store.count_alarms(shard, set).await?.all;
        }
        Ok((left == 0).then_some(()))
    })
    .await
}
