//! Runs that wait for everything that a run can wait for, while runners, hosts and servers die.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use runfleet_client::{Client, Message};
use runfleet_contracts::{HostOutcome, RunEvent};
use runfleet_domain::{RunId, RunState};
use runfleet_flow::AwaitedView;
use runfleet_store::{Checkpoint, Claim, Claimed, Store, Wake};
use runfleet_testkit::{Doing, TestHost, wait_until};
use runfleet_tests::drawn::{bpmn, script, task, variables};
use runfleet_tests::processes::{record, standing, started, waits};
use runfleet_tests::{BOUND, Fleet, Jobs, Options, Web, WebAnswer, project};
use serde_json::{Value, json};

use crate::load::all_ended_once;

pub(crate) const RUNNER: &str = "process-runner";

/// Runs that go on at the same time while the runner dies.
const ORDERS: usize = 3;

pub(crate) const ENDS: &str = r#"<startEvent id="s"/><endEvent id="e"/>"#;

pub(crate) const MESSAGES: &str = r#"<message id="ready" name="ready"><extensionElements>
    <zeebe:subscription correlationKey="=order"/></extensionElements></message>
    <message id="over" name="over"><extensionElements><zeebe:subscription correlationKey="=order"/></extensionElements></message>"#;

/// A task that posts to a path of the server, and puts the answer into a variable.
fn http(id: &str, path: &str, into: &str) -> String {
    let more = format!(
        r#"<zeebe:ioMapping><zeebe:input source="POST" target="method"/>
        <zeebe:input source="=web + &quot;/{path}/&quot; + order" target="url"/></zeebe:ioMapping>
        <zeebe:taskHeaders><zeebe:header key="resultExpression" value="={{{into}: response.body.id}}"/></zeebe:taskHeaders>"#
    );
    task(id, "http", 3, &more)
}

/// A task of a host, an HTTP call, a called process, a message and a timer at once, and a message at the end.
fn everything() -> String {
    let elements = format!(
        r#"<startEvent id="s"/><parallelGateway id="p"/><parallelGateway id="j"/>{}{}
        <callActivity id="call"><extensionElements>
        <zeebe:calledElement processId="inner" propagateAllParentVariables="true" propagateAllChildVariables="false"/>
        <zeebe:ioMapping><zeebe:output source="=answer" target="inner"/></zeebe:ioMapping></extensionElements></callActivity>
        <sendTask id="send" messageRef="ready"/>
        <intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>PT0.5S</timeDuration></timerEventDefinition>
        </intermediateCatchEvent>{}
        <endEvent id="e"><messageEventDefinition messageRef="over"/></endEvent>"#,
        task("pack", "pack", 3, ""),
        http("open", "opened", "opened"),
        script("n", "[packed, opened, inner]"),
    );
    let flows = "s -> p, p -> pack, p -> open, p -> call, p -> send, p -> t, pack -> j, open -> j, call -> j, \
         send -> j, t -> j, j -> n, n -> e";
    bpmn("everything", &variables(&["order", "web"]), &elements, flows, MESSAGES)
}

/// What `everything` calls.
fn inner() -> String {
    let elements = format!("{ENDS}{}", http("h", "inner", "answer"));
    bpmn("inner", &variables(&["order", "web"]), &elements, "s -> h, h -> e", "")
}

/// Waits for both messages of an order, one after the other.
fn listener() -> String {
    let elements = format!(
        r#"{ENDS}<receiveTask id="r" messageRef="ready"/><receiveTask id="o" messageRef="over"/>"#
    );
    bpmn("listener", &variables(&["order"]), &elements, "s -> r, r -> o, o -> e", MESSAGES)
}

/// The answer of a run that has completed, out of the job that it became.
pub(crate) async fn answer(jobs: &Jobs, run: RunId) -> Result<Value> {
    let job = jobs.wait(run.outcome_job(), BOUND).await?;
    let payload: Value = serde_json::from_str(job.payload.get())?;
    ensure!(payload["process"]["state"] == "COMPLETED", "{payload}");
    Ok(payload["process"]["output"]["answer"].clone())
}

pub(crate) fn done(results: &Value) -> HostOutcome {
    HostOutcome::Ok(results.as_object().cloned().unwrap_or_default())
}

pub(crate) fn host(fleet: &Fleet, doing: impl Fn() -> Doing + Send + Sync + 'static) -> TestHost {
    let (workspace, project) = project();
    TestHost::start(&fleet.broker, workspace, project, move |_| doing())
}

