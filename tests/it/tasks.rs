//! Tasks that somebody else carries out, through real workers: hosts of the project, and a server that is called over HTTP.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_client::{Client, Message};
use runfleet_contracts::HostOutcome;
use runfleet_contracts::HostRequest;
use runfleet_domain::{RunId, RunState};
use runfleet_flow::{Doing, RunView};
use runfleet_testkit::{Doing as Host, TestHost, wait_until};
use runfleet_tests::drawn::{bpmn, script, task, variables};
use runfleet_tests::processes::{record, standing, started, waits};
use runfleet_tests::{BOUND, Fleet, Options, Web, WebAnswer, project};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::processes::{jobs, outcome};

/// Retries follow at once.
const AT_ONCE: &str = r#"<rf:retry backOffSeconds="0"/>"#;

const ENDS: &str = r#"<startEvent id="s"/><endEvent id="e"/>"#;

fn host(fleet: &Fleet, does: impl Fn(&HostRequest) -> Host + Send + Sync + 'static) -> TestHost {
    let (workspace, project) = project();
    TestHost::start(&fleet.broker, workspace, project, does)
}

/// A host has done it, with these results.
fn done(results: &Value) -> HostOutcome {
    HostOutcome::Ok(results.as_object().cloned().unwrap_or_default())
}

fn completed(answer: &Value) -> (String, Value) {
    ("COMPLETED".to_owned(), json!({"answer": answer}))
}

/// The code of the only incident of a run, and its task, once there is one.
async fn incident(fleet: &Fleet, run: RunId) -> Result<(u64, String, u32)> {
    let has = |view: &RunView| {
        view.active.iter().any(|active| matches!(active.doing, Doing::Incident { .. }))
    };
    let view = standing(fleet, run, has).await?;
    let found = view.active.iter().find_map(|active| match &active.doing {
        Doing::Incident { code, attempt, .. } => Some((active.instance, code.clone(), *attempt)),
        _ => None,
    });
    found.context("no incident")
}

