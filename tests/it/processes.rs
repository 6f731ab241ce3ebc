//! Processes that wait: for a time, a message, a signal, a person, another Process. Through real workers.

use anyhow::{Context as _, Result};
use runfleet_client::Message;
use runfleet_contracts::message::ProcessCompletion;
use runfleet_domain::{RunId, RunState};
use runfleet_flow::{AwaitedView, Doing};
use runfleet_testkit::wait_until;
use runfleet_tests::drawn::bpmn;
use runfleet_tests::processes::{record, standing, started, waits};
use runfleet_tests::{BOUND, Fleet, Jobs, Options, project};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

const VARIABLES: &str = r#"<rf:variable name="order" direction="input" type="string"/>
    <rf:variable name="answer" direction="output" type="any"/>"#;

const MESSAGE: &str = r#"<message id="m" name="paid"><extensionElements>
    <zeebe:subscription correlationKey="=order"/></extensionElements></message>"#;

const ENDS: &str = r#"<startEvent id="s"/><endEvent id="e"/>"#;

pub(crate) fn jobs(fleet: &Fleet) -> Jobs {
    let (workspace, project) = project();
    Jobs::take(&fleet.broker, workspace, project, true)
}

pub(crate) async fn outcome(jobs: &Jobs, run: RunId) -> Result<(String, Value)> {
    let job = jobs.wait(run.outcome_job(), BOUND).await?;
    let completion: ProcessCompletion = serde_json::from_str(job.payload.get())?;
    let output = completion.process.output.map(|output| serde_json::from_str(output.get()));
    Ok((completion.process.state, output.transpose()?.unwrap_or(Value::Null)))
}

#[tokio::test]
async fn a_timer_of_a_run_rings_once_also_when_it_was_due_while_everything_was_down() -> Result<()>
{
    let mut fleet = Fleet::start(Options::of_processes()).await?;
    let elements = format!(
        r#"{ENDS}<intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>PT1S</timeDuration>
        </timerEventDefinition></intermediateCatchEvent>
        <scriptTask id="n"><extensionElements><zeebe:script expression="=1 + (if answer = null then 0 else answer)"
        resultVariable="answer"/></extensionElements></scriptTask>"#
    );
    fleet
        .apply_process("wait", &bpmn("wait", VARIABLES, &elements, "s -> t, t -> n, n -> e", ""))
        .await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "wait", &json!({})).await?;
    let view = standing(&fleet, run, waits).await?;
    let [AwaitedView::Time { due, .. }] = view.awaited.as_slice() else { panic!("{view:?}") };
    fleet.kill("process-runner")?;
    // Until it is due, and nobody is there.
    let now = runfleet_runtime::clock::now_ms();
    tokio::time::sleep(std::time::Duration::from_millis(due.saturating_sub(now) + 200)).await;
    fleet.spawn("process-runner", None)?;
    fleet.ready("process-runner").await?;
    assert_eq!(outcome(&jobs, run).await?, ("COMPLETED".to_owned(), json!({"answer": 1})));
    fleet.remove().await
}

#[tokio::test]
async fn a_message_comes_to_the_run_of_its_key_also_when_it_came_before_it() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let elements = format!(
        r#"{ENDS}<intermediateCatchEvent id="c"><extensionElements><zeebe:ioMapping>
        <zeebe:output source="=amount" target="answer"/></zeebe:ioMapping></extensionElements>
        <messageEventDefinition messageRef="m"/></intermediateCatchEvent>"#
    );
    fleet
        .apply_process("pay", &bpmn("pay", VARIABLES, &elements, "s -> c, c -> e", MESSAGE))
        .await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let (first, second) = (
        started(&client, "pay", &json!({"order": "a"})).await?,
        started(&client, "pay", &json!({"order": "b"})).await?,
    );
    standing(&fleet, first, waits).await?;
    standing(&fleet, second, waits).await?;
    let message = |key: &str, amount: u32| {
        Message::new("paid").correlation_key(key).variables(&json!({"amount": amount}))
    };
    let told = client.processes().message(message("b", 7)?).await?;
    assert!(told.delivered, "{told:?}");
    assert_eq!(outcome(&jobs, second).await?, ("COMPLETED".to_owned(), json!({"answer": 7})));
    assert_eq!(record(&fleet, first).await?.state, RunState::Running);

    let early = message("c", 8)?.time_to_live(std::time::Duration::from_mins(1));
    assert!(client.processes().message(early).await?.buffered);
    let third = started(&client, "pay", &json!({"order": "c"})).await?;
    assert_eq!(outcome(&jobs, third).await?, ("COMPLETED".to_owned(), json!({"answer": 8})));
    fleet.remove().await
}

