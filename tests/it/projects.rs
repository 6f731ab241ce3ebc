//! Versions of projects and calls of their code, through real workers and a host that plays along.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runfleet_broker::{Management, Topology, TopologyAdmin};
use runfleet_client::{AgentStartOptions, CallKind, Client, Error, Job, ProcessStartOptions};
use runfleet_contracts::agents::AgentRunState;
use runfleet_contracts::claims::Source;
use runfleet_contracts::host_call::{CallCode, CallFailure, CallOutcome};
use runfleet_contracts::models::InvokeModel;
use runfleet_contracts::projects::{HostSeen, RegisterVersion};
use runfleet_contracts::{Claims, HostOutcome};
use runfleet_domain::Name;
use runfleet_runtime::clock::now_ms;
use runfleet_testkit::{CallHost, Called, Doing, Handling, TestHost, wait_until};
use runfleet_tests::{AGENTS, Attempt, BOUND, Ending, Fleet, JobHost, Options, project};
use serde_json::{Value, json};

/// How long it takes until a version that was activated counts everywhere.
const WITHIN: Duration = Duration::from_secs(1);

/// Far less than what is called may take, and enough for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = Source::Script;
    change(&mut claims);
    Ok(Client::new(&fleet.broker, fleet.token(&claims)?).deadline(Duration::from_secs(20)))
}

fn key(fleet: &Fleet) -> Result<Client> {
    client(fleet, |claims| claims.source = Source::Host)
}

fn declared(version: &str, more: &Value) -> Result<RegisterVersion> {
    let mut whole = more.clone();
    whole["version"] = version.into();
    Ok(serde_json::from_value(whole)?)
}

/// Registers and activates a version.
async fn active(fleet: &Fleet, version: &str, more: &Value) -> Result<()> {
    let key = key(fleet)?;
    key.projects().register(&declared(version, more)?).await?;
    key.projects().activate(version).await?;
    Ok(())
}

async fn host(
    fleet: &Fleet,
    version: &str,
    does: impl Fn(&Called) -> Handling + Send + Sync + 'static,
) -> Result<CallHost> {
    let management = Management::new(fleet.namespace.management())?;
    let admin = TopologyAdmin::new(fleet.namespace.amqp.clone(), management, Topology::standard())?;
    let (workspace, name) = project();
    let host = CallHost::start(&fleet.broker, &admin, (workspace, name, version), does).await?;
    let queue = format!("calls.demo.shop.{version}");
    let (wire, queue) = (&fleet.wire().await?, &queue);
    wait_until("the host consumes", BOUND, || async move {
        Ok((wire.consumers(queue).await? > 0).then_some(()))
    })
    .await?;
    Ok(host)
}

fn ok(value: &Value) -> Result<CallOutcome> {
    Ok(CallOutcome::Ok(serde_json::value::to_raw_value(value)?))
}

/// The code of a refusal, with its reason, resource or field.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> (String, String) {
    let error = answer.unwrap_err();
    let body = error.body().unwrap();
    let detail = ["reason", "resource", "field", "scriptErrorCode"]
        .iter()
        .find_map(|name| body.details.get(*name).and_then(Value::as_str));
    (body.code.as_str().to_owned(), detail.unwrap_or_default().to_owned())
}

fn told(code: &str, detail: &str) -> (String, String) {
    (code.to_owned(), detail.to_owned())
}

fn with_job(job: &str) -> Result<ProcessStartOptions> {
    let options = ProcessStartOptions::default().input(&json!({"amount": 120}))?;
    Ok(options.on_complete(job, &Value::Null)?)
}

async fn ended(client: &Client, run: &str) -> Result<AgentRunState> {
    wait_until("the agent has ended", BOUND, || async {
        let state = client.agents().get(run).await?;
        Ok(!matches!(state.status.as_str(), "QUEUED" | "RUNNING")).map(|over| over.then_some(state))
    })
    .await
}

