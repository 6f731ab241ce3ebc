//! What people and code do to Process runs that exist, through real workers. Where a run has to wait for something, the test
//! itself is its runner.

use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_client::{Client, Error, Message};
use runfleet_contracts::claims::Source;
use runfleet_contracts::message::ProcessCompletion;
use runfleet_contracts::operations::{HistoryEntry, HistoryWhat};
use runfleet_contracts::run_event::RunEvent;
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Request};
use runfleet_domain::{Name, RunId, RunKind, RunState};
use runfleet_flow::{Doing, State};
use runfleet_store::{
    Checkpoint, Claim, Claimed, Event, RunRecord, Saved, StartChild, Wait, Waits,
};
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, project, start};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

const RUNNER_QUEUE: &str = "process-runner.interactive";

/// A fleet whose runs stay where they are: nobody runs Processes.
async fn held_up(options: Options) -> Result<Fleet> {
    let Options { without, .. } = Options::only(&["start-intake", "completion-dispatcher"]);
    Fleet::start(Options { without, ..options }).await
}

/// The same, with alarms that never ring in a test: what is healed is healed by something else.
async fn held_up_without_alarms(fail_at: &str) -> Result<Fleet> {
    let setting = |name: &str| (format!("RUNFLEET_ALARM_{name}_MS"), "600000".to_owned());
    held_up(Options {
        settings: vec![setting("HANDOVER"), setting("UNCLAIMED")],
        fail_at: Some(("start-intake", fail_at.to_owned())),
        ..Options::default()
    })
    .await
}

fn jobs(fleet: &Fleet) -> Jobs {
    let (workspace, project) = project();
    Jobs::take(&fleet.broker, workspace, project, true)
}

fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    change(&mut claims);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

async fn started(client: &Client) -> Result<String> {
    Ok(client.processes().start_with(&start(&json!({"amount": 1}))).await?.instance_id)
}

async fn record(fleet: &Fleet, run: &str) -> Result<RunRecord> {
    fleet.store.load_run(run.parse()?).await?.context("no such run")
}

/// The refusal that a call must have got.
fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> ErrorBody {
    let error = answer.unwrap_err();
    error.body().unwrap_or_else(|| panic!("not a refusal: {error:?}")).clone()
}

async fn outcome_state(jobs: &Jobs, run: &str) -> Result<String> {
    let job = jobs.wait(run.parse::<RunId>()?.outcome_job(), BOUND).await?;
    let completion: ProcessCompletion = serde_json::from_str(job.payload.get())?;
    Ok(completion.process.state)
}

fn request(operation: Operation, payload: &Value) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Request { operation, payload: to_raw_value(payload)? })?)
}

/// CG-201
#[tokio::test]
async fn a_run_that_is_cancelled_or_deleted_ends_once_and_hands_over_that_outcome() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let (first, second) = (started(&client).await?, started(&client).await?);
    let canceled = client.processes().cancel(&first).await?;
    assert_eq!((canceled.instance_id, canceled.state.as_str()), (first.clone(), "CANCELED"));
    assert_eq!(client.processes().delete(&second).await?.state, "DELETED");
    assert_eq!(outcome_state(&jobs, &first).await?, "CANCELED");
    assert_eq!(outcome_state(&jobs, &second).await?, "DELETED");
    // The first end wins; whoever comes later is told it.
    assert_eq!(client.processes().delete(&first).await?.state, "CANCELED");
    assert_eq!(client.processes().cancel(&second).await?.state, "DELETED");
    assert_eq!(client.processes().get(&first).await?.state, "CANCELED");
    assert_eq!(jobs.get(first.parse::<RunId>()?.outcome_job()).context("no job")?.0, 1);
    fleet.remove().await
}

