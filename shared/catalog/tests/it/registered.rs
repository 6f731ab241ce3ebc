//! Registered versions of projects, and how one becomes the active one.

use runfleet_catalog::{Acting, ActivateError, Callable, Declared, Snapshot};
use runfleet_contracts::ErrorBody;
use runfleet_contracts::host_call::CallKind;
use runfleet_contracts::projects::RegisterVersion;
use runfleet_domain::{JobKey, Name};
use serde_json::{Value, json};

use crate::bundle::{Files, WORKSPACE, document};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn read(project: &str, value: &Value) -> Result<Declared, ErrorBody> {
    let raw = serde_json::value::to_raw_value(value).unwrap();
    Declared::new(&name(project), &RegisterVersion::parse(&raw).unwrap())
}

fn version(version: &str) -> Value {
    json!({
        "version": version,
        "jobs": [{"key": format!("job_{}", version.replace('.', "_"))}],
        "scripts": ["import"],
        "routes": ["hook"],
        "triggers": [{"key": "changed", "timeoutMs": 500}],
        "actions": [{"key": "look", "access": "read", "timeoutMs": 1_000}],
        "tools": [{"name": "reserve", "description": format!("Reserves ({version}).")}],
    })
}

const PROJECT: &str =
    "{version: '1', jobs: [{key: from_document}], policy: {processes: {processes: {mode: ALL}}}}";

fn files() -> Files {
    Files::new(&[
        WORKSPACE,
        ("shop.yaml", &document("Project", "shop", PROJECT)),
        ("depot.yaml", &document("Project", "depot", "{version: '1'}")),
        ("agent.yaml", &document("Agent", "clerk", "{model: m, tools: [reserve]}")),
    ])
}

fn merge(previous: Option<&Snapshot>, files: &Files) -> Snapshot {
    Snapshot::merge(previous, files.load().unwrap()).unwrap().snapshot
}

fn jobs(snapshot: &Snapshot) -> Vec<String> {
    snapshot.projects[&name("shop")].jobs.keys().map(JobKey::to_string).collect()
}

/// CG-116, CG-117, CG-232
#[test]
fn the_jobs_of_the_active_version_take_the_place_of_those_of_the_document() {
    let files = files();
    let first = merge(None, &files);
    assert_eq!(jobs(&first), ["from_document"]);
    let declared = read("shop", &version("1.4")).unwrap();
    let active = first.activate(&name("shop"), &declared).unwrap().snapshot;
    assert_eq!(jobs(&active), ["job_1_4"]);
    assert_eq!(active.revision, first.revision + 1);
    assert_eq!(active.activate(&name("shop"), &declared).unwrap().snapshot, active);
    // The document is applied again: what is active stays, what else it says counts.
    let other = PROJECT.replace("policy:", "limits: {jobsWaiting: 5}, policy:");
    files.write("shop.yaml", document("Project", "shop", &other));
    let applied = merge(Some(&active), &files);
    let project = &applied.projects[&name("shop")];
    assert_eq!((project.version.as_str(), project.limits.jobs_waiting), ("1.4", 5));
    assert_eq!(jobs(&applied), ["job_1_4"]);
}

/// CG-232
#[test]
fn tools_of_the_active_version_come_to_agents_that_name_them_as_new_versions_of_these() {
    let files = files();
    let first = merge(None, &files);
    assert!(first.blueprint(&name("clerk")).unwrap().tools.is_empty());
    let activate = |on: &Snapshot, number: &str| {
        on.activate(&name("shop"), &read("shop", &version(number)).unwrap()).unwrap()
    };
    let merged = activate(&first, "1.4");
    assert_eq!(merged.agent_versions.len(), 1);
    assert_eq!(merged.agent_versions[0].version, 2);
    let blueprint = merged.snapshot.blueprint(&name("clerk")).unwrap();
    assert_eq!(blueprint.tools[&name("reserve")].description, "Reserves (1.4).");
    let second = activate(&merged.snapshot, "1.5");
    assert_eq!(second.agent_versions[0].version, 3);
    // Nothing about it is a warning of the next apply.
    let applied = Snapshot::merge(Some(&second.snapshot), files.load().unwrap()).unwrap();
    assert!(applied.changes.is_empty(), "{}", applied.changes);
    assert!(applied.changes.warnings.is_empty(), "{:?}", applied.changes.warnings);
    // A tool of the workspace comes first.
    let own = "{description: Own., http: {url: 'https://example.com'}}";
    files.write("tool.yaml", document("Tool", "reserve", own));
    let own = merge(Some(&second.snapshot), &files);
    assert_eq!(own.blueprint(&name("clerk")).unwrap().tools[&name("reserve")].description, "Own.");
}

#[test]
fn a_run_may_call_a_registered_tool_while_its_agent_has_it_and_the_active_version_declares_it() {
    let first = merge(None, &files());
    let may = |on: &Snapshot, tool: &str| {
        let (shop, ada) = (name("shop"), name("ada"));
        let by = Acting { project: &shop, user: Some(&ada) };
        on.may_call(by, &name("clerk"), tool)
    };
    assert!(!may(&first, "reserve"));
    let activate = |value: &Value| {
        first.activate(&name("shop"), &read("shop", value).unwrap()).unwrap().snapshot
    };
    let active = activate(&version("1.4"));
    assert!(may(&active, "reserve") && !may(&active, "nobody"));
    assert!(!may(&activate(&json!({"version": "1.5"})), "reserve"));
}

