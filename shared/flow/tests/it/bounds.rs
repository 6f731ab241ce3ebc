//! Limits of a run, and states that no engine has written.

use runfleet_flow::{Effect, Event, FailureCode, Slice, State, Status};
use serde_json::{Map, Value, json};

use crate::play::{Dice, Play, play};
use crate::random::setting;
use crate::support::{NOW_MS, parse};
use crate::{blocks, model};

/// Plays with long slices, which is faster.
fn fast(text: &str, input: Value) -> Play {
    let definition = std::sync::Arc::new(parse(&model::document(text)));
    let mut run = Play::new(&definition, input).with(0, Some(4_000));
    run.rest(Vec::new());
    run
}

#[test]
fn an_element_is_entered_ten_thousand_times_and_no_more() {
    let text = "input n:number\n m: xor\n t: xor\n A: script n = n - 1\n start -> m -> A -> t\n t -> m if n > 0\n t -> end else";
    assert!(matches!(fast(text, json!({"n": 10_000})).status, Status::Completed { .. }));
    fast(text, json!({"n": 10_001})).fails(FailureCode::ElementVisitLimit, "m", None);
}

#[test]
fn a_loop_that_only_waits_for_times_ends_too() {
    // Nothing in it is counted but what is entered, and something always is.
    let text = "m: xor\n g: events\n T: catch timer PT0S\n M: catch msg never\n start -> m -> g -> T -> m\n g -> M -> end";
    fast(text, json!({})).fails(FailureCode::ElementVisitLimit, "m", None);
}

#[test]
fn no_more_is_active_at_a_time_than_a_state_can_hold() {
    // Each round begins one more that waits.
    let text = "m: xor\n g: and\n A: user\n t: xor\n start -> m -> g -> A -> end\n g -> t\n t -> m if 1 = 1\n t -> other else\n other: end";
    let run = fast(text, json!({}));
    let Status::Failed { code: FailureCode::TooManyInstances, .. } = run.status else {
        panic!("{:?}", run.status);
    };
    assert_eq!(run.all("A").len(), 1_500);
    let stored = serde_json::to_string(&run.state).expect("writable");
    assert!(stored.len() < 256 * 1024, "{}", stored.len());
}

#[test]
fn no_more_is_awaited_at_a_time_than_a_thousand_things() {
    let text = "m: xor\n g: and\n C: catch msg go\n t: xor\n start -> m -> g -> C -> end\n g -> t\n t -> m if 1 = 1\n t -> other else\n other: end";
    fast(text, json!({})).fails(FailureCode::TooManyInstances, "C", None);
}

#[test]
fn what_a_run_sends_does_not_fill_its_state() {
    let text = "input text\n A: sub | times 400 {\n M: throw msg news | in body = text + string(loopCounter)\n start -> M -> end\n }\n start -> A -> end";
    for size in [1, 1_000, 10_000] {
        let run = fast(text, json!({"text": "x".repeat(size)}));
        assert!(matches!(run.status, Status::Completed { .. }), "{:?}", run.status);
        let sent = run.effects.iter().filter(|effect| matches!(effect, Effect::Message { .. }));
        assert_eq!(sent.count(), 400);
        assert!(run.largest < 128 * 1024, "{size}: {}", run.largest);
    }
}

#[test]
fn an_expression_that_fails_fails_the_run_at_its_element() {
    for (text, code, element) in [
        ("A: script x = 1 + \"a\"\n start -> A -> end", FailureCode::ExpressionFailed, "A"),
        ("g: xor\n start -> g\n g -> end if \"a\"", FailureCode::ConditionNotBoolean, "f2"),
        ("A: user | assignee 5\n start -> A -> end", FailureCode::TextExpected, "A"),
        ("A: catch timer =\"soon\"\n start -> A -> end", FailureCode::TimerInvalid, "A"),
        ("A: catch date =5\n start -> A -> end", FailureCode::TimerInvalid, "A"),
        (
            "A: user\n b: on A cycle =\"R/PT0S\"\n start -> A -> end\n b -> end",
            FailureCode::TimerInvalid,
            "b",
        ),
        ("A: call =null\n start -> A -> end", FailureCode::TextExpected, "A"),
        ("A: throw signal =1\n start -> A -> end", FailureCode::TextExpected, "A"),
        ("A: task =null\n start -> A -> end", FailureCode::TextExpected, "A"),
        (
            "E: eventsub timer =\"x\" {\n start -> end\n }\n start -> A -> end",
            FailureCode::TimerInvalid,
            "E_start",
        ),
    ] {
        play(text).fails(code, element, None);
    }
    let mut run = play("A: task a | header resultExpression = =5\n start -> A -> end");
    run.done("A");
    run.fails(FailureCode::ContextExpected, "A", None);
}

/// Every place in a value, as a path.
fn places(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, inner) in entries {
                places(
                    inner,
                    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                places(inner, format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
    if !path.is_empty() {
        found.push(path);
    }
}

/// Something else for a place.
fn other(dice: &mut Dice, state: &Value, all: &[String]) -> Value {
    match dice.below(8) {
        0 => json!(0),
        1 => json!(1),
        2 => json!(u64::MAX),
        3 => json!(dice.below(12)),
        4 => Value::Null,
        5 => json!("start"),
        // Something from elsewhere in the state.
        _ => state.pointer(&all[dice.below(all.len())]).cloned().unwrap_or_default(),
    }
}

#[test]
fn a_state_that_was_damaged_is_refused_or_fails_and_never_panics() {
    let (mut read, mut total) = (0, 0);
    for case in 0..setting("RUNFLEET_FLOW_CASES").unwrap_or(48) {
        let mut dice = Dice(case);
        let drawn = blocks::draw(&mut dice, 12);
        let definition = std::sync::Arc::new(parse(&model::document(&drawn.text)));
        let mut run = Play::new(&definition, json!({"total": 0})).with(case, None);
        for _ in 0..=dice.below(6) {
            if run.status == Status::Running {
                run.slice(Vec::new());
            }
        }
        let state = serde_json::to_value(&run.state).expect("writable");
        let mut all = Vec::new();
        places(&state, String::new(), &mut all);
        for _ in 0..40 {
            let mut damaged = state.clone();
            for _ in 0..=dice.below(2) {
                let new = other(&mut dice, &state, &all);
                let place = &all[dice.below(all.len())];
                if let Some(place) = damaged.pointer_mut(place) {
                    *place = new;
                }
            }
            total += 1;
            let Ok(state) = State::from_json(&damaged.to_string()) else { continue };
            read += 1;
            let _ = (state.view(None), state.subscriptions(), state.outstanding(&definition));
            survive(&definition, state, &mut dice);
        }
    }
    assert!(read > total / 10, "only {read} of {total} were read");
}

fn survive(definition: &runfleet_flow::Definition, mut state: State, dice: &mut Dice) {
    for round in 0..6 {
        let task = dice.below(12) as u64;
        let variables = Map::new();
        let event = match dice.below(6) {
            0 => Event::UserDone { task, variables },
            1 => Event::TaskDone { task, attempt: 1, answer: json!({}) },
            2 => {
                let code = "NO".to_owned();
                Event::TaskFailed { task, attempt: 1, code, retry: true, after_ms: None }
            }
            3 => Event::ChildEnded { task, output: None, failed: Some("NO".to_owned()) },
            4 => Event::Message { subscription: task, variables },
            _ => Event::Retry { task: None },
        };
        let now_ms = NOW_MS + round * 3_600_000;
        let slice = Slice { max_steps: 50 };
        state = runfleet_flow::advance(definition, state, vec![event], now_ms, slice).state;
    }
}