/// CG-202
#[tokio::test]
async fn a_run_that_is_paused_does_nothing_until_it_is_resumed() -> Result<()> {
    let mut fleet = held_up(Options::default()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let (held, other) = (started(&client).await?, started(&client).await?);
    for _ in 0..2 {
        assert_eq!(client.processes().pause(&held).await?.state, "PAUSED");
    }
    fleet.spawn("process-runner", None)?;
    fleet.ready("process-runner").await?;
    assert_eq!(outcome_state(&jobs, &other).await?, "COMPLETED");
    wait_until("the runner has dropped the wake-up", BOUND, || async {
        let series = "runfleet_consumer_messages_total";
        let text = fleet.metrics("process-runner").await?;
        let dropped = text.lines().any(|line| {
            line.starts_with(series) && line.contains("dropped") && !line.ends_with(" 0")
        });
        Ok(dropped.then_some(()))
    })
    .await?;
    assert_eq!(record(&fleet, &held).await?.state, RunState::Paused);
    assert_eq!(client.processes().get(&held).await?.state, "PAUSED");
    assert_eq!(client.processes().resume(&held).await?.state, "RUNNING");
    assert_eq!(outcome_state(&jobs, &held).await?, "COMPLETED");
    fleet.remove().await
}

/// CG-203
#[tokio::test]
async fn what_has_ended_cannot_be_held_corrected_or_told_anything() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client).await?;
    assert_eq!(outcome_state(&jobs, &run).await?, "COMPLETED");
    let processes = client.processes();
    for answer in [
        processes.pause(&run).await,
        processes.resume(&run).await,
        processes.retry(&run, None).await,
        processes.set(&run, None, &json!({"a": 1})).await,
        processes.complete_task(&run, 7, None).await,
        processes.assign_task(&run, 7, None).await,
    ] {
        let error = refusal(answer);
        assert_eq!(error.code, ErrorCode::Validation);
        assert_eq!(error.details["reason"], "RUN_ENDED");
        assert_eq!(
            (&error.details["field"], &error.details["state"]),
            (&json!("instanceId"), &json!("COMPLETED"))
        );
    }
    for answer in [processes.cancel(&run).await?, processes.delete(&run).await?] {
        assert_eq!(answer.state, "COMPLETED");
    }
    fleet.remove().await
}

/// CG-204
#[tokio::test]
async fn events_wait_for_a_run_once_for_each_request() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let run = started(&client).await?;
    let payload = json!({"instanceId": run, "variables": {"n": 9_007_199_254_740_993_u64}});
    let body = request(Operation::ProcessesSet, &payload)?;
    let first = client.send("answer:7:1".into(), body.clone()).await?;
    assert_eq!(first, client.send("answer:7:1".into(), body).await?, "the same answer");
    client.processes().retry(&run, Some(7)).await?;
    let explained = fleet.store.explain_run(run.parse()?).await?.context("no such run")?;
    assert_eq!(explained.inbox_events, 2);
    // Both ways of telling it wake the runner.
    assert!(fleet.depth(RUNNER_QUEUE).await? >= 3);
    fleet.remove().await
}

/// CG-204
#[tokio::test]
async fn an_inbox_that_is_full_asks_to_come_again_and_keeps_everything() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let run = started(&client).await?;
    let run_id: RunId = run.parse()?;
    for at in 0..runfleet_domain::limits::INBOX_EVENTS_MAX {
        let id = format!("event-{at}").parse()?;
        fleet.store.append_event(run_id, &id, "{}").await?;
    }
    let error = refusal(client.processes().retry(&run, None).await);
    assert_eq!(
        (error.code, &error.details["reason"]),
        (ErrorCode::Retryable, &json!("INBOX_FULL"))
    );
    assert_eq!(error.details["writesMayHaveCompleted"], false);
    let explained = fleet.store.explain_run(run_id).await?.context("no such run")?;
    assert_eq!(explained.inbox_events, u64::from(runfleet_domain::limits::INBOX_EVENTS_MAX));
    fleet.remove().await
}

