//! Documents and values made to hurt: they end with an error, soon, on a stack of 2 MiB.

use std::fmt::Write;
use std::time::{Duration, Instant};

use runfleet_flow::{FailureCode, Status};
use serde_json::{Value, json};

use crate::support::{
    condition, document, evaluate, evaluate_all, map, parse, problems, run, scripts, through,
};

/// Runs `test` on a thread with the stack of a worker thread.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(test)
        .expect("a thread starts")
        .join()
        .expect("the test passes");
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn entities_and_document_types_are_refused() {
    let laughs = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><definitions>&b;</definitions>";
    assert_eq!(problems(laughs), ["a document type declaration is not allowed"]);
    let external = "<!DOCTYPE d SYSTEM \"file:///etc/passwd\"><definitions/>";
    assert_eq!(problems(external), ["a document type declaration is not allowed"]);
    assert!(problems("<definitions>&undefined;</definitions>")[0].contains("not well-formed"));
}

#[test]
fn documents_are_bounded() {
    on_a_small_stack(|| {
        let long = format!("<definitions>{}</definitions>", " ".repeat(1024 * 1024));
        assert_eq!(problems(&long), ["the document is larger than 1048576 bytes"]);
        let deep = nested("<a>", "", "</a>", 140_000);
        assert_eq!(problems(&deep), ["the document has more than 100000 XML nodes"]);
        let deep = nested("<a>", "", "</a>", 90_000);
        assert_eq!(problems(&deep), ["XML elements nest deeper than 64"]);
        let many = (0..2001).fold(String::new(), |mut text, index| {
            let _ = write!(text, "<endEvent id=\"e{index}\"/>");
            text
        });
        let found = problems(&document(&many));
        assert!(found.contains(&"p: the process has more than 2000 elements".to_owned()));
        assert!(found.len() <= 100);
        let named = problems(&document(&format!("<{} id=\"u\"/>", "a".repeat(100_000))));
        assert!(named.iter().all(|problem| problem.len() < 400));
        let scripts = scripts(&[format!("\"{}\"", "a".repeat(4000)).as_str(); 40]);
        assert_eq!(
            problems(&scripts),
            ["p: the expressions are longer than 131072 bytes together"]
        );
    });
}

#[test]
fn expressions_are_bounded() {
    on_a_small_stack(|| {
        let refused = |expression: &str| problems(&scripts(&[expression])).remove(0);
        assert_eq!(refused(&"1".repeat(4097)), "t0: the expression is longer than 4096 bytes");
        assert_eq!(
            refused(&nested("(", "1", ")", 33)),
            "t0: brackets of the expression nest deeper than 32"
        );
        let chain =
            "t0: the expression nests more than 64 operations; split it over several script tasks";
        assert_eq!(refused(&vec!["1"; 2048].join("+")), chain);
        assert_eq!(refused(&vec!["x"; 600].join(" and ")), chain);
        assert_eq!(refused(&format!("{}1", "- ".repeat(2000))), chain);
        assert_eq!(refused(&format!("{}1", "if x = 1 then 2 else ".repeat(190))), chain);
        assert_eq!(refused(&format!("x{}", "[1]".repeat(1300))), chain);
    });
}

#[test]
fn the_deepest_allowed_expressions_fit_on_the_stack() {
    on_a_small_stack(|| {
        for expression in [
            vec!["1"; 63].join("+"),
            vec!["1"; 63].join("*"),
            format!("{}1", "if x = 1 then 2 else ".repeat(60)),
            format!("{}1", "for a in [1] return ".repeat(14)),
            format!("{}true", "some a in [1] satisfies ".repeat(21)),
            format!("{}true", "every a in [1], b in [1] satisfies ".repeat(21)),
            nested("[", "1", "]", 16),
            nested("{a: ", "1", "}", 30),
            nested("x[", "true", "]", 32),
            nested("abs(", "1", ")", 31),
            nested("replace(", "\"a\"", ", \"a\", \"b\")", 31),
            nested("count(sort([2, 1], function(p, q) ", "p < q", "))", 10),
        ] {
            let outcome = evaluate(&expression, json!([1]));
            assert!(
                outcome != Err(FailureCode::ExpressionTooExpensive),
                "{expression}: {outcome:?}"
            );
        }
        // Lists in lists so deep would take the library for ever when it names their type.
        for expression in
            [format!("{}1", "for a in [1] return ".repeat(29)), nested("[", "1", "]", 32)]
        {
            let outcome = evaluate(&expression, json!([1]));
            assert_eq!(outcome, Err(FailureCode::ExpressionTooExpensive), "{expression}");
        }
    });
}