#[tokio::test]
async fn a_user_task_waits_for_its_person_and_takes_what_the_person_gives() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let elements = format!(
        r#"{ENDS}<userTask id="u" name="Look at it"><extensionElements><zeebe:userTask/>
        <zeebe:assignmentDefinition assignee="ada" candidateGroups="=[&quot;sales&quot;]"/></extensionElements></userTask>"#
    );
    fleet.apply_process("ask", &bpmn("ask", VARIABLES, &elements, "s -> u, u -> e", "")).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "ask", &json!({})).await?;
    let view = standing(&fleet, run, |view| !view.active.is_empty()).await?;
    let task = view.active[0].instance;
    let Doing::Person { assignee, candidate_groups, .. } = &view.active[0].doing else {
        panic!("{view:?}")
    };
    assert_eq!(
        (assignee.as_deref(), candidate_groups.as_slice()),
        (Some("ada"), &["sales".to_owned()][..])
    );
    let id = run.to_string();
    client.processes().assign_task(&id, task, Some("ben")).await?;
    standing(&fleet, run, |view| {
        matches!(&view.active[0].doing, Doing::Person { assignee: Some(assignee), .. } if assignee == "ben")
    })
    .await?;
    client.processes().pause(&id).await?;
    client
        .processes()
        .complete_task(&id, task, Some(&*to_raw_value(&json!({"answer": "yes"}))?))
        .await?;
    assert_eq!(
        record(&fleet, run).await?.state,
        RunState::Paused,
        "what is held stays where it is"
    );
    client.processes().resume(&id).await?;
    assert_eq!(outcome(&jobs, run).await?, ("COMPLETED".to_owned(), json!({"answer": "yes"})));
    let entries = client.processes().history(&id, 0, Some(100)).await?.entries;
    let walked: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!("{} {}", entry.element, serde_json::to_string(&entry.what).unwrap_or_default())
        })
        .collect();
    assert_eq!(
        walked,
        [
            r#"s "entered""#,
            r#"s "left""#,
            r#"u "entered""#,
            r#"u "left""#,
            r#"e "entered""#,
            r#"e "left""#
        ]
    );
    fleet.remove().await
}

/// A process that calls `ask` or `approve-discount`.
fn caller(called: &str) -> String {
    let elements = format!(
        r#"{ENDS}<callActivity id="c"><extensionElements>
        <zeebe:calledElement processId="{called}" propagateAllParentVariables="false" propagateAllChildVariables="false"/>
        <zeebe:ioMapping><zeebe:input source="=50" target="amount"/><zeebe:output source="=approved" target="answer"/>
        </zeebe:ioMapping></extensionElements></callActivity>
        <boundaryEvent id="b" attachedToRef="c"><errorEventDefinition/></boundaryEvent>
        <scriptTask id="n"><extensionElements><zeebe:script expression="=&quot;caught&quot;" resultVariable="answer"/>
        </extensionElements></scriptTask>"#
    );
    bpmn("caller", VARIABLES, &elements, "s -> c, c -> e, b -> n, n -> e", "")
}

#[tokio::test]
async fn a_called_process_runs_on_one_step_of_the_budget_and_gives_back_its_output() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    fleet.apply_process("caller", &caller("approve-discount")).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "caller", &json!({})).await?;
    assert_eq!(outcome(&jobs, run).await?, ("COMPLETED".to_owned(), json!({"answer": true})));
    let hops = record(&fleet, run).await?.hops;

    // A run that carries no step more cannot call, and the drawing can catch that.
    let mut claims = fleet.claims();
    claims.hops = 3;
    let poor = fleet.client()?.token(fleet.token(&claims)?);
    let run = started(&poor, "caller", &json!({})).await?;
    assert!(record(&fleet, run).await?.hops < hops);
    outcome(&jobs, run).await?;
    fleet.remove().await
}