/// CG-200
#[tokio::test]
async fn only_a_project_that_may_write_does_something_to_its_own_runs() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let own = fleet.client()?;
    let run = started(&own).await?;
    let reader = client(&fleet, |claims| claims.read_only = true)?;
    for (who, client, code, fact) in [
        ("who may only read", reader.clone(), ErrorCode::PermissionDenied, ("reason", "READ_ONLY")),
        (
            "a trigger before a change",
            client(&fleet, |claims| claims.source = Source::TriggerBefore)?,
            ErrorCode::PermissionDenied,
            ("reason", "TRIGGER_READ_ONLY"),
        ),
        (
            "an expired token",
            client(&fleet, |claims| claims.exp = 1)?,
            ErrorCode::PermissionDenied,
            ("reason", "TOKEN_EXPIRED"),
        ),
        (
            "a project without a policy",
            client(&fleet, |claims| claims.project = "other".parse().unwrap())?,
            ErrorCode::PermissionDenied,
            ("reason", "PROCESSES_NOT_ALLOWED"),
        ),
    ] {
        let processes = client.processes();
        for answer in [
            processes.cancel(&run).await,
            processes.pause(&run).await,
            processes.set(&run, None, &json!({})).await,
        ] {
            let error = refusal(answer);
            assert_eq!((error.code, error.details[fact.0].as_str()), (code, Some(fact.1)), "{who}");
        }
    }
    assert!(reader.processes().history(&run, 0, None).await.is_ok(), "reading is reading");
    for id in ["PI0000000000000000000000000000", "AG0000000000000000000000000000", "", "x y"] {
        let error = refusal(own.processes().cancel(id).await);
        assert_eq!(
            (error.code, error.details["resource"].as_str()),
            (ErrorCode::NotFound, Some("process_instance"))
        );
    }
    assert_eq!(record(&fleet, &run).await?.state, RunState::Queued, "nothing has happened");
    fleet.remove().await
}

/// CG-200
#[tokio::test]
async fn each_operation_is_one_call_of_its_execution() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let run = started(&fleet.client()?).await?;
    let script = client(&fleet, |claims| claims.source = Source::Script)?;
    for _ in 0..50 {
        script.processes().pause(&run).await?;
        script.processes().resume(&run).await?;
    }
    let error = refusal(script.processes().cancel(&run).await);
    assert_eq!(
        (error.code, &error.details["budget"]),
        (ErrorCode::RateLimited, &json!("capabilityCalls"))
    );
    assert_eq!(error.details["used"], 100);
    assert_eq!(record(&fleet, &run).await?.state, RunState::Running);
    fleet.remove().await
}

/// CG-201
#[tokio::test]
async fn intake_killed_between_the_end_of_a_run_and_its_outcome_loses_nothing() -> Result<()> {
    let mut fleet = held_up_without_alarms("intake.run_ended").await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client).await?;
    let (canceled, killed) = tokio::join!(client.processes().cancel(&run), async {
        fleet.ended("start-intake").await?;
        fleet.spawn("start-intake", None)?;
        fleet.ready("start-intake").await
    });
    killed?;
    assert_eq!(canceled?.state, "CANCELED", "the request came back and was answered");
    assert_eq!(outcome_state(&jobs, &run).await?, "CANCELED");
    fleet.remove().await
}

#[tokio::test]
async fn intake_killed_between_resuming_a_run_and_waking_it_loses_nothing() -> Result<()> {
    let mut fleet = held_up_without_alarms("intake.run_resumed").await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let run = started(&client).await?;
    client.processes().pause(&run).await?;
    fleet.purge(RUNNER_QUEUE).await?;
    let (resumed, killed) = tokio::join!(client.processes().resume(&run), async {
        fleet.ended("start-intake").await?;
        fleet.spawn("start-intake", None)?;
        fleet.ready("start-intake").await
    });
    killed?;
    assert_eq!(resumed?.state, "RUNNING");
    assert!(fleet.depth(RUNNER_QUEUE).await? >= 1, "woken by the repetition");
    fleet.spawn("process-runner", None)?;
    fleet.ready("process-runner").await?;
    assert_eq!(outcome_state(&jobs, &run).await?, "COMPLETED");
    fleet.remove().await
}

/// CG-201, CG-202
#[tokio::test]
async fn a_run_in_the_middle_of_its_slices_is_cancelled_for_good() -> Result<()> {
    let options = Options {
        settings: vec![("RUNFLEET_SLICE_STEPS".to_owned(), "2".to_owned())],
        ..Options::of_processes()
    };
    let fleet = Fleet::start(options).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let mut long = start(&json!({"limit": 1_000_000}));
    long.process_info_id = "count-to-limit".into();
    long.on_complete.as_mut().context("no job")?.job = "count_done".into();
    let run = client.processes().start_with(&long).await?.instance_id;
    wait_until("the run goes on", BOUND, || async {
        let run = record(&fleet, &run).await?;
        Ok((run.state == RunState::Running && run.version > 10).then_some(()))
    })
    .await?;
    assert_eq!(client.processes().pause(&run).await?.state, "PAUSED");
    assert_eq!(client.processes().resume(&run).await?.state, "RUNNING");
    let before = record(&fleet, &run).await?.version;
    wait_until("the run goes on again", BOUND, || async {
        Ok((record(&fleet, &run).await?.version > before + 10).then_some(()))
    })
    .await?;
    assert_eq!(client.processes().cancel(&run).await?.state, "CANCELED");
    assert_eq!(outcome_state(&jobs, &run).await?, "CANCELED");
    let at_the_end = record(&fleet, &run).await?;
    assert_eq!((at_the_end.state, at_the_end.position), (RunState::Canceled, None));
    fleet.remove().await
}

