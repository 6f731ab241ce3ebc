//! Turns of conversations whose runner dies while a person is asked.

use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Context as _, Result, ensure};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::HostOutcome;
use runfleet_contracts::agents::DeliverTo;
use runfleet_contracts::chat::{ChatAuthor, ChatDecide, ChatDecision, ChatPage, ChatRead};
use runfleet_testkit::{Doing, TestHost, wait_until};
use runfleet_tests::{BOUND, Fleet, Options, ended, project};
use serde_json::json;

/// An agent that asks a clerk, who has a tool that asks.
const DOCUMENTS: &str = r"
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {name: talking}
spec: {kind: scripted, script: turns.yaml, models: [talking/one]}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: offer}
spec: {description: Sends an offer., project: {project: shop, function: offer}, permission: ASK,
  inputSchema: {type: object, properties: {amount: {type: number}}, required: [amount]}}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: ask-clerk}
spec: {description: Asks the clerk., agent: clerk, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: clerk}
spec: {model: talking/one, tools: [offer]}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: seller}
spec: {model: talking/one, tools: [ask-clerk]}
";

fn ada(fleet: &Fleet) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.user = Some("ada".parse()?);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

async fn page(fleet: &Fleet, id: &str) -> Result<ChatPage> {
    let conversation_id = id.to_owned();
    let read = ChatRead { conversation_id, before: None, limit: None, mark_read: None };
    Ok(ada(fleet)?.chat().read(&read).await?)
}

/// NB-23, NB-24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runner_killed_once_a_person_is_asked_about_a_call_of_an_asked_agent_makes_it_once()
-> Result<()> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let options = Options {
        settings: vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)],
        fail_at: Some(("agent-runner", "agent.held_shown@1".to_owned())),
        without: vec!["process-runner"],
        ..Options::default()
    };
    let mut fleet = Fleet::start(options).await?;
    fleet.apply_documents("talk", DOCUMENTS).await?;
    let (workspace, name) = project();
    let host = TestHost::start(&fleet.broker, workspace, name, |_| {
        let found = json!({"status": "success", "content": {"said": "It was sent."}});
        Doing::Answer(HostOutcome::Ok(found.as_object().cloned().unwrap_or_default()))
    });
    let to = DeliverTo { personnel_id: "ada".into(), conversation: None, title: None };
    let options = AgentStartOptions::new("write to her").deliver_to(to);
    let client = fleet.client()?;
    let run = client.agents().start("seller", options).await?.run_id;
    let delivery = ended(&client, &run).await?.delivery.context("a delivery")?;
    let id = delivery.conversation_id.context("a conversation")?;

    ada(&fleet)?.chat().reply(id.as_str(), "let the clerk do it").await?;
    let status = fleet.ended("agent-runner").await?;
    ensure!(status.signal() == Some(9), "the runner was to be killed: {status}");
    let held = page(&fleet, &id).await?.held.pop().context("the person sees no call")?;
    fleet.spawn("agent-runner", None)?;
    let decide = ChatDecide {
        conversation_id: id.clone(),
        run_id: held.run_id,
        call_id: held.call_id,
        decision: ChatDecision::Approve,
        args: None,
        message: None,
    };
    ada(&fleet)?.chat().decide(&decide).await?;
    let page = wait_until("the agent has answered", BOUND, || async {
        let page = page(&fleet, &id).await?;
        Ok(page.conversation.active_run_id.is_none().then_some(page))
    })
    .await?;
    let last = page.messages.last().context("a message")?;
    ensure!(last.from == ChatAuthor::Agent && last.text == "The clerk has sent it.", "{last:?}");
    ensure!(page.held.is_empty() && host.requests().len() == 1);
    fleet.remove().await
}
