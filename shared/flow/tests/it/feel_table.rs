//! Every group of built-in functions and every kind of expression, as rows: what FEEL says, and where this FEEL differs.
//! `FEEL.md` counts these rows.

use runfleet_flow::FailureCode::{self, ExpressionFailed, ResultNotStorable};
use serde_json::{Value, json};

use crate::support::{evaluate, scripts};

/// `group | expression | result as JSON`; `x` is `{"a": 1, "b": [1, 2, 3], "s": "Hello", "c-d": 5}`.
const HOLDS: &str = r#"
arithmetic | 7 - 2 * 3 | 1
arithmetic | (7 - 2) * 3 | 15
arithmetic | 1 / 8 | 0.125
arithmetic | 0.1 + 0.2 | 0.3
arithmetic | 2 ** 3 ** 2 | 64
arithmetic | -2 ** 2 | 4
arithmetic | --3 | 3
arithmetic | 1.5e3 | 1500
arithmetic | "a" + "b" | "ab"
arithmetic | null + 1 | null
comparison | 1 < 2 and 2 <= 2 | true
comparison | "a" < "b" | true
comparison | 1 = 1.0 | true
comparison | [1, 2] = [1, 2] | true
comparison | {a: 1, b: 2} = {b: 2, a: 1} | true
comparison | 1 != 2 | true
comparison | null = null | true
comparison | 5 between 1 and 5 | true
comparison | 5 in (1, 5, 7) | true
comparison | 5 in [1..5) | false
comparison | 5 in (> 3) | true
comparison | date("2026-01-02") > date("2026-01-01") | true
logic | true and false | false
logic | true or null | true
logic | false and null | false
logic | true and null | null
logic | false or null | null
logic | not(true) | false
conditional | if 1 > 2 then "a" else "b" | "b"
conditional | if null then "a" else "b" | "b"
path | x.a | 1
path | x.missing | null
path | {a: {b: {c: 3}}}.a.b.c | 3
path | [{a: 1}, {a: 2}].a | [1, 2]
filter | x.b[2] | 2
filter | x.b[-1] | 3
filter | x.b[9] | null
filter | x.b[item >= 2] | [2, 3]
filter | [{a: 1, b: 2}, {a: 3, b: 4}][a > 1].b | [4]
filter | [{a: 1}, {b: 2}][a = 1] | [{"a": 1}]
iteration | for i in 1..3 return i * 2 | [2, 4, 6]
iteration | for i in 3..1 return i | [3, 2, 1]
iteration | for i in [1, 2], j in [3, 4] return i * j | [3, 4, 6, 8]
iteration | for i in 1..4 return if i = 1 then 1 else partial[-1] + i | [1, 3, 6, 10]
iteration | some i in [1, 2] satisfies i > 1 | true
iteration | every i in [1, 2] satisfies i > 1 | false
iteration | every i in [] satisfies false | true
context | {a: 1, b: a + 1}.b | 2
context | {"a b": 1} | {"a b": 1}
context functions | get value(x, "c-d") | 5
context functions | get value({a: 1}, "z") | null
context functions | get entries({a: 1})[1].key | "a"
context functions | context put({a: 1}, "b", 2) | {"a": 1, "b": 2}
context functions | context put({a: {b: 1}}, ["a", "b"], 2) | {"a": {"b": 2}}
context functions | context merge([{a: 1}, {b: 2}]) | {"a": 1, "b": 2}
context functions | context([{key: "a", value: 1}]) | {"a": 1}
conversion | number("1 000,50", " ", ",") | 1000.5
conversion | string(true) | "true"
conversion | string(date("2026-01-31")) | "2026-01-31"
conversion | string([1, "a"]) | "[1, \"a\"]"
conversion | date("2026-01-31") | "2026-01-31"
conversion | date(2026, 1, 31) | "2026-01-31"
conversion | date(date and time("2026-01-31T10:00:00Z")) | "2026-01-31"
conversion | time("10:30:00") | "10:30:00"
conversion | time(10, 30, 0) | "10:30:00"
conversion | date and time(date("2026-01-31"), time("10:00:00")) | "2026-01-31T10:00:00"
conversion | duration("P1DT2H") | "P1DT2H"
conversion | duration("P14M") | "P1Y2M"
conversion | @"2026-01-31".month | 1
text | string length(x.s) | 5
text | string length("đồng") | 4
text | substring("foobar", 3) | "obar"
text | substring("foobar", -2, 1) | "a"
text | substring before("foobar", "bar") | "foo"
text | substring after("foobar", "ob") | "ar"
text | upper case("aBc4") | "ABC4"
text | lower case("aBc4") | "abc4"
text | contains("foobar", "of") | false
text | starts with("foobar", "fo") | true
text | ends with("foobar", "r") | true
text | matches("foobar", "^fo*b") | true
text | matches("FOOBAR", "foo", "i") | true
text | replace("abcd", "(ab)|(a)", "[1=$1][2=$2]") | "[1=ab][2=]cd"
text | replace("a.b", "\\.", "-") | "a-b"
text | split("John Doe", "\\s") | ["John", "Doe"]
text | string join(["a", "b", null], "_") | "a_b"
text | string join(["a", "b"]) | "ab"
list | list contains([1, 2, null], null) | true
list | count([1, 2, 3]) | 3
list | count([]) | 0
list | min([1, 2, 3]) | 1
list | max(1, 2, 3) | 3
list | max(["a", "b"]) | "b"
list | sum([1, 2, 3]) | 6
list | mean([1, 2, 3]) | 2
list | median([6, 1, 2, 3]) | 2.5
list | mode([6, 3, 9, 6, 6]) | [6]
list | mode([6, 1, 9, 6, 1]) | [1, 6]
list | stddev([2, 4, 7, 5]) | 2.0816659994661326
list | product([2, 3, 4]) | 24
list | all([true, null, true]) | null
list | any([false, null, true]) | null
list | sublist([4, 5, 6], 1, 2) | [4, 5]
list | append([1], 2, 3) | [1, 2, 3]
list | concatenate([1, 2], [3]) | [1, 2, 3]
list | insert before([1, 3], 1, 2) | [2, 1, 3]
list | remove([1, 2, 3], 2) | [1, 3]
list | reverse([1, 2, 3]) | [3, 2, 1]
list | index of([1, 2, 3, 2], 2) | [2, 4]
list | union([1, 2], [2, 3]) | [1, 2, 3]
list | distinct values([1, 2, 3, 2, 1]) | [1, 2, 3]
list | flatten([[1, 2], [[3]], 4]) | [1, 2, 3, 4]
list | sort([3, 1, 2], function(a, b) a < b) | [1, 2, 3]
list | list replace([2, 4, 7], 3, 6) | [2, 4, 6]
list | count(5) | 1
number | decimal(1 / 3, 2) | 0.33
number | decimal(2.5, 0) | 2
number | floor(-1.5) | -2
number | floor(1.56, 1) | 1.5
number | ceiling(-1.5) | -1
number | round up(5.5, 0) | 6
number | round down(-5.5, 0) | -5
number | round half up(-2.5, 0) | -3
number | round half down(5.5, 0) | 5
number | abs(-10) | 10
number | modulo(-12, 5) | 3
number | modulo(12, -5) | -3
number | sqrt(16) | 4
number | log(10) | 2.302585092994046
number | exp(0) | 1
number | odd(5) | true
number | even(5) | false
temporal | date("2026-01-31") + duration("P1M") | "2026-02-28"
temporal | date("2026-01-31") - date("2025-01-31") | "P365D"
temporal | time("10:00:00") + duration("PT90M") | "11:30:00"
temporal | duration("PT1H") * 1.5 | "PT1H30M"
temporal | duration("P1Y") / duration("P1M") | 12
temporal | date and time("2026-01-31T10:00:00Z").hour | 10
temporal | date and time("2026-01-31T10:00:00+02:00") = date and time("2026-01-31T08:00:00Z") | true
temporal | duration("P2DT3H").hours | 3
temporal | years and months duration(date("2024-01-31"), date("2026-03-31")) | "P2Y2M"
temporal | day of year(date("2026-02-01")) | 32
temporal | day of week(date("2026-11-30")) | "Monday"
temporal | month of year(date("2026-11-30")) | "November"
temporal | week of year(date("2026-11-30")) | 49
temporal | is(date("2026-01-31"), date("2026-01-31")) | true
temporal | abs(duration("-PT5H")) | "PT5H"
range | before(1, 10) | true
range | before([1..10], [11..20]) | true
range | after([11..20], [1..10]) | true
range | meets([1..5], [5..10]) | true
range | met by([5..10], [1..5]) | true
range | overlaps([1..5], [3..8]) | true
range | overlaps before([1..5], [3..8]) | true
range | overlaps after([3..8], [1..5]) | true
range | finishes(10, [1..10]) | true
range | finished by([1..10], [5..10]) | true
range | includes([1..10], 5) | true
range | during(5, [1..10]) | true
range | starts(1, [1..10]) | true
range | started by([1..10], [1..5]) | true
range | coincides([1..5], [1..5]) | true
range | [1..5].start included | true
range | 3 in range("[1..5]") | true
type | 1 instance of number | true
type | [1] instance of list<number> | true
type | "a" instance of number | false
type | date("2026-01-31") instance of date | true
type | null instance of number | false
"#;

