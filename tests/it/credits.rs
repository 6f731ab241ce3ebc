//! What agents may use up, and what may be taken from them while they are at work. Through real workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runfleet_catalog::{Billing, Bundle, Grant, Price, ProcessState};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::HostOutcome;
use runfleet_domain::{Name, RunId, RunState};
use runfleet_testkit::{Doing, TestHost, wait_until};
use runfleet_tests::{BOUND, Fleet, Jobs, code, ended, project};
use serde_json::{Value, json};

use crate::agent_runs::fleet;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Ten tokens cost a credit.
fn billing(credits: Option<u32>) -> Billing {
    let price =
        Price { input_per_million: 100_000, output_per_million: 0, cached_per_million: None };
    Billing { subscription: true, credits, prices: [("played/one".to_owned(), price)].into() }
}

/// A client as the person ada.
fn ada(fleet: &Fleet) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.user = Some(name("ada"));
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

/// Changes what is declared. The runner that goes on has read nothing before that.
async fn change(fleet: &mut Fleet, change: impl FnOnce(&mut Bundle)) -> Result<()> {
    fleet.stop("agent-runner").await?;
    fleet.apply_bundle(change).await?;
    fleet.spawn("agent-runner", None)?;
    fleet.ready("agent-runner").await
}

async fn run(fleet: &Fleet, options: AgentStartOptions) -> Result<(String, RunId)> {
    let client = ada(fleet)?;
    let started = client.agents().start("worker", options).await?;
    let state = ended(&client, &started.run_id).await?;
    Ok((code(&state).unwrap_or_default().to_owned(), started.run_id.parse()?))
}

/// Waits until intake has seen what was applied: an agent can be started, or not, for this reason.
async fn told(fleet: &Fleet, expected: Option<&str>) -> Result<()> {
    wait_until("the catalog is known", BOUND, || async {
        let client = ada(fleet)?;
        let started = client.agents().start("helper", AgentStartOptions::new("say hello")).await;
        let code = started.err().and_then(|error| error.code());
        Ok((code.as_ref().map(|code| code.as_str()) == expected).then_some(()))
    })
    .await
}

/// CG-094, CG-104, CG-160, CG-161
#[tokio::test]
async fn answers_are_charged_once_and_nobody_uses_more_credits_than_there_are() -> Result<()> {
    let mut fleet = fleet().await?;
    change(&mut fleet, |bundle| bundle.workspace.billing = Some(billing(Some(1)))).await?;
    let (workspace, shop) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, shop, true);
    let options = || {
        let options = AgentStartOptions::new("spend twice").idempotency_key("spend:1");
        options.on_result("deal_coached", &json!(7))
    };
    let (code, first) = run(&fleet, options()?).await?;
    assert_eq!(code, "INSUFFICIENT_CREDITS");
    let job = jobs.wait(first.outcome_job(), BOUND).await?;
    let payload: Value = serde_json::from_str(job.payload.get())?;
    let (error, usage) = (&payload["agentRun"]["error"], &payload["agentRun"]["usage"]);
    assert_eq!(error["code"], "INSUFFICIENT_CREDITS");
    assert_eq!(error["message"], "The workspace has no AI credits left.");
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(10), &json!(1)));
    let record = fleet.store.load_run(first).await?.context("no run")?;
    assert_eq!(record.cost, 1_000_000);
    let output: Value = serde_json::from_str(record.output.as_deref().context("no output")?)?;
    assert_eq!(
        (&output["usage"]["inputTokens"], &output["usage"]["iterations"]),
        (&json!(10), &json!(1))
    );
    let used = fleet.store.credits_used(&project().0, &name("worker")).await?;
    assert_eq!((used.workspace, used.agent), (1_000_000, 1_000_000));

    // Later starts are refused, but not the one that was made before.
    told(&fleet, Some("INSUFFICIENT_CREDITS")).await?;
    let again = ada(&fleet)?.agents().start("worker", options()?).await?;
    assert!(again.duplicate && again.run_id == first.to_string());

    // More credits, and a limit of the agent itself.
    let limited = |bundle: &mut Bundle| {
        bundle.workspace.billing = Some(billing(Some(1_000)));
        bundle.agents.get_mut(&name("worker")).unwrap().credit_limit = Some(2);
    };
    change(&mut fleet, limited).await?;
    told(&fleet, None).await?;
    let (code, _) = run(&fleet, AgentStartOptions::new("spend twice")).await?;
    assert_eq!(code, "AGENT_CREDIT_LIMIT_EXCEEDED");
    fleet.remove().await
}

/// The code and sentence with which a run ends, and what is changed while it is at work.
type Change = (&'static str, &'static str, fn(&mut Bundle));