/// Claims a run as its runner does.
async fn claimed(fleet: &Fleet, run: RunId) -> Result<(u64, Vec<Event>)> {
    match fleet.store.claim_run(run, Claim { quarantine: false }).await? {
        Claimed::Claimed { fence, inbox, .. } => Ok((fence, inbox)),
        other => anyhow::bail!("not claimed: {other:?}"),
    }
}

/// Lets a run wait as its runner does; gives what waits for it already.
async fn waits(fleet: &Fleet, run: &str, list: &[Wait<'_>]) -> Result<Vec<Event>> {
    let run = run.parse()?;
    let (fence, _) = claimed(fleet, run).await?;
    let (workspace, project) = project();
    let waits = Waits { workspace: &workspace, project: &project, list };
    let checkpoint = Checkpoint { release: true, waits: Some(&waits), ..Checkpoint::new("{}") };
    match fleet.store.checkpoint_run(run, fence, &checkpoint).await? {
        Saved::Saved { inbox, .. } => Ok(inbox),
        other => anyhow::bail!("not saved: {other:?}"),
    }
}

/// The events that wait for a run.
async fn inbox(fleet: &Fleet, run: &str) -> Result<Vec<RunEvent>> {
    let events = claimed(fleet, run.parse()?).await?.1;
    let read = |event: &Event| RunEvent::parse(event.body.as_bytes());
    events.iter().map(read).collect::<Result<_, _>>().map_err(|error| anyhow::anyhow!("{error:?}"))
}

fn paid(subscription: u64) -> Wait<'static> {
    Wait::Message { name: "paid", key: Some("order-7"), subscription }
}

fn payment() -> Result<Message, Error> {
    Message::new("paid").correlation_key("order-7").variables(&json!({"amount": 120}))
}

/// CG-205
#[tokio::test]
async fn a_message_goes_to_the_run_that_has_waited_longest_and_only_once() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let (first, second) = (started(&client).await?, started(&client).await?);
    waits(&fleet, &first, &[paid(3)]).await?;
    waits(&fleet, &second, &[paid(4)]).await?;
    fleet.purge(RUNNER_QUEUE).await?;
    let processes = client.processes();
    let got = processes.message(payment()?.message_id("payment:7")).await?;
    assert_eq!((got.delivered, got.buffered), (true, false));
    assert_eq!(got.instance_id.as_deref(), Some(first.as_str()));
    assert_eq!(fleet.depth(RUNNER_QUEUE).await?, 1, "it is woken");
    let again = processes.message(payment()?.message_id("payment:7")).await?;
    assert_eq!(again, got, "the same message gets the same answer");
    let other = processes.message(payment()?).await?;
    assert_eq!(other.instance_id.as_deref(), Some(second.as_str()));
    let nobody = processes.message(payment()?).await?;
    assert_eq!((nobody.delivered, nobody.buffered, nobody.instance_id), (false, false, None));
    for (run, subscription) in [(&first, 3), (&second, 4)] {
        let variables = json!({"amount": 120}).as_object().context("an object")?.clone();
        assert_eq!(inbox(&fleet, run).await?, [RunEvent::Message { subscription, variables }]);
    }
    fleet.remove().await
}

