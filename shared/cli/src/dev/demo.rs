//! One run of the example Process from start to outcome job, shown as it happens.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runfleet_client::Client;
use runfleet_contracts::JobRun;
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use runfleet_domain::RunId;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::say;
use crate::context::{Context, Identity};

/// The workspace of the example.
pub(crate) const WORKSPACE: &str = "demo";
/// Its project.
pub(crate) const PROJECT: &str = "shop";

const INPUT: &str = r#"{"amount": 120, "customerTier": "gold"}"#;
const JOB: &str = "discount_decided";

/// How long the outcome job may take.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// Starts one Process as project code would; returns whether its outcome job arrived: at the host, or at a stand-in where there is none.
pub(crate) async fn show(host: Option<&Host>) -> Result<bool> {
    let mut context = Context::load()?;
    let identity =
        Identity { workspace: Some(WORKSPACE.into()), project: Some(PROJECT.into()), user: None };
    let (workspace, project) = context.project(&identity)?;
    let token = context.token(&identity)?;
    let broker = context.broker()?;
    let client = Client::new(&broker, token);

    let (send, jobs) = mpsc::channel(16);
    let shutdown = CancellationToken::new();
    let stand_in = crate::jobs::host(broker.clone(), workspace, project, send, shutdown.clone());
    let hosting = host.is_none().then(|| tokio::spawn(stand_in));

    say(&format!("starting the Process approve-discount with {INPUT}"));
    let start = ProcessStart {
        process_info_id: "approve-discount".into(),
        input: Some(RawValue::from_string(INPUT.into())?),
        instance_name: Some("demo".into()),
        idempotency_key: None,
        on_complete: Some(OutcomeJob {
            job: JOB.into(),
            payload: Some(RawValue::from_string(r#"{"order": 7}"#.into())?),
        }),
    };
    let began = Instant::now();
    let started =
        client.processes().start_with(&start).await.context("starting the example Process")?;
    say(&format!("  {:>6.1} ms  accepted as {}", millis(began), started.instance_id));
    let run_id: RunId = started.instance_id.parse().context("reading the id of the run")?;
    let shown = async {
        match host {
            Some(host) => handled(host, run_id, began).await,
            None => watch(&client, &started.instance_id, run_id, jobs, began).await?,
        }
        anyhow::Ok(())
    };
    let arrived = tokio::time::timeout(ARRIVES_WITHIN, shown).await;

    shutdown.cancel();
    if let Some(hosting) = hosting {
        hosting.await.context("waiting for the consumer of jobs")??;
    }
    broker.close().await;
    let Ok(result) = arrived else {
        say(&format!("  the outcome job did not arrive within {ARRIVES_WITHIN:?}"));
        return Ok(false);
    };
    result.map(|()| true)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// Waits until the host has handled the job of this run.
async fn handled(host: &Host, run_id: RunId, began: Instant) {
    let job = run_id.outcome_job().to_string();
    while !host.has_handled(&job) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    say(&format!("  {:>6.1} ms  outcome job {job} was handled by the host", millis(began)));
}

/// Shows each new state, and ends with the job of this run.
async fn watch(
    client: &Client,
    instance_id: &str,
    run_id: RunId,
    mut jobs: mpsc::Receiver<JobRun>,
    began: Instant,
) -> Result<()> {
    let mut last = String::new();
    let mut job = None;
    loop {
        let state =
            client.processes().get(instance_id).await.context("asking where the run stands")?;
        if state.state != last {
            say(&format!("  {:>6.1} ms  {}", millis(began), state.state));
            last = state.state;
        }
        if let (Some(_), Some(job)) = (state.finished_at, &job) {
            let job: &JobRun = job;
            say(&format!(
                "  {:>6.1} ms  outcome job {} ({}) has arrived: {}",
                millis(began),
                job.job_id,
                job.job,
                job.payload
            ));
            return Ok(());
        }
        while let Ok(Some(found)) =
            tokio::time::timeout(Duration::from_millis(20), jobs.recv()).await
        {
            // Jobs of earlier runs may still be on the queue.
            if found.job_id == run_id.outcome_job() {
                job = Some(found);
                break;
            }
        }
    }
}
