//! Calls and their answers, as they are read.

use serde_json::{Value, json};

use super::*;

fn parse(value: &Value) -> Result<CallProject, ErrorBody> {
    CallProject::parse(&serde_json::value::to_raw_value(value).unwrap())
}

fn answer(outcome: &Value) -> Vec<u8> {
    json!({
        "callId": "c1", "attempt": 1, "workspace": "acme", "project": "shop", "answerKey": "k",
        "outcome": outcome,
    })
    .to_string()
    .into_bytes()
}

#[test]
fn a_call_names_one_thing_of_one_kind() {
    parse(&json!({"kind": "script", "name": "leads/import", "input": [1, null]})).unwrap();
    parse(&json!({"kind": "action", "name": "close_deal", "runId": "deal:7"})).unwrap();
    for (wrong, field) in [
        (json!({"kind": "job", "name": "a"}), "kind"),
        (json!({"kind": "script", "name": ""}), "name"),
        (json!({"kind": "script", "name": "/etc"}), "name"),
        (json!({"kind": "action", "name": "Close"}), "name"),
        (json!({"kind": "script", "name": "a", "runId": "r"}), "runId"),
        (json!({"kind": "action", "name": "a", "runId": ":r"}), "runId"),
        (json!({"kind": "action", "name": "a", "runId": null}), "runId"),
        (
            json!({"kind": "script", "name": "a", "input": "x".repeat(CALL_INPUT_BYTES_MAX)}),
            "input",
        ),
    ] {
        assert_eq!(parse(&wrong).unwrap_err().details["field"], field);
    }
}

#[test]
fn what_a_host_makes_too_long_is_cut_and_no_text_of_it_gets_through() {
    let failed = json!({"failed": {
        "code": "SCRIPT_ERROR", "scriptErrorCode": "not a code s3cret", "writesMayHaveCompleted": true,
        "problems": vec![json!({"path": "a\nb", "message": "m".repeat(1_000)}); 30],
    }});
    let CallOutcome::Failed(failure) = CallAnswer::parse(&answer(&failed)).unwrap().outcome else {
        panic!("a failure")
    };
    assert_eq!((failure.problems.len(), failure.script_error_code.as_deref()), (20, None));
    assert_eq!(failure.problems[0].path, "a b");
    let told = failure.told();
    assert_eq!(told.details["writesMayHaveCompleted"], true);
    assert!(!serde_json::to_string(&told).unwrap().contains("s3cret"));
}

#[test]
fn a_result_that_is_too_large_is_withheld() {
    let large = json!({"ok": "x".repeat(CALL_RESULT_BYTES_MAX)});
    let CallOutcome::Failed(failure) = CallAnswer::parse(&answer(&large)).unwrap().outcome else {
        panic!("a failure")
    };
    assert_eq!(failure.code, CallCode::OutputInvalid);
    assert!(CallAnswer::parse(&vec![b' '; BODY_BYTES_MAX + 1]).is_err());
    assert!(CallAnswer::parse(&answer(&json!({"failed": {"code": "WHATEVER"}}))).is_err());
}

#[test]
fn nothing_that_a_call_carries_is_in_its_debug_text() {
    let parsed = CallAnswer::parse(&answer(&json!({"ok": "s3cret"}))).unwrap();
    assert!(!format!("{parsed:?}").contains("s3cret"));
}