/// CG-205
#[tokio::test]
async fn a_message_that_nobody_waits_for_is_kept_for_who_comes_when_it_may_be() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let run = started(&client).await?;
    let kept = client.processes().message(payment()?.time_to_live(Duration::from_mins(1))).await?;
    assert_eq!((kept.delivered, kept.buffered, kept.instance_id), (false, true, None));
    let other = Wait::Message { name: "paid", key: Some("order-8"), subscription: 2 };
    assert!(waits(&fleet, &run, &[other]).await?.is_empty(), "it is for another key");
    let events = waits(&fleet, &run, &[other, paid(3)]).await?;
    let [event] = &events[..] else { panic!("{events:?}") };
    let event =
        RunEvent::parse(event.body.as_bytes()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    assert!(matches!(event, RunEvent::Message { subscription: 3, .. }), "{event:?}");
    fleet.remove().await
}

/// CG-206
#[tokio::test]
async fn a_signal_reaches_every_run_that_waits_for_it_and_each_once_for_a_request() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let runs = [started(&client).await?, started(&client).await?, started(&client).await?];
    for run in &runs[..2] {
        waits(&fleet, run, &[Wait::Signal { name: "closed" }]).await?;
    }
    fleet.purge(RUNNER_QUEUE).await?;
    let payload = json!({"name": "closed", "variables": {"hours": 8}});
    let body = request(Operation::ProcessesSignal, &payload)?;
    let first = client.send("signal-1".into(), body.clone()).await?;
    assert_eq!(fleet.depth(RUNNER_QUEUE).await?, 2, "both are woken");
    assert_eq!(first, client.send("signal-1".into(), body).await?);
    assert_eq!(serde_json::from_slice::<Value>(&first)?["data"], json!({"runs": 2}));
    let variables = json!({"hours": 8}).as_object().context("an object")?.clone();
    let signal = RunEvent::Signal { name: "closed".into(), variables };
    for (run, events) in runs.iter().zip([vec![signal.clone()], vec![signal], vec![]]) {
        assert_eq!(inbox(&fleet, run).await?, events);
    }
    assert_eq!(client.processes().signal("opened", None).await?.runs, 0);
    fleet.remove().await
}

#[tokio::test]
async fn a_signal_says_how_many_runs_have_no_room_and_reaches_the_others() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let runs = [started(&client).await?, started(&client).await?];
    for run in &runs {
        waits(&fleet, run, &[Wait::Signal { name: "closed" }]).await?;
    }
    for at in 0..runfleet_domain::limits::INBOX_EVENTS_MAX {
        let id = format!("event-{at}").parse()?;
        fleet.store.append_event(runs[0].parse()?, &id, "{}").await?;
    }
    let sent = client.processes().signal("closed", None).await?;
    assert_eq!((sent.runs, sent.full), (1, Some(1)));
    fleet.remove().await
}

#[tokio::test]
async fn intake_killed_between_a_message_and_the_wake_up_of_its_run_loses_nothing() -> Result<()> {
    let mut fleet = held_up_without_alarms("intake.message_published").await?;
    let client = fleet.client()?;
    let run = started(&client).await?;
    waits(&fleet, &run, &[paid(3)]).await?;
    fleet.purge(RUNNER_QUEUE).await?;
    let (published, killed) = tokio::join!(client.processes().message(payment()?), async {
        fleet.ended("start-intake").await?;
        fleet.spawn("start-intake", None)?;
        fleet.ready("start-intake").await
    });
    killed?;
    let published = published?;
    assert_eq!((published.delivered, published.instance_id.as_ref()), (true, Some(&run)));
    assert_eq!(fleet.depth(RUNNER_QUEUE).await?, 1, "woken by the repetition");
    assert_eq!(inbox(&fleet, &run).await?.len(), 1);
    fleet.remove().await
}

/// CG-207
#[tokio::test]
async fn the_history_of_a_run_is_told_page_by_page_also_after_its_end() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let run = started(&client).await?;
    let entries: Vec<HistoryEntry> = (0..250)
        .map(|at| HistoryEntry {
            element: format!("step_{at}"),
            instance: at,
            what: if at % 2 == 0 { HistoryWhat::Entered } else { HistoryWhat::Left },
            attempt: 1,
            at: 1_764_500_000_000 + at,
        })
        .collect();
    let stored: Vec<String> = entries.iter().map(HistoryEntry::to_stored).collect();
    let history: Vec<&str> = stored.iter().map(String::as_str).collect();
    let (fence, _) = claimed(&fleet, run.parse()?).await?;
    let checkpoint = Checkpoint { release: true, history: &history, ..Checkpoint::new("{}") };
    fleet.store.checkpoint_run(run.parse()?, fence, &checkpoint).await?;
    client.processes().cancel(&run).await?;
    let processes = client.processes();
    let page = processes.history(&run, 0, None).await?;
    assert_eq!((&page.entries[..], page.next), (&entries[..200], Some(200)));
    let page = processes.history(&run, 200, None).await?;
    assert_eq!((&page.entries[..], page.next), (&entries[200..], None));
    let page = processes.history(&run, 7, Some(2)).await?;
    assert_eq!((&page.entries[..], page.next), (&entries[7..9], Some(9)));
    let missing = refusal(processes.history("nonsense", 0, None).await);
    assert_eq!(missing.code, ErrorCode::NotFound);
    fleet.remove().await
}

