//! Journeys through five real workers.

use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_client::Error;
use runfleet_contracts::claims::Source;
use runfleet_contracts::message::ProcessCompletion;
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use runfleet_contracts::{ErrorBody, ErrorCode};
use runfleet_domain::RunId;
use runfleet_store::OutcomeState;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, project, start};
use serde_json::{Value, json};

async fn fleet() -> Result<Fleet> {
    Fleet::start(Options::of_processes()).await
}

fn jobs(fleet: &Fleet) -> Jobs {
    let (workspace, project) = project();
    Jobs::take(&fleet.broker, workspace, project, true)
}

/// The refusal that a call must have got.
fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> ErrorBody {
    let error = answer.unwrap_err();
    error.body().unwrap_or_else(|| panic!("not a refusal: {error:?}")).clone()
}

async fn outcome(jobs: &Jobs, instance_id: &str) -> Result<ProcessCompletion> {
    let run_id: RunId = instance_id.parse()?;
    let job = jobs.wait(run_id.outcome_job(), BOUND).await?;
    serde_json::from_str(job.payload.get()).context("reading the payload of the job")
}

/// CG-004, CG-005, CG-006, CG-030, CG-031, CG-040, CG-041, CG-042, CG-043, CG-110, CG-111
#[tokio::test]
async fn a_run_ends_with_its_outcome_in_the_projects_job() -> Result<()> {
    let fleet = fleet().await?;
    let jobs = jobs(&fleet);
    let client = fleet.client()?;
    for (amount, approved) in [(120, true), (20_000, false)] {
        let started = client.processes().start_with(&start(&json!({"amount": amount}))).await?;
        assert!(!started.duplicate);
        let completion = outcome(&jobs, &started.instance_id).await?;
        let output: Value =
            serde_json::from_str(completion.process.output.context("no output")?.get())?;
        assert_eq!(output["approved"], approved, "{output}");
        assert_eq!(completion.process.state, "COMPLETED");
        assert_eq!(completion.process.process_info_id, "approve-discount");
        assert_eq!(completion.payload.context("no echo")?.get(), r#"{"order":7}"#);
        let state = client.processes().get(&started.instance_id).await?;
        assert_eq!(state.state, "COMPLETED");
        assert!(state.started_at.is_some() && state.finished_at >= state.started_at);
        assert_eq!(completion.process.finished_at, state.finished_at);
    }
    fleet.remove().await
}

/// CG-112, CG-113, CG-114
#[tokio::test]
async fn the_outcome_job_continues_chain_and_budget_of_its_caller() -> Result<()> {
    let fleet = fleet().await?;
    let jobs = jobs(&fleet);
    let mut claims = fleet.claims();
    claims.user = Some("ada".parse()?);
    (claims.hops, claims.chain, claims.depth) = (7, 3, 1);
    let client = fleet.client()?.token(fleet.token(&claims)?);
    let started = client.processes().start_with(&start(&json!({"amount": 1}))).await?;
    let run_id: RunId = started.instance_id.parse()?;
    let job = jobs.wait(run_id.outcome_job(), BOUND).await?;
    assert_eq!((job.hops, job.chain, job.depth, job.attempt), (5, 4, 1, 1));
    assert_eq!(job.user.context("no user")?.as_str(), "ada");
    assert_eq!(job.enqueued_by, format!("process:{run_id}"));
    assert_eq!(job.source, "enqueue");
    fleet.remove().await
}

/// CG-115
#[tokio::test]
async fn an_outcome_that_the_budget_does_not_reach_is_dropped_with_its_reason() -> Result<()> {
    let fleet = fleet().await?;
    let mut claims = fleet.claims();
    claims.hops = 1;
    let client = fleet.client()?.token(fleet.token(&claims)?);
    let started = client.processes().start_with(&start(&json!({"amount": 1}))).await?;
    let run_id: RunId = started.instance_id.parse()?;
    wait_until("the outcome is dropped", BOUND, || async {
        let record = fleet.store.load_run(run_id).await?.context("no run")?;
        Ok(matches!(record.outcome, OutcomeState::Dropped(_)).then_some(()))
    })
    .await?;
    let series = "runfleet_outcomes_total{result=\"NO_HOPS_LEFT\"}";
    assert!((fleet.metric("completion-dispatcher", series).await? - 1.0).abs() < 0.1);
    fleet.remove().await
}

/// CG-024, CG-121, CG-123, CG-124, CG-125
#[tokio::test]
async fn one_key_is_one_run_and_belongs_to_its_identity() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let mut options = start(&json!({"amount": 1}));
    options.idempotency_key = Some("order:7".into());
    let first = client.processes().start_with(&options).await?;
    let mut other_options = options.clone();
    other_options.instance_name = Some("other options are not compared".into());
    let second = client.processes().start_with(&other_options).await?;
    assert_eq!((second.duplicate, &second.instance_id), (true, &first.instance_id));

    let mut claims = fleet.claims();
    claims.user = Some("ada".parse()?);
    let ada = client.clone().token(fleet.token(&claims)?);
    let conflict = refusal(ada.processes().start_with(&options).await);
    assert_eq!(conflict.code, ErrorCode::IdempotencyConflict);
    assert!(
        !serde_json::to_string(&conflict)?.contains(&first.instance_id),
        "a conflict reveals nothing"
    );

    options.process_info_id = "count-to-limit".into();
    options.input = None;
    options = ProcessStart {
        input: Some(serde_json::value::to_raw_value(&json!({"limit": 1}))?),
        ..options
    };
    assert_eq!(refusal(client.processes().start_with(&options).await).code, ErrorCode::Validation);
    fleet.remove().await
}

