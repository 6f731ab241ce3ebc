//! The example processes that are delivered with the product.

use runfleet_flow::{ProcessKind, Status, VariableType};
use serde_json::json;

use crate::support::{parse, run};

const APPROVE: &str = include_str!("../../../../deploy/example/approve-discount.bpmn");
const COUNT: &str = include_str!("../../../../deploy/example/count-to-limit.bpmn");

#[test]
fn a_small_discount_is_approved() {
    let (end, slices) = run(&parse(APPROVE), json!({"amount": 120}), 1000);
    let output =
        json!({"approved": true, "discount": 6, "reason": "A discount of 6 is within the limit"});
    assert_eq!(
        end.status,
        Status::Completed { output: Some(output.as_object().cloned().expect("an object")) }
    );
    assert_eq!(slices, 1);
    assert!(end.effects.is_empty());
}

#[test]
fn a_large_discount_is_refused() {
    for (input, discount) in [
        (json!({"amount": 20000}), json!(2000)),
        (json!({"amount": 6667, "customerTier": "gold"}), json!(1000.05)),
    ] {
        let Status::Completed { output: Some(output) } = run(&parse(APPROVE), input, 1000).0.status
        else {
            panic!("the run must complete");
        };
        assert_eq!(output["approved"], json!(false));
        assert_eq!(output["discount"], discount);
    }
}

#[test]
fn the_summary_says_what_a_catalog_needs() {
    let definition = parse(APPROVE);
    let summary = definition.summary();
    assert_eq!(summary.id, "approve-discount");
    assert_eq!(summary.name.as_deref(), Some("Approve a discount"));
    assert_eq!(summary.kind, ProcessKind::Normal);
    assert_eq!(summary.deadline_seconds, Some(600));
    assert_eq!(
        summary.inputs.iter().map(|v| (v.name.as_str(), v.kind, v.required)).collect::<Vec<_>>(),
        [("amount", VariableType::Number, true), ("customerTier", VariableType::String, false)]
    );
    assert_eq!(
        summary.outputs.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        ["approved", "discount", "reason"]
    );
    let stored = serde_json::to_value(summary).expect("a summary can be written");
    assert_eq!(stored["inputs"][0], json!({"name": "amount", "type": "number", "required": true}));
    assert_eq!(
        &serde_json::from_value::<runfleet_flow::Summary>(stored).expect("and read"),
        summary
    );
}

#[test]
fn the_description_shows_the_way_through() {
    let text = parse(APPROVE).describe();
    for line in [
        "process approve-discount \"Approve a discount\" (normal)",
        "  deadline 600 s",
        "  input amount: number, required",
        "  output reason: string",
        "OrderReceived \"Order received\": start",
        "WithinLimit \"Is the discount within the limit?\": exclusive gateway",
        "  -> Approve  if discount <= 1000  [yes]",
        "  -> Refuse  otherwise  [no]",
        "  approved = true",
        "Refused \"Refused\": end",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} in\n{text}");
    }
}

#[test]
fn counting_takes_many_slices_and_comes_to_the_same_end() {
    let definition = parse(COUNT);
    let (whole, slices) = run(&definition, json!({"limit": 50}), 100_000);
    assert_eq!(slices, 1);
    let output = json!({"counter": 50});
    assert_eq!(
        whole.status,
        Status::Completed { output: Some(output.as_object().cloned().expect("an object")) }
    );
    // Start, zero, fifty rounds of three elements, the last two gateways and the end.
    assert_eq!(whole.state.steps(), 2 + 3 * 50 + 3);
    let (cut, slices) = run(&definition, json!({"limit": 50}), 10);
    assert_eq!(slices, 16);
    assert_eq!(cut, whole);
}

#[test]
fn a_process_is_described_with_what_stands_where() {
    let definition = parse(COUNT);
    let marks = |element: &str| {
        if element == "Again" { vec!["7: is executed next".to_owned()] } else { Vec::new() }
    };
    let (plain, marked) = (definition.describe(), definition.describe_at(&marks));
    let more: Vec<&str> = marked.lines().filter(|line| !plain.contains(*line)).collect();
    assert_eq!(more, ["* 7: is executed next"]);
}

#[test]
fn only_expressions_that_repeat_nothing_are_quick() {
    assert!(parse(APPROVE).is_quick() && parse(COUNT).is_quick());
    let quick = |expression: &str| parse(&crate::support::scripts(&[expression])).is_quick();
    for expression in ["x + 1", "if x = null then string(x) else upper case(x)", "[1, x, {a: x}]"] {
        assert!(quick(expression), "{expression}");
    }
    for expression in [
        "for i in x return i",
        "x[item > 1]",
        "some i in x satisfies i > 1",
        "matches(x, \"a+\")",
        "2 ** x",
        "sort(x, function(a, b) a < b)",
        "1 + count(for i in 1..3 return i)",
    ] {
        assert!(!quick(expression), "{expression}");
    }
}