/// A fleet without what has nothing to do with Processes.
pub(crate) async fn fleet(settings: Vec<(String, String)>) -> Result<(Fleet, Jobs)> {
    let without = vec!["agent-runner", "delivery"];
    let fleet = Fleet::start(Options { settings, without, ..Options::default() }).await?;
    let jobs = take(&fleet);
    Ok((fleet, jobs))
}

pub(crate) fn take(fleet: &Fleet) -> Jobs {
    let (workspace, project) = project();
    Jobs::take(&fleet.broker, workspace, project, true)
}

/// Starts the runner anew; it dies at `point`, if that is given.
pub(crate) fn restart(fleet: &mut Fleet, point: Option<&str>) -> Result<()> {
    if !fleet.has_ended(RUNNER)? {
        fleet.kill(RUNNER)?;
    }
    fleet.spawn(RUNNER, point)
}

/// Waits until the runner has died by itself.
async fn died(fleet: &mut Fleet, point: &str) -> Result<()> {
    let status = fleet.ended(RUNNER).await.with_context(|| format!("waiting for {point}"))?;
    ensure!(status.signal() == Some(9), "killed at {point}, the runner ended with {status}");
    Ok(())
}

/// Calls that were made although the ledger had their answer.
type Late = Arc<Mutex<Vec<String>>>;

/// The server of the HTTP tasks. It asks the ledger about each call whether its answer is there already.
async fn server(ledger: Arc<OnceLock<Store>>, late: Late) -> Result<Web> {
    Web::start(move |request, _| {
        let known = ledger.get().and_then(|store| {
            let (run, instance) = request.key.split_once(':')?;
            let id = RunEvent::answer_id(instance.parse().ok()?, 1)?;
            let (run, runtime) = (run.parse().ok()?, tokio::runtime::Handle::current());
            let asked = || runtime.block_on(store.knows_event(run, &id));
            tokio::task::block_in_place(asked).ok()
        });
        if known != Some(false) {
            late.lock().unwrap_or_else(PoisonError::into_inner).push(request.key.clone());
        }
        WebAnswer::new(200, json!({"id": request.path}))
    })
    .await
}

/// Runs orders while the runner dies at one point after the other, and expects everything to be done once.
async fn dies(points: &[&str]) -> Result<()> {
    let (ledger, late) = (Arc::<OnceLock<Store>>::default(), Late::default());
    let web = server(Arc::clone(&ledger), Arc::clone(&late)).await?;
    let (mut fleet, jobs) = fleet(vec![web.allowed()]).await?;
    let _ = ledger.set(fleet.store.clone());
    for (id, drawing) in
        [("everything", everything()), ("inner", inner()), ("listener", listener())]
    {
        fleet.apply_process(id, &drawing).await?;
    }
    let client = fleet.client()?;
    let orders: Vec<String> = (0..ORDERS).map(|order| format!("o{order}")).collect();
    let mut runs = Vec::new();
    for order in &orders {
        let run = started(&client, "listener", &json!({"order": order})).await?;
        standing(&fleet, run, waits).await?;
        runs.push(run);
    }
    let host = host(&fleet, || Doing::Answer(done(&json!({"packed": 1}))));
    let mut mains = Vec::new();
    for (life, point) in points.iter().enumerate() {
        restart(&mut fleet, Some(point))?;
        if life == 0 {
            for order in &orders {
                let input = json!({"order": order, "web": web.url("")});
                mains.push(started(&client, "everything", &input).await?);
            }
        }
        died(&mut fleet, point).await?;
    }
    restart(&mut fleet, None)?;
    for (run, order) in mains.iter().zip(&orders) {
        let expected = json!([1, format!("/opened/{order}"), format!("/inner/{order}")]);
        ensure!(answer(&jobs, *run).await? == expected, "the answer of {order}");
    }
    runs.extend(&mains);
    all_ended_once(&fleet, &jobs, &runs).await?;
    done_once(&web, &host, &orders, points.len())?;
    let late = late.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(late.is_empty(), "called although the answer was there: {late:?}");
    nothing_waits(&fleet, &client, &orders).await?;
    fleet.remove().await
}

