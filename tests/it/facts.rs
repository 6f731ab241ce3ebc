//! Facts that services of the platform know: each decides, failures leave nothing behind, and nobody is asked in vain.

use std::time::{Duration, Instant};

use anyhow::Result;
use runfleet_broker::{Outgoing, Route};
use runfleet_client::{AgentStartOptions, Client, Error, ProcessStartOptions};
use runfleet_contracts::agents::DeliverTo;
use runfleet_contracts::request::REQUEST_KIND;
use runfleet_contracts::{Claims, ErrorCode};
use runfleet_domain::Lane;
use runfleet_domain::retry::Rung;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Options, Platform};
use serde_json::json;

/// A fleet that asks the platform, and whose runners stand still.
async fn fleet(platform: &Platform, timeout_ms: u64) -> Result<Fleet> {
    let without = vec!["agent-runner", "process-runner", "delivery", "completion-dispatcher"];
    let settings = platform.settings(timeout_ms);
    Fleet::start(Options { without, settings, ..Options::default() }).await
}

/// A client whose token says something else.
fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    change(&mut claims);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

/// Somebody whom the catalog does not know, so that nothing good comes from there.
fn zoe(fleet: &Fleet) -> Result<Client> {
    client(fleet, |claims| claims.user = "zoe".parse().ok())
}

fn coach() -> AgentStartOptions {
    let to = DeliverTo { personnel_id: "yan".into(), conversation: None, title: None };
    AgentStartOptions::new("Look at the deal.").deliver_to(to)
}

async fn agent(client: &Client) -> Result<String, Error> {
    Ok(client.agents().start("deal-coach", coach()).await?.run_id)
}

async fn process(client: &Client, amount: &serde_json::Value) -> Result<String, Error> {
    let options = ProcessStartOptions::default().input(&json!({"amount": amount}))?;
    Ok(client.processes().start("approve-discount", options).await?.instance_id)
}

/// Code and reason of a refusal.
fn told(error: &Error) -> String {
    let code = error.code().unwrap().as_str();
    error.reason().map_or(code.to_owned(), |reason| format!("{code} {reason}"))
}

/// CG-074, CG-160, CG-162, CG-163, CG-164
#[tokio::test]
async fn each_fact_of_a_service_decides_in_the_order_of_the_contract() -> Result<()> {
    let platform = Platform::start().await?;
    let fleet = fleet(&platform, 10_000).await?;
    let zoe = zoe(&fleet)?;
    let table = [
        ("directory.active", "PERMISSION_DENIED AGENT_RUN_DENIED"),
        ("directory.account", "PERMISSION_DENIED AGENT_RUN_DENIED"),
        ("directory.mayStart", "PERMISSION_DENIED AGENT_RUN_DENIED"),
        ("recipients.delivery", "DELIVERY_UNAVAILABLE"),
        ("recipients.exists", "RECIPIENT_NOT_FOUND"),
        ("recipients.mayUse", "RECIPIENT_ACCESS_DENIED"),
        ("recipients.aiSeat", "RECIPIENT_AI_SEAT_REQUIRED"),
        ("billing.subscription", "AI_SUBSCRIPTION_REQUIRED"),
        ("directory.aiSeat", "AI_SEAT_REQUIRED"),
        ("billing.credits", "INSUFFICIENT_CREDITS"),
        ("billing.agentCredits", "AGENT_CREDIT_LIMIT_EXCEEDED"),
        ("billing.modelPriced", "MODEL_NOT_PRICED"),
    ];
    for (at, (fact, expected)) in table.iter().enumerate() {
        platform.bad(&[fact]);
        assert_eq!(told(&agent(&zoe).await.unwrap_err()), *expected, "{fact}");
        // With everything after it, too, the first one is told.
        platform.bad(&table[at..].iter().map(|(fact, _)| *fact).collect::<Vec<_>>());
        assert_eq!(told(&agent(&zoe).await.unwrap_err()), *expected, "{fact} and more");
    }
    platform.bad(&["directory.mayStart"]);
    let error = process(&zoe, &json!(1)).await.unwrap_err();
    assert_eq!(told(&error), "PERMISSION_DENIED PROCESS_START_DENIED");
    // Who may not start it does not learn either what it takes.
    let error = process(&zoe, &json!("much")).await.unwrap_err();
    assert_eq!(told(&error), "PERMISSION_DENIED PROCESS_START_DENIED");
    assert_eq!(fleet.depth("agent-runner.interactive").await?, 0);

    platform.bad(&[]);
    let error = process(&zoe, &json!("much")).await.unwrap_err();
    assert_eq!(error.field(), Some("input.amount"));
    agent(&zoe).await?;
    process(&zoe, &json!(1)).await?;
    assert_eq!(fleet.depth("agent-runner.interactive").await?, 1);
    assert!(!fleet.logs().contains("s3cret"));
    fleet.remove().await
}

