//! Messages to a person: who may write one, and what is asked for.

use runfleet_agent::{Begin, Effect, Event, ToolFault};
use serde_json::json;

use crate::support::{Driven, begin, calls, definition, says, tool};

fn run(deliver: bool) -> Driven {
    // A tool of the same name that somebody has declared.
    let tools = json!({"sendMessage": tool("ALLOW", true), "t": tool("ALLOW", true)});
    Driven::new(definition(json!({}), tools), Begin { deliver, ..begin() })
}

fn sent(run: &Driven) -> Vec<(String, String, Option<String>, u64)> {
    let outstanding = run.state.outstanding(&run.definition).into_iter();
    let message = |effect| match effect {
        Effect::SendMessage { call_id, message, note, deadline_ms } => {
            Some((call_id, message, note, deadline_ms))
        }
        _ => None,
    };
    outstanding.filter_map(message).collect()
}

/// CG-054, CG-071
#[test]
fn only_a_run_with_a_person_has_the_tool_that_writes_to_one() {
    let schema = |run: &Driven| {
        let tools = run.request().tools;
        let tool = tools.iter().find(|tool| tool.name == "sendMessage").unwrap();
        json!(tool.input_schema)
    };
    let with = run(true);
    assert_eq!(schema(&with)["properties"]["message"]["maxLength"], 8_000);
    assert_eq!(schema(&with)["properties"]["note"]["maxLength"], 2_000);
    assert_eq!(with.request().tools.iter().filter(|tool| tool.name == "sendMessage").count(), 1);
    // Without a person the name is that of the declared tool, which sends nothing.
    let mut without = run(false);
    assert!(schema(&without)["properties"]["n"].is_object());
    without.answer(calls(&[("sendMessage", "{}")]));
    assert_eq!((sent(&without).len(), without.called().len()), (0, 1));
    let mut nothing = Driven::new(definition(json!({}), json!({})), begin());
    nothing.answer(calls(&[("sendMessage", r#"{"message":"Hello"}"#)]));
    assert!(nothing.told()["call_1_1"].0.contains("Tool unavailable."));
}

/// CG-054, CG-076
#[test]
fn a_message_is_asked_for_as_it_was_written_and_names_nobody() {
    let mut run = run(true);
    let text = "Grüße 👩\u{200d}👩\u{200d}👧 e\u{301} \u{202b}שלום\u{202c}";
    let written = json!({"message": text, "note": "Asked for it."}).to_string();
    run.answer(calls(&[("sendMessage", &written), ("t", "{}")]));
    let deadline = run.now_ms + 300_000;
    let expected =
        ("call_1_1".to_owned(), text.to_owned(), Some("Asked for it.".to_owned()), deadline);
    assert_eq!(sent(&run), [expected]);
    assert_eq!(run.called().len(), 1, "the other call is made beside it");
    run.done("call_1_1", json!({"status": "success", "content": {"delivery": "SENT"}}));
    run.done_all();
    assert_eq!(sent(&run).len(), 0);
    assert!(run.told()["call_1_1"].0.contains("SENT"));
    run.answer(says("Done."));
    assert_eq!(run.code(), "");
}

#[test]
fn arguments_beyond_their_bounds_and_other_recipients_are_refused_before_anything_is_sent() {
    let mut run = run(true);
    let long = json!({"message": "é".repeat(8_001)}).to_string();
    let note = json!({"message": "a", "note": "é".repeat(2_001)}).to_string();
    let fits = json!({"message": "é".repeat(8_000)}).to_string();
    run.answer(calls(&[
        ("sendMessage", r#"{"message":" \n "}"#),
        ("sendMessage", r#"{"message":"a","personnelId":"ben"}"#),
        ("sendMessage", "{}"),
        ("sendMessage", &note),
        ("sendMessage", &fits),
    ]));
    let ids: Vec<String> = sent(&run).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["call_1_5"]);
    run.step(vec![Event::ToolFailed {
        call_id: "call_1_5".to_owned(),
        fault: ToolFault::Unavailable,
        problems: Vec::new(),
    }]);
    assert_eq!(run.told().values().filter(|(_, failed)| *failed).count(), 5);
    run.answer(calls(&[("sendMessage", &long)]));
    assert_eq!(sent(&run).len(), 0);
    assert!(run.told()["call_2_1"].1);
}
