//! Slices, states and failures, over processes and expressions that are made up.

use proptest::prelude::*;
use runfleet_flow::{Advanced, Definition, FailureCode, Phase, State, StateProblem, Status};
use serde_json::{Value, json};

use crate::support::{advance, map, parse, run, scripts};

const APPROVE: &str = include_str!("../../../../deploy/example/approve-discount.bpmn");
const COUNT: &str = include_str!("../../../../deploy/example/count-to-limit.bpmn");

#[test]
fn a_definition_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let definition = std::sync::Arc::new(parse(COUNT));
    shared(&definition);
    let threads: Vec<_> = (1..5)
        .map(|limit| {
            let definition = definition.clone();
            std::thread::spawn(move || {
                run(&definition, json!({"limit": limit}), 7).0.state.variables()["counter"].clone()
            })
        })
        .collect();
    for (limit, thread) in (1..5).zip(threads) {
        assert_eq!(thread.join().expect("no panic"), json!(limit));
    }
}

#[test]
fn a_finished_run_is_given_back_as_it_is() {
    let definition = parse(APPROVE);
    // What has happened is told once.
    let again = |end: &Advanced| Advanced { history: Vec::new(), ..end.clone() };
    let end = run(&definition, json!({"amount": 1}), 1000).0;
    assert_eq!(end.state.phase(), &Phase::Completed);
    assert!(end.state.view(None).active.is_empty());
    assert_eq!(advance(&definition, end.state.clone(), 5), again(&end));
    let count = parse(COUNT);
    let failed = run(&count, json!({"limit": 100_000}), 100_000).0;
    assert!(matches!(failed.status, Status::Failed { .. }));
    assert_eq!(advance(&count, failed.state.clone(), 5), again(&failed));
}

#[test]
fn a_slice_of_no_steps_still_makes_one() {
    let definition = parse(COUNT);
    let state = definition.start(map(json!({"limit": 3}))).expect("fits");
    let next = advance(&definition, state, 0);
    assert_eq!(next.status, Status::Running);
    assert_eq!(next.state.steps(), 1);
}

#[test]
fn expensive_steps_end_a_slice_early() {
    let expensive = "count(for i in 1..2000 return i)";
    let definition = parse(&scripts(&[expensive; 12]));
    let (end, slices) = run(&definition, json!({}), 100_000);
    assert!(matches!(end.status, Status::Completed { .. }));
    assert!(slices > 1, "one slice did all the work");
}

#[test]
fn a_state_of_another_definition_fails_instead_of_going_astray() {
    let count = parse(COUNT);
    let state = count.start(map(json!({"limit": 3}))).expect("fits");
    let mismatch = |state: State, definition: &Definition| {
        let next = advance(definition, state, 5);
        assert!(
            matches!(next.status, Status::Failed { code: FailureCode::DefinitionMismatch, .. }),
            "{:?}",
            next.status
        );
    };
    mismatch(state.clone(), &parse(APPROVE));
    let mut stored = serde_json::to_value(&state).expect("writable");
    stored["instances"]["1"]["e"] = json!("Gone");
    mismatch(read(&stored), &count);
    stored["instances"] = json!({});
    mismatch(read(&stored), &count);
    let mut stored = serde_json::to_value(&state).expect("writable");
    stored["variables"]["limit"] = json!("three");
    mismatch(read(&stored), &count);
}

fn read(stored: &Value) -> State {
    State::from_json(&stored.to_string()).expect("readable")
}

#[test]
fn the_stored_form_is_what_it_was() {
    let definition = parse(COUNT);
    let state = definition.start(map(json!({"limit": 3}))).expect("fits");
    let next = advance(&definition, state, 2);
    assert_eq!(
        serde_json::to_value(&next.state).expect("writable"),
        json!({
            "v": 2, "process": "count-to-limit", "phase": {"kind": "running"},
            "variables": {"limit": 3, "counter": 0}, "instances": {"3": {"e": "Again"}},
            "next": 4, "steps": 2, "visits": {"Started": 1, "Zero": 1},
        })
    );
    let failed = json!({"kind": "failed", "code": "NO_FLOW_TAKEN", "element": "g"});
    let phase: Phase = serde_json::from_value(failed).expect("readable");
    assert_eq!(
        phase,
        Phase::Failed {
            code: FailureCode::NoFlowTaken,
            element: Some("g".to_owned()),
            error: None
        }
    );
    assert_eq!(json!(FailureCode::NoFlowTaken), json!(FailureCode::NoFlowTaken.as_str()));
}

