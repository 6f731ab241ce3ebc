//! Budgets and guardrails.

use runfleet_agent::{AnswerUsage, Begin, Event, FailureKind, State};
use serde_json::json;

use crate::support::{Driven, begin, calls, definition, says, tool};

fn with(spec: serde_json::Value) -> Driven {
    Driven::new(definition(spec, json!({"t": tool("ALLOW", true)})), begin())
}

#[test]
fn a_run_makes_no_more_calls_than_it_may() {
    let mut run = with(json!({"toolCalls": 2}));
    run.answer(calls(&[("t", "{}"), ("t", r#"{"n":2}"#), ("t", r#"{"n":3}"#)]));
    assert_eq!(run.called().len(), 2);
    run.done_all();
    assert!(run.told()["call_1_3"].0.contains("may make no more calls"));
    assert!(run.request().tools.is_empty(), "the last turn has no tools");
    run.answer(says("Two were made."));
    assert_eq!((run.code(), run.end().text.as_deref()), ("MAX_TURNS", Some("Two were made.")));
}

#[test]
fn a_run_takes_no_more_bytes_and_tokens_than_it_may() {
    let mut run = with(json!({"toolBytes": 1_024}));
    run.answer(calls(&[("t", "{}")])).done("call_1_1", json!("x".repeat(2_000)));
    assert!(run.request().tools.is_empty());
    run.answer(says("Enough."));
    assert_eq!(run.code(), "MAX_TURNS");

    // An answer that ends the run is taken even when it used up the rest.
    let mut run = with(json!({"tokenBudget": 15}));
    run.answer(says("done"));
    assert_eq!(run.code(), "");
}

#[test]
fn one_answer_of_many_calls_and_long_texts_fits_into_the_state() {
    let mut run = with(json!({"toolCalls": 100, "parallel": 16}));
    let long = format!("{{\"s\":\"{}\"}}", "\\n".repeat(10_000));
    let mut answer = calls(&vec![("t", long.as_str()); 40]);
    answer.text = "\"".repeat(100_000);
    run.answer(answer);
    run.step(Vec::new());
    while let Some((id, _)) = run.called().first().cloned() {
        run.done(&id, json!("\"\u{1}".repeat(100_000)));
    }
    assert_eq!(run.told().len(), 32);
    for turn in 2..12 {
        run.answer(calls(&[("t", &format!("{{\"n\":{turn}}}"))]));
        run.done(&format!("call_{turn}_1"), json!("\\".repeat(100_000)));
    }
    assert!(run.state.to_json().unwrap().len() <= 256 * 1024);
    assert!(
        run.state.view().left_out > 0
            || run.told().values().any(|(text, _)| text.contains("left out"))
    );
}

#[test]
fn events_are_stored_in_a_bounded_size() {
    let mut answer = calls(&vec![("t", "\"\"\"\"".repeat(5_000).as_str()); 100]);
    answer.text = "\u{1}".repeat(1_000_000);
    // As JSON six times as long, and short enough to be kept otherwise.
    let control = calls(&vec![("t", "\u{1}".repeat(500).as_str()); 33]);
    let long = "\u{1}\"".repeat(200_000);
    for event in [
        Event::ModelAnswered { turn: 1, attempt: 1, answer },
        Event::ModelAnswered { turn: 1, attempt: 1, answer: control },
        Event::ToolDone { call_id: "call_1_1".to_owned(), output: json!([long, {"a": long}]) },
        Event::ToolDone { call_id: "call_1_1".to_owned(), output: json!(long) },
    ] {
        let bounded = event.bounded();
        let json = serde_json::to_string(&bounded).unwrap();
        assert!(json.len() <= 65_536, "{}", json.len());
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), bounded);
    }
    let small = Event::ToolDone { call_id: "c".to_owned(), output: json!({"a": 1}) };
    assert_eq!(small.clone().bounded(), small);
}

#[test]
fn what_comes_in_is_held_against_patterns_sizes_and_topics() {
    let input = |rules: serde_json::Value| json!({"guardrails": {"input": rules}});
    for rules in [json!({"blockedPatterns": ["d.al"]}), json!({"maxChars": 5})] {
        let run = with(input(rules));
        assert_eq!(run.code(), "GUARDRAIL_REJECTED");
        assert!(run.state.outstanding(&run.definition).is_empty(), "no model was asked");
    }
    let spec = input(json!({"blockedTopics": ["weapons"]}));
    let mut run = with(spec.clone());
    let request = run.request();
    let text = serde_json::to_string(&request.messages).unwrap();
    assert!(
        text.contains("weapons") && text.contains("Look at the deal.") && request.tools.is_empty()
    );
    run.answer(says(r#"{"blocked": true}"#));
    assert_eq!((run.code(), run.end().usage.iterations), ("GUARDRAIL_REJECTED", 0));

    // A judge who cannot be understood lets nothing through.
    let mut run = with(spec.clone());
    run.answer(says("I think so")).at(5_000).answer(says("yes")).at(15_000).answer(says(""));
    assert_eq!(run.code(), "LLM_PARSE");
    let mut run = with(spec);
    run.answer(says(r#"{"blocked": false}"#));
    assert_eq!(run.request().tools.len(), 1, "now it begins");
}

#[test]
fn what_comes_out_is_judged_before_anybody_reads_it() {
    let spec = json!({"guardrails": {"output": {"blockedTopics": ["prices"]}}});
    let mut run = with(spec.clone());
    run.answer(says("It costs 5."));
    assert!(run.state.end().is_none());
    run.answer(says(r#"{"blocked": true}"#));
    assert_eq!((run.code(), &run.end().text), ("GUARDRAIL_REJECTED", &None));
    let mut run = with(spec);
    run.answer(says("Nice day.")).fail(FailureKind::Unavailable, None).at(5_000);
    run.answer(says(r#"{"blocked": false}"#));
    assert_eq!((run.code(), run.end().text.as_deref()), ("", Some("Nice day.")));
    assert_eq!(run.end().usage.input_tokens, 20, "the judgement is paid for");
}

#[test]
fn an_end_that_is_being_judged_fits_into_the_state() {
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false});
    let spec = json!({"guardrails": {"output": {"blockedTopics": ["prices"]}}, "systemPrompt": "x".repeat(16_000)});
    let begin = Begin { result_schema: Some(schema), ..begin() };
    let mut run = Driven::new(definition(spec, json!({})), begin);
    let items = vec!["\\n".repeat(450); 35];
    let text = json!({"l": items}).to_string();
    run.answer(says(&text)).step(Vec::new());
    run.answer(says(r#"{"blocked": false}"#)).step(Vec::new());
    assert_eq!(run.code(), "");
    assert_eq!(run.end().result.as_ref().unwrap()["l"][34], items[34]);
}

#[test]
fn an_answer_is_counted_once_however_often_it_comes() {
    let mut run = with(json!({}));
    let answer = calls(&[("t", "{}")]);
    let event = Event::ModelAnswered { turn: 1, attempt: 1, answer };
    run.step(vec![event.clone(), event]);
    assert_eq!((run.ignored, run.state.usage().input_tokens), (1, 10));
}

#[test]
fn usage_never_overflows() {
    let mut run = with(json!({}));
    for turn in 1..=2 {
        let mut answer = calls(&[("t", &format!("{{\"n\":{turn}}}"))]);
        answer.usage = AnswerUsage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            cached_tokens: u64::MAX,
        };
        run.answer(answer).done_all();
    }
    assert_eq!(run.state.usage().input_tokens, u64::MAX);
}

#[test]
fn a_state_of_a_newer_release_is_not_misread() {
    let run = Driven::new(definition(json!({}), json!({})), Begin { ..begin() });
    let json = run.state.to_json().unwrap();
    assert!(State::from_json(&json.replacen("\"v\":1", "\"v\":2", 1)).is_err());
    assert!(State::from_json("{}").is_err());
}
