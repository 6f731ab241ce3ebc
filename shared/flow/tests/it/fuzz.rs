//! Expressions that are made up by the grammar: whatever they say, the run ends, and the same way each time.

use proptest::prelude::*;
use runfleet_flow::{Definition, Status};
use serde_json::json;

use crate::support::{run, scripts};

const FUNCTIONS: [&str; 58] = [
    "abs",
    "all",
    "any",
    "append",
    "ceiling",
    "concatenate",
    "contains",
    "context",
    "context merge",
    "context put",
    "count",
    "date",
    "date and time",
    "day of week",
    "decimal",
    "distinct values",
    "duration",
    "ends with",
    "even",
    "exp",
    "flatten",
    "floor",
    "get entries",
    "get value",
    "index of",
    "insert before",
    "list contains",
    "list replace",
    "log",
    "matches",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "modulo",
    "not",
    "number",
    "odd",
    "product",
    "range",
    "remove",
    "replace",
    "reverse",
    "round half up",
    "split",
    "sqrt",
    "stddev",
    "string",
    "string join",
    "string length",
    "sublist",
    "substring",
    "sum",
    "time",
    "union",
    "week of year",
    "years and months duration",
];

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "0",
        "1",
        "-1",
        "2.5",
        "1e30",
        "9999999999",
        "\"\"",
        "\"ab\"",
        "\"2026-01-31\"",
        "\"PT1H\"",
        "true",
        "null",
        "x",
        "x.a",
        "x.b[1]",
        "[1, 2, 3]",
        "[]",
        "{k: 1}",
        "@\"2026-01-31\"",
        "@\"P1M\"",
        "@\"10:00:00@Europe/Warsaw\"",
        "@\"2026-01-31T10:00:00Z\"",
        "[1..3]",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "**", "and", "or", "=", "!=", "<", ">=", "in",
        ]);
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            3 => (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
            4 => (prop::sample::select(FUNCTIONS.to_vec()), prop::collection::vec(inner.clone(), 1..4))
                .prop_map(|(function, arguments)| format!("{function}({})", arguments.join(", "))),
            1 => three.clone().prop_map(|(a, b, c)| format!("if {a} then ({b}) else ({c})")),
            1 => three.clone().prop_map(|(a, b, c)| format!("({a}) between ({b}) and ({c})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(for i in {a} return [i, {b}, partial])")),
            1 => three.prop_map(|(a, b, c)| format!("(for i in {a}..{b}, j in {c} return i)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(some i in {a} satisfies i = {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(every i in {a}, j in [i] satisfies {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{k: {a}, l: [k, {b}], m: l}}.m")),
            1 => inner.clone().prop_map(|a| format!("sort([3, {a}, 1, x], function(p, q) p < q)")),
            1 => inner.prop_map(|a| format!("({a}).year")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_expression_ends_the_same_way_each_time(text in expression()) {
        let Ok(definition) = Definition::parse(&scripts(&[&text, "v0"])) else { return Ok(()) };
        let input = json!({"x": {"a": 7, "b": ["p", {"c": null}]}});
        let began = std::time::Instant::now();
        let whole = run(&definition, input.clone(), 100).0;
        prop_assert!(began.elapsed() < std::time::Duration::from_secs(30), "{text}");
        prop_assert_ne!(&whole.status, &Status::Running);
        prop_assert_eq!(run(&definition, input, 1).0, whole);
    }
}
