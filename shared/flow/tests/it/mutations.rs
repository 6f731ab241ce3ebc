//! The example documents, changed at random: whatever comes out is read or refused, soon and without a panic, and what is
//! read can be shown and run.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use runfleet_flow::{Definition, State};
use serde_json::{Map, Value, json};

use crate::support::{NOW_MS, advance_with};

const EXAMPLES: [&str; 5] = [
    include_str!("../../../../deploy/example/approve-discount.bpmn"),
    include_str!("../../../../deploy/example/count-to-limit.bpmn"),
    include_str!("../../../../deploy/example/fulfil-order.bpmn"),
    include_str!("../../../../deploy/example/onboard-customer.bpmn"),
    include_str!("../../../../deploy/example/remind.bpmn"),
];

/// One change of a document.
#[derive(Debug, Clone)]
enum Change {
    DropLine(Index),
    RepeatLine(Index),
    /// One line takes the place of another one.
    MoveLine(Index, Index),
    /// A value in quotes becomes another one of the document.
    SwapValue(Index, Index),
    /// A value in quotes becomes something made up.
    MakeUp(Index, String),
    /// An element, an attribute or a value changes its name everywhere.
    Rename(&'static str, &'static str),
}

/// Words of documents that are worth mixing up.
const WORDS: [&str; 34] = [
    "startEvent",
    "endEvent",
    "boundaryEvent",
    "intermediateCatchEvent",
    "intermediateThrowEvent",
    "serviceTask",
    "userTask",
    "scriptTask",
    "receiveTask",
    "callActivity",
    "subProcess",
    "exclusiveGateway",
    "parallelGateway",
    "inclusiveGateway",
    "eventBasedGateway",
    "messageEventDefinition",
    "timerEventDefinition",
    "errorEventDefinition",
    "terminateEventDefinition",
    "signalEventDefinition",
    "timeDuration",
    "timeCycle",
    "timeDate",
    "messageRef",
    "errorRef",
    "attachedToRef",
    "cancelActivity",
    "zeebe:input",
    "zeebe:output",
    "zeebe:taskDefinition",
    "zeebe:calledElement",
    "rf:variable",
    "multiInstanceLoopCharacteristics",
    "sequenceFlow",
];

fn change() -> impl Strategy<Value = Change> {
    let line = any::<Index>();
    prop_oneof![
        2 => line.prop_map(Change::DropLine),
        2 => any::<Index>().prop_map(Change::RepeatLine),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::MoveLine(from, to)),
        4 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::SwapValue(from, to)),
        2 => (any::<Index>(), "[-=a-zA-Z0-9 .:/+*(){}\\[\\]]{0,12}").prop_map(|(at, text)| Change::MakeUp(at, text)),
        2 => (prop::sample::select(WORDS.to_vec()), prop::sample::select(WORDS.to_vec()))
            .prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    // The first two are the declaration and the namespaces.
    let place = |index: &Index| 2 + index.index(lines.len() - 2);
    match change {
        Change::DropLine(at) => {
            lines.remove(place(at));
        }
        Change::RepeatLine(at) => {
            let at = place(at);
            lines.insert(at, lines[at]);
        }
        Change::MoveLine(from, to) => {
            let (from, to) = (place(from), place(to));
            lines[to] = lines[from];
        }
        Change::SwapValue(from, to) => {
            let values: Vec<&str> = text.split('"').collect();
            let value = |index: &Index| 1 + 2 * index.index((values.len() - 1) / 2);
            let (from, to) = (value(from), value(to));
            let mut values = values.clone();
            values[to] = values[from];
            return values.join("\"");
        }
        Change::MakeUp(at, made_up) => {
            let mut values: Vec<&str> = text.split('"').collect();
            let at = 1 + 2 * at.index((values.len() - 1) / 2);
            values[at] = made_up;
            return values.join("\"");
        }
        Change::Rename(from, to) => return text.replace(from, to),
    }
    lines.join("\n")
}

fn value_of(name: &str) -> Value {
    match name {
        "amount" | "limit" => json!(5),
        "items" | "people" => json!([{"id": 1, "email": "a@example.com"}]),
        _ => json!("text"),
    }
}

/// Runs as far as it goes while nobody answers and a year passes.
fn run_alone(definition: &Definition) {
    let inputs = definition.summary().inputs.iter();
    let input: Map<String, Value> =
        inputs.map(|input| (input.name.clone(), value_of(&input.name))).collect();
    let Ok(mut state) = definition.start(input) else { return };
    for day in 0..30 {
        let now_ms = NOW_MS + day * 12 * 24 * 60 * 60 * 1000;
        let advanced = advance_with(definition, state, Vec::new(), now_ms, 50);
        let stored = serde_json::to_string(&advanced.state).expect("a state can be written");
        state = State::from_json(&stored).expect("a state can be read");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_document_is_read_or_refused(
        example in prop::sample::select(EXAMPLES.to_vec()),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let text = changes.iter().fold(example.to_owned(), |text, change| apply(&text, change));
        let began = Instant::now();
        match Definition::parse(&text) {
            Ok(definition) => {
                prop_assert!(definition.describe().starts_with("process "));
                run_alone(&definition);
            }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
        prop_assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn some_changes_leave_a_process_that_runs_and_others_do_not() {
    // What the property above is worth: both of its arms are reached.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..200 {
        use proptest::strategy::ValueTree as _;
        let change = change().new_tree(&mut runner).expect("a change").current();
        match Definition::parse(&apply(EXAMPLES[2], &change)) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 20 && refused > 20, "{read} read, {refused} refused");
}
