//! Tasks of Processes that agents carry out, through real workers, with a model that plays a script.

use anyhow::{Context as _, Result};
use runfleet_client::Message;
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_flow::Doing;
use runfleet_store::RunRecord;
use runfleet_testkit::wait_until;
use runfleet_tests::drawn::{bpmn, script, variables};
use runfleet_tests::processes::{record, standing, started};
use runfleet_tests::{AGENTS, BOUND, Fleet, Options};
use serde_json::{Value, json};

use crate::processes::{jobs, outcome};

/// Waits for a message.
const WAITS: &str = r#"<intermediateCatchEvent id="w"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>"#;

const ENDS: &str = r#"<startEvent id="s"/><endEvent id="e"/>"#;

/// A Process that asks an agent and answers with what it said, unless `event` happens before that. The flows from there to `c`,
/// which gives another answer, are given.
fn asks(id: &str, event: &str, flows: &str, roots: &str) -> String {
    let elements = format!(
        r#"{ENDS}<serviceTask id="t"><extensionElements><zeebe:taskDefinition type="runfleet:agent"/>
        <zeebe:taskHeaders><zeebe:header key="resultVariable" value="said"/>
        <zeebe:header key="resultSchema" value="{{&quot;type&quot;: &quot;object&quot;, &quot;properties&quot;:
        {{&quot;score&quot;: {{&quot;type&quot;: &quot;integer&quot;}}}}, &quot;additionalProperties&quot;: false, &quot;required&quot;: [&quot;score&quot;]}}"/></zeebe:taskHeaders>
        <zeebe:ioMapping><zeebe:input source="=ask" target="instruction"/><zeebe:input source="=agent" target="agentId"/>
        </zeebe:ioMapping></extensionElements></serviceTask>{}
        <boundaryEvent id="b" attachedToRef="t">{event}</boundaryEvent>{}{}"#,
        script("n", "said.result.score"),
        script("c", r#""otherwise""#),
        if flows.contains('w') { WAITS } else { "" },
    );
    let flows = format!("s -> t, t -> n, n -> e, {flows}, c -> e");
    bpmn(id, &variables(&["ask", "agent"]), &elements, &flows, roots)
}

/// The same, where the agent's failure of this code is caught.
fn catches(id: &str, code: &str) -> String {
    let root = format!(r#"<error id="x" errorCode="{code}"/>"#);
    asks(id, r#"<errorEventDefinition errorRef="x"/>"#, "b -> c", &root)
}

async fn fleet(fail_at: Option<(&'static str, String)>) -> Result<Fleet> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, fail_at, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    fleet.apply_process("ask", &catches("ask", "LLM_HTTP_ERROR")).await?;
    Ok(fleet)
}

fn completed(answer: &Value) -> (String, Value) {
    ("COMPLETED".to_owned(), json!({"answer": answer}))
}

/// The run that a Process waits for.
async fn child(fleet: &Fleet, process: RunId) -> Result<RunRecord> {
    let child = wait_until("the run of the agent is there", BOUND, || async {
        let children = fleet.store.open_children(process, 10).await?;
        Ok::<_, anyhow::Error>(children.first().copied())
    });
    record(fleet, child.await?.run_id).await
}

#[tokio::test]
async fn a_process_asks_an_agent_and_goes_on_with_its_result_or_catches_its_failure() -> Result<()>
{
    let fleet = fleet(None).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let ask = json!({"ask": "give a score", "agent": "worker"});
    let run = started(&client, "ask", &ask).await?;
    assert_eq!(outcome(&jobs, run).await?, completed(&json!(7)));
    let refused = json!({"ask": "refused", "agent": "worker"});
    let run = started(&client, "ask", &refused).await?;
    assert_eq!(outcome(&jobs, run).await?, completed(&json!("otherwise")));
    fleet.remove().await
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_an_incident_with_the_reason() -> Result<()> {
    let fleet = fleet(None).await?;
    let client = fleet.client()?;
    for (input, expected) in [
        (json!({"ask": "give a score", "agent": "nobody"}), "AGENT_NOT_FOUND"),
        (json!({"ask": "  ", "agent": "worker"}), "INPUT_INVALID"),
        (json!({"ask": "give a score", "agent": "a b"}), "INPUT_INVALID"),
    ] {
        let run = started(&client, "ask", &input).await?;
        let code = |doing: &Doing| match doing {
            Doing::Incident { code, .. } => Some(code.clone()),
            _ => None,
        };
        let view = standing(&fleet, run, |view| {
            view.active.iter().any(|active| code(&active.doing).is_some())
        });
        let view = view.await?;
        let found = view.active.iter().find_map(|active| code(&active.doing));
        assert_eq!(found.as_deref(), Some(expected), "{input}");
    }
    fleet.remove().await
}

/// CG-092
#[tokio::test]
async fn a_run_of_an_agent_that_its_process_wants_no_more_ends() -> Result<()> {
    let fleet = fleet(None).await?;
    let timer = "<timerEventDefinition><timeDuration>PT2S</timeDuration></timerEventDefinition>";
    fleet
        .apply_process(
            "patience",
            &asks("patience", timer, "b -> w, w -> c", r#"<message id="m" name="go"/>"#),
        )
        .await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "patience", &json!({"ask": "hang", "agent": "worker"})).await?;
    let process = record(&fleet, run).await?;
    let agent = child(&fleet, run).await?;
    assert_eq!((agent.id.kind(), agent.parent.context("no parent")?.run_id), (RunKind::Agent, run));
    assert_eq!((agent.hops, agent.depth), (process.hops - 1, process.depth + 1));
    assert_eq!((&agent.identity, &agent.user), (&process.identity, &process.user));
    wait_until("the run of the agent has ended", BOUND, || async {
        let state = record(&fleet, agent.id).await?.state;
        Ok((state == RunState::TimedOut).then_some(()))
    })
    .await?;
    let state = client.agents().get(&agent.id.to_string()).await?;
    let error = state.error.context("no error")?;
    assert_eq!((state.status.as_str(), error.code.as_str()), ("TIMEOUT", "CALLER_TIMEOUT"));
    assert_eq!(error.message, "The caller no longer waits for the run.");
    client.processes().message(Message::new("go")).await?;
    assert_eq!(outcome(&jobs, run).await?, completed(&json!("otherwise")));
    fleet.remove().await
}

#[tokio::test]
async fn a_process_runner_that_dies_beside_an_agent_task_asks_the_agent_once() -> Result<()> {
    for point in ["process.checkpointed@1", "process.child_started@1"] {
        let mut fleet = fleet(Some(("process-runner", point.to_owned()))).await?;
        let (jobs, client) = (jobs(&fleet), fleet.client()?);
        let ask = json!({"ask": "give a score", "agent": "worker"});
        let run = started(&client, "ask", &ask).await?;
        fleet.ended("process-runner").await?;
        fleet.spawn("process-runner", None)?;
        assert_eq!(outcome(&jobs, run).await?, completed(&json!(7)), "{point}");
        // One turn that does not fit the schema, and one that does.
        let series = "runfleet_agent_model_call_seconds_count{result=\"answered\"}";
        let asked = fleet.metric("agent-runner", series).await?;
        assert!((asked - 2.0).abs() < 0.1, "{point}: {asked}");
        fleet.remove().await?;
    }
    Ok(())
}
