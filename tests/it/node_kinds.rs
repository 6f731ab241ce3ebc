//! Every kind of code of a TypeScript project beside real workers: as what it runs, on a developer's machine, and after its host
//! was killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_client::{AgentStartOptions, CallKind, Client, Job, ProcessStartOptions};
use runfleet_contracts::agents::AgentRunState;
use runfleet_contracts::claims::Source;
use runfleet_domain::{JobId, Name};
use runfleet_store::{JobRecord, JobState};
use runfleet_testkit::wait_until;
use runfleet_tests::drawn::{bpmn, task, variables};
use runfleet_tests::{BOUND, Fleet, NodeHost, Options, ended};
use serde_json::{Value, json};
use tempfile::TempDir;

const AGENTS: &str = r"
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {name: kinds}
spec: {kind: scripted, script: kinds.yaml, models: [kinds/one]}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: caller}
spec: {model: kinds/one, tools: [askModel, hold]}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: writer}
spec: {model: kinds/one, systemPrompt: '{{system}} {{conversation}}'}
";

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// A fleet with the agents, of which `writer` answers model calls of code.
async fn fleet() -> Result<Fleet> {
    let scripts = scripts().display().to_string();
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("kinds", AGENTS).await?;
    let writer: Name = "writer".parse()?;
    fleet.apply_changed(|project| project.model_agents = vec![writer.clone()]).await?;
    Ok(fleet)
}

fn kinds() -> PathBuf {
    scripts().join("kinds")
}

/// A client of one fresh execution on Ada's behalf.
fn ada(fleet: &Fleet) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = Source::Script;
    claims.user = Some("ada".parse()?);
    Ok(Client::new(&fleet.broker, fleet.token(&claims)?).deadline(Duration::from_secs(35)))
}

async fn job(fleet: &Fleet, id: &str) -> Result<JobRecord> {
    fleet.store.load_job(id.parse()?).await?.context("no such job")
}

/// CG-001, CG-002, CG-003, CG-170, CG-171, CG-172, CG-238, NB-17
#[tokio::test]
async fn code_of_every_kind_runs_as_what_it_is_in_the_host_and_on_a_developers_machine()
-> Result<()> {
    let fleet = fleet().await?;
    let mut host = NodeHost::start(&fleet, &kinds()).await?;
    routes_triggers_and_actions(&fleet, &mut host).await?;
    a_tool_of_another_package(&fleet, &host).await?;
    // Jobs that a session enqueues are declared by the version that is active.
    a_session_of_development(&fleet).await?;
    assert!(host.stop().await?.success());
    fleet.remove().await
}