/// Each task was done under one id, and asked for again no more often than the runner has died.
fn done_once(web: &Web, host: &TestHost, orders: &[String], deaths: usize) -> Result<()> {
    for path in ["opened", "inner"] {
        for order in orders {
            let requests = web.requests(&format!("/{path}/{order}"));
            let keys: BTreeSet<_> = requests.iter().map(|request| &request.key).collect();
            ensure!(keys.len() == 1 && requests.len() <= 1 + deaths, "{path} {order}: {keys:?}");
        }
    }
    let requests = host.requests();
    let asked: BTreeSet<String> =
        requests.iter().map(|request| request.request_id.to_string()).collect();
    ensure!(asked.len() == orders.len(), "{asked:?}");
    ensure!(requests.len() <= orders.len() * (1 + deaths), "{requests:?}");
    Ok(())
}

/// Nobody waits for a message any more, and none is kept that was sent a second time.
async fn nothing_waits(fleet: &Fleet, client: &Client, orders: &[String]) -> Result<()> {
    for order in orders {
        for name in ["ready", "over"] {
            let told =
                client.processes().message(Message::new(name).correlation_key(order)).await?;
            ensure!(!told.delivered, "{name} of {order} has gone to {told:?}");
        }
        let run = started(client, "listener", &json!({"order": order})).await?;
        let view = standing(fleet, run, waits).await?;
        let first =
            matches!(&view.awaited[..], [AwaitedView::Message { name, .. }] if name == "ready");
        ensure!(first, "a message of {order} was kept: {view:?}");
    }
    Ok(())
}

macro_rules! deaths {
    ($($name:ident: $($point:literal),+;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            dies(&[$($point),+]).await
        }
    )*};
}

deaths! {
    runner_killed_before_it_stores_where_a_run_stands_does_everything_once: "process.before_commit@2";
    runner_killed_before_it_does_what_a_stored_state_calls_for_does_everything_once: "process.checkpointed@2";
    runner_killed_twice_over_one_run_does_everything_once: "process.checkpointed", "process.quarantined";
    runner_killed_after_it_has_asked_does_everything_once: "process.asked@2";
    runner_killed_after_it_has_started_a_called_run_does_everything_once: "process.child_started@2";
    runner_killed_after_it_has_sent_a_message_does_everything_once: "process.message_sent@2";
    runner_killed_after_the_message_of_an_end_event_does_everything_once: "process.message_sent@4";
    runner_killed_after_it_has_stored_an_answer_does_everything_once: "process.answer_stored@2";
    runner_killed_after_a_call_whose_answer_is_not_stored_does_everything_once: "process.called@2";
    runner_killed_after_the_end_of_a_called_run_does_everything_once: "process.committed@2";
    runner_killed_between_publish_and_confirm_of_what_it_asks_does_everything_once: "publisher.sent@7";
    runner_killed_just_before_acks_does_everything_once: "consumer.before_ack@4", "consumer.before_ack@4";
}