#[test]
fn a_run_that_the_first_form_of_states_holds_goes_on() {
    let definition = parse(COUNT);
    let first = json!({
        "v": 1, "process": "count-to-limit", "phase": {"kind": "running"},
        "variables": {"limit": 3, "counter": 0},
        "tokens": [{"id": 1, "element": "Again", "instance": 4}],
        "nextId": 5, "steps": 2, "visits": {"Started": 1, "Zero": 1},
    });
    let end = advance(&definition, read(&first), 100);
    assert_eq!(end.state.variables()["counter"], json!(3));
    assert_eq!(end.state.phase(), &Phase::Completed);
}

#[test]
fn newer_states_are_told_from_broken_ones() {
    let state = parse(COUNT).start(map(json!({"limit": 3}))).expect("fits");
    let text = serde_json::to_string(&state).expect("writable");
    assert_eq!(State::from_json(&text), Ok(state));
    let newer = text.replace("\"v\":2", "\"v\":3");
    assert_eq!(State::from_json(&newer), Err(StateProblem::Newer { found: 3 }));
    assert_eq!(State::from_json("{\"v\":1}"), Err(StateProblem::Malformed));
    assert_eq!(State::from_json("nonsense"), Err(StateProblem::Malformed));
    let more = text.replace("\"v\":2", "\"v\":2,\"later\":true");
    assert!(State::from_json(&more).is_ok(), "fields of a later minor change are dropped");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e15..1e15).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z][a-z \\-.]{0,6}[a-z]", inner, 0..5)
                .prop_map(|map| json!(map)),
        ]
    })
}

/// Same value, however a number is written.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slices_of_any_size_come_to_the_same_end(limit in 0_u32..60, steps in 1_u32..40, amount in 0.0..40_000.0_f64) {
        let count = parse(COUNT);
        prop_assert_eq!(run(&count, json!({"limit": limit}), steps).0, run(&count, json!({"limit": limit}), 100_000).0);
        let approve = parse(APPROVE);
        let input = json!({"amount": amount});
        prop_assert_eq!(run(&approve, input.clone(), steps).0, run(&approve, input, 100_000).0);
    }

    #[test]
    fn values_pass_through_expressions_unchanged(value in json_value(), steps in 1_u32..5) {
        let definition = parse(&scripts(&["x", "[v0]", "v1[1]"]));
        let end = run(&definition, json!({"x": value}), steps).0;
        let Status::Completed { output: Some(output) } = end.status else { panic!("{:?}", end.status) };
        prop_assert!(same(&output["v2"], &value), "{} became {}", value, output["v2"]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-a-z0-9 +*/().,\\[\\]{}<>=\"\\\\:@?#;!^&|%$~`\u{1}\u{2028}ộ]{0,60}") {
        let _ = Definition::parse(&scripts(&[&text.replace('\u{1}', " ")]));
    }

    #[test]
    fn any_words_of_the_language_are_read_or_refused(words in prop::collection::vec(prop::sample::select(vec![
        "for", "in", "return", "some", "every", "satisfies", "if", "then", "else", "function", "external", "x", "y", "1",
        "\"s\"", "(", ")", "[", "]", "{", "}", ",", ":", "..", ".", "+", "-", "*", "**", "and", "or", "not", "between",
        "instance", "of", "number", "list", "<", ">", "=", "date", "time", "@", "item", "partial", "sort", "?", "null",
        "years and months duration", "date and time", "context", "range", "\\u12", "\\", "\"",
    ]), 0..25)) {
        let xml = scripts(&[&words.join(" ")]);
        if let Ok(definition) = Definition::parse(&xml) {
            run(&definition, json!({"x": [1, {"y": "a"}]}), 100);
        }
    }

    #[test]
    fn any_xml_is_read_or_refused(parts in prop::collection::vec(prop::sample::select(vec![
        "<startEvent id=\"s\"/>", "<endEvent id=\"e\"/>", "<endEvent id=\"s\"/>", "<scriptTask/>", "<sequenceFlow/>",
        "<sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"e\"/>", "<exclusiveGateway id=\"g\" default=\"f\"/>",
        "<sequenceFlow id=\"h\" sourceRef=\"g\" targetRef=\"g\"/>", "<process id=\"q\"/>", "text", "<!-- c -->",
        "<extensionElements/>", "<sequenceFlow id=\"i\" sourceRef=\"s\" targetRef=\"g\"/>",
        "<sequenceFlow id=\"j\" sourceRef=\"g\" targetRef=\"e\"/>",
    ]), 0..12)) {
        match Definition::parse(&crate::support::document(&parts.concat())) {
            Ok(definition) => { run(&definition, json!({}), 3); }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
