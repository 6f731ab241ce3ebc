//! FEEL as this engine runs it.

use runfleet_flow::FailureCode::{
    ConditionNotBoolean, ExpressionFailed, NoFlowTaken, ResultNotStorable, ResultTypeMismatch,
};
use runfleet_flow::{FailureCode, Status};
use serde_json::{Value, json};

use crate::support::{condition, document, evaluate, evaluate_all, parse, problems, run, scripts};

fn assert_values<const N: usize>(table: [(&str, Value, Value); N]) {
    for (expression, x, expected) in table {
        assert_eq!(evaluate(expression, x), Ok(expected), "{expression}");
    }
}

#[test]
fn numbers_and_texts_are_computed_as_feel_says() {
    assert_values([
        ("1 + 2 * 3", json!(null), json!(7)),
        ("= 0.1 + 0.2", json!(null), json!(0.3)),
        ("10 / 4", json!(null), json!(2.5)),
        ("5.00", json!(null), json!(5)),
        ("2 ** 10", json!(null), json!(1024)),
        ("-x", json!(3), json!(-3)),
        ("modulo(-5, 3)", json!(null), json!(1)),
        ("decimal(1 / 3, 2)", json!(null), json!(0.33)),
        ("round half up(2.5, 0)", json!(null), json!(3)),
        ("\"a\" + \"b\"", json!(null), json!("ab")),
        ("string length(x)", json!("đồng"), json!(4)),
        ("upper case(x)", json!("abc"), json!("ABC")),
        ("substring(x, 2, 2)", json!("abcd"), json!("bc")),
        ("contains(x, \"b\") and starts with(x, \"a\")", json!("abc"), json!(true)),
        ("string join([\"a\", \"b\"], \"-\")", json!(null), json!("a-b")),
        ("replace(x, \"[0-9]\", \"#\")", json!("a1b2"), json!("a#b#")),
        ("split(x, \",\")", json!("a,b"), json!(["a", "b"])),
    ]);
}

#[test]
fn conditions_and_paths_are_decided_as_feel_says() {
    assert_values([
        ("if x > 3 then \"many\" else \"few\"", json!(4), json!("many")),
        ("if x then 1 else 2", json!(null), json!(2)),
        ("x = null", json!(null), json!(true)),
        ("x in [1..9]", json!(9), json!(true)),
        ("x in (1, 5)", json!(5), json!(true)),
        ("x between 1 and 9", json!(10), json!(false)),
        ("not(x)", json!(true), json!(false)),
        ("x.address.city", json!({"address": {"city": "Hue"}}), json!("Hue")),
        ("x.missing", json!({"a": 1}), json!(null)),
    ]);
}

