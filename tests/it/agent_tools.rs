//! Tools of agents that others carry out: MCP servers over HTTP, and hosts of a project that tell how far they have got.

use anyhow::{Context as _, Result};
use runfleet_broker::{Outgoing, Route};
use runfleet_client::AgentStartOptions;
use runfleet_contracts::facts::Progress;
use runfleet_contracts::host::{HostAccepted, HostProgress};
use runfleet_contracts::{HostAnswer, HostOutcome, HostRequest, HostWork};
use runfleet_domain::{Lane, RunId};
use runfleet_runtime::clock::now_ms;
use runfleet_testkit::{Doing, TestHost, wait_until};
use runfleet_tests::{
    AGENTS, BOUND, BadModel, Fleet, Hearing, Options, Told, Web, WebAnswer, WebRequest, code,
    ended, project,
};
use serde_json::{Value, json};

/// What the servers want to see.
const TOKEN: &str = "canary-token-81aa";

/// A server of prices, one that is broken at `/failing`, and one that talks nonsense at `/nonsense`.
fn server(request: &WebRequest, _: usize) -> WebAnswer {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"item": {"type": "string"}}});
        json!({"name": name, "description": "About prices.", "inputSchema": schema})
    };
    match request.path.as_str() {
        "/failing" => return WebAnswer::new(500, json!("canary")),
        "/nonsense" => return WebAnswer::new(200, json!({"prices": "canary"})),
        _ => {}
    }
    let result = match request.body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "prices", "version": "1"}}),
        "tools/list" => json!({"tools": [tool("getPrice"), tool("setPrice"), tool("forgetPrice")]}),
        "tools/call" => text("2.50"),
        _ => return WebAnswer::new(202, Value::Null),
    };
    WebAnswer::new(200, json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}))
}

/// Servers of which one works, and an agent that names all of them.
fn documents(web: &Web, silent: &BadModel) -> String {
    let servers = ["prices", "failing", "nonsense", "silent"].map(|name| {
        let url = match name {
            "silent" => format!("{}/mcp", silent.url("hang")),
            name => web.url(&format!("/{name}")),
        };
        format!(
            "---\napiVersion: runfleet/v1\nkind: McpServer\nmetadata: {{name: {name}}}\n\
             spec: {{http: {{url: '{url}', headers: {{authorization: {{env: PRICES}}}}}}}}\n"
        )
    });
    servers.concat()
        + r"---
apiVersion: runfleet/v1
kind: McpServer
metadata: {name: nobody}
spec: {http: {url: 'http://127.0.0.1:1/'}}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: buyer}
spec: {model: played/one, mcpServers: [failing, nobody, nonsense, prices, silent]}
"
}

