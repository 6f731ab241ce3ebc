//! Agent runs from start to end over the public path, with a model that plays a script.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runfleet_client::AgentStartOptions;
use runfleet_contracts::agents::{AgentRecord, AgentRunState};
use runfleet_contracts::{HostOutcome, HostWork};
use runfleet_domain::{RunId, RunState};
use runfleet_store::End;
use runfleet_testkit::wait_until;
use runfleet_testkit::{Doing, TestHost};
use runfleet_tests::{AGENTS, BOUND, Fleet, Jobs, Options, code, ended, project};
use serde_json::{Value, json};

/// A fleet whose agents are played by `tests/scripts`.
pub(crate) async fn fleet() -> Result<Fleet> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    Ok(fleet)
}

/// Starts the worker agent and waits for its end.
async fn done(fleet: &Fleet, instruction: &str) -> Result<AgentRunState> {
    let client = fleet.client()?;
    let started = client.agents().start("worker", AgentStartOptions::new(instruction)).await?;
    ended(&client, &started.run_id).await
}

/// CG-053, CG-090, CG-091, CG-100, CG-101, CG-104, CG-111
#[tokio::test]
async fn an_agent_answers_and_its_job_gets_text_usage_and_what_the_start_said() -> Result<()> {
    let fleet = fleet().await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let client = fleet.client()?;
    let options =
        AgentStartOptions::new("say hello").on_result("deal_coached", &json!({"deal": 7}))?;
    let started = client.agents().start("worker", options).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.status.as_str(), code(&state)), ("COMPLETED", None));
    assert_eq!(state.text.as_deref(), Some("Hello."));
    assert!(state.result.is_none() && state.delivery.is_none());

    let run_id: RunId = started.run_id.parse()?;
    let job = jobs.wait(run_id.outcome_job(), BOUND).await?;
    let payload: Value = serde_json::from_str(job.payload.get())?;
    assert_eq!(payload["payload"], json!({"deal": 7}));
    let run = &payload["agentRun"];
    assert_eq!((&run["runId"], &run["status"]), (&json!(started.run_id), &json!("COMPLETED")));
    assert_eq!((&run["text"], &run["result"]), (&json!("Hello."), &Value::Null));
    let usage = &run["usage"];
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(11), &json!(3)));
    assert_eq!(usage["iterations"], 1);
    assert!(usage["durationMs"].is_u64(), "{usage}");
    assert_eq!(job.enqueued_by, format!("agent:{run_id}"));
    fleet.remove().await
}

/// CG-057, CG-091
#[tokio::test]
async fn a_result_that_does_not_fit_is_put_right_by_the_agent() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}},
        "required": ["score"], "additionalProperties": false});
    let options = AgentStartOptions::new("give a score").result_schema(&schema)?;
    let started = client.agents().start("worker", options).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.status.as_str(), code(&state)), ("COMPLETED", None));
    assert_eq!(state.result.context("no result")?.get(), r#"{"score":7}"#);
    fleet.remove().await
}

/// CG-092, CG-093
#[tokio::test]
async fn failures_of_a_model_end_a_run_with_a_fixed_sentence_or_are_waited_out() -> Result<()> {
    let fleet = fleet().await?;
    let state = done(&fleet, "refused").await?;
    let error = state.error.context("no error")?;
    assert_eq!((state.status.as_str(), error.code.as_str()), ("FAILED", "LLM_HTTP_ERROR"));
    assert_eq!(error.message, "The model provider answered with an error.");
    let state = done(&fleet, "flaky").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("At last."), None));
    fleet.remove().await
}

#[tokio::test]
async fn tools_are_carried_out_and_what_is_wrong_with_a_call_is_told_to_the_model() -> Result<()> {
    let fleet = fleet().await?;
    let state = done(&fleet, "use tools").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("It is done."), None));
    let done = "runfleet_agent_tool_calls_total{result=\"done\"}";
    assert!((fleet.metric("agent-runner", done).await? - 2.0).abs() < 0.1);
    fleet.remove().await
}