/// Starts again and again with a job that no version declares any more since a moment: any worker may take it for a second.
async fn start_until_refused(script: &Client, since: Instant) -> Result<()> {
    let (mut accepted, mut refusals) = (Vec::new(), 0);
    while since.elapsed() < WITHIN * 3 / 2 {
        let sent = since.elapsed();
        let start = script.processes().start("approve-discount", with_job("discount_decided")?);
        match start.await {
            Ok(_) => accepted.push(sent),
            Err(error) => {
                assert_eq!(refused::<()>(Err(error)), told("VALIDATION_ERROR", "onComplete.job"));
                refusals += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(accepted.last().is_none_or(|sent| *sent < WITHIN), "{accepted:?}");
    assert!(refusals > 0);
    Ok(())
}

/// Enqueues again and again once `version` was made the active one. The dispatcher says of each job when it was enqueued, and by
/// which version it was judged.
async fn enqueue_until_judged_by(fleet: &Fleet, script: &Client, version: &str) -> Result<()> {
    let (since, activated_ms) = (Instant::now(), now_ms());
    let (workspace, name) = project();
    let host = JobHost::start(&fleet.broker, workspace, name, |_| Ending::Succeeds);
    let mut enqueued = BTreeSet::new();
    while since.elapsed() < WITHIN * 3 / 2 {
        enqueued.insert(script.jobs().enqueue(Job::new("first_job")).await?.run_id);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let attempts = wait_until("every job has come", BOUND, || async {
        let of = |came: &Attempt| enqueued.contains(&came.run.job_id.to_string());
        let came: Vec<_> = host.attempts().into_iter().filter(of).collect();
        Ok((came.len() >= enqueued.len()).then_some(came))
    })
    .await?;
    let within = u64::try_from(WITHIN.as_millis())?;
    let late = attempts.iter().filter(|came| came.run.enqueued_at > activated_ms + within);
    let versions: BTreeSet<_> = late.map(|came| came.run.version.as_deref()).collect();
    assert_eq!(versions, [Some(version)].into());
    Ok(())
}

/// CG-116, CG-232
#[tokio::test]
async fn the_jobs_of_an_activated_version_count_everywhere_within_a_second() -> Result<()> {
    let mut fleet = Fleet::start(Options::default()).await?;
    fleet.spawn("start-intake.2", None)?;
    fleet.ready("start-intake.2").await?;
    let (key, script) = (key(&fleet)?, fleet.client()?);
    let start = async |job: &str| {
        script.processes().start("approve-discount", with_job(job)?).await.context("a start")
    };
    start("discount_decided").await?;
    let first = declared("1.0", &json!({"jobs": [{"key": "first_job"}]}))?;
    let registered = key.projects().register(&first).await?;
    assert!(registered.created && !key.projects().register(&first).await?.created);
    let other = declared("1.0", &json!({"jobs": [{"key": "other"}]}))?;
    assert_eq!(refused(key.projects().register(&other).await), told("VALIDATION_ERROR", "version"));
    assert!(start("first_job").await.is_err());

    let activated = key.projects().activate("1.0").await?;
    assert_eq!((activated.version.as_str(), activated.previous), ("1.0", None));
    start_until_refused(&script, Instant::now()).await?;
    start("first_job").await?;

    let jobs = json!([{"key": "second_job"}, {"key": "first_job"}]);
    let second = declared("2.0", &json!({"jobs": jobs, "scripts": ["import"]}))?;
    key.projects().register(&second).await?;
    assert_eq!(key.projects().activate("2.0").await?.previous.as_deref(), Some("1.0"));
    enqueue_until_judged_by(&fleet, &script, "2.0").await?;
    let seen = HostSeen { id: "h1".to_owned(), version: "2.0".to_owned() };
    let shown = key.projects().show(Some(seen)).await?;
    assert_eq!((shown.active.as_deref(), shown.hosts.len()), (Some("2.0"), 1));
    let versions: Vec<_> =
        shown.versions.iter().map(|one| (one.version.as_str(), one.active, one.scripts)).collect();
    assert_eq!(versions, [("2.0", true, 1), ("1.0", false, 0)]);
    let missing = key.projects().activate("3.0").await;
    assert_eq!(refused(missing), told("NOT_FOUND", "project_version"));
    fleet.remove().await
}

/// CG-230
#[tokio::test]
async fn a_project_key_registers_and_starts_nothing_and_nothing_else_registers() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let host_key = key(&fleet)?;
    let empty = declared("1.0", &json!({"scripts": ["import"]}))?;
    let start =
        host_key.processes().start("approve-discount", ProcessStartOptions::default()).await;
    assert_eq!(refused(start), told("PERMISSION_DENIED", "PROJECT_KEY"));
    let call = host_key.projects().invoke(CallKind::Script, "import", &Value::Null, None).await;
    assert_eq!(refused(call), told("PERMISSION_DENIED", "PROJECT_KEY"));
    let script = client(&fleet, |_| ())?;
    let answer = script.projects().register(&empty).await;
    assert_eq!(refused(answer), told("PERMISSION_DENIED", "PROJECT_KEY_NEEDED"));
    let read_only = client(&fleet, |claims| {
        claims.source = Source::Host;
        claims.read_only = true;
    })?;
    let answer = read_only.projects().register(&empty).await;
    assert_eq!(refused(answer), told("PERMISSION_DENIED", "READ_ONLY"));
    read_only.projects().show(None).await?;
    let elsewhere = client(&fleet, |claims| {
        claims.source = Source::Host;
        claims.project = "nobody".parse().unwrap();
    })?;
    let answer = elsewhere.projects().register(&empty).await;
    assert_eq!(refused(answer), told("NOT_FOUND", "project"));

    let mut claims = fleet.claims();
    claims.source = Source::Host;
    let revoked = Client::new(&fleet.broker, fleet.token(&claims)?);
    revoked.projects().register(&empty).await?;
    let keep = Duration::from_hours(1);
    fleet.store.revoke_batch(&claims.workspace, &claims.project, &claims.execution, keep).await?;
    let answer = revoked.projects().activate("1.0").await;
    assert_eq!(refused(answer), told("PERMISSION_DENIED", "PROJECT_KEY_REVOKED"));
    fleet.remove().await
}

/// CG-170, CG-172
#[tokio::test]
async fn a_session_of_development_runs_as_the_user_of_the_key_without_outcome_jobs() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let of = |user: Option<&str>, read_only| {
        client(&fleet, |claims| {
            claims.source = Source::Host;
            claims.user = user.map(|user| user.parse().unwrap());
            claims.read_only = read_only;
        })
    };
    let nobody = of(None, false)?.projects().session(false).await;
    assert_eq!(refused(nobody), told("PERMISSION_DENIED", "PROJECT_KEY_WITHOUT_USER"));
    let session = of(Some("ada"), false)?.projects().session(false).await?;
    let developer = fleet.client()?.token(session.token.into());
    let options = ProcessStartOptions::default().input(&json!({"amount": 120}))?;
    let started = developer.processes().start("approve-discount", options).await?;
    let record = fleet.store.load_run(started.instance_id.parse()?).await?.context("no run")?;
    assert_eq!(record.user.map(|user| user.to_string()).as_deref(), Some("ada"));
    let with_job = developer.processes().start("approve-discount", with_job("discount_decided")?);
    assert_eq!(refused(with_job.await).0, "NOT_SUPPORTED");
    let session = of(Some("ada"), true)?.projects().session(false).await?;
    let reader = fleet.client()?.token(session.token.into());
    let start = reader.processes().start("approve-discount", ProcessStartOptions::default()).await;
    assert_eq!(refused(start), told("PERMISSION_DENIED", "DEVELOPMENT_SESSION_READ_ONLY"));
    fleet.remove().await
}

const CALLABLE: &str = r#"{
    "scripts": ["import", "broken", "silent"],
    "triggers": [{"key": "lead.changed", "timeoutMs": 300}],
    "actions": [{"key": "look", "access": "read"}, {"key": "close", "access": "write", "timeoutMs": 1000}]
}"#;

fn play(called: &Called) -> Handling {
    let call = &called.call;
    match call.name.as_str() {
        "broken" => {
            let mut failure = CallFailure::of(CallCode::ScriptError);
            failure.script_error_code = Some("NOT_FOUND".to_owned());
            Handling::Answer(CallOutcome::Failed(failure))
        }
        "lead.changed" => Handling::Silence,
        "forged" => Handling::Forged(ok(&json!("forged")).unwrap()),
        _ => {
            let input: Value = serde_json::from_str(call.input.get()).unwrap();
            let told = json!({"got": input, "runId": call.run_id, "readOnly": call.read_only});
            Handling::Answer(ok(&told).unwrap())
        }
    }
}

/// CG-233, CG-235
#[tokio::test]
async fn a_script_is_called_and_its_code_may_start_what_its_caller_may() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    active(&fleet, "1.0", &serde_json::from_str(CALLABLE)?).await?;
    let ada = client(&fleet, |claims| claims.user = Some("ada".parse().unwrap()))?;
    let call = async |name: &str, input: Value| {
        ada.projects().invoke(CallKind::Script, name, &input, None).await
    };
    let began = Instant::now();
    assert_eq!(refused(call("import", Value::Null).await), told("RETRYABLE", "NO_HOST"));
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let host = host(&fleet, "1.0", play).await?;
    let answer = call("import", json!({"file": "leads.csv"})).await?;
    assert_eq!(answer, json!({"got": {"file": "leads.csv"}, "runId": null, "readOnly": false}));
    assert_eq!(refused(call("broken", Value::Null).await), told("SCRIPT_ERROR", "NOT_FOUND"));
    assert_eq!(refused(call("unknown", Value::Null).await), told("NOT_FOUND", "script"));

    let called = host.calls().into_iter().next().context("no call")?;
    assert_eq!(called.call.user.map(|user| user.to_string()).as_deref(), Some("ada"));
    let code = fleet.client()?.token(called.token.context("no token")?);
    let options = ProcessStartOptions::default().input(&json!({"amount": 120}))?;
    let started = code.processes().start("approve-discount", options).await?;
    let record = fleet.store.load_run(started.instance_id.parse()?).await?.context("no run")?;
    assert_eq!((record.hops, record.chain), (9, 1));
    assert_eq!(record.user.map(|user| user.to_string()).as_deref(), Some("ada"));
    let before = client(&fleet, |claims| claims.source = Source::TriggerBefore)?;
    let refusal = before.projects().invoke(CallKind::Script, "import", &Value::Null, None).await;
    assert_eq!(refused(refusal), told("PERMISSION_DENIED", "TRIGGER_READ_ONLY"));
    fleet.remove().await
}