/// What differs from FEEL or from what people know of other engines: `expression | what happens`.
const DIFFERS: &[(&str, Result<&str, FailureCode>)] = &[
    // Errors end the run where FEEL gives null.
    ("1 / 0", Err(ExpressionFailed)),
    ("\"a\" + 1", Err(ExpressionFailed)),
    ("date(\"2026-02-30\")", Err(ExpressionFailed)),
    ("not(null)", Err(ExpressionFailed)),
    ("number(\"12\")", Err(ExpressionFailed)),
    ("sqrt(-1)", Err(ExpressionFailed)),
    ("x.a.b", Err(ExpressionFailed)),
    // No place in a variable.
    ("[1..5]", Err(ResultNotStorable)),
    ("10 ** 400", Err(ResultNotStorable)),
    // A time zone becomes its offset.
    ("date and time(\"2026-07-01T08:00:00@Europe/Warsaw\")", Ok("\"2026-07-01T08:00:00+02:00\"")),
    // 34 digits while it is computed, a double where it is kept.
    ("1 / 3", Ok("0.3333333333333333")),
];

/// Refused when a document is read.
const REFUSED: &[&str] = &[
    "now()",
    "today()",
    "function(a) a + 1",
    "{f: function(a) a, r: f(1)}",
    "function(a) external {java: {class: \"C\", \"method signature\": \"m(int)\"}}",
    "unknown + 1",
    "for a in [1], b in [1], c in [1] return 1",
    "x instance of Customer",
    "is defined(x)",
    "get or else(x, 1)",
    "trim(\" a \")",
    "uuid()",
    "random number()",
    "last day of month(date(\"2026-01-31\"))",
    "partition([1, 2], 1)",
    "duplicate values([1, 1])",
];