#[tokio::test]
async fn runs_that_a_cancelled_run_has_called_end_with_it() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let wait = format!(r#"{ENDS}<receiveTask id="c" messageRef="m"/>"#);
    let amount = r#"<rf:variable name="amount" direction="input" type="number"/>"#;
    fleet
        .apply_process(
            "inner",
            &bpmn("inner", amount, &wait, "s -> c, c -> e", r#"<message id="m" name="go on"/>"#),
        )
        .await?;
    fleet.apply_process("caller", &caller("inner")).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "caller", &json!({})).await?;
    let child = wait_until("the called run waits", BOUND, || async {
        let children = fleet.store.open_children(run, 10).await?;
        let Some(child) = children.first() else { return Ok(None) };
        Ok((record(&fleet, child.run_id).await?.waits == 1).then_some(child.run_id))
    })
    .await?;
    client.processes().cancel(&run.to_string()).await?;
    assert_eq!(outcome(&jobs, run).await?.0, "CANCELED");
    wait_until("the called run has ended", BOUND, || async {
        Ok((record(&fleet, child).await?.state == RunState::Canceled).then_some(()))
    })
    .await?;
    // Nobody waits for the message any more.
    let told = client.processes().message(Message::new("go on")).await?;
    assert!(!told.delivered, "{told:?}");
    fleet.remove().await
}

#[tokio::test]
async fn a_signal_of_one_run_reaches_all_that_wait_for_it() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let signal = r#"<signal id="g" name="opened"/>"#;
    let wait = format!(
        r#"{ENDS}<intermediateCatchEvent id="c"><signalEventDefinition signalRef="g"/></intermediateCatchEvent>"#
    );
    let throw = r#"<startEvent id="s"/><endEvent id="e"><extensionElements><zeebe:ioMapping>
        <zeebe:input source="=&quot;at nine&quot;" target="answer"/></zeebe:ioMapping></extensionElements>
        <signalEventDefinition signalRef="g"/></endEvent>"#;
    fleet.apply_process("wait", &bpmn("wait", VARIABLES, &wait, "s -> c, c -> e", signal)).await?;
    fleet.apply_process("open", &bpmn("open", VARIABLES, throw, "s -> e", signal)).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let run = started(&client, "wait", &json!({})).await?;
        standing(&fleet, run, waits).await?;
        waiting.push(run);
    }
    let thrower = started(&client, "open", &json!({})).await?;
    assert_eq!(outcome(&jobs, thrower).await?.0, "COMPLETED");
    for run in waiting {
        assert_eq!(
            outcome(&jobs, run).await?,
            ("COMPLETED".to_owned(), json!({"answer": "at nine"}))
        );
    }
    fleet.remove().await
}

#[tokio::test]
async fn an_expression_that_takes_too_long_ends_its_run_with_the_reason() -> Result<()> {
    let limit = ("RUNFLEET_EVALUATION_TIME_LIMIT_MS".to_owned(), "1".to_owned());
    let fleet = Fleet::start(Options { settings: vec![limit], ..Options::of_processes() }).await?;
    let slow = "=count(for a in 1..1500 return count(for b in 1..40 return a + b))";
    let elements = format!(
        r#"{ENDS}<scriptTask id="t"><extensionElements><zeebe:script expression="{slow}" resultVariable="answer"/>
        </extensionElements></scriptTask>"#
    );
    fleet.apply_process("slow", &bpmn("slow", VARIABLES, &elements, "s -> t, t -> e", "")).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client, "slow", &json!({})).await?;
    assert_eq!(outcome(&jobs, run).await?, ("FAILED".to_owned(), Value::Null));
    let error = record(&fleet, run).await?.error.context("no error")?;
    assert_eq!(error.code, "EVALUATION_TOO_SLOW");
    fleet.remove().await
}
