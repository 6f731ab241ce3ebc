//! What an expression can cost: work that the meter would not see by itself.

use serde_json::{Value as Json, json};

use super::{EvaluationError, Expression, Names};
use crate::limits::EXPRESSION_WORK_MAX;
use crate::variable::VariableType;

/// Work of an evaluation, and whether it was cut off for it.
fn work(text: &str, variables: &Json) -> (u64, bool) {
    let names = Names { known: ["t", "bits", "l"].map(str::to_owned).into(), open: false };
    let expression = Expression::compile(text, &names).expect("it can be read");
    let mut work = 0;
    let outcome = expression
        .evaluate_in(|name| variables.get(name).map(|value| (value, VariableType::Any)), &mut work);
    (work, matches!(outcome, Err(EvaluationError::TooExpensive)))
}

fn large() -> Json {
    let numbers: Vec<u32> = (0..30_000).collect();
    json!({"t": "a".repeat(250_000), "bits": "0110".repeat(60_000), "l": numbers})
}

fn repeated(times: usize, name: &str) -> String {
    vec![name; times].join(", ")
}

#[test]
fn regular_expressions_are_charged_before_they_are_translated() {
    let large = large();
    for text in [
        // Minutes, each of them: a pattern of the caller, and states times text.
        "matches(t, t)",
        "matches(pattern: t, input: t)",
        "matches(bits, \"[01]*1[01]{3000}2\")",
        "split(bits, \"[01]*1[01]{3000}2\")",
        "replace(bits, \"[01]*1[01]{3000}2\", \"x\")",
        "matches(\"a\", \"((a{1000}){1000}){1000}\")",
    ] {
        assert!(work(text, &large).1, "{text}");
    }
    for (text, least) in [
        ("matches(\"a\", \"\\\\w{100}\")", 100_000),
        ("matches(input: \"a\", pattern: \"\\\\w{100}\", flags: \"i\")", 100_000),
        ("matches(flags: \"i\", pattern: \"\\\\w{100}\", input: \"a\")", 100_000),
        ("matches(replace(\"a\", \"\\\\w{100}\", \"b\"), \"\\\\w{100}\")", 200_000),
        ("matches(\"a\", replace(\"a\", \"\\\\w{100}\", \"b\"))", 100_000),
    ] {
        let (work, cut) = work(text, &large);
        assert!(work >= least && !cut, "{text}: {work}");
    }
    for text in [
        "matches(\"PL61109010140000071219812874\", \"^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$\")",
        "replace(t, \"[0-9]\", \"#\")",
        "matches(t, \"^\\\\w+@\\\\w+\\\\.\\\\w+$\")",
    ] {
        assert!(!work(text, &large).1, "{text}");
    }
}

#[test]
fn a_replacement_is_charged_before_the_result_exists() {
    let text = format!(
        "string length(replace(replace(\"{}\", \"a\", \"{}\"), \"b\", \"{}\"))",
        "a".repeat(600),
        "b".repeat(250),
        "c".repeat(250)
    );
    assert!(work(&text, &large()).1, "600 * 250 * 250 bytes are never made");
    assert!(!work("replace(\"abc\", \"b\", \"[$0]\")", &large()).1);
}

#[test]
fn each_mention_of_a_large_variable_is_charged() {
    let large = large();
    for text in [
        format!("count([{}])", repeated(300, "t")),
        format!("count([{}])", repeated(300, "l")),
        format!("count(concatenate({}))", repeated(300, "l")),
    ] {
        assert!(work(&text, &large).1, "{text}");
    }
    assert_eq!(work("1 + 1", &large), (0, false));
    let (once, twice) = (work("count(l)", &large).0, work("count(l) + count(l)", &large).0);
    assert!(once > 100_000 && twice >= 2 * once, "{once} {twice}");
    assert!(!work("count(l) + sum(l) + max(l) + min(l)", &large).1);
}

#[test]
fn what_grows_by_printing_or_splitting_is_charged() {
    let large = large();
    let mut printed = "t".to_owned();
    for _ in 0..10 {
        printed = format!("string([{printed}])");
    }
    assert!(work(&printed, &large).0 > 10 * work("string length(t)", &large).0);
    assert!(work("count(split(t, \"\"))", &large).0 > 1_000_000, "250,000 texts");
    let numbers = "string length(string(for i in 1..9000 return 10**6000))";
    assert!(work(numbers, &large).1, "54 million digits");
}

#[test]
fn the_text_of_a_range_is_short() {
    assert!(work("range(t)", &large()).1, "it would be read as FEEL for hours");
    assert!(work("range(from: t)", &large()).1);
    let (work, cut) = work("5 in range(\"[1..9]\")", &json!({}));
    assert!(work >= 2_000 && !cut, "{work}");
}

#[test]
fn only_variables_that_are_named_in_a_repeated_part_make_it_heavier() {
    let large = large();
    let (light, cut) = work("count(for i in 1..1000 return i + count([l][1]) * 0)", &large);
    assert!(cut, "{light}: l is copied each time");
    let (light, cut) = work("count(for i in 1..1000 return i) + count(l)", &large);
    assert!(light < 500_000 && !cut, "{light}");
}

#[test]
fn what_reads_a_text_costs_more_than_a_sum() {
    let sum = work("count(for i in 1..100 return i + 1)", &json!({})).0;
    for text in [
        "count(for i in 1..100 return number(\"1e6000\"))",
        "count(for i in 1..100 return date and time(\"2026-01-31T00:00:00@Europe/Warsaw\"))",
        "count(for i in 1..100 return @\"2026-01-31\")",
    ] {
        assert!(work(text, &json!({})).0 > 2 * sum, "{text}");
    }
    assert!(sum < EXPRESSION_WORK_MAX / 100);
}

#[test]
fn deep_lists_are_charged_for_what_naming_their_type_takes() {
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let flat = json!([[1, 2], [3, 4]]);
    for text in ["ceiling(l)", "l + 1", "l instance of number", "date([l])", "l = null"] {
        assert!(work(text, &json!({ "l": deep })).1, "{text}: 2 to the 60th steps");
        assert!(!work(text, &json!({ "l": flat })).1, "{text}");
    }
    let brackets = format!("date({}1{})", "[".repeat(30), "]".repeat(30));
    let appended = format!("date({}1{})", "append([], ".repeat(30), ")".repeat(30));
    let inserted = format!("date({}1{})", "insert before([0], 1, ".repeat(30), ")".repeat(30));
    let mixed = format!("date({}1{})", "[{a: ".repeat(15), "}]".repeat(15));
    for text in [brackets, appended, inserted] {
        assert!(work(&text, &json!({})).1, "{text}");
    }
    let (mixed, cut) = work(&mixed, &json!({}));
    assert!(mixed > 30_000 && !cut, "{mixed}");
}