/// Calls `inner`, until the message `over` comes; then waits for a person.
fn caller(called: &str) -> String {
    let elements = format!(
        r#"{ENDS}<callActivity id="c"><extensionElements>
        <zeebe:calledElement processId="{called}" propagateAllParentVariables="true" propagateAllChildVariables="true"/>
        </extensionElements></callActivity>
        <boundaryEvent id="m" attachedToRef="c"><messageEventDefinition messageRef="over"/></boundaryEvent>
        <boundaryEvent id="b" attachedToRef="c"><errorEventDefinition/></boundaryEvent>{}
        <userTask id="u"><extensionElements><zeebe:userTask/></extensionElements></userTask>"#,
        script("n", r#""caught""#),
    );
    let flows = "s -> c, c -> e, m -> u, u -> e, b -> n, n -> e";
    bpmn("caller", &variables(&["order", "amount"]), &elements, flows, MESSAGES)
}

/// The only run that `run` has called, once that waits for something.
async fn called(fleet: &Fleet, run: RunId) -> Result<RunId> {
    wait_until("the called run waits", BOUND, || async {
        let children = fleet.store.open_children(run, 10).await?;
        let Some(child) = children.first() else { return Ok(None) };
        Ok((record(fleet, child.run_id).await?.waits == 1).then_some(child.run_id))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_called_run_that_is_wanted_no_more_ends_also_when_the_runner_dies_before_it_says_so()
-> Result<()> {
    let (mut fleet, _jobs) = fleet(Vec::new()).await?;
    fleet.apply_process("listener", &listener()).await?;
    fleet.apply_process("caller", &caller("listener")).await?;
    let client = fleet.client()?;
    let run = started(&client, "caller", &json!({"order": "o"})).await?;
    let child = called(&fleet, run).await?;
    restart(&mut fleet, Some("process.checkpointed"))?;
    let over = Message::new("over").correlation_key("o");
    assert!(client.processes().message(over).await?.delivered);
    died(&mut fleet, "process.checkpointed").await?;
    assert!(!record(&fleet, child).await?.state.is_final());
    restart(&mut fleet, None)?;
    wait_until("the called run has ended", BOUND, || async {
        Ok((record(&fleet, child).await?.state == RunState::Canceled).then_some(()))
    })
    .await?;
    assert_eq!(record(&fleet, run).await?.state, RunState::Running);
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_runner_has_not_done_is_done_also_when_its_run_is_held_at_that_moment()
-> Result<()> {
    let (mut fleet, jobs) = fleet(Vec::new()).await?;
    fleet.apply_process("caller", &caller("approve-discount")).await?;
    restart(&mut fleet, Some("process.checkpointed"))?;
    let run = started(&fleet.client()?, "caller", &json!({"order": "o", "amount": 50})).await?;
    died(&mut fleet, "process.checkpointed").await?;
    // Somebody has got an event for the run, and does not know that nobody was called.
    let claimed = fleet.store.claim_run(run, Claim::default()).await?;
    let Claimed::Claimed { fence, record, .. } = claimed else { anyhow::bail!("{claimed:?}") };
    restart(&mut fleet, None)?;
    fleet.ready(RUNNER).await?;
    let series =
        "runfleet_consumer_messages_total{queue=\"process-runner.quarantine\",result=\"snoozed\"}";
    wait_until("the message of the dead runner is put off", BOUND, || async {
        Ok((fleet.metric(RUNNER, series).await? > 0.5).then_some(()))
    })
    .await?;
    let position = record.position.context("no position")?;
    let given_back = Checkpoint { release: true, wake: Wake::Never, ..Checkpoint::new(&position) };
    fleet.store.checkpoint_run(run, fence, &given_back).await?;
    jobs.wait(run.outcome_job(), BOUND).await?;
    all_ended_once(&fleet, &jobs, &[run]).await?;
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_called_run_that_kills_its_runner_again_and_again_fails_and_its_caller_hears_of_it()
-> Result<()> {
    let settings = [("LEASE", "1000"), ("SWEEP_EVERY", "100")];
    let settings = settings.map(|(name, value)| (format!("RUNFLEET_{name}_MS"), value.to_owned()));
    let (mut fleet, jobs) = fleet(settings.into()).await?;
    fleet.apply_process("listener", &listener()).await?;
    fleet.apply_process("caller", &caller("listener")).await?;
    let client = fleet.client()?;
    let run = started(&client, "caller", &json!({"order": "o"})).await?;
    let child = called(&fleet, run).await?;
    fleet.kill(RUNNER)?;
    let ready = Message::new("ready").correlation_key("o");
    assert!(client.processes().message(ready).await?.delivered);
    let mut deaths = 0;
    while !record(&fleet, child).await?.state.is_final() {
        restart(&mut fleet, Some("process.before_commit"))?;
        while !fleet.has_ended(RUNNER)? && !record(&fleet, child).await?.state.is_final() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        deaths += 1;
        ensure!(deaths < 20, "it is not given up");
    }
    restart(&mut fleet, None)?;
    assert!(deaths > 5, "{deaths}");
    let ended = record(&fleet, child).await?;
    assert_eq!(ended.state, RunState::Failed);
    assert_eq!(ended.error.context("no error")?.code, "INTERNAL_ERROR");
    assert_eq!(answer(&jobs, run).await?, json!("caught"));
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_host_dies_in_the_middle_is_done_by_another_one() -> Result<()> {
    let (fleet, jobs) = fleet(Vec::new()).await?;
    let elements = format!("{ENDS}{}", task("t", "pack", 1, ""));
    let drawing = bpmn("pack", &variables(&[]), &elements, "s -> t, t -> e", "");
    fleet.apply_process("pack", &drawing).await?;
    let dying = host(&fleet, || Doing::Crash);
    let run = started(&fleet.client()?, "pack", &json!({})).await?;
    let taken = dying.wait(1, BOUND).await?;
    let other = host(&fleet, || Doing::Answer(done(&json!({"answer": "done"}))));
    assert_eq!(answer(&jobs, run).await?, json!("done"));
    let requests = other.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].request_id, taken[0].request_id);
    all_ended_once(&fleet, &jobs, &[run]).await?;
    fleet.remove().await
}
