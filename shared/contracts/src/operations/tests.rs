//! Every option of the operations on runs, at and beyond its limits.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::Operation;

const RUN: &str = "PI1501JDX3Z8GF0000000000000000";

/// Whether the options of an operation are taken, or which field is wrong.
fn parse(operation: Operation, options: &Value) -> Result<(), ErrorBody> {
    let payload = to_raw_value(options).unwrap();
    match operation {
        Operation::ProcessesRetry => RetryRun::parse(&payload).map(drop),
        Operation::ProcessesSet => SetVariables::parse(&payload).map(drop),
        Operation::ProcessesCompleteTask => CompleteTask::parse(&payload).map(drop),
        Operation::ProcessesAssignTask => AssignTask::parse(&payload).map(drop),
        Operation::ProcessesHistory => HistoryOf::parse(&payload).map(drop),
        Operation::ProcessesMessage => PublishMessage::parse(&payload).map(drop),
        Operation::ProcessesSignal => SendSignal::parse(&payload).map(drop),
        _ => OnRun::parse(&payload).map(drop),
    }
}

/// Good options of each operation, with everything given.
fn good() -> Vec<(Operation, Value)> {
    let run = json!({"instanceId": RUN});
    vec![
        (Operation::ProcessesCancel, run.clone()),
        (Operation::ProcessesDelete, run.clone()),
        (Operation::ProcessesPause, run.clone()),
        (Operation::ProcessesResume, run),
        (Operation::ProcessesRetry, json!({"instanceId": RUN, "task": 7})),
        (Operation::ProcessesSet, json!({"instanceId": RUN, "scope": 3, "variables": {"a": 1}})),
        (
            Operation::ProcessesCompleteTask,
            json!({"instanceId": RUN, "task": 7, "variables": {"a": 1}}),
        ),
        (Operation::ProcessesAssignTask, json!({"instanceId": RUN, "task": 7, "assignee": "ada"})),
        (Operation::ProcessesHistory, json!({"instanceId": RUN, "from": 0, "count": 200})),
        (
            Operation::ProcessesMessage,
            json!({"name": "paid", "correlationKey": "order-7", "variables": {"a": 1},
                "timeToLiveSeconds": 60, "messageId": "payment:7"}),
        ),
        (Operation::ProcessesSignal, json!({"name": "closed", "variables": {"a": 1}})),
    ]
}

fn with(operation: Operation, name: &str, value: Value) -> Value {
    let mut options = good().into_iter().find(|(of, _)| *of == operation).unwrap().1;
    options[name] = value;
    options
}

fn refused(operation: Operation, name: &str, value: Value) -> (String, String) {
    let error = parse(operation, &with(operation, name, value)).unwrap_err();
    assert_eq!(error.code, crate::ErrorCode::Validation);
    let fact = |name: &str| error.details[name].as_str().unwrap().to_owned();
    (fact("field"), fact("problem"))
}

#[test]
fn every_operation_takes_its_options_and_only_those() {
    for (operation, options) in good() {
        parse(operation, &options).unwrap_or_else(|error| panic!("{operation:?} {error:?}"));
        let unknown = refused(operation, "more", json!(1));
        assert_eq!(unknown, ("more".into(), "is not known".into()), "{operation:?}");
        assert!(parse(operation, &json!([])).is_err(), "{operation:?}");
    }
}

#[test]
fn what_must_be_given_is_named_when_it_is_missing_and_null_gives_nothing() {
    let required = [
        (Operation::ProcessesSet, vec!["instanceId", "variables"]),
        (Operation::ProcessesCompleteTask, vec!["instanceId", "task"]),
        (Operation::ProcessesAssignTask, vec!["instanceId", "task", "assignee"]),
        (Operation::ProcessesMessage, vec!["name"]),
        (Operation::ProcessesSignal, vec!["name"]),
    ];
    for (operation, options) in good() {
        let names = required.iter().find(|(of, _)| *of == operation);
        let names = names.map_or(vec!["instanceId"], |(_, names)| names.clone());
        for name in options.as_object().unwrap().keys() {
            let mut less = options.clone();
            less.as_object_mut().unwrap().remove(name);
            let told = parse(operation, &less);
            if names.contains(&name.as_str()) {
                assert_eq!(told.unwrap_err().details["field"], name.as_str(), "{operation:?}");
            } else {
                assert!(told.is_ok(), "{operation:?} {name}");
            }
            if name != "assignee" {
                assert_eq!(&refused(operation, name, Value::Null).0, name, "{operation:?}");
            }
        }
    }
    let nobody = with(Operation::ProcessesAssignTask, "assignee", Value::Null);
    assert!(parse(Operation::ProcessesAssignTask, &nobody).is_ok());
}