const CHANGES: [Change; 7] = [
    ("AGENT_INACTIVE", "The agent is not active.", |bundle| {
        bundle.agents.get_mut(&name("worker")).unwrap().state = ProcessState::Inactive;
    }),
    ("AGENT_ACCESS_DENIED", "The identity of the run may not use the agent.", |bundle| {
        bundle.people.get_mut(&name("ada")).unwrap().may_use_agents = Grant::Only(BTreeSet::new());
    }),
    ("AI_SUBSCRIPTION_REQUIRED", "The workspace has no AI plan.", |bundle| {
        bundle.workspace.billing = Some(Billing { subscription: false, ..billing(None) });
    }),
    ("AI_SEAT_REQUIRED", "The user of the run has no AI Agent seat.", |bundle| {
        bundle.people.get_mut(&name("ada")).unwrap().ai_seat = false;
    }),
    ("INSUFFICIENT_CREDITS", "The workspace has no AI credits left.", |bundle| {
        bundle.workspace.billing = Some(billing(Some(0)));
    }),
    ("AGENT_CREDIT_LIMIT_EXCEEDED", "The credit limit of the agent is reached.", |bundle| {
        bundle.workspace.billing = Some(billing(None));
        bundle.agents.get_mut(&name("worker")).unwrap().credit_limit = Some(0);
    }),
    ("MODEL_NOT_PRICED", "The model of the agent has no price.", |bundle| {
        bundle.workspace.billing = Some(Billing { prices: [].into(), ..billing(None) });
    }),
];

/// A host that keeps a call until it is let go.
fn keeper(fleet: &Fleet) -> (TestHost, Arc<AtomicUsize>, Arc<AtomicBool>) {
    let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (workspace, name) = project();
    let (count, open) = (Arc::clone(&asked), Arc::clone(&go));
    let host = TestHost::start(&fleet.broker, workspace, name, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let until = Instant::now() + BOUND;
        while !open.swap(false, Ordering::SeqCst) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let colour = json!({"colour": "blue"});
        Doing::Answer(HostOutcome::Ok(colour.as_object().cloned().unwrap_or_default()))
    });
    (host, asked, go)
}

/// CG-092, CG-161
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_whose_agent_person_or_money_is_taken_away_ends_with_the_reason() -> Result<()> {
    let mut fleet = fleet().await?;
    let (_host, asked, go) = keeper(&fleet);
    for (number, (expected, message, taken)) in CHANGES.into_iter().enumerate() {
        told(&fleet, None).await?;
        let client = ada(&fleet)?;
        let started = wait_until("a run is started", BOUND, || async {
            let started = client.agents().start("worker", AgentStartOptions::new("look up")).await;
            Ok::<_, anyhow::Error>(started.ok())
        });
        let run = started.await?.run_id;
        wait_until("the host is asked", BOUND, || async {
            Ok::<_, anyhow::Error>((asked.load(Ordering::SeqCst) > number).then_some(()))
        })
        .await?;
        change(&mut fleet, taken).await?;
        go.store(true, Ordering::SeqCst);
        let state = ended(&client, &run).await?;
        let error = state.error.clone().context("no error")?;
        assert_eq!((state.status.as_str(), error.code.as_str()), ("FAILED", expected));
        assert_eq!(error.message, message);
        change(&mut fleet, |_| ()).await?;
    }
    fleet.remove().await
}

/// CG-092
#[tokio::test]
async fn an_agent_whose_model_nobody_provides_and_a_run_without_a_task_end_with_the_reason()
-> Result<()> {
    let fleet = fleet().await?;
    let lost = "apiVersion: runfleet/v1\nkind: Agent\nmetadata: {name: lost}\nspec: {model: nowhere/one}\n";
    fleet.apply_documents("lost", lost).await?;
    let client = ada(&fleet)?;
    let started = wait_until("the agent is known", BOUND, || async {
        let started = client.agents().start("lost", AgentStartOptions::new("say hello")).await;
        Ok::<_, anyhow::Error>(started.ok())
    });
    let state = ended(&client, &started.await?.run_id).await?;
    let sentence = "The definition of the agent or something that it needs could not be loaded.";
    let error = state.error.context("no error")?;
    assert_eq!((error.code.as_str(), error.message.as_str()), ("CONFIG_LOAD_FAILED", sentence));

    // A run whose stored input nobody can read is a fault of ours.
    let (workspace, shop) = project();
    let agent = name("worker");
    let run_id = RunId::new(
        runfleet_domain::RunKind::Agent,
        runfleet_domain::Shard::of_workspace(workspace.as_str()),
        ulid::Ulid::generate(),
    );
    let claims = fleet.claims();
    let start = runfleet_store::StartRun {
        run_id,
        workspace: &workspace,
        project: &shop,
        lane: runfleet_domain::Lane::Interactive,
        message_id: &"unreadable".parse()?,
        key: None,
        identity: &claims.identity(),
        target: &agent,
        target_version: 1,
        execution: &claims.execution,
        calls_budget: None,
        calls_limit: None,
        batch: false,
        day_limit: 1_000,
        verdict: runfleet_store::Verdict::Accept,
        user: None,
        hops: 9,
        depth: 1,
        chain: 0,
        instance_name: None,
        input: Some("{}"),
        outcome: None,
        deadline_ms: None,
        recipient: None,
        traceparent: None,
    };
    fleet.store.start_run(&start).await?;
    let wake = runfleet_worker::effects::begin(run_id, None, start.lane, None)?;
    runfleet_worker::effects::publish(&fleet.broker.publisher(), wake).await?;
    let state = ended(&fleet.client()?, &run_id.to_string()).await?;
    let error = state.error.context("no error")?;
    assert_eq!(error.code, "INTERNAL_ERROR");
    assert_eq!(error.message, "The run failed because of an internal error.");
    fleet.remove().await
}

