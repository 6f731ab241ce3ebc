//! Agents over the public path: accepted, recorded and queued, or refused with the code of the contract.

use anyhow::Result;
use runfleet_client::{AgentStartOptions, Client, Error, Job};
use runfleet_contracts::agents::{AgentInput, DeliverTo};
use runfleet_contracts::{Claims, ErrorCode};
use runfleet_domain::Source;
use runfleet_domain::admission::RunAs;
use runfleet_store::OutcomeState;
use runfleet_tests::{Fleet, Options};
use serde_json::json;

/// A fleet whose agent-runner stands still, so that runs stay where they are put.
async fn fleet() -> Result<Fleet> {
    Fleet::start(Options { without: vec!["agent-runner"], ..Options::default() }).await
}

/// A client whose token says something else.
fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    change(&mut claims);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

fn coach() -> AgentStartOptions {
    AgentStartOptions::new("Look at the deal.")
}

fn to(person: &str) -> DeliverTo {
    DeliverTo { personnel_id: person.into(), conversation: None, title: None }
}

/// CG-004, CG-050, CG-055, CG-090, CG-096
#[tokio::test]
async fn an_agent_is_accepted_recorded_and_queued_with_every_default_filled_in() -> Result<()> {
    let fleet = fleet().await?;
    let ada = client(&fleet, |claims| claims.user = "ada".parse().ok())?;
    let options = coach()
        .variables(&json!({"amount": 7}))?
        .idempotency_key("deal:7")
        .on_result("deal_coached", &json!({"deal": 7}))?
        .deliver_to(to("ada"));
    let started = ada.agents().start("deal-coach", options.clone()).await?;
    assert!(!started.duplicate && started.run_id.starts_with("AG"));

    let run = fleet.store.load_run(started.run_id.parse()?).await?.unwrap();
    let input: AgentInput = serde_json::from_str(run.input.as_deref().unwrap())?;
    assert_eq!((input.run_as, input.timeout_seconds), (RunAs::Caller, 300));
    assert_eq!(input.variables.unwrap().get(), r#"{"amount":7}"#);
    assert_eq!((run.depth, run.hops, run.outcome), (1, 9, OutcomeState::Pending));
    assert_eq!(run.deadline_ms.unwrap() / 1_000, run.created_at_ms / 1_000 + 300);
    assert_eq!(fleet.depth("agent-runner.interactive").await?, 1);

    let state = ada.agents().get(&started.run_id).await?;
    assert_eq!(state.status, "QUEUED");
    assert!(state.text.is_none() && state.result.is_none() && state.error.is_none());
    assert!(state.delivery.is_none());
    let again = ada.agents().start("deal-coach", options).await?;
    assert!(again.duplicate && again.run_id == started.run_id);
    fleet.remove().await
}

/// CG-060, CG-074, CG-095, CG-123, CG-146, CG-162
#[tokio::test]
async fn each_refusal_of_an_agent_tells_its_code_and_makes_no_run() -> Result<()> {
    let fleet = fleet().await?;
    let agents = fleet.client()?;
    let code = async |id: &str, options: AgentStartOptions| {
        agents.agents().start(id, options).await.unwrap_err().code()
    };
    assert_eq!(code("nobody", coach()).await, Some(ErrorCode::NotFound));
    let ben = coach().deliver_to(to("ben"));
    assert_eq!(code("deal-coach", ben).await, Some(ErrorCode::RecipientAiSeatRequired));
    let nobody = coach().deliver_to(to("nobody"));
    assert_eq!(code("deal-coach", nobody).await, Some(ErrorCode::RecipientNotFound));
    let job = coach().on_result("unknown", &json!(1))?;
    assert_eq!(code("deal-coach", job).await, Some(ErrorCode::Validation));

    let deep = client(&fleet, |claims| claims.depth = 3)?;
    let error = deep.agents().start("deal-coach", coach()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AgentDepthExceeded));
    let ben = client(&fleet, |claims| claims.user = "ben".parse().ok())?;
    let error = ben.agents().start("deal-coach", coach()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AiSeatRequired));
    assert_eq!(error.body().unwrap().details["upstreamCode"], "AI_SEAT_REQUIRED");
    let caller = coach().run_as(RunAs::Caller);
    let error = agents.agents().start("deal-coach", caller).await.unwrap_err();
    assert_eq!(error.field(), Some("runAs"));
    let error = agents.agents().get("AG0000000000000000000000000000").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert_eq!(fleet.depth("agent-runner.interactive").await?, 0);
    fleet.remove().await
}