/// A run that `parent` calls as the given instance of it.
async fn called(fleet: &Fleet, parent: RunId, instance: u64) -> Result<RunId> {
    let record = fleet.store.load_run(parent).await?.context("no such run")?;
    let target: Name = "approve-discount".parse()?;
    let child = StartChild {
        parent,
        instance,
        attempt: 1,
        fence: None,
        detached: false,
        kind: RunKind::Process,
        workspace: &record.workspace,
        project: &record.project,
        lane: record.lane,
        identity: &record.identity,
        target: &target,
        target_version: 1,
        execution: &record.execution,
        user: None,
        hops: record.hops - 1,
        depth: record.depth,
        chain: record.chain,
        instance_name: None,
        input: None,
        deadline_ms: None,
        asks_in: None,
        traceparent: None,
    };
    fleet.store.start_child(&child).await?;
    Ok(child.run_id())
}

/// A run with two children, one of which has two itself.
async fn family(fleet: &Fleet, root: &str) -> Result<[RunId; 4]> {
    let root = root.parse()?;
    let (one, two) = (called(fleet, root, 1).await?, called(fleet, root, 2).await?);
    Ok([one, two, called(fleet, two, 1).await?, called(fleet, two, 2).await?])
}

/// CG-201
#[tokio::test]
async fn a_run_that_is_cancelled_takes_along_every_run_that_it_has_called() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let (jobs, client) = (jobs(&fleet), fleet.client()?);
    let root = started(&client).await?;
    let family = family(&fleet, &root).await?;
    assert_eq!(client.processes().cancel(&root).await?.state, "CANCELED");
    for run in family {
        let record = fleet.store.load_run(run).await?.context("no such run")?;
        assert_eq!(
            (record.state, record.error.context("no error")?.code.as_str()),
            (RunState::Canceled, "CALLED_OFF")
        );
    }
    assert!(fleet.store.open_children(root.parse()?, 10).await?.is_empty());
    assert_eq!(outcome_state(&jobs, &root).await?, "CANCELED");
    fleet.remove().await
}

#[tokio::test]
async fn intake_killed_before_called_runs_have_ended_ends_them_when_it_comes_back() -> Result<()> {
    let mut fleet = held_up_without_alarms("intake.run_ended").await?;
    let client = fleet.client()?;
    let root = started(&client).await?;
    let family = family(&fleet, &root).await?;
    let (canceled, killed) = tokio::join!(client.processes().cancel(&root), async {
        fleet.ended("start-intake").await?;
        fleet.spawn("start-intake", None)?;
        fleet.ready("start-intake").await
    });
    killed?;
    assert_eq!(canceled?.state, "CANCELED");
    for run in family {
        let record = fleet.store.load_run(run).await?.context("no such run")?;
        assert_eq!(record.state, RunState::Canceled);
    }
    fleet.remove().await
}

/// CG-208
#[tokio::test]
async fn a_called_run_that_is_cancelled_tells_and_wakes_the_run_that_has_called_it() -> Result<()> {
    let fleet = held_up(Options::default()).await?;
    let client = fleet.client()?;
    let root = started(&client).await?;
    let [one, two, ..] = family(&fleet, &root).await?;
    fleet.purge(RUNNER_QUEUE).await?;
    assert_eq!(client.processes().cancel(&one.to_string()).await?.state, "CANCELED");
    assert_eq!(fleet.depth(RUNNER_QUEUE).await?, 1, "the parent is woken");
    let events = inbox(&fleet, &root).await?;
    let [RunEvent::ChildEnded { task: 1, run, state, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*run, state.as_str()), (one, "CANCELED"));
    let open = fleet.store.open_children(root.parse()?, 10).await?;
    assert_eq!(open.iter().map(|child| child.run_id).collect::<Vec<_>>(), [two]);
    fleet.remove().await
}