/// What the command line says to these words.
async fn said(fleet: &Fleet, words: &[&str]) -> Result<String> {
    let test = std::env::current_exe()?;
    let program = test.ancestors().nth(2).context("a target directory")?.join("runfleet");
    let mut command = Command::new(program);
    command
        .args(words)
        .env("RUNFLEET_AMQP_URL", fleet.namespace.amqp.expose_secret())
        .env("RUNFLEET_REDIS_URL", fleet.namespace.redis().expose_secret())
        .env("RUNFLEET_NAMESPACE", &fleet.namespace.name);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// A process with a task whose type is an input, and whose error `NO_STOCK` is caught.
fn work(id: &str, attempts: u32, more: &str) -> String {
    let elements = format!(
        r#"{ENDS}{}<boundaryEvent id="b" attachedToRef="t"><errorEventDefinition errorRef="x"/></boundaryEvent>{}"#,
        task("t", "=work", attempts, more),
        script("n", r#""caught at " + place"#),
    );
    let error = r#"<error id="x" errorCode="NO_STOCK"/>"#;
    bpmn(id, &variables(&["work"]), &elements, "s -> t, t -> e, b -> n, n -> e", error)
}

fn answers(request: &HostRequest) -> Host {
    match (request.name.as_str(), request.attempt) {
        ("patient", _) => Host::Answer(done(&json!({"answer": request.headers["warehouse"]}))),
        ("missing", _) => {
            let variables = json!({"place": "north"}).as_object().cloned().unwrap_or_default();
            Host::Answer(HostOutcome::Error { code: "NO_STOCK".into(), variables })
        }
        ("twice", _) => Host::Twice(done(&json!({"answer": 1})), done(&json!({"answer": 2}))),
        ("silent", 1) => Host::Silence,
        _ => Host::Answer(done(&json!({"answer": "heard"}))),
    }
}

#[tokio::test]
async fn a_task_waits_for_a_host_and_goes_on_with_the_first_answer_that_comes_in_time() -> Result<()>
{
    let fleet = Fleet::start(Options::of_processes()).await?;
    let header =
        r#"<zeebe:taskHeaders><zeebe:header key="warehouse" value="east"/></zeebe:taskHeaders>"#;
    fleet.apply_process("patient", &work("patient", 2, header)).await?;
    let hasty = format!(r#"{AT_ONCE}<rf:task timeoutSeconds="1"/>"#);
    fleet.apply_process("hasty", &work("hasty", 5, &hasty)).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let mut runs = Vec::new();
    for work in ["patient", "missing", "twice"] {
        let run = started(&client, "patient", &json!({"work": work})).await?;
        standing(&fleet, run, is_asked).await?;
        runs.push((work, run));
    }
    // They have waited for somebody who was not there.
    let host = host(&fleet, answers);
    runs.push(("silent", started(&client, "hasty", &json!({"work": "silent"})).await?));
    for (work, run) in runs {
        // Two answers that are under way at once may overtake each other: the first one that is stored counts.
        let answers = match work {
            "patient" => vec![json!("east")],
            "missing" => vec![json!("caught at north")],
            "twice" => vec![json!(1), json!(2)],
            _ => vec![json!("heard")],
        };
        let ended = outcome(&jobs, run).await?;
        assert!(answers.iter().any(|answer| completed(answer) == ended), "{work}: {ended:?}");
    }
    let attempts = |work: &str| -> Vec<u32> {
        let requests = host.requests().into_iter().filter(|request| request.name == work);
        requests.map(|request| request.attempt).collect()
    };
    for work in ["patient", "missing", "twice"] {
        assert_eq!(attempts(work), [1], "{work}");
    }
    assert_eq!(attempts("silent")[..2], [1, 2]);
    fleet.remove().await
}

fn is_asked(view: &RunView) -> bool {
    view.active.iter().any(|active| matches!(active.doing, Doing::Asked { .. }))
}

#[tokio::test]
async fn a_task_that_has_failed_for_good_is_shown_and_goes_on_when_somebody_retries_it()
-> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let pause = r#"<rf:retry backOffSeconds="1"/>"#;
    fleet.apply_process("pack", &work("pack", 2, pause)).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&times);
    let _host = host(&fleet, move |request| {
        seen.lock().unwrap().push(std::time::Instant::now());
        Host::Answer(match request.attempt {
            1 | 2 => HostOutcome::Failed { code: "BUSY".into(), retry: true, retry_after_ms: None },
            attempt => done(&json!({"answer": attempt})),
        })
    });
    let run = started(&client, "pack", &json!({"work": "pack"})).await?;
    let (task, code, attempt) = incident(&fleet, run).await?;
    assert_eq!((code.as_str(), attempt), ("BUSY", 2));
    let pause = {
        let times = times.lock().unwrap();
        times[1] - times[0]
    };
    assert!(pause >= Duration::from_millis(950), "{pause:?}");
    let id = run.to_string();
    let shown = said(&fleet, &["run", "show", &id]).await?;
    let line = format!("t ({task}) INCIDENT BUSY: `pack` has failed for good at attempt 2");
    assert!(shown.contains(&line), "{shown}");
    let listed = said(&fleet, &["task", "list", &id]).await?;
    let listed: Value = serde_json::from_str(listed.trim())?;
    assert_eq!(
        (&listed["instance"], &listed["element"], &listed["doing"]["code"]),
        (&json!(task), &json!("t"), &json!("BUSY"))
    );
    assert_eq!(record(&fleet, run).await?.state, RunState::Running);
    client.processes().retry(&id, Some(task)).await?;
    assert_eq!(outcome(&jobs, run).await?, completed(&json!(3)));
    fleet.remove().await
}

/// A process that calls the URL in its input.
fn caller() -> String {
    let more = r#"<zeebe:ioMapping><zeebe:input source="POST" target="method"/>
        <zeebe:input source="=url" target="url"/><zeebe:input source="={order: order}" target="body"/></zeebe:ioMapping>
        <zeebe:taskHeaders><zeebe:header key="resultExpression" value="={answer: response.body.id}"/></zeebe:taskHeaders>
        <rf:retry backOffSeconds="0"/>"#;
    let elements = format!("{ENDS}{}", task("h", "io.camunda:http-json:1", 3, more));
    bpmn("caller", &variables(&["url", "order"]), &elements, "s -> h, h -> e", "")
}

#[tokio::test]
async fn an_http_task_is_called_with_one_key_until_it_works_or_can_not_work() -> Result<()> {
    let web = Web::start(|request, times| match (request.path.as_str(), times) {
        ("/flaky", 1) => WebAnswer::new(500, Value::Null),
        ("/busy", 1) => WebAnswer { retry_after: Some(2), ..WebAnswer::new(429, Value::Null) },
        ("/missing", _) => WebAnswer::new(404, Value::Null),
        _ => WebAnswer::new(200, json!({"id": request.body["order"]})),
    })
    .await?;
    let fleet =
        Fleet::start(Options { settings: vec![web.allowed()], ..Options::of_processes() }).await?;
    fleet.apply_process("caller", &caller()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let mut runs = Vec::new();
    for path in ["/ok", "/flaky", "/busy", "/missing"] {
        let input = json!({"url": web.url(path), "order": path});
        runs.push(started(&client, "caller", &input).await?);
    }
    // Nobody has allowed this machine itself, but for the one port.
    let inside = json!({"url": "http://127.0.0.1:1/metrics", "order": "x"});
    let refused = started(&client, "caller", &inside).await?;
    for (run, path) in runs.iter().zip(["/ok", "/flaky", "/busy"]) {
        assert_eq!(outcome(&jobs, *run).await?, completed(&json!(path)));
    }
    let (task, code, attempt) = incident(&fleet, runs[3]).await?;
    assert_eq!((code.as_str(), attempt), ("HTTP_STATUS_404", 1));
    let (_, code, attempt) = incident(&fleet, refused).await?;
    assert_eq!((code.as_str(), attempt), ("HTTP_REFUSED", 1));
    for (path, times) in [("/ok", 1), ("/flaky", 2), ("/busy", 2), ("/missing", 1)] {
        let requests = web.requests(path);
        assert_eq!(requests.len(), times, "{path}");
        assert!(requests.iter().all(|request| request.key == requests[0].key), "{requests:?}");
    }
    assert_eq!(web.requests("/missing")[0].key, format!("{}:{task}", runs[3]));
    let busy = web.requests("/busy");
    assert!(busy[1].at - busy[0].at >= Duration::from_millis(1_900), "{busy:?}");
    fleet.remove().await
}

/// What the example `fulfil-order` asks of its hosts.
fn warehouse(request: &HostRequest) -> Host {
    let order = request.variables.get("order").and_then(|order| order["id"].as_str());
    match (request.name.as_str(), order) {
        ("pack-order", Some("o-2")) => {
            Host::Answer(HostOutcome::Error { code: "NO_STOCK".into(), variables: <_>::default() })
        }
        ("pack-order", Some("o-3")) => Host::Silence,
        ("pack-order", _) => Host::Answer(done(&json!({"parcel": "p-1"}))),
        ("ship-order", _) => Host::Answer(done(&json!({"trackingCode": "t-1"}))),
        _ => Host::Answer(done(&json!({"items": 2}))),
    }
}

async fn fulfilment(client: &Client, order: &str) -> Result<RunId> {
    let input = json!({"orderId": order, "amount": 200, "items": ["a", "b"]});
    started(client, "fulfil-order", &input).await
}

#[tokio::test]
async fn the_example_of_an_order_is_shipped_or_ends_without_stock_or_is_cancelled() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let host = host(&fleet, warehouse);
    let shipped = fulfilment(&client, "o-1").await?;
    let missing = fulfilment(&client, "o-2").await?;
    let cancelled = fulfilment(&client, "o-3").await?;
    let (state, output) = outcome(&jobs, shipped).await?;
    assert_eq!(state, "COMPLETED");
    assert_eq!(output, json!({"outcome": "shipped", "discount": 10, "trackingCode": "t-1"}));
    let (state, output) = outcome(&jobs, missing).await?;
    assert_eq!((state.as_str(), &output["outcome"]), ("COMPLETED", &json!("not in stock")));

    standing(&fleet, cancelled, is_asked).await?;
    let told = client.processes().message(Message::new("order-cancelled").correlation_key("o-3"));
    assert!(told.await?.delivered);
    let (state, output) = outcome(&jobs, cancelled).await?;
    assert_eq!((state.as_str(), &output["outcome"]), ("COMPLETED", &json!("cancelled")));
    let asked = |work: &str| host.requests().iter().filter(|asked| asked.name == work).count();
    assert_eq!((asked("pack-order"), asked("ship-order"), asked("release-stock")), (3, 1, 1));
    fleet.remove().await
}

/// An example as it is, but for these texts. It gets a name of its own.
async fn apply_changed(fleet: &Fleet, example: &str, changes: &[(&str, &str)]) -> Result<String> {
    let file = format!("{}/../deploy/example/{example}.bpmn", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(file)?;
    let id = format!("{example}-here");
    let (was, is) = (format!(r#"process id="{example}""#), format!(r#"process id="{id}""#));
    for (was, is) in changes.iter().copied().chain([(was.as_str(), is.as_str())]) {
        anyhow::ensure!(text.contains(was), "the example does not say {was}");
        text = text.replace(was, is);
    }
    fleet.apply_process(&id, &text).await?;
    Ok(id)
}

/// A person completes the only task of a run.
async fn complete(fleet: &Fleet, client: &Client, run: RunId, variables: &Value) -> Result<()> {
    let person = |view: &RunView| {
        view.active.iter().any(|active| matches!(active.doing, Doing::Person { .. }))
    };
    let task = standing(fleet, run, person).await?.active[0].instance;
    let variables = serde_json::value::to_raw_value(variables)?;
    client.processes().complete_task(&run.to_string(), task, Some(&variables)).await?;
    Ok(())
}

#[tokio::test]
async fn the_example_of_a_customer_opens_an_account_or_finds_that_there_is_one() -> Result<()> {
    let web = Web::start(|request, _| {
        let known = request.body["customer"] == "c-2";
        WebAnswer::new(if known { 409 } else { 201 }, json!({"id": "a-1"}))
    })
    .await?;
    let secrets = tempfile::tempdir()?;
    std::fs::create_dir(secrets.path().join("demo"))?;
    std::fs::write(secrets.path().join("demo/ACCOUNTS_TOKEN"), "acc-s3cret\n")?;
    let folder = secrets.path().display().to_string();
    let settings = vec![web.allowed(), ("RUNFLEET_HTTP_SECRETS_DIR".to_owned(), folder)];
    let fleet = Fleet::start(Options { settings, ..Options::of_processes() }).await?;
    let url = web.url("/accounts");
    let changes = [("https://accounts.example.com/accounts", url.as_str()), (">P1D<", ">PT0.2S<")];
    let id = apply_changed(&fleet, "onboard-customer", &changes).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let host = host(&fleet, |_| Host::Answer(done(&json!({}))));
    let input = |customer: &str| json!({"customerId": customer, "email": "c@example.com"});
    let (first, second) =
        (started(&client, &id, &input("c-1")).await?, started(&client, &id, &input("c-2")).await?);
    // Nobody has checked the documents for a while.
    let reminded = host.wait(2, BOUND).await?;
    assert!(reminded.iter().all(|request| request.name == "remind-team"), "{reminded:?}");
    for run in [first, second] {
        complete(&fleet, &client, run, &json!({"documentsComplete": true})).await?;
    }
    let (state, output) = outcome(&jobs, second).await?;
    assert_eq!((state.as_str(), &output["outcome"]), ("COMPLETED", &json!("account exists")));
    standing(&fleet, first, |view| view.awaited.len() == 2).await?;
    let told = Message::new("address-confirmed").correlation_key("c-1");
    assert!(client.processes().message(told).await?.delivered);
    let (state, output) = outcome(&jobs, first).await?;
    assert_eq!(state, "COMPLETED");
    assert_eq!(output, json!({"accountId": "a-1", "outcome": "onboarded"}));
    let requests = web.requests("/accounts");
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.authorization == "Bearer acc-s3cret"));
    assert!(!fleet.logs().contains("s3cret"));
    fleet.remove().await
}

#[tokio::test]
async fn the_example_of_an_invoice_reminds_everybody_until_it_is_paid_or_given_up() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let changes = [(">R3/P7D<", ">R3/PT1S<"), (">P30D<", ">PT6S<")];
    let id = apply_changed(&fleet, "remind", &changes).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let host = host(&fleet, |request| Host::Answer(done(&json!({"to": request.variables["to"]}))));
    let people = json!([{"id": "ada", "email": "ada@x"}, {"id": "ben", "email": "ben@x"}]);
    let run = started(&client, &id, &json!({"invoiceId": "i-1", "people": people})).await?;
    let (state, output) = outcome(&jobs, run).await?;
    assert_eq!((state.as_str(), &output["paid"]), ("COMPLETED", &json!(false)));
    assert_eq!((&output["rounds"], host.requests().len()), (&json!(3), 6));
    assert_eq!(output["answers"][1], json!({"person": "ben", "answer": {"to": "ben@x"}}));

    let paid = started(&client, &id, &json!({"invoiceId": "i-2", "people": []})).await?;
    standing(&fleet, paid, waits).await?;
    let payment = Message::new("invoice-paid").correlation_key("i-2");
    client.processes().message(payment.variables(&json!({"paidOn": "2026-11-30"}))?).await?;
    let (state, output) = outcome(&jobs, paid).await?;
    assert_eq!((state.as_str(), &output["paid"]), ("COMPLETED", &json!(true)));
    fleet.remove().await
}

/// Tasks `a` and `b` at the same time.
fn both() -> String {
    let gateways = r#"<parallelGateway id="p"/><parallelGateway id="j"/>"#;
    let tasks = format!("{}{}", task("a", "a", 1, ""), task("b", "b", 1, ""));
    let elements = format!("{ENDS}{gateways}{tasks}");
    bpmn("both", &variables(&[]), &elements, "s -> p, p -> a, p -> b, a -> j, b -> j, j -> e", "")
}

#[tokio::test]
async fn what_happens_to_a_run_does_not_have_it_ask_again_for_what_is_open_or_answered()
-> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    fleet.apply_process("both", &both()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let host = host(&fleet, |request| match request.name.as_str() {
        "a" => Host::Slowly(Duration::from_millis(300), done(&json!({}))),
        _ => Host::Slowly(Duration::from_millis(1_500), done(&json!({"answer": 1}))),
    });
    let through = started(&client, "both", &json!({})).await?;
    let held = started(&client, "both", &json!({})).await?;
    host.wait(4, BOUND).await?;
    let id = held.to_string();
    client.processes().pause(&id).await?;
    assert_eq!(outcome(&jobs, through).await?, completed(&json!(1)));
    wait_until("both answers wait for the run that is held", BOUND, || async {
        let explained = fleet.store.explain_run(held).await?.context("no run")?;
        Ok((explained.inbox_events == 2).then_some(()))
    })
    .await?;
    client.processes().resume(&id).await?;
    assert_eq!(outcome(&jobs, held).await?, completed(&json!(1)));
    assert_eq!(host.requests().len(), 4, "{:?}", host.requests());
    fleet.remove().await
}

/// CG-204
#[tokio::test]
async fn an_operation_that_comes_again_after_its_run_has_ended_is_not_refused() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let elements = format!(
        r#"{ENDS}<userTask id="u"><extensionElements><zeebe:userTask/></extensionElements></userTask>"#
    );
    fleet
        .apply_process("ask", &bpmn("ask", &variables(&[]), &elements, "s -> u, u -> e", ""))
        .await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "ask", &json!({})).await?;
    let task = standing(&fleet, run, |view| !view.active.is_empty()).await?.active[0].instance;
    let body = json!({"operation": "processes.completeTask", "payload": {
        "instanceId": run.to_string(), "task": task, "variables": {"answer": 7}}});
    let body = serde_json::to_vec(&body)?;
    let first: Value = serde_json::from_slice(&client.send("m-1".into(), body.clone()).await?)?;
    assert_eq!(first["ok"], true, "{first}");
    assert_eq!(outcome(&jobs, run).await?, completed(&json!(7)));
    let again: Value = serde_json::from_slice(&client.send("m-1".into(), body.clone()).await?)?;
    assert_eq!((&again["ok"], &again["data"]["state"]), (&json!(true), &json!("COMPLETED")));
    let other: Value = serde_json::from_slice(&client.send("m-2".into(), body).await?)?;
    assert_eq!(other["error"]["details"]["reason"], "RUN_ENDED", "{other}");
    fleet.remove().await
}