#[tokio::test]
async fn tools_of_an_mcp_server_over_http_that_begin_with_get_run_at_once_and_others_ask()
-> Result<()> {
    let web = Web::start(server).await?;
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let silent = BadModel::start().await?;
    let (name, prices) = web.allowed();
    let mut settings = vec![(name, format!("{prices},{}", silent.settings()[0].1))];
    settings.extend(
        [
            ("RUNFLEET_MODEL_SCRIPTS_DIR", scripts.as_str()),
            ("RUNFLEET_SECRET_VARIABLES", "PRICES"),
            ("PRICES", &format!("Bearer {TOKEN}")),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    fleet.apply_documents("prices", &documents(&web, &silent)).await?;
    let client = fleet.client()?;
    let options = AgentStartOptions::new("raise the price");
    let started = client.agents().start("buyer", options).await?;
    let state = ended(&client, &started.run_id).await?;
    let expected = "It is 2.50, and I may not raise it.";
    assert_eq!((state.text.as_deref(), code(&state)), (Some(expected), None));
    let requests = web.requests("/prices");
    let called = requests.iter().filter(|request| request.body["method"] == "tools/call");
    let called: Vec<_> = called.map(|request| request.body["params"].clone()).collect();
    assert_eq!(called.len(), 1, "{called:?}");
    assert_eq!(
        (&called[0]["name"], &called[0]["arguments"]),
        (&json!("getPrice"), &json!({"item": "pen"}))
    );
    let bearer = format!("Bearer {TOKEN}");
    assert!(requests.iter().all(|request| request.authorization == bearer));
    let logs = fleet.logs();
    assert!(!logs.contains(TOKEN) && !logs.contains("canary"), "{logs}");
    assert!(!silent.asked("hang").is_empty(), "the silent server was asked as well");
    for server in ["failing", "nobody", "nonsense", "silent"] {
        assert!(logs.contains(server), "nobody is told that {server} does not work");
    }
    fleet.remove().await
}

/// NB-16, NB-17, NB-40
#[tokio::test]
async fn a_host_is_told_context_arguments_and_call_and_may_tell_how_far_it_has_got() -> Result<()> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    let (workspace, name) = project();
    let silent = |_: &HostRequest| Doing::Silence;
    let host = TestHost::start(&fleet.broker, workspace.clone(), name.clone(), silent);
    let mut facts = Hearing::start(&fleet, &["agent.progress.v1.demo.shop"]).await?;
    let client = fleet.client()?;
    let started = client.agents().start("worker", AgentStartOptions::new("look up")).await?;
    let run_id: RunId = started.run_id.parse()?;
    let request = host.wait(1, BOUND).await?.pop().context("no request")?;
    assert_eq!((request.kind, request.name.as_str()), (HostWork::Tool, "look_up"));
    assert_eq!((&request.workspace, &request.project), (&workspace, &name));
    assert_eq!((request.run_id, request.attempt), (run_id, 1));
    assert_eq!(request.element_id, "call_1_1", "the id of the call in the run");
    assert_eq!(Value::Object(request.variables.clone()), json!({"what": "colour"}));
    assert!(request.deadline > now_ms());

    let (request_id, publisher) = (request.request_id, fleet.broker.publisher());
    let route = Route::AgentAnswer(Lane::Interactive);
    let accepted = HostAccepted { request_id, until: request.deadline };
    let accepted = Outgoing::message(format!("accepted:{request_id}"), &accepted)?;
    publisher.publish(&route, accepted).await?;
    // Only a host of the project is believed, and readers hear of whom it is from the run.
    let right = HostProgress::on(&request, 1, "half of it".to_owned());
    let forged = HostProgress { chunk: "forged".to_owned(), ..right.clone() };
    let nobody = HostProgress { workspace: None, project: None, ..forged.clone() };
    let other = HostProgress { project: Some("other".parse()?), ..forged };
    for (number, progress) in [nobody, other, right].iter().enumerate() {
        let progress = Outgoing::message(format!("progress:{request_id}:{number}"), progress)?;
        publisher.publish(&route, progress).await?;
        wait_until("it was looked at", BOUND, || async {
            Ok((fleet.depth("agent-runner.interactive").await? == 0).then_some(()))
        })
        .await?;
    }
    let is_written = |told: &Told| matches!(told, Told::Progress(told) if matches!(told.doing, Progress::Writing { .. }));
    let told = facts.until("what a tool writes", is_written).await?.pop().context("a fact")?;
    let Told::Progress(told) = told else { panic!("{told:?}") };
    let (call_id, tool) = ("call_1_1".to_owned(), "look-up".to_owned());
    let doing = Progress::Writing { call_id, tool, seq: Some(1), text: "half of it".to_owned() };
    assert_eq!((told.run_id, told.turn, told.doing), (run_id, 1, doing));
    assert_eq!((told.workspace, told.project, told.agent.as_str()), (workspace, name, "worker"));

    let found = json!({"status": "success", "content": {"colour": "blue"}});
    let found = HostOutcome::Ok(found.as_object().cloned().unwrap_or_default());
    let answer = HostAnswer::to(&request, found);
    publisher.publish(&route, Outgoing::message(format!("answer:{request_id}"), &answer)?).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!((state.text.as_deref(), code(&state)), (Some("It is blue."), None));
    assert_eq!(host.requests().len(), 1);
    assert_eq!(fleet.depth("dead.agent-runner.interactive").await?, 0, "nothing is put aside");
    fleet.remove().await
}