/// CG-234, CG-235
#[tokio::test]
async fn an_action_that_is_done_answers_the_same_for_its_run_id_and_one_that_hangs_is_given_up()
-> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    active(&fleet, "1.0", &serde_json::from_str(CALLABLE)?).await?;
    let host = host(&fleet, "1.0", play).await?;
    let ada = client(&fleet, |claims| claims.user = Some("ada".parse().unwrap()))?;
    let action = async |client: &Client, name: &str, input: Value, run: &str| {
        client.projects().invoke(CallKind::Action, name, &input, Some(run.to_owned())).await
    };
    let first = action(&ada, "close", json!(1), "deal:7").await?;
    assert_eq!(first, json!({"got": 1, "runId": "deal:7", "readOnly": false}));
    assert_eq!(action(&ada, "close", json!(1), "deal:7").await?, first);
    assert_eq!(host.calls().len(), 1);
    let other = action(&ada, "close", json!(2), "deal:7").await;
    assert_eq!(refused(other), told("VALIDATION_ERROR", "runId"));
    // Nobody else learns anything of it.
    let bob = client(&fleet, |claims| claims.user = Some("bob".parse().unwrap()))?;
    action(&bob, "close", json!(2), "deal:7").await?;
    assert_eq!(host.calls().len(), 2);
    let read = action(&ada, "look", json!(1), "look:7").await?;
    assert_eq!(read["readOnly"], true);
    let token = host.calls().pop().and_then(|called| called.token).context("no token")?;
    let reader = fleet.client()?.token(token);
    let start = reader.processes().start("approve-discount", ProcessStartOptions::default()).await;
    assert_eq!(refused(start), told("PERMISSION_DENIED", "READ_ONLY"));

    let began = Instant::now();
    let trigger = ada.projects().invoke(CallKind::Trigger, "lead.changed", &json!({}), None).await;
    assert_eq!(refused(trigger).0, "TIMEOUT");
    assert!((300..2_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    fleet.remove().await
}

/// CG-236
#[tokio::test]
async fn an_answer_is_believed_only_from_whoever_got_the_call() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    active(
        &fleet,
        "1.0",
        &json!({"actions": [{"key": "forged", "access": "write", "timeoutMs": 1000}]}),
    )
    .await?;
    let _host = host(&fleet, "1.0", play).await?;
    let script = client(&fleet, |_| ())?;
    let answer = script.projects().invoke(CallKind::Action, "forged", &Value::Null, None).await;
    assert_eq!(refused(answer).0, "TIMEOUT");
    fleet.remove().await
}