#[tokio::test]
async fn services_are_asked_what_a_start_needs_and_nobody_is_asked_in_vain() -> Result<()> {
    let platform = Platform::start().await?;
    let fleet = fleet(&platform, 10_000).await?;
    let (zoe, system) = (zoe(&fleet)?, fleet.client()?);
    agent(&zoe).await?;
    let (person, billing, recipient) = (
        json!({"workspace": "demo", "project": "shop", "personnelId": "zoe", "kind": "agent",
            "target": "deal-coach"}),
        json!({"workspace": "demo", "agentId": "deal-coach", "model": "scripted/echo"}),
        json!({"workspace": "demo", "personnelId": "yan", "agentId": "deal-coach"}),
    );
    let expected = [("billing", billing.clone()), ("directory", person), ("recipients", recipient)];
    let named = |asked: &[(&str, serde_json::Value)]| {
        asked.iter().map(|(name, body)| ((*name).to_owned(), body.clone())).collect::<Vec<_>>()
    };
    assert_eq!(platform.take_asked(), named(&expected));

    process(&zoe, &json!(1)).await?;
    let person = json!({"workspace": "demo", "project": "shop", "personnelId": "zoe",
        "kind": "process", "target": "approve-discount"});
    assert_eq!(platform.take_asked(), named(&[("directory", person)]));
    system.agents().start("deal-coach", AgentStartOptions::new("Look.")).await?;
    assert_eq!(platform.take_asked(), named(&[("billing", billing)]));

    // What is refused anyway, and what needs no fact.
    process(&system, &json!(1)).await?;
    assert_eq!(process(&system, &json!("much")).await.unwrap_err().field(), Some("input.amount"));
    let nobody = zoe.agents().start("nobody", coach()).await.unwrap_err();
    assert_eq!(nobody.code(), Some(ErrorCode::NotFound));
    let spent = client(&fleet, |claims| {
        claims.user = "zoe".parse().ok();
        claims.hops = 0;
    })?;
    assert_eq!(agent(&spent).await.unwrap_err().code(), Some(ErrorCode::MaxHopExceeded));
    assert_eq!(platform.take_asked(), []);
    fleet.remove().await
}

#[tokio::test]
async fn a_start_that_was_made_before_is_told_without_asking_services() -> Result<()> {
    let platform = Platform::start().await?;
    let fleet = fleet(&platform, 10_000).await?;
    let zoe = zoe(&fleet)?;
    let keyed = || coach().idempotency_key("deal:7");
    let first = zoe.agents().start("deal-coach", keyed()).await?;
    assert_eq!(platform.take_asked().len(), 3);
    platform.broken(true);
    let again = zoe.agents().start("deal-coach", keyed()).await?;
    assert!(again.duplicate && again.run_id == first.run_id);
    let other = client(&fleet, |claims| claims.user = "ada".parse().ok())?;
    let error = other.agents().start("deal-coach", keyed()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::IdempotencyConflict));
    assert_eq!(platform.take_asked(), []);
    fleet.remove().await
}

/// CG-126
#[tokio::test]
async fn a_service_that_does_not_answer_in_time_leaves_nothing_written() -> Result<()> {
    let platform = Platform::start().await?;
    let fleet = fleet(&platform, 300).await?;
    let zoe = zoe(&fleet)?;
    platform.silent(true);
    let began = Instant::now();
    let keyed = || coach().idempotency_key("deal:7");
    let error = zoe.agents().start("deal-coach", keyed()).await.unwrap_err();
    assert!(matches!(&error, Error::Retryable(_)) && !error.writes_may_have_completed(), "{error}");
    assert!(began.elapsed() >= Duration::from_millis(300) && began.elapsed() < BOUND);
    assert_eq!(fleet.depth("agent-runner.interactive").await?, 0);

    // Nobody waits for this one: it is put on the ladder.
    let request = json!({"operation": "agents.start", "payload": {
        "agentId": "deal-coach", "instruction": "Look."}});
    let mut message = Outgoing::new(REQUEST_KIND, "batch:1", serde_json::to_vec(&request)?);
    message.authorization = Some(fleet.token(&fleet.claims())?);
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
    platform.silent(false);
    let started = zoe.agents().start("deal-coach", keyed()).await?;
    assert!(!started.duplicate, "the key was not taken by the start that failed");
    fleet.remove().await
}

#[tokio::test]
async fn a_service_that_fails_again_and_again_is_left_alone_until_it_works() -> Result<()> {
    let platform = Platform::start().await?;
    let fleet = fleet(&platform, 10_000).await?;
    let zoe = zoe(&fleet)?;
    platform.broken(true);
    for _ in 0..5 {
        assert!(matches!(process(&zoe, &json!(1)).await, Err(Error::Retryable(_))));
    }
    assert_eq!(platform.take_asked().len(), 5);
    let error = process(&zoe, &json!(1)).await.unwrap_err();
    assert!(matches!(&error, Error::Retryable(_)) && !error.writes_may_have_completed(), "{error}");
    assert_eq!(platform.take_asked(), [], "it is left alone");
    let state = "runfleet_http_breaker_state{purpose=\"directory\"}";
    assert!((fleet.metric("start-intake", state).await? - 2.0).abs() < 0.1);
    let open = "runfleet_http_calls_total{purpose=\"directory\",result=\"open_circuit\"}";
    assert!(fleet.metric("start-intake", open).await? >= 1.0);
    platform.broken(false);
    wait_until("the service is asked again", BOUND, || async {
        Ok(process(&zoe, &json!(1)).await.is_ok().then_some(()))
    })
    .await?;
    assert_eq!(platform.take_asked().len(), 1, "the probe");
    assert!(fleet.metric("start-intake", state).await?.abs() < 0.1);
    fleet.remove().await
}
