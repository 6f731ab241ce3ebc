//! One stored example of each body, written and read by the tests: what other versions and other languages rely on.

mod projects;

use runfleet_domain::admission::RunAs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agents::{
    AgentDelivery, AgentGet, AgentInput, AgentRecord, AgentRunState, AgentStart, AgentStarted,
    ApprovalPolicy, Conversation, DeliverTo,
};
use crate::claims::Source;
use crate::host::{
    AskId, HostAccepted, HostAnswer, HostOutcome, HostProgress, HostRequest, HostWork, ProcessCall,
};
use crate::job::JobRun;
use crate::message::{Advance, EndedProcess, Fresh, OutcomeReady, ProcessCompletion};
use crate::operations::{
    AssignTask, CompleteTask, HistoryEntry, HistoryOf, HistoryPage, HistoryWhat, MessagePublished,
    OnRun, PublishMessage, RetryRun, RunOperated, SendSignal, SetVariables, SignalSent,
};
use crate::request::{ProcessGet, ProcessStart, ProcessStarted, ProcessState, Request};
use crate::{Claims, ErrorBody, Reply, RunEvent};

pub(crate) fn check<T: Serialize + DeserializeOwned>(name: &str, value: &T) {
    let path = format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(value).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, stored, "{name}: UPDATE_GOLDEN=1 rewrites it");
    let read: T = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        serde_json::to_string_pretty(&read).unwrap() + "\n",
        stored,
        "{name} changes when it is read"
    );
}

const RUN: &str = "PI1501JDX3Z8GF0000000000000000";
const AGENT_RUN: &str = "AG1501JDX3Z8GF0000000000000000";

fn raw(json: &str) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(json.to_owned()).unwrap()
}

#[test]
fn messages_inside_the_fleet_keep_their_form() {
    let run_id: runfleet_domain::RunId = RUN.parse().unwrap();
    check("run.advance.v1", &Advance { run_id, fresh: None });
    let fresh = Fresh {
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        target: "approve-discount".parse().unwrap(),
        target_version: 3,
        input: Some(raw("{\"amount\":9007199254740993}")),
        job: Some("discount_decided".parse().unwrap()),
        hops: 9,
        chain: 0,
    };
    check("run.advance.v1-fresh", &Advance { run_id, fresh: Some(fresh) });
    let outcome = OutcomeReady {
        run_id,
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        job: "discount_decided".parse().unwrap(),
        hops: 9,
        chain: 0,
    };
    check("run.outcome.v1", &outcome);
}