/// CG-233
#[tokio::test]
async fn hosts_of_the_active_version_get_the_calls_and_those_of_others_get_none() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    active(&fleet, "1.0", &serde_json::from_str(CALLABLE)?).await?;
    let old = host(&fleet, "1.0", play).await?;
    let new = host(&fleet, "2.0", play).await?;
    let script = client(&fleet, |_| ())?;
    let call = async || script.projects().invoke(CallKind::Script, "import", &json!(1), None).await;
    call().await?;
    active(&fleet, "2.0", &serde_json::from_str(CALLABLE)?).await?;
    // The start-intake that has activated it knows at once; there is one.
    call().await?;
    assert_eq!((old.calls().len(), new.calls().len()), (1, 1));
    fleet.remove().await
}

const WRITER: &str = "apiVersion: runfleet/v1\nkind: Agent\nmetadata: {name: writer}\nspec: {model: played/one, systemPrompt: '{{system}} {{conversation}}'}\n";

/// CG-238
#[tokio::test]
async fn a_model_call_is_answered_by_the_agent_that_the_project_has_for_it() -> Result<()> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    let client = fleet.client()?;
    let ask = |model: Option<&str>| -> Result<InvokeModel> {
        let messages = json!([
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "say hello"},
        ]);
        let model = model.map_or(json!({}), |model| json!({"model": model}));
        let mut asked = json!({"messages": messages});
        asked
            .as_object_mut()
            .context("an object")?
            .extend(model.as_object().cloned().unwrap_or_default());
        Ok(serde_json::from_value(asked)?)
    };
    let nobody = client.agents().invoke_model(&ask(None)?).await;
    assert_eq!(refused(nobody), told("NOT_FOUND", "model"));
    fleet.apply_documents("writer", WRITER).await?;
    let writer: Name = "writer".parse()?;
    fleet.apply_changed(|project| project.model_agents = vec![writer.clone()]).await?;
    let other = client.agents().invoke_model(&ask(Some("played/two"))?).await;
    assert_eq!(refused(other), told("NOT_FOUND", "model"));
    let started = client.agents().invoke_model(&ask(Some("played/one"))?).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!(state.text.as_deref(), Some("Hello."));
    fleet.remove().await
}

