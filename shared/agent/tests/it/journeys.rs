//! From the start to each kind of end.

use runfleet_agent::{Effect, FailureKind, Message, Outcome, RecordText, Stop};
use serde_json::json;

use crate::support::{DEADLINE, Driven, START, begin, calls, definition, says, tool};

fn plain() -> Driven {
    Driven::new(definition(json!({}), json!({"t": tool("ALLOW", true)})), begin())
}

#[test]
fn a_run_of_one_turn_ends_with_its_text_and_usage() {
    let mut run = plain();
    let request = run.request();
    assert_eq!(request.messages, [Message::User { text: "Look at the deal.".to_owned() }]);
    assert_eq!(request.tools[0].name, "t");
    run.now_ms += 1_500;
    run.answer(says("All good."));
    let end = run.end();
    assert_eq!((end.outcome, end.error), (Outcome::Completed, None));
    assert_eq!(end.text.as_deref(), Some("All good."));
    let usage = end.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.iterations), (10, 5, 1));
    // CG-104
    assert_eq!(usage.duration_ms, 1_500);
    assert!(run.effects.is_empty());
}

/// NB-19, NB-14, NB-39, NB-44, NB-16
#[test]
fn calls_run_within_the_width_and_results_keep_their_order() {
    let definition = definition(json!({"parallel": 2}), json!({"t": tool("ALLOW", true)}));
    let mut run = Driven::new(definition, begin());
    run.answer(calls(&[("t", "{}"), ("t", r#"{"n":2}"#), ("t", r#"{"n":3}"#)]));
    let called = run.called();
    assert_eq!(
        called,
        [("call_1_1".to_owned(), json!({"n": 1})), ("call_1_2".to_owned(), json!({"n": 2}))]
    );
    run.done("call_1_2", json!("second"));
    assert_eq!(run.called().len(), 2);
    run.done("call_1_3", json!("third")).done("call_1_1", json!({"status": "error", "content": 7}));
    let results: Vec<_> = run
        .request()
        .messages
        .into_iter()
        .filter_map(|message| match message {
            Message::Tool { call_id, content, error, .. } => Some((call_id, content, error)),
            _ => None,
        })
        .collect();
    // NB-16: {status, content} is given whole, and an error is marked as one.
    let expected = [
        ("call_1_1", r#"{"status":"error","content":7}"#, true),
        ("call_1_2", "second", false),
        ("call_1_3", "third", false),
    ];
    assert_eq!(results, expected.map(|(id, text, error)| (id.to_owned(), text.to_owned(), error)));
    run.answer(says("done"));
    assert_eq!(run.end().usage.iterations, 2);
}

/// CG-057
#[test]
fn a_result_is_put_right_in_two_turns_at_most() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let start = || {
        let begin = runfleet_agent::Begin { result_schema: Some(schema.clone()), ..begin() };
        Driven::new(definition(json!({"maxTurns": 1}), json!({})), begin)
    };
    let mut run = start();
    assert_eq!(run.request().response_schema, Some(schema.clone()));
    run.answer(says(r#"{"n":"s3cret"}"#));
    let Some(Message::User { text }) = run.request().messages.pop() else { panic!("no repair") };
    assert!(text.contains("/n") && text.contains("must be of type integer"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    run.answer(says("```json\n{\"n\": 4}\n```"));
    assert_eq!(run.end().result, Some(json!({"n": 4})));
    assert_eq!(run.code(), "");

    let mut run = start();
    run.answer(says("a")).answer(says("b"));
    assert!(run.state.end().is_none());
    run.answer(says("c"));
    assert_eq!((run.code(), run.end().text.as_deref()), ("RESULT_SCHEMA_MISMATCH", Some("c")));
    assert_eq!(run.end().result, None);
}

#[test]
fn at_the_turn_limit_one_turn_without_tools_sums_up() {
    let definition = definition(json!({"maxTurns": 2}), json!({"t": tool("ALLOW", true)}));
    let mut run = Driven::new(definition, begin());
    run.answer(calls(&[("t", "{}")])).done_all().answer(calls(&[("t", r#"{"n":2}"#)])).done_all();
    let request = run.request();
    assert!(request.tools.is_empty() && request.response_schema.is_none());
    run.answer(calls(&[("t", "{}")]));
    assert_eq!((run.code(), &run.end().text), ("MAX_TURNS", &None));
    assert_eq!(run.end().outcome, Outcome::Failed);
}

#[test]
fn the_same_calls_again_and_again_are_stopped_at_the_third_time() {
    let round = |run: &mut Driven, n: u32| {
        run.answer(calls(&[("t", &format!("{{\"n\": {n}}}"))]));
        run.done_all();
    };
    let mut run = plain();
    (0..2).for_each(|_| round(&mut run, 1));
    run.answer(calls(&[("t", r#"{ "n":1 }"#)]));
    assert!(run.called().is_empty(), "the third one is not carried out");
    assert!(run.request().tools.is_empty());
    run.answer(says("I went round in circles."));
    assert_eq!(
        (run.code(), run.end().text.as_deref()),
        ("MAX_TURNS", Some("I went round in circles."))
    );

    // Two that alternate are a loop as well; progress in between is none.
    let mut run = plain();
    for n in [1, 2, 1, 2, 1] {
        round(&mut run, n);
    }
    run.answer(calls(&[("t", r#"{"n":2}"#)]));
    assert!(run.called().is_empty());
    let mut run = plain();
    for n in [1, 1, 2, 1, 1, 3, 1, 1] {
        round(&mut run, n);
    }
    assert_eq!(run.request().tools.len(), 1);
}

#[test]
fn a_failed_model_call_is_asked_again_after_a_pause_that_doubles() {
    let mut run = plain();
    let mut after = 0;
    for (attempt, pause) in [(1, 5_000), (2, 10_000), (3, 20_000)] {
        assert_eq!(run.asked().unwrap().1, attempt);
        run.fail(FailureKind::Unavailable, None);
        assert!(run.asked().is_none(), "nothing is asked during the pause");
        assert_eq!(run.wake_ms(), START + after + pause);
        run.at(after + pause - 1);
        assert!(run.asked().is_none());
        after += pause;
        run.at(after);
        assert!(matches!(run.effects[..], [Effect::AskModel { .. }]));
    }
    // Retry-After counts when it is longer, and a pause beyond the deadline is not begun.
    run.fail(FailureKind::RateLimited, Some(60_000));
    assert_eq!(run.wake_ms(), START + after + 60_000);
    run.at(after + 60_000).fail(FailureKind::RateLimited, Some(3_600_000));
    assert_eq!(run.code(), "LLM_HTTP_ERROR");
}

#[test]
fn an_answer_that_never_comes_is_given_up_and_asked_for_again() {
    let mut run = plain();
    run.at(129_999);
    assert_eq!(run.asked().unwrap().1, 1);
    run.at(130_000);
    assert_eq!(run.wake_ms(), START + 135_000);
    run.at(135_000);
    assert_eq!(run.asked().unwrap().1, 2);
    // The first attempt was slow and not lost: its answer is as good.
    run.step(vec![runfleet_agent::Event::ModelAnswered {
        turn: 1,
        attempt: 1,
        answer: says("late"),
    }]);
    assert_eq!(run.end().text.as_deref(), Some("late"));
}

#[test]
fn a_conversation_that_is_too_long_for_the_model_is_shortened() {
    let mut run = plain();
    for n in 1..=3 {
        run.answer(calls(&[("t", &format!("{{\"n\":{n}}}"))]));
        run.done(&format!("call_{n}_1"), json!("x".repeat(20_000)));
    }
    let before = serde_json::to_string(&run.request()).unwrap().len();
    run.fail(FailureKind::ContextTooLong, None);
    let after = serde_json::to_string(&run.request()).unwrap().len();
    assert!(after < before * 2 / 3, "{before} {after}");
    assert_eq!(run.asked().unwrap().1, 2);
    run.fail(FailureKind::ContextTooLong, None).fail(FailureKind::ContextTooLong, None);
    assert_eq!(run.code(), "LLM_HTTP_ERROR");
}

#[test]
fn the_time_of_the_run_ends_it_whatever_it_does() {
    let mut run = plain();
    run.answer(calls(&[("t", "{}")])).at(DEADLINE - START);
    assert_eq!((run.code(), run.end().outcome), ("TIMEOUT", Outcome::Timeout));
    assert!(run.state.outstanding(&run.definition).is_empty());
}

#[test]
fn variables_and_records_go_into_the_prompt_once_and_within_bounds() {
    let record = |id: &str| RecordText {
        object_slug: "deal".to_owned(),
        record_id: id.to_owned(),
        text: "y".repeat(40_000),
    };
    let variables = json!({"who": "{{records}}", "mail": "hello", "n": 3});
    let begin = runfleet_agent::Begin {
        variables: variables.as_object().unwrap().clone(),
        records: vec![record("1"), record("2")],
        ..begin()
    };
    let run = Driven::new(
        definition(json!({"systemPrompt": "For {{who}}. {{records}} {{nobody}}"}), json!({})),
        begin,
    );
    let request = run.request();
    assert!(request.system.starts_with("For {{records}}. ## deal 1\nyyy"), "not filled in twice");
    assert!(request.system.contains("## deal 2") && request.system.len() < 50_000);
    let Message::User { text } = &request.messages[0] else { panic!("no user") };
    assert_eq!(text, "Look at the deal.\n\nVariables: {\"mail\":\"hello\",\"n\":3}");
}

/// CG-091, CG-102
#[test]
fn a_text_is_cut_at_32_kib_at_a_character_boundary() {
    let mut run = plain();
    run.answer(says(&"€".repeat(20_000)));
    let text = run.end().text.clone().unwrap();
    assert_eq!((text.len(), text.chars().all(|char| char == '€')), (32_766, true));
    let mut run = plain();
    run.answer(runfleet_agent::Answer { stop: Stop::Length, ..says("half a") });
    assert_eq!((run.code(), run.end().text.as_deref()), ("OUTPUT_TRUNCATED", Some("half a")));
}