#[tokio::test]
async fn a_signal_is_not_sent_again_when_its_sender_goes_on_later() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let signal = r#"<signal id="g" name="opened"/>"#;
    let sender = format!(
        r#"{ENDS}<intermediateThrowEvent id="t"><signalEventDefinition signalRef="g"/></intermediateThrowEvent>
        <userTask id="u"><extensionElements><zeebe:userTask/></extensionElements></userTask>"#
    );
    let receiver = format!(
        r#"{ENDS}<intermediateCatchEvent id="c"><signalEventDefinition signalRef="g"/></intermediateCatchEvent>"#
    );
    let sender = bpmn("open", &variables(&[]), &sender, "s -> t, t -> u, u -> e", signal);
    let receiver = bpmn("wait", &variables(&[]), &receiver, "s -> c, c -> e", signal);
    fleet.apply_process("open", &sender).await?;
    fleet.apply_process("wait", &receiver).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let before = started(&client, "wait", &json!({})).await?;
    standing(&fleet, before, waits).await?;
    let sender = started(&client, "open", &json!({})).await?;
    assert_eq!(outcome(&jobs, before).await?.0, "COMPLETED");
    let after = started(&client, "wait", &json!({})).await?;
    standing(&fleet, after, waits).await?;
    complete(&fleet, &client, sender, &json!({"answer": 1})).await?;
    assert_eq!(outcome(&jobs, sender).await?, completed(&json!(1)));
    assert_eq!(record(&fleet, after).await?.state, RunState::Running);
    let explained = fleet.store.explain_run(after).await?.context("no run")?;
    assert_eq!(explained.inbox_events, 0);
    fleet.remove().await
}