fn rows() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    HOLDS.lines().filter(|line| !line.is_empty()).map(|line| {
        let (group, rest) = line.split_once(" | ").expect("a group");
        let (expression, result) = rest.rsplit_once(" | ").expect("a result");
        (group, expression, serde_json::from_str(result).expect("JSON"))
    })
}

#[test]
fn every_group_of_functions_gives_what_feel_says() {
    let x = json!({"a": 1, "b": [1, 2, 3], "s": "Hello", "c-d": 5});
    let wrong: Vec<String> = rows()
        .filter_map(|(_, expression, expected)| {
            let found = evaluate(expression, x.clone());
            (found != Ok(expected.clone()))
                .then(|| format!("{expression} is {found:?}, not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_differs_is_what_the_page_says() {
    let x = json!({"a": 1});
    for (expression, expected) in DIFFERS {
        let expected = expected.map(|json| serde_json::from_str::<Value>(json).expect("JSON"));
        assert_eq!(evaluate(expression, x.clone()), expected, "{expression}");
    }
    for expression in REFUSED {
        assert!(runfleet_flow::Definition::parse(&scripts(&[expression])).is_err(), "{expression}");
    }
}

#[test]
fn the_page_counts_these_rows() {
    let page = include_str!("../../FEEL.md");
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for (group, ..) in rows() {
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, count)) => *count += 1,
            None => groups.push((group, 1)),
        }
    }
    for (group, count) in &groups {
        let line = format!("| {group} | {count} |");
        assert!(page.contains(&line), "{line}");
    }
    let all = format!("{} rows", rows().count());
    assert!(page.contains(&all), "{all}");
}