/// CG-232, NB-06
#[test]
fn a_general_tool_of_a_version_comes_to_the_agents_that_the_policy_of_its_project_picks() {
    let files = files();
    let agent = |tools: &str| document("Agent", "helper", &format!("{{model: m, tools: {tools}}}"));
    files.write("helper.yaml", agent("[]"));
    let mut declared = version("1.4");
    declared["tools"][0]["scope"] = "GENERAL".into();
    let declared = read("shop", &declared).unwrap();
    let agents = |of: &Snapshot| {
        let has = |agent: &str| !of.blueprint(&name(agent)).unwrap().tools.is_empty();
        ["clerk", "helper"].into_iter().filter(|agent| has(agent)).collect::<Vec<_>>()
    };
    let mut before: Option<Snapshot> = None;
    for (mode, expected) in [
        // One that names it has it whatever the policy says: an administrator has written that.
        ("", vec!["clerk"]),
        (", agents: {agents: {mode: ONLY, agentIds: [clerk]}}", vec!["clerk"]),
        (", agents: {agents: {mode: ALL}}", vec!["clerk", "helper"]),
        (", agents: {agents: {mode: ALL_EXCEPT, agentIds: [helper]}}", vec!["clerk"]),
    ] {
        let policy = PROJECT.replace("ALL}}}}", &format!("ALL}}}}{mode}}}}}"));
        files.write("shop.yaml", document("Project", "shop", &policy));
        let applied = merge(before.as_ref(), &files);
        let active = applied.activate(&name("shop"), &declared).unwrap().snapshot;
        assert_eq!(agents(&active), expected, "{mode}");
        let (shop, ada) = (name("shop"), name("ada"));
        let by = Acting { project: &shop, user: Some(&ada) };
        assert_eq!(active.may_call(by, &name("helper"), "reserve"), expected.len() == 2, "{mode}");
        before = Some(active);
    }
    files.write("helper.yaml", agent("[reserve]"));
    assert_eq!(agents(&merge(before.as_ref(), &files)), ["clerk", "helper"]);
}

#[test]
fn two_projects_cannot_have_a_tool_of_one_name() {
    let first = merge(None, &files());
    let declared = read("shop", &version("1.4")).unwrap();
    let active = first.activate(&name("shop"), &declared).unwrap().snapshot;
    let theirs = read("depot", &version("1.4")).unwrap();
    let (tool, project) = (name("reserve"), name("shop"));
    let taken = ActivateError::ToolTaken { tool, project };
    assert_eq!(active.activate(&name("depot"), &theirs), Err(taken));
    assert_eq!(active.activate(&name("nobody"), &theirs), Err(ActivateError::NoProject));
}

/// CG-010
#[test]
fn a_version_goes_on_with_the_policy_in_force_and_an_older_one_with_its_own() {
    let files = files();
    let activate = |on: &Snapshot, number: &str| {
        on.activate(&name("shop"), &read("shop", &version(number)).unwrap()).unwrap().snapshot
    };
    let of = |snapshot: &Snapshot| snapshot.projects[&name("shop")].policy.processes.is_some();
    let first = activate(&merge(None, &files), "1.4");
    assert!(of(&first));
    files.write("shop.yaml", document("Project", "shop", "{version: '1'}"));
    let narrowed = merge(Some(&first), &files);
    assert!(!of(&narrowed));
    let next = activate(&narrowed, "1.5");
    assert!(!of(&next));
    // Version 1 was approved with the larger policy, and never with another one.
    assert!(of(&activate(&next, "1")));
}

#[test]
fn what_a_version_declares_is_called_within_its_time() {
    let first = merge(None, &files());
    let declared = read("shop", &version("1.4")).unwrap();
    let active = first.activate(&name("shop"), &declared).unwrap().snapshot;
    let version = active.projects[&name("shop")].registered.clone().unwrap();
    for (kind, called, expected) in [
        (CallKind::Script, "import", Some((30_000, false))),
        (CallKind::Route, "hook", Some((8_000, false))),
        (CallKind::Trigger, "changed", Some((500, false))),
        (CallKind::Action, "look", Some((1_000, true))),
        (CallKind::Action, "import", None),
        (CallKind::Script, "hook", None),
    ] {
        let expected = expected.map(|(timeout_ms, read_only)| Callable { timeout_ms, read_only });
        assert_eq!(version.callable(kind, called), expected, "{called}");
    }
}

#[test]
fn a_schema_that_is_none_or_names_another_is_told_by_its_place() {
    for schema in [
        json!({"type": "object", "properties": 7}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}),
    ] {
        let tools = json!([{"name": "t", "description": "d", "schema": schema}]);
        let error = read("shop", &json!({"version": "1", "tools": tools})).unwrap_err();
        assert_eq!(error.details["field"], "tools[0].schema");
    }
}

#[test]
fn the_first_agent_with_the_model_answers_model_calls() {
    let project = "{version: '1', modelAgents: [off, small, large]}";
    let files = Files::new(&[
        WORKSPACE,
        ("shop.yaml", &document("Project", "shop", project)),
        ("off.yaml", &document("Agent", "off", "{model: s, state: inactive}")),
        ("small.yaml", &document("Agent", "small", "{model: s}")),
        ("large.yaml", &document("Agent", "large", "{model: l}")),
        ("other.yaml", &document("Agent", "other", "{model: o}")),
    ]);
    let snapshot = merge(None, &files);
    let agent = |model| snapshot.model_agent(&name("shop"), model).map(ToString::to_string);
    assert_eq!(agent(None).as_deref(), Some("small"));
    assert_eq!(agent(Some("l")).as_deref(), Some("large"));
    assert_eq!((agent(Some("o")), agent(Some("x"))), (None, None));
}