#[test]
fn lists_are_filtered_and_iterated_as_feel_says() {
    assert_values([
        ("x[1]", json!([7, 8]), json!(7)),
        ("x[-1]", json!([7, 8]), json!(8)),
        ("x[3]", json!([7, 8]), json!(null)),
        ("x[item > 7]", json!([7, 8, 9]), json!([8, 9])),
        (
            "x[price*qty > 4].name",
            json!([{"name": "a", "price": 2, "qty": 3}, {"name": "b", "price": 2, "qty": 1}]),
            json!(["a"]),
        ),
        (
            "x[item.price*item.qty > 4].name",
            json!([{"name": "a", "price": 2, "qty": 3}]),
            json!(["a"]),
        ),
        (
            "sum(for i in x return i.price*i.qty)",
            json!([{"price": 2, "qty": 3}, {"price": 5, "qty": 1}]),
            json!(11),
        ),
        ("for i in 1..3 return i * i", json!(null), json!([1, 4, 9])),
        ("for i in [1, 2], j in [10, 20] return i + j", json!(null), json!([11, 21, 12, 22])),
        ("for i in x, j in i return j", json!([[1, 2], [3, 4]]), json!([1, 2, 3, 4])),
        (
            "for i in 1..5 return if i = 1 then 1 else partial[-1] * i",
            json!(null),
            json!([1, 2, 6, 24, 120]),
        ),
        ("some i in x satisfies i > 2", json!([1, 2, 3]), json!(true)),
        ("every i in x satisfies i > 2", json!([1, 2, 3]), json!(false)),
        ("some i in x, j in i satisfies j = 4", json!([[1, 2], [3, 4]]), json!(true)),
        ("every i in x, j in i satisfies j < 4", json!([[1, 2], [3, 4]]), json!(false)),
        ("sort(x, function(a, b) a > b)", json!([2, 3, 1]), json!([3, 2, 1])),
        (
            "sort(list: x, precedes: function(a, b) a.n < b.n)",
            json!([{"n": 2}, {"n": 1}]),
            json!([{"n": 1}, {"n": 2}]),
        ),
        ("distinct values(x)", json!([1, 2, 1]), json!([1, 2])),
        ("list contains(x, 2)", json!([1, 2]), json!(true)),
        ("count(x) + min(x) + max(x)", json!([4, 6]), json!(12)),
        ("{a: 1, b: a + 1}.b", json!(null), json!(2)),
        ("{total: sum(x), parts: x}", json!([1, 2]), json!({"parts": [1, 2], "total": 3})),
        ("get value(x, \"a-b\")", json!({"a-b": 5}), json!(5)),
        ("x instance of number", json!(1), json!(true)),
    ]);
}

#[test]
fn dates_are_computed_as_feel_says() {
    assert_values([
        ("date(x) + duration(\"P1M\")", json!("2026-01-31"), json!("2026-02-28")),
        (
            "date and time(\"2026-01-31T08:00:00Z\") + duration(\"PT36H\")",
            json!(null),
            json!("2026-02-01T20:00:00Z"),
        ),
        ("date(x).year", json!("2026-01-31"), json!(2026)),
        ("date(\"2026-03-01\") - date(\"2026-02-01\")", json!(null), json!("P28D")),
        (
            "years and months duration(date(\"2024-01-31\"), date(\"2025-03-31\"))",
            json!(null),
            json!("P1Y2M"),
        ),
        ("time(\"10:30:00\")", json!(null), json!("10:30:00")),
        (
            "date and time(\"2026-07-01T08:00:00@Europe/Warsaw\")",
            json!(null),
            json!("2026-07-01T08:00:00+02:00"),
        ),
        ("@\"2026-01-31\" < @\"2026-02-01\"", json!(null), json!(true)),
        ("x /* said */ + 1 // and done", json!(1), json!(2)),
        ("null + 1", json!(null), json!(null)),
    ]);
}

#[test]
fn errors_in_an_expression_fail_the_run() {
    for (expression, x, code) in [
        ("1 / x", json!(0), ExpressionFailed),
        ("\"a\" + 1", json!(null), ExpressionFailed),
        ("[1, {a: 1 / 0}]", json!(null), ExpressionFailed),
        ("x * 2", json!("two"), ExpressionFailed),
        ("date(\"2026-02-30\")", json!(null), ExpressionFailed),
        ("matches(\"a\", \"(\")", json!(null), ExpressionFailed),
        ("abs(1, 2, 3)", json!(null), ExpressionFailed),
        ("x.year", json!(5), ExpressionFailed),
        ("for i in [3..1] return i", json!(null), ExpressionFailed),
        ("{a: if x[\"b\"] = null then 1 else 2}", json!([{"a": 1}]), ExpressionFailed),
        // The library panics here.
        ("time(1, 2, 3, duration(\"PT99H\"))", json!(null), ExpressionFailed),
        ("[1..5]", json!(null), ResultNotStorable),
        ("10 ** 400", json!(null), ResultNotStorable),
        // Not a number, says the library.
        ("decimal(1, 2026)", json!(null), ResultNotStorable),
    ] {
        assert_eq!(evaluate(expression, x), Err(code), "{expression}");
    }
}

