//! Examples of what hosts of a project register, are called for and answer, and of records.

use serde_json::{Map, Value, json};

use super::{check, object, raw};
use crate::Reply;
use crate::agents::AgentStarted;
use crate::data::{
    CreateRecord, GetRecord, QueryRecords, RecordFound, RecordShown, RecordsFound, UpdateRecord,
};
use crate::host::{AskId, HostRequest, HostWork, ToolConversation};
use crate::host_call::{
    CallAnswer, CallCode, CallFailure, CallKind, CallOutcome, CallProblem, CallProject, HostCall,
};
use crate::models::{InvokeModel, ModelMessage, Role};
use crate::projects::{
    Access, ActionDeclared, ActivateVersion, HostSeen, HostShown, JobDeclared, OpenSession,
    ProjectShown, RegisterVersion, ScheduleDeclared, SessionOpened, ShowProject, ToolDeclared,
    ToolPermission, ToolScope, TriggerDeclared, VersionActivated, VersionRegistered, VersionShown,
};

fn declared() -> RegisterVersion {
    let schedule =
        ScheduleDeclared { cron: "0 7 * * 1-5".into(), time_zone: Some("Europe/Berlin".into()) };
    RegisterVersion {
        version: "1.4.0".into(),
        jobs: vec![JobDeclared {
            key: "discount_decided".into(),
            name: Some("Tell the customer".into()),
            timeout_ms: Some(30_000),
            max_attempts: Some(5),
            schedule: Some(schedule),
        }],
        scripts: vec!["leads/import".into()],
        routes: vec!["hooks/payment".into()],
        triggers: vec![TriggerDeclared { key: "lead.changed".into(), timeout_ms: Some(2_000) }],
        actions: vec![ActionDeclared {
            key: "close_deal".into(),
            access: Access::Write,
            timeout_ms: Some(8_000),
        }],
        tools: vec![ToolDeclared {
            name: "reserve-stock".into(),
            title: Some("Reserve stock".into()),
            description: "Reserves stock for an order.".into(),
            schema: Some(object(r#"{"type":"object"}"#)),
            permission: Some(ToolPermission::Allow),
            scope: Some(ToolScope::Specified),
            idempotent: true,
            timeout_seconds: Some(20),
        }],
    }
}

#[test]
fn versions_of_projects_keep_their_form() {
    check("projects.register", &declared());
    let registered = VersionRegistered { version: "1.4.0".into(), created: true };
    check("projects.register.reply", &Reply::Done(registered));
    check("projects.activate", &ActivateVersion { version: "1.4.0".into() });
    let activated = VersionActivated { version: "1.4.0".into(), previous: Some("1.3.9".into()) };
    check("projects.activate.reply", &Reply::Done(activated));
    let host = HostSeen { id: "host-1".into(), version: "1.4.0".into() };
    check("projects.show", &ShowProject { host: Some(host) });
    let version = VersionShown {
        version: "1.4.0".into(),
        registered_at: 1_764_468_000_000,
        active: true,
        jobs: 1,
        scripts: 1,
        routes: 1,
        triggers: 1,
        actions: 1,
        tools: 1,
    };
    let host =
        HostShown { id: "host-1".into(), version: "1.4.0".into(), seen_at: 1_764_468_000_120 };
    let shown =
        ProjectShown { active: Some("1.4.0".into()), versions: vec![version], hosts: vec![host] };
    check("projects.show.reply", &Reply::Done(shown));
    check("projects.session", &OpenSession { read_only: true });
    let opened =
        SessionOpened { token: "header.claims.signature".into(), expires_at: 1_764_471_600_000 };
    check("projects.session.reply", &Reply::Done(opened));
}

#[test]
fn calls_of_projects_keep_their_form() {
    let asked = CallProject {
        kind: CallKind::Script,
        name: "approve-discount".into(),
        input: Some(raw("9007199254740993")),
        run_id: None,
    };
    check("projects.call", &asked);
    check("projects.call.reply", &Reply::Done(json!({"approved": true})));
    let call = HostCall {
        call_id: "5d41402abc4b2a76b9719d911017c592".parse().unwrap(),
        attempt: 1,
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        version: "1.4.0".into(),
        kind: CallKind::Action,
        name: "close_deal".into(),
        input: raw("{\"deal\":7}"),
        run_id: Some("deal:7".into()),
        deadline: 1_764_468_008_000,
        answer_key: "9b74c9897bac770ffc029102a200c5de".into(),
        user: Some("ada".parse().unwrap()),
        read_only: false,
    };
    check("host.call.v1", &call);
    let failure = CallFailure {
        code: CallCode::InputInvalid,
        script_error_code: Some("VALIDATION_ERROR".into()),
        problems: vec![CallProblem { path: "deal".into(), message: "must be a string".into() }],
        writes_may_have_completed: true,
    };
    for (name, outcome) in [
        ("ok", CallOutcome::Ok(raw("{\"closed\":true}"))),
        ("failed", CallOutcome::Failed(failure)),
    ] {
        check(&format!("host.callanswer.v1-{name}"), &CallAnswer::to(&call, outcome));
    }
}

#[test]
fn model_calls_keep_their_form() {
    let message = |role, content: &str| ModelMessage { role, content: content.into() };
    let asked = InvokeModel {
        model: Some("Order 7".into()),
        messages: vec![
            message(Role::System, "Be brief."),
            message(Role::User, "Look at the deal."),
        ],
    };
    check("models.invoke", &asked);
    let started = AgentStarted { run_id: super::AGENT_RUN.into(), duplicate: false };
    check("models.invoke.reply", &Reply::Done(started));
}

#[test]
fn records_keep_their_form() {
    let (object_slug, record_id) = (|| "lead".to_owned(), || "L-7".to_owned());
    check("data.get", &GetRecord { object_slug: object_slug(), record_id: record_id() });
    let query = QueryRecords {
        object_slug: object_slug(),
        record_ids: Some(vec![record_id()]),
        search: Some("north".into()),
        filter: Some(raw("{\"stage\":3}")),
        limit: Some(10),
    };
    check("data.query", &query);
    let fields = || raw("{\"stage\":3}");
    let update =
        UpdateRecord { object_slug: object_slug(), record_id: record_id(), fields: fields() };
    check("data.update", &update);
    let create = CreateRecord { object_slug: "ada".into(), fields: fields() };
    check("data.create", &create);
    let values: Map<String, Value> = object("{\"stage\":3}");
    let record = RecordShown { object_slug: object_slug(), record_id: record_id(), fields: values };
    for operation in ["get", "update", "create"] {
        let found = RecordFound { record: Some(record.clone()) };
        check(&format!("data.{operation}.reply"), &Reply::Done(found));
    }
    check("data.query.reply", &Reply::Done(RecordsFound { records: vec![record] }));
}

#[test]
fn what_a_host_is_asked_for_a_tool_keeps_its_form() {
    let request_id: AskId = "AG1501JDX3Z8GF0000000000000000:7:1".parse().unwrap();
    let (session, model) = ("CV1501JDX3Z8GF0000000000000000".into(), "anthropic/claude".into());
    let request = HostRequest {
        request_id,
        kind: HostWork::Tool,
        name: "reserve".into(),
        workspace: "acme".parse().unwrap(),
        project: "shop".parse().unwrap(),
        run_id: request_id.run_id,
        element_id: "c7".into(),
        instance: 7,
        attempt: 1,
        headers: [].into(),
        variables: object("{\"item\":\"pen\"}"),
        deadline: 1_764_471_600_000,
        answer_key: None,
        conversation: Some(ToolConversation::new(session, model, true, Some("Reserve a pen."))),
    };
    check("host.request.v1-tool", &request);
    let (about, long) = (
        |asked| ToolConversation::new(String::new(), String::new(), false, asked),
        "ä€".repeat(10_000),
    );
    let long = about(Some(&long));
    assert_eq!(long.messages[0].content.len(), 32_768 - 1, "cut between characters");
    assert_eq!(about(None).messages, []);
}
