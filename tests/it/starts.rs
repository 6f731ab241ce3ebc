//! What is promised about starts whatever is started: budgets, versions, batches and days.

use std::time::Duration;

use anyhow::Result;
use runfleet_broker::{Outgoing, Route};
use runfleet_client::{Client, Error, ProcessStartOptions};
use runfleet_contracts::request::REQUEST_KIND;
use runfleet_contracts::{Claims, ErrorCode};
use runfleet_domain::retry::Rung;
use runfleet_domain::{Lane, RunKind};
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Options};
use serde_json::json;

fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    change(&mut claims);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

fn options() -> Result<ProcessStartOptions, Error> {
    ProcessStartOptions::default().input(&json!({"amount": 120}))
}

/// Nobody carries out what is started here.
async fn fleet(options: Options) -> Result<Fleet> {
    let Options { without, .. } = Options::only(&["start-intake"]);
    Fleet::start(Options { without, ..options }).await
}

async fn start(client: &Client) -> Result<String, Error> {
    Ok(client.processes().start("approve-discount", options()?).await?.instance_id)
}

/// CG-145
#[tokio::test]
async fn an_execution_without_a_step_left_starts_nothing() -> Result<()> {
    let fleet = fleet(Options::default()).await?;
    let spent = client(&fleet, |claims| claims.hops = 0)?;
    let error = start(&spent).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MaxHopExceeded));
    let last = client(&fleet, |claims| claims.hops = 1)?;
    assert!(start(&last).await.is_ok());
    fleet.remove().await
}

/// CG-010
#[tokio::test]
async fn a_token_of_a_version_that_nobody_approved_starts_nothing() -> Result<()> {
    let fleet = fleet(Options::default()).await?;
    let active = client(&fleet, |claims| claims.version = Some("1".into()))?;
    start(&active).await?;
    let unknown = client(&fleet, |claims| claims.version = Some("0.9".into()))?;
    assert_eq!(start(&unknown).await.unwrap_err().reason(), Some("PROCESSES_NOT_ALLOWED"));
    fleet.remove().await
}

#[tokio::test]
async fn a_batch_that_is_revoked_starts_nothing_more() -> Result<()> {
    let fleet = fleet(Options::default()).await?;
    let claims = fleet.claims();
    let batch = client(&fleet, |own| own.clone_from(&claims))?;
    start(&batch).await?;
    let keep = Duration::from_hours(1);
    fleet.store.revoke_batch(&claims.workspace, &claims.project, &claims.execution, keep).await?;
    assert_eq!(start(&batch).await.unwrap_err().reason(), Some("TOKEN_REVOKED"));
    assert!(start(&fleet.client()?).await.is_ok(), "another batch goes on");
    fleet.remove().await
}

/// CG-143
#[tokio::test]
async fn a_backfill_over_the_daily_limit_waits_for_the_next_day_when_it_says_so() -> Result<()> {
    let fleet = fleet(Options { starts_per_day: Some(1), ..Options::default() }).await?;
    start(&fleet.client()?).await?;
    let mut claims = fleet.claims();
    claims.wait_for_day = true;
    // Whoever waits for an answer is told.
    let asking = client(&fleet, |own| own.clone_from(&claims))?;
    let error = start(&asking).await.unwrap_err();
    let body = error.body().unwrap();
    assert_eq!((&body.details["per"], &body.details["limit"]), (&json!("day"), &json!(1)));
    assert!(body.details["resetsAt"].is_u64());
    // Whoever does not wait is put on the ladder, on its longest rung.
    let request = json!({"operation": "processes.start", "payload": {
        "processInfoId": "approve-discount", "input": {"amount": 1}}});
    let mut message = Outgoing::new(REQUEST_KIND, "batch:1", serde_json::to_vec(&request)?);
    message.authorization = Some(fleet.token(&claims)?);
    message.lane = Lane::Backfill;
    fleet.broker.publisher().publish(&Route::Start(Lane::Backfill), message).await?;
    wait_until("the start waits", BOUND, || async {
        let mut waiting = 0;
        for rung in Rung::ALL {
            waiting += fleet.depth(&format!("retry.{}", rung.as_str())).await?;
        }
        Ok((waiting == 1).then_some(()))
    })
    .await?;
    let waits =
        "runfleet_intake_requests_total{operation=\"processes.start\",result=\"waits_for_day\"}";
    assert!((fleet.metric("start-intake", waits).await? - 1.0).abs() < 0.1);
    fleet.remove().await
}

#[tokio::test]
async fn a_request_without_a_token_of_this_audience_is_refused_and_nothing_is_written() -> Result<()>
{
    let fleet = fleet(Options::default()).await?;
    let elsewhere = client(&fleet, |claims| claims.aud = "elsewhere".into())?;
    assert_eq!(start(&elsewhere).await.unwrap_err().reason(), Some("TOKEN_INVALID"));
    let request = json!({"operation": "processes.start", "payload": {
        "processInfoId": "approve-discount", "input": {"amount": 1}}});
    let message = Outgoing::new(REQUEST_KIND, "nobody:1", serde_json::to_vec(&request)?);
    let requester = fleet.broker.requester();
    let answer = requester.request(&Route::Start(Lane::Interactive), message, BOUND).await?;
    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
    assert_eq!(answer["error"]["details"]["reason"], "TOKEN_MISSING");
    let (workspace, project) = runfleet_tests::project();
    let day = fleet.store.starts_of_day(&workspace, &project, RunKind::Process).await?;
    assert_eq!(day, None, "no start was counted");
    assert_eq!(fleet.depth("process-runner.interactive").await?, 0);
    fleet.remove().await
}