const PICKER: &str = "apiVersion: runfleet/v1\nkind: Agent\nmetadata: {name: picker}\nspec: {model: played/one, tools: [reserve]}\n";

/// CG-232
#[tokio::test]
async fn a_tool_of_the_active_version_is_called_by_an_agent_that_names_it() -> Result<()> {
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    fleet.apply_documents("agents", AGENTS).await?;
    fleet.apply_documents("picker", PICKER).await?;
    let tool = json!({"name": "reserve", "description": "Reserves stock.", "permission": "ALLOW"});
    active(&fleet, "1.0", &json!({"tools": [tool], "jobs": [{"key": "discount_decided"}]})).await?;
    let (workspace, name) = project();
    let host = TestHost::start(&fleet.broker, workspace, name, |request| {
        assert_eq!(request.name, "reserve");
        let reserved = json!({"reserved": "yes"});
        Doing::Answer(HostOutcome::Ok(reserved.as_object().cloned().unwrap_or_default()))
    });
    let client = fleet.client()?;
    let started = client.agents().start("picker", AgentStartOptions::new("reserve stock")).await?;
    let state = ended(&client, &started.run_id).await?;
    assert_eq!(state.text.as_deref(), Some("It is reserved."));
    assert_eq!(host.requests().len(), 1);
    fleet.remove().await
}