#[test]
fn integers_keep_all_their_digits() {
    for value in [
        json!(0),
        json!(-1),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(9_007_199_254_740_993_u64),
    ] {
        assert_eq!(evaluate("x", value.clone()), Ok(value.clone()));
        assert_eq!(evaluate("[x, {a: x + 0}]", value.clone()), Ok(json!([value, {"a": value}])));
    }
    assert_eq!(evaluate("x - 1", json!(u64::MAX)), Ok(json!(u64::MAX - 1)));
    assert_eq!(evaluate("x + 1", json!(i64::MIN)), Ok(json!(i64::MIN + 1)));
    assert_eq!(evaluate("x + 1", json!(u64::MAX)), Ok(json!(18_446_744_073_709_551_616.0)));
}

#[test]
fn decimals_come_back_as_they_were_written() {
    for value in
        [json!(0.1), json!(-2.5), json!(1e-7), json!(1.5e300), json!(123_456.789), json!(1e22)]
    {
        assert_eq!(evaluate("x", value.clone()).expect("a number").as_f64(), value.as_f64());
    }
    assert_eq!(evaluate("x * 3", json!(0.1)), Ok(json!(0.3)));
    assert_eq!(evaluate("x", json!(1.0)), Ok(json!(1)));
}

#[test]
fn a_variable_that_was_never_assigned_is_null() {
    let body = "<extensionElements><rf:variable name=\"o\" direction=\"output\" type=\"number\"/></extensionElements>\
        <startEvent id=\"s\"/><endEvent id=\"e\"/><sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"e\"/>";
    let end = run(&parse(&document(body)), json!({}), 10).0;
    let output = json!({"o": null});
    assert_eq!(
        end.status,
        Status::Completed { output: Some(output.as_object().cloned().expect("an object")) }
    );
    let none =
        run(&parse(&document(&body.replace("output\" type", "input\" type"))), json!({}), 10).0;
    assert_eq!(none.status, Status::Completed { output: None });
}

#[test]
fn a_condition_must_be_true_or_false() {
    for (text, x, outcome) in [
        ("x > 3", json!(4), None),
        ("x > 3", json!(3), Some(NoFlowTaken)),
        ("x > 3", json!(null), Some(ConditionNotBoolean)),
        ("x > 3", json!("4"), Some(ConditionNotBoolean)),
        ("x", json!(1), Some(ConditionNotBoolean)),
        ("1 / 0 > x", json!(1), Some(ConditionNotBoolean)),
    ] {
        let end = run(&parse(&condition(text)), json!({"x": x}), 10).0;
        match (end.status, outcome) {
            (Status::Completed { output: None }, None) => {}
            (Status::Failed { code, element, message, .. }, Some(expected)) => {
                let place = if expected == NoFlowTaken { "g" } else { "yes" };
                assert_eq!((code, element.as_deref()), (expected, Some(place)), "{text}");
                assert_eq!(message, code.message());
            }
            (status, _) => panic!("{text}: {status:?}"),
        }
    }
}