/// CG-126
#[tokio::test]
async fn a_request_that_is_sent_twice_makes_one_run() -> Result<()> {
    let fleet = fleet().await?;
    let jobs = jobs(&fleet);
    let client = fleet.client()?;
    let body = runfleet_tests::request(&start(&json!({"amount": 1})))?;
    let first = client.send("message-1".into(), body.clone()).await?;
    let second = client.send("message-1".into(), body).await?;
    assert_eq!(first, second, "the same message gets the same answer");
    let answer: Value = serde_json::from_slice(&first)?;
    assert_eq!(answer["data"]["duplicate"], false);
    outcome(&jobs, answer["data"]["instanceId"].as_str().context("no id")?).await?;
    assert_eq!(jobs.count(), 1);
    fleet.remove().await
}

#[tokio::test]
async fn a_long_process_is_executed_in_slices() -> Result<()> {
    let options = Options {
        settings: vec![("RUNFLEET_SLICE_STEPS".to_owned(), "50".to_owned())],
        ..Options::of_processes()
    };
    let fleet = Fleet::start(options).await?;
    let jobs = jobs(&fleet);
    let client = fleet.client()?;
    let options = ProcessStart {
        process_info_id: "count-to-limit".into(),
        input: Some(serde_json::value::to_raw_value(&json!({"limit": 500}))?),
        instance_name: None,
        idempotency_key: None,
        on_complete: Some(OutcomeJob { job: "count_done".into(), payload: None }),
    };
    let started = client.processes().start_with(&options).await?;
    let completion = outcome(&jobs, &started.instance_id).await?;
    assert_eq!(completion.process.state, "COMPLETED");
    assert!(completion.payload.is_none(), "no echo was given");
    let slices = fleet
        .metric("process-runner", "runfleet_process_slices_total{result=\"continued\"}")
        .await?;
    assert!(slices >= 10.0, "{slices} slices");
    fleet.remove().await
}

/// CG-026, CG-116, CG-128, CG-144
#[tokio::test]
async fn a_refused_start_leaves_nothing_behind() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let good = start(&json!({"amount": 1}));
    let with = |change: &dyn Fn(&mut ProcessStart)| {
        let mut options = good.clone();
        options.idempotency_key = Some("k".into());
        change(&mut options);
        options
    };
    let unknown = with(&|options| options.process_info_id = "nothing".into());
    assert_eq!(refusal(client.processes().start_with(&unknown).await).code, ErrorCode::NotFound);
    let input =
        refusal(client.processes().start_with(&with(&|options| options.input = None)).await);
    assert_eq!(
        (input.code, input.details["field"].as_str()),
        (ErrorCode::Validation, Some("input.amount"))
    );
    let job = with(&|options| {
        options.on_complete = Some(OutcomeJob { job: "nothing".into(), payload: None });
    });
    assert_eq!(
        refusal(client.processes().start_with(&job).await).details["field"],
        "onComplete.job"
    );

    let mut claims = fleet.claims();
    claims.source = Source::TriggerBefore;
    let trigger = client.clone().token(fleet.token(&claims)?);
    assert_eq!(
        refusal(trigger.processes().start_with(&with(&|_| {})).await).details["reason"],
        "TRIGGER_READ_ONLY"
    );
    let forged = client.clone().token("a.b.c".to_owned().into());
    assert_eq!(
        refusal(forged.processes().start_with(&with(&|_| {})).await).details["reason"],
        "TOKEN_INVALID"
    );
    let mut claims = fleet.claims();
    claims.exp = 1;
    let expired = client.clone().token(fleet.token(&claims)?);
    assert_eq!(
        refusal(expired.processes().start_with(&with(&|_| {})).await).details["reason"],
        "TOKEN_EXPIRED"
    );

    // The key is still free: the first good start with it makes a run.
    assert!(!client.processes().start_with(&with(&|_| {})).await?.duplicate);
    fleet.remove().await
}

