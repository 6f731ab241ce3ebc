//! Small documents and short ways to run them.

use std::fmt::Write;

use runfleet_flow::{Advanced, Definition, Event, FailureCode, Slice, State, Status};
use serde_json::{Map, Value, json};

pub(crate) const NAMESPACES: &str = r#"xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:rf="urn:runfleet:bpmn:1" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance""#;

/// A document with `body` inside its only process, `p`.
pub(crate) fn document(body: &str) -> String {
    format!(
        "<definitions {NAMESPACES}><process id=\"p\" isExecutable=\"true\">{body}</process></definitions>"
    )
}

/// Root elements that events of test documents refer to.
pub(crate) const ROOTS: &str = r#"<message id="M" name="paid"><extensionElements><zeebe:subscription correlationKey="=x"/></extensionElements></message>
    <message id="Any" name="=&quot;order-&quot; + x"/><message id="Nameless"/>
    <signal id="S" name="stop"/><signal id="Computed" name="=x"/>
    <error id="E" errorCode="NO_STOCK"/><error id="Codeless"/><error id="Feel" errorCode="=x"/>
    <escalation id="X" escalationCode="LATE"/><escalation id="CodelessX"/>"#;

/// A document with the root elements, an input `x`, and a process that goes from `s` through `node`, whose id must be `t`,
/// to `e`. `more` is drawn beside it.
pub(crate) fn through(node: &str, more: &str) -> String {
    document(&format!(
        "<extensionElements><rf:variable name=\"x\" direction=\"input\" type=\"any\"/></extensionElements>\
         <startEvent id=\"s\"/>{node}<endEvent id=\"e\"/><sequenceFlow id=\"in\" sourceRef=\"s\" targetRef=\"t\"/>\
         <sequenceFlow id=\"out\" sourceRef=\"t\" targetRef=\"e\"/>{more}"
    ))
    .replace("</process>", &format!("</process>{ROOTS}"))
}

/// Asserts that a document is refused with a problem that is exactly `expected`.
pub(crate) fn refused(xml: &str, expected: &str) {
    let found = problems(xml);
    assert!(found.iter().any(|problem| problem == expected), "{expected:?} in {found:#?}");
}

/// A document whose process assigns `expressions` to the variables `v0`, `v1`, … one after the other. Input `x` may be
/// anything and the last result is the only output.
pub(crate) fn scripts(expressions: &[&str]) -> String {
    let last = expressions.len() - 1;
    let mut body = format!(
        "<extensionElements><rf:variable name=\"x\" direction=\"input\" type=\"any\"/>\
         <rf:variable name=\"v{last}\" direction=\"output\" type=\"any\"/></extensionElements><startEvent id=\"s\"/>"
    );
    let mut before = "s".to_owned();
    for (index, expression) in expressions.iter().enumerate() {
        let _ = write!(
            body,
            "<scriptTask id=\"t{index}\" scriptFormat=\"feel\" rf:resultVariable=\"v{index}\">\
             <script>{}</script></scriptTask>\
             <sequenceFlow id=\"f{index}\" sourceRef=\"{before}\" targetRef=\"t{index}\"/>",
            escape(expression)
        );
        before = format!("t{index}");
    }
    let _ = write!(
        body,
        "<endEvent id=\"e\"/><sequenceFlow id=\"fe\" sourceRef=\"{before}\" targetRef=\"e\"/>"
    );
    document(&body)
}

/// A document whose gateway `g` takes the flow `yes` when `condition` holds, and no other flow.
pub(crate) fn condition(condition: &str) -> String {
    document(&format!(
        "<extensionElements><rf:variable name=\"x\" direction=\"input\" type=\"any\"/></extensionElements>\
         <startEvent id=\"s\"/><exclusiveGateway id=\"g\"/><endEvent id=\"e\"/>\
         <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"g\"/>\
         <sequenceFlow id=\"yes\" sourceRef=\"g\" targetRef=\"e\">\
         <conditionExpression>{}</conditionExpression></sequenceFlow>",
        escape(condition)
    ))
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(crate) fn parse(xml: &str) -> Definition {
    Definition::parse(xml).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// The problems of a document, as text.
pub(crate) fn problems(xml: &str) -> Vec<String> {
    Definition::parse(xml)
        .expect_err("the document must be refused")
        .iter()
        .map(ToString::to_string)
        .collect()
}

pub(crate) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

/// The time at which everything happens here.
pub(crate) const NOW_MS: u64 = 1_800_000_000_000;

/// One slice without events.
pub(crate) fn advance(definition: &Definition, state: State, max_steps: u32) -> Advanced {
    advance_with(definition, state, Vec::new(), NOW_MS, max_steps)
}

/// One slice.
pub(crate) fn advance_with(
    definition: &Definition,
    state: State,
    events: Vec<Event>,
    now_ms: u64,
    max_steps: u32,
) -> Advanced {
    runfleet_flow::advance(definition, state, events, now_ms, Slice { max_steps })
}

/// Runs to the end in slices of `max_steps`, and gives the number of slices too, and the history of all.
pub(crate) fn run(definition: &Definition, input: Value, max_steps: u32) -> (Advanced, usize) {
    let mut state = definition.start(map(input)).expect("the input fits");
    let mut slices = 0;
    let mut history = Vec::new();
    loop {
        let mut advanced = advance(definition, state, max_steps);
        slices += 1;
        history.append(&mut advanced.history);
        if advanced.status != Status::Running {
            return (Advanced { history, ..advanced }, slices);
        }
        // Every boundary goes through the stored form.
        let stored = serde_json::to_string(&advanced.state).expect("a state can be written");
        let read = State::from_json(&stored).expect("a state can be read");
        assert_eq!(read, advanced.state);
        state = read;
        assert!(slices < 100_000, "the run must come to an end");
    }
}

/// Result of one expression with `x` as input, or the code of the failure.
pub(crate) fn evaluate(expression: &str, x: Value) -> Result<Value, FailureCode> {
    evaluate_all(&[expression], x)
}

/// Result of the last of several expressions.
#[expect(clippy::needless_pass_by_value, reason = "calls are easier to read with plain values")]
pub(crate) fn evaluate_all(expressions: &[&str], x: Value) -> Result<Value, FailureCode> {
    let definition = parse(&scripts(expressions));
    match run(&definition, json!({ "x": x }), 1000).0.status {
        Status::Completed { output } => {
            Ok(output.expect("an output is declared").into_iter().next().expect("one output").1)
        }
        Status::Failed { code, message, .. } => {
            assert_eq!(message, code.message());
            Err(code)
        }
        other => panic!("{other:?}"),
    }
}