fn object(json: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn what_waits_in_the_inbox_of_a_run_keeps_its_form() {
    let variables = object("{\"amount\":9007199254740993}");
    let answer = serde_json::json!({"status": 200, "headers": {}, "body": {"ok": true}});
    let events = [
        ("message", RunEvent::Message { subscription: 7, variables: variables.clone() }),
        ("signal", RunEvent::Signal { name: "stop".into(), variables: variables.clone() }),
        ("task-done", RunEvent::TaskDone { task: 7, attempt: 1, answer }),
        (
            "task-failed",
            RunEvent::TaskFailed {
                task: 7,
                attempt: 1,
                code: "HTTP_STATUS_503".into(),
                retry: true,
                retry_after_ms: Some(2_000),
            },
        ),
        (
            "task-error",
            RunEvent::TaskError {
                task: 7,
                attempt: 1,
                code: "no-stock".into(),
                variables: variables.clone(),
            },
        ),
        ("user-done", RunEvent::UserDone { task: 7, variables: variables.clone() }),
        ("user-assigned", RunEvent::UserAssigned { task: 7, assignee: Some("ada".into()) }),
        (
            "child-ended",
            RunEvent::ChildEnded {
                task: 7,
                run: RUN.parse().unwrap(),
                state: "COMPLETED".into(),
                output: Some(variables.clone()),
                code: None,
            },
        ),
        ("retry", RunEvent::Retry { task: None }),
        ("set", RunEvent::Set { scope: None, variables }),
    ];
    for (name, event) in events {
        check(&format!("run-event-{name}"), &event);
        assert_eq!(RunEvent::parse(event.to_body().unwrap().as_bytes()), Ok(event), "{name}");
    }
}

#[test]
fn what_hosts_are_asked_and_answer_keeps_its_form() {
    let request_id = AskId { run_id: RUN.parse().unwrap(), instance: 7, attempt: 2 };
    let request = HostRequest {
        request_id,
        kind: HostWork::Task,
        name: "reserve-stock".into(),
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        run_id: request_id.run_id,
        element_id: "Activity_reserve".into(),
        instance: 7,
        attempt: 2,
        headers: [("warehouse".to_owned(), "north".to_owned())].into(),
        variables: object("{\"order\":9007199254740993}"),
        deadline: 1_764_471_600_000,
        answer_key: Some("mUzVRvHBbmVrAlo4VxeCVw".into()),
        conversation: None,
    };
    check("host.request.v1", &request);
    check("host.accepted.v1", &HostAccepted { request_id, until: 1_764_468_060_000 });
    check("host.progress.v1", &HostProgress::on(&request, 2, "2 of 3 lines".into()));
    let outcomes = [
        ("ok", HostOutcome::Ok(object("{\"reserved\":true}"))),
        ("error", HostOutcome::Error { code: "no-stock".into(), variables: object("{}") }),
        (
            "failed",
            HostOutcome::Failed { code: "BUSY".into(), retry: true, retry_after_ms: Some(60_000) },
        ),
    ];
    for (name, outcome) in outcomes {
        check(&format!("host.answer.v1-{name}"), &HostAnswer::to(&request, outcome));
    }
    let call = ProcessCall {
        run_id: request_id.run_id,
        instance: 7,
        attempt: 2,
        deadline: 1_764_468_030_000,
    };
    check("process.call.v1", &call);
}

/// CG-007, CG-041, CG-042
#[test]
fn what_a_project_gets_keeps_its_form() {
    let run_id: runfleet_domain::RunId = RUN.parse().unwrap();
    let completion = ProcessCompletion {
        payload: Some(raw("{\"order\":7}")),
        process: EndedProcess {
            instance_id: RUN.into(),
            process_id: "approve-discount:3".into(),
            process_info_id: "approve-discount".into(),
            state: "COMPLETED".into(),
            output: Some(raw("{\"approved\":true}")),
            finished_at: Some(1_764_468_000_000),
        },
    };
    check("process-completion", &completion);
    let job = JobRun {
        job_id: run_id.outcome_job(),
        job: "discount_decided".parse().unwrap(),
        project: "shop".parse().unwrap(),
        workspace: "acme".parse().unwrap(),
        attempt: 1,
        source: "enqueue".into(),
        enqueued_by: format!("process:{RUN}"),
        enqueued_at: 1_764_468_000_001,
        user: Some("u1".parse().unwrap()),
        hops: 8,
        depth: 0,
        chain: 1,
        payload: raw("{\"payload\":null}"),
        max_attempts: 5,
        timeout_ms: 30_000,
        run_at: None,
        deadline: Some(1_764_554_400_001),
        version: Some("7".into()),
    };
    check("job.run.v1", &job);
}

#[test]
fn what_callers_send_and_get_keeps_its_form() {
    check(
        "request.v1",
        &Request {
            operation: crate::Operation::ProcessesStart,
            payload: raw("{\"processInfoId\":\"approve-discount\"}"),
        },
    );
    let start = ProcessStart {
        process_info_id: "approve-discount".into(),
        input: Some(raw("{\"amount\":9007199254740993}")),
        instance_name: Some("Order 7".into()),
        idempotency_key: Some("order:7".into()),
        on_complete: Some(crate::request::OutcomeJob {
            job: "discount_decided".into(),
            payload: Some(raw("7")),
        }),
    };
    check("processes.start", &start);
    check(
        "processes.start.reply",
        &Reply::Done(ProcessStarted { instance_id: RUN.into(), duplicate: false }),
    );
    check(
        "processes.get.reply",
        &Reply::Done(ProcessState {
            instance_id: RUN.into(),
            process_id: "approve-discount:3".into(),
            process_info_id: "approve-discount".into(),
            state: "RUNNING".into(),
            started_at: Some(1_764_468_000_000),
            finished_at: None,
        }),
    );
    agents_keep_their_form();
    check("processes.get", &ProcessGet { instance_id: RUN.into() });
    check("error.reply", &Reply::<()>::Failed(ErrorBody::field("input", "must be an object")));
    let claims = Claims {
        aud: crate::claims::AUDIENCE.into(),
        exp: 1_764_471_600,
        iat: 1_764_468_000,
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        version: Some("7".into()),
        execution: "exec-1".parse().unwrap(),
        source: Source::Job,
        user: None,
        read_only: false,
        hops: 10,
        depth: 0,
        chain: 0,
        wait_for_day: false,
        origin: Some("job:discount_decided".into()),
    };
    check("execution-token", &claims);
}

fn agents_keep_their_form() {
    let record =
        AgentRecord { object_slug: "lead".into(), record_id: "L-7".into(), with_activities: true };
    let schema = r#"{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"],"additionalProperties":false}"#;
    let deliver_to = DeliverTo {
        personnel_id: "ada".into(),
        conversation: Some(Conversation::Latest),
        title: Some("Your deal".into()),
    };
    let start = AgentStart {
        agent_id: "deal-coach".into(),
        instruction: "Look at the deal.".into(),
        variables: Some(raw("{\"amount\":9007199254740993}")),
        records: Some(vec![record.clone()]),
        result_schema: Some(raw(schema)),
        run_as: Some(RunAs::Agent),
        approval_policy: Some(ApprovalPolicy::AutoApprove),
        timeout_seconds: Some(60),
        idempotency_key: Some("deal:7".into()),
        on_result: Some(crate::request::OutcomeJob {
            job: "deal_coached".into(),
            payload: Some(raw("7")),
        }),
        deliver_to: Some(deliver_to.clone()),
    };
    check("agents.start", &start);
    check(
        "agents.start.reply",
        &Reply::Done(AgentStarted { run_id: AGENT_RUN.into(), duplicate: true }),
    );
    check("agents.get", &AgentGet { run_id: AGENT_RUN.into() });
    check(
        "agents.get.reply",
        &Reply::Done(AgentRunState {
            run_id: AGENT_RUN.into(),
            status: "COMPLETED".into(),
            text: Some("Done.".into()),
            result: Some(raw("{\"score\":7}")),
            error: None,
            delivery: Some(AgentDelivery {
                status: "NOT_SENT".into(),
                error_code: None,
                chat_session_id: None,
                conversation_id: None,
                new_conversation: false,
            }),
        }),
    );
    check(
        "agent-input",
        &AgentInput {
            instruction: "Look at the deal.".into(),
            variables: Some(raw("{\"amount\":9007199254740993}")),
            records: vec![record],
            result_schema: Some(raw(schema)),
            run_as: RunAs::Caller,
            approval_policy: ApprovalPolicy::Deny,
            timeout_seconds: 300,
            deliver_to: Some(deliver_to),
        },
    );
}

#[test]
fn what_is_done_to_runs_keeps_its_form() {
    for (operation, state) in [
        ("cancel", "CANCELED"),
        ("delete", "DELETED"),
        ("pause", "PAUSED"),
        ("resume", "RUNNING"),
        ("retry", "RUNNING"),
        ("set", "RUNNING"),
        ("completeTask", "RUNNING"),
        ("assignTask", "RUNNING"),
    ] {
        let done = RunOperated { instance_id: RUN.into(), state: state.into() };
        check(&format!("processes.{operation}.reply"), &Reply::Done(done));
        if ["cancel", "delete", "pause", "resume"].contains(&operation) {
            check(&format!("processes.{operation}"), &OnRun { instance_id: RUN.into() });
        }
    }
    check("processes.retry", &RetryRun { instance_id: RUN.into(), task: Some(7) });
    let variables = || raw("{\"amount\":9007199254740993}");
    check(
        "processes.set",
        &SetVariables { instance_id: RUN.into(), scope: Some(3), variables: variables() },
    );
    check(
        "processes.completeTask",
        &CompleteTask { instance_id: RUN.into(), task: 7, variables: Some(variables()) },
    );
    check(
        "processes.assignTask",
        &AssignTask { instance_id: RUN.into(), task: 7, assignee: Some("ada".into()) },
    );
}

#[test]
fn what_is_told_of_and_to_runs_keeps_its_form() {
    let of = HistoryOf { instance_id: RUN.into(), from: Some(0), count: Some(2) };
    check("processes.history", &of);
    let entry = |what, at| HistoryEntry {
        element: "check_order".into(),
        instance: 3,
        what,
        attempt: 1,
        at,
    };
    let entries = vec![
        entry(HistoryWhat::Entered, 1_764_468_000_000),
        entry(HistoryWhat::Left, 1_764_468_000_120),
    ];
    check("processes.history.reply", &Reply::Done(HistoryPage { entries, next: Some(2) }));
    let message = PublishMessage {
        name: "payment_received".into(),
        correlation_key: Some("order-7".into()),
        variables: Some(raw("{\"amount\":120}")),
        time_to_live_seconds: Some(3_600),
        message_id: Some("payment:7".into()),
    };
    check("processes.message", &message);
    let published =
        MessagePublished { delivered: true, buffered: false, instance_id: Some(RUN.into()) };
    check("processes.message.reply", &Reply::Done(published));
    let signal = SendSignal { name: "shop_closed".into(), variables: Some(raw("{\"hours\":8}")) };
    check("processes.signal", &signal);
    check("processes.signal.reply", &Reply::Done(SignalSent { runs: 12, full: None }));
}