#[tokio::test]
async fn an_agent_starts_a_process_and_another_agent_and_waits_for_them() -> Result<()> {
    let fleet = fleet().await?;
    let state = done(&fleet, "decide").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("Approved."), None));
    let state = done(&fleet, "ask the helper").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("The helper says hello."), None));
    fleet.remove().await
}

#[tokio::test]
async fn a_host_of_the_project_carries_out_a_tool_and_its_answer_reaches_the_model() -> Result<()> {
    let fleet = fleet().await?;
    let (workspace, name) = project();
    let host = TestHost::start(&fleet.broker, workspace, name, |request| {
        assert_eq!((request.kind, request.name.as_str()), (HostWork::Tool, "look_up"));
        let colour = json!({"colour": "blue"});
        Doing::Answer(HostOutcome::Ok(colour.as_object().cloned().unwrap_or_default()))
    });
    let state = done(&fleet, "look up").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("It is blue."), None));
    let requests = host.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].variables["what"], "colour");
    fleet.remove().await
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_called_and_a_broken_server_takes_nothing_from_it() -> Result<()>
{
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log").display().to_string();
    let program = format!("{}/../shared/mcp/tests/server.py", env!("CARGO_MANIFEST_DIR"));
    let commands = json!({"small": {"command": "python3", "args": [program, "stdio", log]}});
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![
        ("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts),
        ("RUNFLEET_MCP_COMMANDS".to_owned(), commands.to_string()),
    ];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    let client = fleet.client()?;
    let options = AgentStartOptions::new("ask the server");
    let started = client.agents().start("connected", options).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("The server has answered."), None));
    fleet.remove().await
}

/// CG-146
#[tokio::test]
async fn agents_that_ask_each_other_nest_three_deep_and_no_deeper() -> Result<()> {
    let fleet = fleet().await?;
    let state = done(&fleet, "nest").await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("Deep enough."), None));
    let ended = "runfleet_agent_runs_ended_total{state=\"COMPLETED\"}";
    assert!((fleet.metric("agent-runner", ended).await? - 3.0).abs() < 0.1);
    fleet.remove().await
}

#[tokio::test]
async fn a_run_that_ends_during_a_model_call_drops_the_call_within_a_second() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let started = client.agents().start("worker", AgentStartOptions::new("hang")).await?;
    let run_id: RunId = started.run_id.parse()?;
    wait_until("the model is asked", BOUND, || async {
        let run = fleet.store.load_run(run_id).await?.context("no run")?;
        let ready = fleet.depth("agent-runner.turns").await?;
        Ok((run.position.is_some() && ready == 0).then_some(()))
    })
    .await?;
    fleet.store.end_run(run_id, &End::plain(RunState::Canceled)).await?;
    let began = Instant::now();
    let series = "runfleet_agent_model_call_seconds_count{result=\"cancelled\"}";
    wait_until("the call is dropped", BOUND, || async {
        Ok((fleet.metric("agent-runner", series).await? > 0.5).then_some(()))
    })
    .await?;
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.status.as_str(), code(&state)), ("CANCELLED", Some("CANCELLED")));
    fleet.remove().await
}

/// CG-092
#[tokio::test]
async fn a_run_whose_model_hangs_ends_with_its_time() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    let options = AgentStartOptions::new("hang").timeout_seconds(10);
    let started = client.agents().start("worker", options).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.status.as_str(), code(&state)), ("TIMEOUT", Some("TIMEOUT")));
    fleet.remove().await
}

#[tokio::test]
async fn the_example_agent_sees_its_records_and_starts_the_example_process() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let client = fleet.client()?;
    let record =
        AgentRecord { object_slug: "deal".into(), record_id: "7".into(), with_activities: true };
    let options = AgentStartOptions::new("May we give a discount?").records(vec![record]);
    let started = client.agents().start("deal-coach", options).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!(code(&state), None);
    let expected = "The discount is approved. Send the customer a new offer today.";
    assert_eq!(state.text.as_deref(), Some(expected));
    fleet.remove().await
}
