//! Runs of Processes, as tests start and see them.

use anyhow::{Context as _, Result};
use runfleet_client::Client;
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use runfleet_domain::RunId;
use runfleet_flow::{RunView, State};
use runfleet_store::RunRecord;
use runfleet_testkit::wait_until;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::fleet::{BOUND, Fleet};

/// Starts a Process whose outcome becomes a job of the example.
pub async fn started(client: &Client, process: &str, input: &Value) -> Result<RunId> {
    let options = ProcessStart {
        process_info_id: process.to_owned(),
        input: Some(to_raw_value(input)?),
        instance_name: None,
        idempotency_key: None,
        on_complete: Some(OutcomeJob { job: "discount_decided".into(), payload: None }),
    };
    Ok(client.processes().start_with(&options).await?.instance_id.parse()?)
}

/// The record of a run.
pub async fn record(fleet: &Fleet, run: RunId) -> Result<RunRecord> {
    fleet.store.load_run(run).await?.context("no such run")
}

/// Where a run stands, once that is as `fits` wants it.
pub async fn standing(
    fleet: &Fleet,
    run: RunId,
    fits: impl Fn(&RunView) -> bool,
) -> Result<RunView> {
    wait_until("the run stands where it should", BOUND, || async {
        let Some(position) = record(fleet, run).await?.position else { return Ok(None) };
        let view = State::from_json(&position)?.view(None);
        Ok(fits(&view).then_some(view))
    })
    .await
}

/// Whether a run waits for something.
pub fn waits(view: &RunView) -> bool {
    !view.awaited.is_empty()
}