/// CG-143
#[tokio::test]
async fn a_project_starts_no_more_than_its_day_allows() -> Result<()> {
    let fleet =
        Fleet::start(Options { starts_per_day: Some(5), ..Options::of_processes() }).await?;
    let client = fleet.client()?;
    let calls: Vec<_> = (0..20).map(|_| client.processes().start_with(&GOOD)).collect();
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
    for answer in answers.into_iter().filter(Result::is_err) {
        let error = refusal(answer);
        assert_eq!(
            (error.code, error.details["per"].as_str()),
            (ErrorCode::RateLimited, Some("day"))
        );
        assert!(error.details["resetsAt"].as_u64().is_some());
    }
    fleet.remove().await
}

static GOOD: std::sync::LazyLock<ProcessStart> =
    std::sync::LazyLock::new(|| start(&json!({"amount": 1})));

/// CG-120, CG-141
#[tokio::test]
async fn an_execution_starts_no_more_than_it_may() -> Result<()> {
    let fleet = fleet().await?;
    let mut claims = fleet.claims();
    claims.source = Source::Script;
    let client = fleet.client()?.token(fleet.token(&claims)?);
    let answers =
        futures_util::future::join_all((0..25).map(|_| client.processes().start_with(&GOOD))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 20);
    fleet.remove().await
}

/// CG-006, CG-032
#[tokio::test]
async fn a_run_of_another_project_is_not_found() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let started = client.processes().start_with(&GOOD).await?;
    let mut claims = fleet.claims();
    claims.workspace = "elsewhere".parse()?;
    let stranger = client.clone().token(fleet.token(&claims)?);
    // Another workspace has no policy here at all.
    assert_eq!(
        refusal(stranger.processes().get(&started.instance_id).await).code,
        ErrorCode::PermissionDenied
    );
    for id in ["PI0000000000000000000000000000", "nonsense", ""] {
        let error = refusal(client.processes().get(id).await);
        assert_eq!(
            (error.code, error.details["resource"].as_str()),
            (ErrorCode::NotFound, Some("process_instance"))
        );
    }
    fleet.remove().await
}

#[tokio::test]
async fn the_alarm_of_a_lost_wake_up_brings_the_run_to_its_end() -> Result<()> {
    let mut fleet = Fleet::start(Options::only(&["start-intake", "completion-dispatcher"])).await?;
    let jobs = jobs(&fleet);
    let started = fleet.client()?.processes().start_with(&GOOD).await?;
    wait_until("the wake-up is on the queue", BOUND, || async {
        Ok((fleet.depth("process-runner.interactive").await? == 1).then_some(()))
    })
    .await?;
    fleet.purge("process-runner.interactive").await?;
    fleet.spawn("process-runner", None)?;
    fleet.ready("process-runner").await?;
    outcome(&jobs, &started.instance_id).await?;
    fleet.remove().await
}

#[tokio::test]
async fn a_job_that_was_applied_a_moment_ago_gets_its_outcome() -> Result<()> {
    // Nobody is told of changes in this fleet: only asking again finds them.
    let settings = vec![("RUNFLEET_CATALOG_EVERY_MS".to_owned(), "600000".to_owned())];
    let fleet = Fleet::start(Options { settings, ..Options::of_processes() }).await?;
    let jobs = jobs(&fleet);
    let client = fleet.client()?;
    // Now both workers have the catalog in memory.
    let started = client.processes().start_with(&GOOD).await?;
    outcome(&jobs, &started.instance_id).await?;
    fleet.declare_job("brand_new").await?;
    let mut options = GOOD.clone();
    options.on_complete = Some(OutcomeJob { job: "brand_new".into(), payload: None });
    // Both workers have to ask the ledger before they say no.
    let started = client.processes().start_with(&options).await?;
    let completion = outcome(&jobs, &started.instance_id).await?;
    assert_eq!(completion.process.state, "COMPLETED");
    fleet.remove().await
}

#[tokio::test]
async fn no_secret_reaches_a_log() -> Result<()> {
    let options = Options {
        settings: vec![("RUNFLEET_LOG".to_owned(), "debug".to_owned())],
        ..Options::default()
    };
    let fleet = Fleet::start(options).await?;
    let jobs = jobs(&fleet);
    let client = fleet.client()?;
    let mut options = start(&json!({"amount": 1, "customerTier": "canary-7f3a"}));
    options.instance_name = Some("canary-7f3a".into());
    options.on_complete = Some(OutcomeJob {
        job: "discount_decided".into(),
        payload: Some(serde_json::value::to_raw_value("canary-7f3a")?),
    });
    let started = client.processes().start_with(&options).await?;
    outcome(&jobs, &started.instance_id).await?;
    let token = fleet.token(&fleet.claims())?;
    let logs = fleet.logs();
    assert!(logs.contains("message settled"), "debug logs are on");
    assert!(!logs.contains("canary-7f3a"), "a value of the run is in a log");
    let signature = secrecy::ExposeSecret::expose_secret(&token)
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_owned();
    assert!(!logs.contains(&signature[..20]), "a token is in a log");
    assert!(!logs.contains(fleet.password()), "a password is in a log");
    tokio::time::timeout(Duration::from_secs(30), fleet.remove()).await?
}