#[tokio::test]
async fn a_tool_that_is_taken_away_is_not_offered_to_runs_that_begin_later() -> Result<()> {
    let mut fleet = fleet().await?;
    let none = |bundle: &mut Bundle| {
        bundle.people.get_mut(&name("ada")).unwrap().may_start_processes =
            Grant::Only(BTreeSet::new());
    };
    change(&mut fleet, none).await?;
    let client = ada(&fleet)?;
    let started = client.agents().start("worker", AgentStartOptions::new("decide")).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("I may not."), None));
    fleet.remove().await
}

#[tokio::test]
async fn an_agent_starts_a_process_that_it_does_not_wait_for() -> Result<()> {
    let fleet = fleet().await?;
    let client = ada(&fleet)?;
    let started = client.agents().start("worker", AgentStartOptions::new("start it and go on"));
    let run: RunId = started.await?.run_id.parse()?;
    let state = ended(&client, &run.to_string()).await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("It is on its way."), None));
    let started = runfleet_store::StartChild {
        parent: run,
        instance: 1_001,
        attempt: 1,
        fence: None,
        detached: true,
        kind: runfleet_domain::RunKind::Process,
        workspace: &name("demo"),
        project: &name("shop"),
        lane: runfleet_domain::Lane::Interactive,
        identity: "",
        target: &name("approve-discount"),
        target_version: 1,
        execution: &name("x"),
        user: None,
        hops: 0,
        depth: 0,
        chain: 0,
        instance_name: None,
        input: None,
        deadline_ms: None,
        asks_in: None,
        traceparent: None,
    }
    .run_id();
    wait_until("the Process has ended", BOUND, || async {
        let record = fleet.store.load_run(started).await?.context("no such run")?;
        anyhow::ensure!(record.parent.is_none() && record.user == Some(name("ada")));
        Ok((record.state == RunState::Completed).then_some(()))
    })
    .await?;
    fleet.remove().await
}

#[tokio::test]
async fn two_runners_with_one_message_ask_the_model_once() -> Result<()> {
    let mut fleet = fleet().await?;
    fleet.spawn("agent-runner.2", None)?;
    fleet.ready("agent-runner.2").await?;
    let client = fleet.client()?;
    let options = AgentStartOptions::new("think for a while");
    let run: RunId = client.agents().start("worker", options).await?.run_id.parse()?;
    wait_until("the model is asked", BOUND, || async {
        let run = fleet.store.load_run(run).await?.context("no run")?;
        Ok((run.position.is_some() && fleet.depth("agent-runner.turns").await? == 0).then_some(()))
    })
    .await?;
    // Copies as a lost confirm makes them; some reach the other runner.
    let record = fleet.store.load_run(run).await?.context("no run")?;
    let turn = runfleet_contracts::AgentTurn {
        run_id: run,
        turn: 1,
        attempt: 1,
        deadline: record.deadline_ms.context("no deadline")?,
    };
    for _ in 0..6 {
        let copy = runfleet_worker::effects::turn(&turn, record.lane, None)?;
        runfleet_worker::effects::publish(&fleet.broker.publisher(), copy).await?;
    }
    let state = ended(&client, &run.to_string()).await?;
    assert_eq!(state.text.as_deref(), Some("I have thought."));
    let series = "runfleet_agent_model_call_seconds_count{result=\"answered\"}";
    let asked = [
        fleet.metric("agent-runner", series).await?,
        fleet.metric("agent-runner.2", series).await?,
    ];
    assert!((asked.iter().sum::<f64>() - 1.0).abs() < 0.1, "{asked:?}");
    fleet.remove().await
}