/// CG-025, CG-056
#[tokio::test]
async fn bad_arguments_are_found_before_anything_is_sent() -> Result<()> {
    let fleet = fleet().await?;
    // A token that nobody believes: whatever is sent is refused for that reason.
    let nobody = fleet.client()?.token("x".into());
    let error = nobody.agents().start("deal-coach", AgentStartOptions::new(" ")).await.unwrap_err();
    assert!(matches!(&error, Error::Validation(_)), "{error}");
    assert_eq!(error.field(), Some("instruction"));
    let error = nobody.agents().start("deal-coach", coach()).await.unwrap_err();
    assert_eq!(error.reason(), Some("TOKEN_INVALID"));
    fleet.remove().await
}

/// CG-140, CG-141
#[tokio::test]
async fn an_execution_starts_five_agents_and_makes_its_calls_and_no_more() -> Result<()> {
    let fleet = fleet().await?;
    let route = client(&fleet, |claims| claims.source = Source::Route)?;
    for _ in 0..5 {
        route.agents().start("deal-coach", coach()).await?;
    }
    let error = route.agents().start("deal-coach", coach()).await.unwrap_err();
    assert!(matches!(&error, Error::RateLimited(_)) && error.budget().is_none(), "{error}");
    let id = "AG0000000000000000000000000000";
    let asked = futures_util::future::join_all((0..94).map(|_| route.agents().get(id))).await;
    assert!(asked.iter().all(|answer| {
        answer.as_ref().is_err_and(|error| error.code() == Some(ErrorCode::NotFound))
    }));
    let error = route.agents().get(id).await.unwrap_err();
    assert_eq!(error.budget(), Some("capabilityCalls"));
    let body = error.body().unwrap();
    assert_eq!((&body.details["limit"], &body.details["used"]), (&json!(100), &json!(100)));
    fleet.remove().await
}

/// CG-012, CG-095
#[tokio::test]
async fn an_agent_run_of_another_project_is_not_there() -> Result<()> {
    let fleet = fleet().await?;
    let started = fleet.client()?.agents().start("deal-coach", coach()).await?;
    let other = client(&fleet, |claims| claims.project = "other".parse().unwrap())?;
    let error = other.agents().get(&started.run_id).await.unwrap_err();
    assert_eq!(error.reason(), Some("AGENTS_NOT_ALLOWED"));
    let process = fleet.client()?.processes().get(&started.run_id).await.unwrap_err();
    assert_eq!(process.code(), Some(ErrorCode::NotFound), "an agent run is no Process instance");
    fleet.remove().await
}

#[tokio::test]
async fn a_kind_that_is_switched_off_says_so() -> Result<()> {
    let settings = vec![
        ("RUNFLEET_AGENTS_ENABLED".to_owned(), "false".to_owned()),
        ("RUNFLEET_PROCESSES_ENABLED".to_owned(), "false".to_owned()),
        ("RUNFLEET_JOBS_ENABLED".to_owned(), "false".to_owned()),
    ];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    let client = fleet.client()?;
    let error = client.agents().start("deal-coach", coach()).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AgentsDisabled));
    let error = client.processes().get("PI0000000000000000000000000000").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ProcessesDisabled));
    let error = client.jobs().enqueue(Job::new("discount_decided")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::JobsDisabled));
    fleet.remove().await
}