#[test]
fn numbers_and_texts_are_bounded() {
    use Operation::{
        ProcessesAssignTask, ProcessesCompleteTask, ProcessesHistory, ProcessesMessage,
        ProcessesSignal,
    };
    for (operation, name, longest, too_long) in [
        (ProcessesMessage, "name", "n".repeat(255), "n".repeat(256)),
        (ProcessesMessage, "name", "é".repeat(127), "é".repeat(128)),
        (ProcessesMessage, "correlationKey", "k".repeat(256), "k".repeat(257)),
        (ProcessesMessage, "messageId", "m".repeat(128), "m".repeat(129)),
        (ProcessesSignal, "name", "n".repeat(255), "n".repeat(256)),
        (ProcessesAssignTask, "assignee", "é".repeat(255), "é".repeat(256)),
    ] {
        assert!(parse(operation, &with(operation, name, longest.into())).is_ok(), "{name}");
        for bad in [too_long.as_str(), "", "a\u{7}"] {
            assert_eq!(refused(operation, name, bad.into()).0, name, "{operation:?} {bad:?}");
        }
    }
    for (operation, name, bad) in [
        (ProcessesHistory, "count", json!(0)),
        (ProcessesHistory, "count", json!(201)),
        (ProcessesHistory, "from", json!(-1)),
        (ProcessesMessage, "timeToLiveSeconds", json!(604_801)),
        (ProcessesMessage, "timeToLiveSeconds", json!(1.5)),
        (ProcessesCompleteTask, "task", json!("7")),
    ] {
        assert_eq!(refused(operation, name, bad).0, name, "{operation:?}");
    }
    let week = with(ProcessesMessage, "timeToLiveSeconds", json!(604_800));
    assert!(parse(ProcessesMessage, &week).is_ok());
}

#[test]
fn variables_are_objects_of_bounded_size_and_depth_and_keep_their_numbers() {
    for (operation, options) in good() {
        if options.get("variables").is_none() {
            continue;
        }
        let of = |size: usize| json!({"a": "x".repeat(size)});
        let around = of(0).to_string().len();
        let largest = of(EVENT_VARIABLES_BYTES_MAX - around);
        assert!(parse(operation, &with(operation, "variables", largest)).is_ok());
        let larger = of(EVENT_VARIABLES_BYTES_MAX - around + 1);
        let error = parse(operation, &with(operation, "variables", larger)).unwrap_err();
        assert_eq!(error.details["limit"], EVENT_VARIABLES_BYTES_MAX);
        assert_eq!(refused(operation, "variables", json!([1])).0, "variables");
        let deep: Value = serde_json::from_str(&("[".repeat(64) + &"]".repeat(64))).unwrap();
        let told = refused(operation, "variables", json!({"a": deep}));
        assert_eq!(told, ("variables".into(), "is nested too deeply".into()));
    }
    let payload = r#"{"name":"n","variables":{"n":9007199254740993,"x":0.1}}"#;
    let payload = RawValue::from_string(payload.to_owned()).unwrap();
    let variables = SendSignal::parse(&payload).unwrap().1;
    assert_eq!(Value::from(variables).to_string(), r#"{"n":9007199254740993,"x":0.1}"#);
}

#[test]
fn a_message_without_options_carries_nothing_and_does_not_wait() {
    let payload = to_raw_value(&json!({"name": "paid"})).unwrap();
    let message = PublishMessage::parse(&payload).unwrap();
    let expected = ValidMessage {
        name: "paid".into(),
        key: None,
        variables: Map::new(),
        ttl: Duration::ZERO,
        id: None,
    };
    assert_eq!(message, expected);
}

#[test]
fn only_the_id_of_a_process_run_names_one() {
    for (text, named) in [(RUN, true), ("AG1501JDX3Z8GF0000000000000000", false), ("", false)] {
        let options = OnRun { instance_id: text.into() };
        assert_eq!(options.run().is_some(), named, "{text}");
    }
}

#[test]
fn no_error_of_an_operation_repeats_a_value() {
    for (operation, options) in good() {
        for name in options.as_object().unwrap().keys() {
            let bad = json!({"s3cret": ["s3cret"]});
            if let Err(error) = parse(operation, &with(operation, name, bad)) {
                let error = serde_json::to_string(&error).unwrap();
                assert!(!error.contains("s3cret"), "{operation:?} {name}: {error}");
            }
        }
    }
}