#[test]
fn deep_values_are_refused_or_fit_on_the_stack() {
    on_a_small_stack(|| {
        let definition = parse(&scripts(&["{a: [x, x], b: x = x, c: flatten([x])}.b"]));
        let deep = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
        assert!(definition.start(map(json!({"x": deep(65)}))).is_err());
        let end = run(&definition, json!({"x": deep(64)}), 10).0;
        assert_eq!(end.status, Status::Completed { output: Some(map(json!({"v0": true}))) });
        // One level more than can be stored.
        assert_eq!(evaluate("[x]", deep(64)), Err(FailureCode::ResultNotStorable));
        // Grows one level with each item.
        assert_eq!(
            evaluate("for i in 1..1000 return [partial]", json!(1)),
            Err(FailureCode::ExpressionTooExpensive)
        );
    });
}

#[test]
fn work_is_bounded() {
    let doubling = (0..60).fold("{a0: \"0123456789\"".to_owned(), |mut text, index| {
        let _ = write!(text, ", a{}: a{index} + a{index}", index + 1);
        text
    }) + "}";
    let lists = (0..60).fold("{a0: [1]".to_owned(), |mut text, index| {
        let _ = write!(text, ", a{}: [a{index}, a{index}]", index + 1);
        text
    }) + "}";
    let nested_loops = format!("{}1", "for a in (x) return ".repeat(20));
    let growing_loops =
        format!("{}1", "for s in [x, x, x] return for x in [s, s] return ".repeat(10));
    let nested_filters = nested("x[count(", "x", ") > 0]", 15);
    let list: Value = (0..2000).collect();
    for (expression, x) in [
        ("for i in 1..1000000000000 return i", json!(1)),
        ("for i in 1..x return i", json!(10_000_000)),
        ("for i in [1..x] return i", json!(10_000_000)),
        ("for i in [], j in 1..100000000000 return i", json!(1)),
        ("for i in 10 ** 40..10 ** 40 + 10 ** 8 return i", json!(1)),
        ("for d in date(\"1000-01-01\")..date(\"9999-01-01\") return d", json!(1)),
        ("for i in 1..9999 return for j in 1..9999 return i * j", json!(1)),
        ("count(for i in x, j in x return count(for k in x return k))", list.clone()),
        ("some a in x, b in x, c in x, d in x satisfies a + b + c + d < 0", list.clone()),
        (
            "every a in x satisfies some b in x satisfies every c in x satisfies c >= 0 and a + b < 0",
            list.clone(),
        ),
        ("count(x[count(x[count(x[item > 3]) > 5]) > 5])", list.clone()),
        ("for i in 1..5000 return if i = 1 then \"ab\" else partial[-1] + partial[-1]", json!(1)),
        ("sort(x, function(a, b) count(x[item > a]) < count(x[item > b]))", list.clone()),
        (doubling.as_str(), json!(1)),
        (lists.as_str(), json!(1)),
        (nested_loops.as_str(), list.clone()),
        (nested_filters.as_str(), json!([1, 2])),
        (growing_loops.as_str(), list.clone()),
        ("replace(x, \"\", x)", json!("a".repeat(60_000))),
        ("string join(for i in 1..2000 return \"a\", x)", json!("a".repeat(60_000))),
        ("for i in x return matches(\"abc\", \"(a|b|c){20}\")", (0..5000).collect()),
        (
            "distinct values(for i in 1..4000 return i)[1] + count(distinct values(x))",
            (0..8000).collect(),
        ),
    ] {
        let began = Instant::now();
        let outcome = evaluate(expression, x);
        assert_eq!(
            outcome,
            Err(FailureCode::ExpressionTooExpensive),
            "{}",
            &expression[..expression.len().min(80)]
        );
        let most = if cfg!(debug_assertions) { 60 } else { 10 };
        assert!(
            began.elapsed() < Duration::from_secs(most),
            "{expression:.80}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn ordinary_work_on_long_lists_is_allowed() {
    let orders: Value = (0..1500)
        .map(|index| json!({"price": index, "qty": 2, "name": format!("n{index}")}))
        .collect();
    for expression in [
        "count(for o in x return o.price*o.qty)",
        "count(x[price*qty > 100])",
        "sum(x.price)",
        "some o in x satisfies o.price = 1499",
        "count(sort(x, function(a, b) a.price > b.price))",
        "count(for i in 1..2000 return i)",
        "string join(x.name, \", \")",
        "count(distinct values(x.name))",
    ] {
        let outcome = evaluate(expression, orders.clone());
        assert!(outcome.is_ok(), "{expression}: {outcome:?}");
    }
}

#[test]
fn variables_are_bounded() {
    let long = "a".repeat(100_000);
    assert_eq!(
        evaluate_all(&["x + x", "v0 + \"b\""], json!(long)),
        Err(FailureCode::VariablesTooLarge)
    );
}

#[test]
fn a_run_that_goes_round_for_ever_is_ended() {
    let count = include_str!("../../../../deploy/example/count-to-limit.bpmn");
    let end = run(&parse(count), json!({"limit": 1_000_000}), 1000).0;
    let Status::Failed { code, element, .. } = end.status else { panic!("it must fail") };
    assert_eq!((code, element.as_deref()), (FailureCode::ElementVisitLimit, Some("Again")));
    assert!(
        serde_json::to_string(&end.state).expect("a state can be written").len() < 1000,
        "the state stays small"
    );
}

#[test]
fn nobody_else_sees_the_functions_that_count_work() {
    for expression in ["\u{1}keep(1)", "keep(1)", "\"\\u0001keep\"(1)"] {
        // A control character is no XML either, so this goes through a condition and a script alike.
        assert!(
            runfleet_flow::Definition::parse(&condition(expression)).is_err(),
            "{expression:?}"
        );
    }
}

/// A document that is refused, and how long that took.
fn soon(what: &str, xml: &str) {
    let began = Instant::now();
    let found = problems(xml);
    assert!(!found.is_empty() && found.len() <= 100, "{what}");
    assert!(found.iter().all(|problem| problem.len() < 700), "{what}");
    let most = if cfg!(debug_assertions) { 20 } else { 5 };
    assert!(began.elapsed() < Duration::from_secs(most), "{what}: {:?}", began.elapsed());
}

/// `text` so many times, with the number of each in the place of `#`.
fn many(text: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut all, index| {
        all.push_str(&text.replace('#', &index.to_string()));
        all
    })
}

#[test]
fn documents_that_repeat_one_thing_are_refused_soon() {
    on_a_small_stack(|| {
        let task = |inner: &str| {
            through(
                &format!(
                    "<serviceTask id=\"t\"><extensionElements>{inner}</extensionElements></serviceTask>"
                ),
                "",
            )
        };
        let variables = many("<rf:variable name=\"v#\" direction=\"input\"/>", 18_000);
        let headers = many("<zeebe:header key=\"k#\" value=\"v\"/>", 25_000);
        let mappings = many("<zeebe:output source=\"=m#\" target=\"n#\"/>", 20_000);
        for (what, xml) in [
            ("variables", document(&format!("<extensionElements>{variables}</extensionElements>"))),
            (
                "headers",
                task(&format!(
                    "<zeebe:taskDefinition type=\"a\"/><zeebe:taskHeaders>{headers}</zeebe:taskHeaders>"
                )),
            ),
            ("mappings", task(&format!("<zeebe:ioMapping>{mappings}</zeebe:ioMapping>"))),
            ("extensions", task(&many("<zeebe:other#/>", 40_000))),
            ("own extensions", task(&many("<zeebe:taskDefinition type=\"a\"/><rf:task/>", 20_000))),
            ("unknown own extensions", task(&many("<rf:other#/>", 50_000))),
        ] {
            soon(what, &xml);
        }
    });
}

#[test]
fn documents_of_many_elements_are_refused_soon() {
    on_a_small_stack(|| {
        let roots = many("<message id=\"m#\" name=\"n\"/>", 30_000);
        for (what, xml) in [
            (
                "children",
                through(
                    &format!("<task id=\"t\">{}</task>", many("<incoming>f#</incoming>", 30_000)),
                    "",
                ),
            ),
            ("roots", document("").replace("</process>", &format!("</process>{roots}"))),
            ("scopes", document(&nested("<subProcess id=\"u\">", "", "</subProcess>", 55))),
            (
                "boundary events",
                through(
                    "<task id=\"t\"/>",
                    &many(
                        "<boundaryEvent id=\"b#\" attachedToRef=\"t\"><errorEventDefinition id=\"d#\"/></boundaryEvent>",
                        1_900,
                    ),
                ),
            ),
            (
                "flows",
                through(
                    "<task id=\"t\"/>",
                    &many("<sequenceFlow id=\"f#\" sourceRef=\"t\" targetRef=\"s\"/>", 1_990),
                ),
            ),
            (
                "a long name",
                through(&"<receiveTask id=\"t\" messageRef=\"M\"/>".repeat(1_000), "")
                    .replace("\"paid\"", &format!("\"{}\"", "a".repeat(900_000))),
            ),
            (
                "names",
                through(
                    "<task id=\"t\"/>",
                    &many(
                        "<scriptTask id=\"s#\" rf:resultVariable=\"v#\" scriptFormat=\"feel\"><script>v# + w</script></scriptTask>",
                        1_900,
                    ),
                ),
            ),
        ] {
            soon(what, &xml);
        }
    });
}

#[test]
fn a_key_that_many_events_share_counts_for_each_of_them() {
    // Each of them compiles it; together that is more than a process may have.
    let key = format!("={}", ["string(x)"; 60].join(" + "));
    let waits = (0..300).fold(String::new(), |mut text, index| {
        let _ = write!(text, "<receiveTask id=\"r{index}\" messageRef=\"M\"/>");
        text
    });
    let xml = through("<task id=\"t\"/>", &waits)
        .replace("correlationKey=\"=x\"", &format!("correlationKey=\"{key}\""));
    let began = Instant::now();
    let found = problems(&xml);
    let told = "p: the expressions are longer than 131072 bytes together".to_owned();
    assert_eq!(found.iter().filter(|problem| **problem == told).count(), 1, "{found:#?}");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[test]
fn texts_and_nesting_are_bounded_where_they_stand() {
    let sub = |depth: usize| {
        (0..depth).fold("<task id=\"x\"/>".to_owned(), |inner, level| {
            format!("<subProcess id=\"u{level}\">{inner}</subProcess>")
        })
    };
    let found = problems(&document(&sub(11)));
    assert!(found.contains(&"u0: sub-processes nest deeper than 10".to_owned()), "{found:#?}");
    assert!(problems(&document(&sub(10))).iter().all(|problem| !problem.contains("nest")));
    let long = "a".repeat(5_000);
    let mapped = format!(
        "<task id=\"t\"><extensionElements><zeebe:ioMapping><zeebe:input source=\"{long}\" target=\"a\"/></zeebe:ioMapping></extensionElements></task>"
    );
    assert_eq!(
        problems(&through(&mapped, "")),
        ["t: the source of a `zeebe:input` is longer than 4096 bytes"]
    );
    let form = format!(
        "<userTask id=\"t\"><extensionElements><zeebe:formDefinition formId=\"{long}\"/></extensionElements></userTask>"
    );
    assert_eq!(problems(&through(&form, "")), ["t: the form is longer than 4096 bytes"]);
    let header = format!(
        "<serviceTask id=\"t\"><extensionElements><zeebe:taskDefinition type=\"a\"/><zeebe:taskHeaders><zeebe:header key=\"k\" value=\"{long}\"/></zeebe:taskHeaders></extensionElements></serviceTask>"
    );
    assert_eq!(problems(&through(&header, "")), ["t: the header `k` is longer than 4096 bytes"]);
}