#[test]
fn the_declared_type_of_a_result_is_enforced() {
    let typed = |kind: &str, expression: &str| -> Result<Value, FailureCode> {
        let xml = scripts(&[expression]).replace(
            "direction=\"output\" type=\"any\"",
            &format!("direction=\"output\" type=\"{kind}\""),
        );
        match run(&parse(&xml), json!({}), 10).0.status {
            Status::Completed { output } => Ok(output.expect("declared")["v0"].clone()),
            Status::Failed { code, .. } => Err(code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(typed("number", "1"), Ok(json!(1)));
    assert_eq!(typed("number", "null"), Ok(json!(null)));
    assert_eq!(typed("number", "\"1\""), Err(ResultTypeMismatch));
    assert_eq!(typed("date", "date(\"2026-01-31\")"), Ok(json!("2026-01-31")));
    assert_eq!(typed("date", "\"31.01.2026\""), Err(ResultTypeMismatch));
    assert_eq!(
        typed("dateTime", "date and time(\"2026-01-31T00:00:00Z\")"),
        Ok(json!("2026-01-31T00:00:00Z"))
    );
    assert_eq!(typed("list", "[1]"), Ok(json!([1])));
    assert_eq!(typed("context", "{a: 1}"), Ok(json!({"a": 1})));
}

#[test]
fn declared_dates_are_dates_in_expressions() {
    let xml = scripts(&["x + duration(\"P1D\")"]).replace(
        "name=\"x\" direction=\"input\" type=\"any\"",
        "name=\"x\" direction=\"input\" type=\"date\"",
    );
    let end = run(&parse(&xml), json!({"x": "2026-02-28"}), 10).0;
    assert_eq!(end.state.variables()["v0"], json!("2026-03-01"));
}

#[test]
fn what_one_script_assigns_the_next_one_sees() {
    assert_eq!(
        evaluate_all(&["x + 1", "v0 * 2", "{a: v0, b: v1}"], json!(4)),
        Ok(json!({"a": 5, "b": 10}))
    );
    // A date without a declared type is a string for the next element, wherever the slice ends.
    let definition = parse(&scripts(&["date(\"2026-01-31\")", "v0 instance of string"]));
    for steps in [1, 2, 100] {
        assert_eq!(run(&definition, json!({}), steps).0.state.variables()["v1"], json!(true));
    }
}

#[test]
fn expressions_that_cannot_be_trusted_are_refused_when_they_are_read() {
    for (expression, part) in [
        ("1 +", "not a valid FEEL expression"),
        ("x y", "not a valid FEEL expression"),
        ("", "is empty"),
        ("=", "is empty"),
        ("y", "unknown name `y`"),
        ("x + foo bar", "not a valid FEEL expression"),
        ("frobnicate(x)", "unknown function `frobnicate`"),
        ("x(1)", "unknown function `x`"),
        ("now()", "`now()` is not allowed"),
        ("today()", "`today()` is not allowed"),
        ("sum", "is a function and must be called"),
        ("{f: now, r: f()}", "is a function and must be called"),
        ("function(a) a", "only as the second argument of `sort`"),
        ("{f: function(n) f(n + 1), r: f(1)}", "only as the second argument of `sort`"),
        (
            "function(a) external {java: {class: \"C\", \"method signature\": \"m(int)\"}}",
            "external functions",
        ),
        (
            "[1, {f: function(a) external {pmml: {document: \"d\", model: \"m\"}}}]",
            "external functions",
        ),
        (
            "sort(x, function(a, b) external {java: {class: \"C\", \"method signature\": \"m\"}})",
            "external functions",
        ),
        (
            "for i in 1..2 return [function(a) external {pmml: {document: \"d\", model: \"m\"}}]",
            "external functions",
        ),
        ("for a in x, b in x, c in x return 1", "at most 2 variables"),
        ("for a in x, b in [a] return 1", "unknown name `a`"),
        ("item", "unknown name `item`"),
        ("partial", "unknown name `partial`"),
        ("x instance of Customer", "type of this name does not exist"),
        ("x.date-x.a", "is read as one name"),
    ] {
        let found = problems(&scripts(&[expression]));
        assert!(
            found.iter().any(|problem| problem.starts_with("t0: ") && problem.contains(part)),
            "{expression}: {found:?}"
        );
    }
    let found = problems(&condition("x >"));
    assert!(found[0].starts_with("yes: "), "{found:?}");
}

#[test]
fn whole_numbers_beyond_2_to_the_53_pass_unchanged() {
    for text in ["9007199254740993", "-9007199254740993", "18446744073709551615"] {
        let x: Value = serde_json::from_str(text).expect("a number");
        for (expression, x) in
            [("x", x.clone()), ("x[1]", json!([x])), ("x.n", json!({"n": x})), ("x + 0", x.clone())]
        {
            let result = evaluate(expression, x).expect("a result");
            assert_eq!(result.to_string(), text, "{expression}");
        }
    }
}