/// What is active in a run, as element and instance.
async fn active(fleet: &Fleet, run: &str) -> Result<Vec<(String, u64, Doing)>> {
    let Some(position) = record(fleet, run).await?.position else { return Ok(Vec::new()) };
    let state = State::from_json(&position).map_err(|_| anyhow::anyhow!("no position"))?;
    let active = state.view(None).active.into_iter();
    Ok(active.map(|element| (element.element, element.instance, element.doing)).collect())
}

async fn started_as(client: &Client, process: &str, input: &Value) -> Result<String> {
    let mut options = start(input);
    options.process_info_id = process.into();
    options.on_complete = None;
    Ok(client.processes().start_with(&options).await?.instance_id)
}

async fn completed(client: &Client, run: &str) -> Result<()> {
    wait_until("the run has completed", BOUND, || async {
        let state = client.processes().get(run).await?.state;
        anyhow::ensure!(["RUNNING", "COMPLETED"].contains(&state.as_str()), "{state}");
        Ok((state == "COMPLETED").then_some(()))
    })
    .await
}

/// CG-209
#[tokio::test]
async fn a_user_task_is_assigned_and_completed_and_its_run_goes_on() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let client = fleet.client()?;
    let input = json!({"customerId": "c-7", "email": "c@example.com"});
    let run = started_as(&client, "onboard-customer", &input).await?;
    let task = wait_until("the task waits for a person", BOUND, || async {
        let active = active(&fleet, &run).await?;
        let task = active.iter().find(|(_, _, doing)| matches!(doing, Doing::Person { .. }));
        Ok(task.map(|(_, instance, _)| *instance))
    })
    .await?;
    let processes = client.processes();
    for refused in [
        processes.assign_task(&run, task + 100, Some("ada")).await,
        processes.complete_task(&run, task + 100, None).await,
    ] {
        let error = refusal(refused);
        assert_eq!((error.code, &error.details["field"]), (ErrorCode::Validation, &json!("task")));
    }
    for person in [Some("ada"), None, Some("ben")] {
        assert_eq!(processes.assign_task(&run, task, person).await?.state, "RUNNING");
        wait_until("the task has its assignee", BOUND, || async {
            let active = active(&fleet, &run).await?;
            Ok(active
                .iter()
                .any(|(_, _, doing)| {
                    matches!(doing, Doing::Person { assignee, .. } if assignee.as_deref() == person)
                })
                .then_some(()))
        })
        .await?;
    }
    let given = to_raw_value(&json!({"documentsComplete": false}))?;
    processes.complete_task(&run, task, Some(&given)).await?;
    completed(&client, &run).await?;
    let history = processes.history(&run, 0, None).await?.entries;
    let told =
        |what| history.iter().any(|entry| entry.element == "CheckDocuments" && entry.what == what);
    assert!(told(HistoryWhat::Entered) && told(HistoryWhat::Left), "{history:?}");
    fleet.remove().await
}

/// CG-202, CG-205
#[tokio::test]
async fn a_message_that_comes_while_its_run_is_paused_is_dealt_with_afterwards() -> Result<()> {
    let fleet = Fleet::start(Options::of_processes()).await?;
    let client = fleet.client()?;
    let run = started_as(&client, "remind", &json!({"invoiceId": "i-7", "people": []})).await?;
    wait_until("the run waits for its message", BOUND, || async {
        Ok((record(&fleet, &run).await?.waits > 0).then_some(()))
    })
    .await?;
    let processes = client.processes();
    processes.pause(&run).await?;
    let message = Message::new("invoice-paid").correlation_key("i-7");
    let published = processes.message(message.variables(&json!({"paidOn": "2026-11-30"}))?).await?;
    assert_eq!(published.instance_id.as_ref(), Some(&run));
    assert_eq!(processes.get(&run).await?.state, "PAUSED");
    assert_eq!(processes.resume(&run).await?.state, "RUNNING");
    completed(&client, &run).await?;
    fleet.remove().await
}