/// Each has its own source: what it enqueues says so, and what it may not do is refused.
async fn routes_triggers_and_actions(fleet: &Fleet, host: &mut NodeHost) -> Result<()> {
    let client = ada(fleet)?;
    let call = async |kind, name: &str, input: Value| {
        client.projects().invoke(kind, name, &input, None).await.with_context(|| name.to_owned())
    };
    let asked = json!({"params": {"deal": "7"}, "body": {"amount": 5}});
    let answer = call(CallKind::Route, "POST/deals/deal", asked).await?;
    assert_eq!(answer["status"], 202, "{answer}");
    let body = &answer["body"];
    assert_eq!(
        (&body["deal"], &body["amount"], &body["as"]),
        (&json!("7"), &json!(5), &json!("ada"))
    );
    let by_route = body["job"].as_str().context("no job")?.to_owned();

    let record = json!({"id": "7", "old": {"stage": "open"}, "new": {"stage": "won"}});
    let change = json!({"operation": "update", "changeId": "c1", "records": [record]});
    call(CallKind::Trigger, "deal_changed", change.clone()).await?;
    let checked = call(CallKind::Trigger, "deal_checked", change).await?;
    let refused = json!({"field": null, "code": "TRIGGER_READ_ONLY"});
    assert_eq!(checked["records"][0]["errors"], json!(vec![refused; 4]));
    let looked = call(CallKind::Action, "look", json!({"deal": "7"})).await?;
    assert_eq!(looked, json!({"refused": "READ_ONLY", "amount": 18_500}));
    let noted = call(CallKind::Action, "note", json!({})).await?;
    let by_action = noted["job"].as_str().context("no job")?.to_owned();

    let ids = host.handled("job:noted", 3).await?;
    let mut by = BTreeSet::new();
    for id in &ids {
        let record = job(fleet, id).await?;
        assert_eq!(record.user.map(|user| user.to_string()).as_deref(), Some("ada"));
        by.insert(record.enqueued_by);
    }
    assert_eq!(by, ["http", "rpc", "trigger:deal_changed"].map(str::to_owned).into());
    assert_eq!(job(fleet, &by_route).await?.enqueued_by, "http");
    assert_eq!(job(fleet, &by_action).await?.enqueued_by, "rpc");
    // The Process that the trigger has started ends in a job of the project.
    assert_eq!(host.handled("job:decided", 1).await?.len(), 1);
    // The command line calls the same, each as what it is.
    for (kind, name, input) in [
        ("route", "POST/deals/deal", r#"{"params": {"deal": "7"}, "body": {"amount": 5}}"#),
        (
            "trigger",
            "deal_changed",
            r#"{"operation": "update", "changeId": "c2", "records": [{"new": {}}]}"#,
        ),
        ("action", "look", r#"{"deal": "7"}"#),
    ] {
        let words =
            [kind, "run", name, "--input", input, "--workspace", "demo", "--project", "shop"];
        let said: Value = serde_json::from_str(&fleet.said(&words).await?)?;
        assert!(said.is_object(), "{kind}: {said}");
    }
    Ok(())
}

/// It asks the model of its conversation, and reads a record.
async fn a_tool_of_another_package(fleet: &Fleet, host: &NodeHost) -> Result<()> {
    let client = ada(fleet)?;
    let started = client.agents().start("caller", AgentStartOptions::new("ask a model")).await?;
    let state = ended(&client, &started.run_id).await?;
    let told = host.lines(|_| true);
    assert_eq!(state.text.as_deref(), Some("The model says hello."), "{state:?} {told:#?}");
    let printed: Vec<Value> = host
        .lines(|line| line["from"] == "console")
        .iter()
        .filter_map(|line| serde_json::from_str(line["message"].as_str()?).ok())
        .collect();
    let expected = json!({
        "sessionId": started.run_id, "model": {"model": "kinds/one"}, "webSearch": false,
        "messages": [{"role": "user", "content": "ask a model"}], "user": "ada", "amount": 18_500,
    });
    assert_eq!(printed, [expected]);
    Ok(())
}

/// What it starts is real, also a message to a person; an outcome job is refused, and one that only reads starts nothing.
async fn a_session_of_development(fleet: &Fleet) -> Result<()> {
    let (printed, code) = NodeHost::dev(fleet, &kinds(), &["script", "develop"]).await?;
    assert_eq!(code, Some(0), "{printed}");
    let told: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
    assert_eq!(told["refused"], json!(["NOT_SUPPORTED", "NOT_SUPPORTED"]));
    let id = |name: &str| told[name].as_str().map(str::to_owned).context("no id");

    let client = ada(fleet)?;
    let run = ended(&client, &id("agent")?).await?;
    let delivery = run.delivery.context("nothing is said of the message")?;
    assert_eq!((run.text.as_deref(), delivery.status.as_str()), (Some("Told."), "SENT"));
    let listed = client.chat().list(None, None).await?;
    let conversations: Vec<_> =
        listed.conversations.iter().map(|one| &one.conversation.conversation_id).collect();
    assert_eq!(conversations, [&delivery.conversation_id.context("no conversation")?]);
    assert_eq!(job(fleet, &id("job")?).await?.enqueued_by, "development");
    let over = async || Ok(client.processes().get(&id("process")?).await?.finished_at.map(drop));
    wait_until("the Process has ended", BOUND, over).await?;

    let (printed, code) =
        NodeHost::dev(fleet, &kinds(), &["script", "develop", "--read-only"]).await?;
    assert_eq!((printed.as_str(), code), ("", Some(1)));
    Ok(())
}

/// The code in a folder of its own, where what waits can be held up.
fn copied_kinds() -> Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("runfleet-kinds.").tempdir()?;
    for file in ["src/main.ts", "ai/tools/hold/index.ts"] {
        let to = dir.path().join(file);
        std::fs::create_dir_all(to.parent().context("a folder")?)?;
        std::fs::copy(kinds().join(file), to)?;
    }
    Ok(dir)
}

/// CG-110, CG-233
#[tokio::test]
async fn a_host_that_is_killed_leaves_its_call_tool_task_and_job_to_the_next_one() -> Result<()> {
    let fleet = fleet().await?;
    let work = bpmn(
        "work",
        &variables(&["hold", "by"]),
        &format!(r#"<startEvent id="s"/><endEvent id="e"/>{}"#, task("t", "wait", 1, "")),
        "s -> t, t -> e",
        "",
    );
    fleet.apply_process("work", &work).await?;
    let project = copied_kinds()?;
    let hold = project.path().join("hold");
    std::fs::write(&hold, "")?;
    let held = hold.display().to_string();
    let mut first = NodeHost::start(&fleet, project.path()).await?;

    let client = ada(&fleet)?;
    let caller = ada(&fleet)?;
    let input = json!({"hold": &held, "by": "call"});
    let calling = tokio::spawn(async move {
        caller.projects().invoke(CallKind::Script, "wait", &input, None).await
    });
    let input = json!({"hold": &held, "by": "task"});
    let options = ProcessStartOptions::default().input(&input)?;
    let process = client.processes().start("work", options).await?;
    let agent = client.agents().start("caller", AgentStartOptions::new("hold on")).await?;
    let enqueued = Job::new("wait").payload(&json!({"hold": &held}))?;
    let run: JobId = client.jobs().enqueue(enqueued).await?.run_id.parse()?;
    let begun = |line: &Value| line["message"] == "begun";
    let by: BTreeSet<_> = first
        .wait("a call, a tool, a task and a job that have begun", 4, begun)
        .await?
        .iter()
        .map(|line| line["fields"].to_string())
        .collect();
    assert_eq!(by.len(), 4, "{by:?}");

    // A call goes to another host of the version that is there already; everything else would wait for one.
    let mut next = NodeHost::start(&fleet, project.path()).await?;
    first.kill()?;
    std::fs::remove_file(&hold)?;
    assert_eq!(calling.await??, json!({"answer": "held for call"}));
    let state: AgentRunState = ended(&client, &agent.run_id).await?;
    assert_eq!(state.text.as_deref(), Some("It was held."));
    let over = async || {
        let state = client.processes().get(&process.instance_id).await?;
        Ok(state.finished_at.map(|_| state.state))
    };
    assert_eq!(wait_until("the Process has ended", BOUND, over).await?, "COMPLETED");
    let over = async || {
        let job = fleet.store.load_job(run).await?.context("no such job")?;
        Ok(job.state.is_final().then_some(job))
    };
    let record = wait_until("the job has ended", BOUND, over).await?;
    assert_eq!((record.state, record.attempt), (JobState::Succeeded, 1));
    // The jobs that the call and the task have enqueued wait for nothing: the first host may have had time for them.
    let held =
        |line: &Value| line["message"] == "a handler has ended" && line["unit"] != "job:noted";
    assert_eq!(first.lines(held), Vec::<Value>::new());
    assert_eq!(next.handled("job:wait", 1).await?, [run.to_string()]);
    assert_eq!(next.handled("script:wait", 2).await?.len(), 2);
    assert_eq!(next.handled("tool:hold", 1).await?.len(), 1);
    // Both executions of the call and of the task have enqueued a job under one key, with the token that came with them.
    let (workspace, name) = runfleet_tests::project();
    let page = fleet.store.list_jobs(&workspace, &name, 20).await?;
    let noted: Vec<_> = page.jobs.iter().filter(|job| job.job.as_str() == "noted").collect();
    assert_eq!(noted.len(), 2, "{noted:?}");
    for queue in ["jobs.demo.shop", "tasks.demo.shop"] {
        let empty = || async { Ok((fleet.depth(queue).await? == 0).then_some(())) };
        wait_until("an empty queue", BOUND, empty).await?;
    }
    assert!(next.stop().await?.success());
    fleet.remove().await
}
