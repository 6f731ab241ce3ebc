//! Tools: what is offered, checked, approved, refused.

use runfleet_agent::{Approval, Begin, Decision, Effect, Event, FoundTool, Problem, ToolFault};
use serde_json::{Value, json};

use crate::support::{Driven, begin, calls, definition, definition_with, says, tool};

fn run(approval: Approval, tools: Value) -> Driven {
    Driven::new(definition(json!({}), tools), Begin { approval, ..begin() })
}

fn decide(run: &mut Driven, call_id: &str, decision: Decision) {
    run.step(vec![Event::Approval { call_id: call_id.to_owned(), decision }]);
}

/// NB-13, NB-15, NB-18, NB-35
#[test]
fn what_is_wrong_with_a_call_is_told_and_the_run_goes_on() {
    let mut run = run(Approval::Deny, json!({"t": tool("ALLOW", true)}));
    run.answer(calls(&[
        ("none", "{}"),
        ("t", "{"),
        ("t", r#"{"n":"s3cret"}"#),
        ("t", "{}"),
        ("t", r#"{"n":9}"#),
    ]));
    assert_eq!(run.called().len(), 2, "only those that fit are carried out");
    let problems = vec![Problem::new("/n", "is not a good number")];
    let failed = |call_id: &str, problems| Event::ToolFailed {
        call_id: call_id.to_owned(),
        fault: ToolFault::Timeout,
        problems,
    };
    run.step(vec![failed("call_1_4", problems), failed("call_1_5", Vec::new())]);
    let told = run.told();
    for (id, expected) in [
        ("call_1_1", "Tool unavailable."),
        ("call_1_2", "is not valid JSON"),
        ("call_1_3", r#""path":"/n","message":"must be of type integer""#),
        ("call_1_4", r#""path":"/n","message":"is not a good number""#),
        ("call_1_5", "took too long"),
    ] {
        assert!(told[id].0.contains(expected) && told[id].1, "{id}: {:?}", told[id]);
    }
    let results = format!("{told:?}");
    assert!(!results.contains("s3cret"), "{results}");
}

/// CG-058, NB-07
#[test]
fn without_a_person_a_tool_that_asks_is_refused_or_approved() {
    let tools = json!({"ask": tool("ASK", true), "t": tool("ALLOW", true)});
    let mut denied = run(Approval::Deny, tools.clone());
    denied.answer(calls(&[("ask", "{}"), ("t", "{}")]));
    assert_eq!(denied.called().len(), 1);
    denied.done_all();
    assert!(denied.told()["call_1_1"].0.contains("approval"));
    denied.answer(says("Then not."));
    assert_eq!(denied.code(), "");

    let mut approved = run(Approval::AutoApprove, tools);
    approved.answer(calls(&[("ask", "{}")]));
    assert_eq!(approved.called().len(), 1);
}

/// CG-058
#[test]
fn a_run_that_asks_for_nothing_but_refused_calls_ends() {
    let mut run = run(Approval::Deny, json!({"ask": tool("ASK", true)}));
    for n in 1..=3 {
        run.answer(calls(&[("ask", &format!("{{\"n\":{n}}}"))]));
    }
    assert_eq!(run.code(), "APPROVAL_DENIED");
}

/// NB-08, NB-45
#[test]
fn the_permission_of_an_agent_counts_for_custom_tools_alone() {
    let custom = |permission: &str, scope: &str| {
        let mut tool = tool(permission, true);
        tool["scope"] = json!(scope);
        tool
    };
    let spec =
        json!({"tools": {"a": {"permission": "ALLOW"}, "b": {"permission": "ALLOW"}, "c": {}}});
    let tools = json!({"a": custom("ASK", "CUSTOM"), "b": custom("ASK", "SPECIFIED"), "c": custom("ALLOW", "CUSTOM")});
    let mut run = Driven::new(definition(spec, tools), begin());
    run.answer(calls(&[("a", "{}"), ("b", "{}"), ("c", "{}")]));
    let ids: Vec<String> = run.called().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["call_1_1", "call_1_3"]);
}

/// NB-10, NB-11, NB-12, NB-23, NB-31, NB-32, NB-38
#[test]
fn no_call_runs_before_all_that_are_held_are_decided() {
    let tools = json!({"ask": tool("ASK", true), "t": tool("ALLOW", true)});
    let mut run = run(Approval::Person, tools);
    run.answer(calls(&[
        ("ask", r#"{"n":1}"#),
        ("t", "{}"),
        ("ask", r#"{"n":2}"#),
        ("ask", r#"{"n":3}"#),
    ]));
    assert!(run.called().is_empty());
    decide(&mut run, "call_1_1", Decision::Approve);
    decide(&mut run, "call_1_1", Decision::Reject { reason: None });
    assert_eq!(run.ignored, 1, "a decision counts once");
    let edit = |value: Value| Decision::Edit { arguments: value.as_object().unwrap().clone() };
    decide(&mut run, "call_1_3", edit(json!({"n": "x"})));
    assert_eq!(run.ignored, 2, "arguments that do not fit are no decision");
    decide(&mut run, "call_1_3", edit(json!({"n": 20})));
    assert!(run.called().is_empty());
    decide(&mut run, "call_1_4", Decision::Reject { reason: Some("Too risky.".to_owned()) });
    // One rejection does not throw away the others.
    let called = run.called();
    assert_eq!(
        called.iter().map(|(_, arguments)| arguments["n"].clone()).collect::<Vec<_>>(),
        [1, 1, 20]
    );
    run.done_all();
    assert!(run.told()["call_1_4"].0.contains("Too risky."));
}

/// NB-42
#[test]
fn a_call_that_nobody_decides_about_is_rejected_in_time() {
    let begin = Begin {
        approval: Approval::Person,
        deadline_ms: crate::support::START + 1_800_000,
        ..begin()
    };
    let mut run = Driven::new(definition(json!({}), json!({"ask": tool("ASK", true)})), begin);
    run.answer(calls(&[("ask", "{}")]));
    run.at(900_000);
    assert!(run.told()["call_1_1"].0.contains("not approved in time"));
}

/// NB-21
#[test]
fn a_tool_of_a_skill_is_hidden_until_the_skill_is_loaded() {
    let definition = definition_with(json!({
        "tools": {"t": tool("ALLOW", true), "free": tool("ALLOW", true)},
        "skills": {"deals": {"description": "About deals.", "instructions": "Do this.", "tools": ["t"]}}
    }));
    let mut run = Driven::new(definition, begin());
    let names =
        |run: &Driven| run.request().tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&run), ["free", "getSkill"]);
    run.answer(calls(&[("t", "{}"), ("getSkill", r#"{"skillName":"other"}"#)]));
    assert!(run.told()["call_1_1"].0.contains("Tool unavailable."));
    assert!(run.told()["call_1_2"].1);
    run.answer(calls(&[("getSkill", r#"{"skillName":"deals"}"#)]));
    assert!(
        run.told()["call_2_1"].0.contains("Do this.")
            && run.told()["call_2_1"].0.contains(r#""activatedTools":["t"]"#)
    );
    assert_eq!(names(&run), ["free", "getSkill", "t"]);
}

#[test]
fn tools_that_are_not_allowed_are_neither_offered_nor_called() {
    let definition = definition_with(json!({
        "spec": {"mcpServers": ["files"]},
        "tools": {"t": tool("ALLOW", true), "no": tool("ALLOW", true)},
        "mcpServers": {"files": {"transport": {"stdio": {"command": "x"}},
            "toolPermissions": {"read": "ALLOW"}, "only": ["read", "write"], "timeoutSeconds": 5}}
    }));
    let found = |server: &str, tool: &str| FoundTool {
        server: server.to_owned(),
        tool: tool.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}).as_object().unwrap().clone(),
    };
    let found = vec![
        found("files", "read"),
        found("files", "write"),
        found("files", "hidden"),
        found("else", "read"),
        found("files", "b d"),
    ];
    let begin = Begin { found, denied: ["no".to_owned()].into(), ..begin() };
    let mut run = Driven::new(definition, begin);
    let names: Vec<_> = run.request().tools.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["files__read", "files__write", "t"]);
    run.answer(calls(&[("no", "{}"), ("files__read", r#"{"path":"a"}"#), ("files__write", "{}")]));
    assert_eq!(run.called(), [("call_1_2".to_owned(), json!({"path": "a"}))]);
    run.done_all();
    assert!(run.told()["call_1_1"].1 && run.told()["call_1_3"].0.contains("approval"));
}

/// NB-43
#[test]
fn a_call_that_must_not_be_repeated_is_not_asked_for_once_it_has_begun() {
    let tools = json!({"once": tool("ALLOW", false), "again": tool("ALLOW", true)});
    let mut run = run(Approval::Deny, tools);
    run.answer(calls(&[("once", "{}"), ("again", "{}")]));
    assert_eq!(run.called().len(), 2);
    let began = |id: &str| Event::ToolBegan { call_id: id.to_owned() };
    run.step(vec![began("call_1_1"), began("call_1_2")]);
    assert_eq!(run.called().len(), 1, "the other one may be repeated");
    run.done("call_1_2", json!(1));
    assert!(run.effects.iter().all(|effect| !matches!(effect, Effect::CallTool { .. })));
    // Its time and the grace are over, and nobody knows what it did.
    run.at(30_000);
    assert_eq!(run.code(), "SERVER_RESTARTED");
}

/// NB-39
#[test]
fn a_call_that_may_be_repeated_and_never_ends_is_told_to_the_model() {
    let mut run = run(Approval::Deny, json!({"t": tool("ALLOW", true)}));
    run.answer(calls(&[("t", "{}")]));
    run.at(29_999);
    assert_eq!(run.called().len(), 1);
    run.at(30_000);
    assert!(run.told()["call_1_1"].0.contains("took too long"));
}
