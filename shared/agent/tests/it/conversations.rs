//! Turns in a conversation: what was said before, and a person who decides.

use runfleet_agent::{
    Approval, Begin, Decision, Earlier, Effect, Event, FailureKind, HeldCall, Message,
};
use serde_json::json;

use crate::support::{DEADLINE, Driven, START, begin, calls, definition, says, tool};

fn said(agent: bool, text: &str, note: Option<&str>) -> Earlier {
    Earlier { agent, text: text.to_owned(), note: note.map(str::to_owned) }
}

fn turn(earlier: Vec<Earlier>) -> Driven {
    let begin = Begin {
        instruction: "And now?".to_owned(),
        approval: Approval::Person,
        earlier,
        ..begin()
    };
    Driven::new(definition(json!({}), json!({"ask": tool("ASK", true)})), begin)
}

fn spoken(run: &Driven) -> Vec<(bool, String)> {
    let messages = run.request().messages.into_iter();
    let spoken = messages.map(|message| match message {
        Message::User { text } => (false, text),
        Message::Assistant { text, .. } => (true, text),
        Message::Tool { .. } => (false, "a tool".to_owned()),
    });
    spoken.collect()
}

/// CG-076
#[test]
fn what_was_said_before_comes_first_and_notes_are_for_the_agent_alone() {
    let run = turn(vec![
        said(true, "Your deal is stuck.", Some("The owner asked me to.")),
        said(true, "Shall I help?", None),
        said(false, "Yes.", None),
        said(false, "Please.", None),
        said(true, "Done.", None),
    ]);
    let expected = [
        (false, "[You wrote first.]"),
        (true, "Your deal is stuck.\n\nShall I help?"),
        (false, "Yes.\n\nPlease."),
        (true, "Done."),
        (false, "And now?"),
    ];
    assert_eq!(spoken(&run), expected.map(|(agent, text)| (agent, text.to_owned())));
    assert!(run.request().system.ends_with("\n- The owner asked me to."));
    let quiet = turn(vec![said(false, "Hello.", None)]);
    assert_eq!(spoken(&quiet), [(false, "Hello.\n\nAnd now?".to_owned())]);
    assert!(!quiet.request().system.contains("Notes"));
}

#[test]
fn of_a_long_conversation_the_newest_is_kept_and_less_when_the_model_cannot_read_it() {
    let long = (0..100).map(|n| said(n % 2 == 1, &format!("{n}:{}", "x".repeat(2_000)), None));
    let mut run = turn(long.collect());
    let before = spoken(&run);
    assert!(before.len() > 10 && before.len() < 30, "{}", before.len());
    assert!(before[before.len() - 2].1.starts_with("99:"), "the last that was said before");
    run.fail(FailureKind::ContextTooLong, None);
    let shorter = spoken(&run);
    assert!(shorter.len() < before.len() && shorter.len() > 2);
    assert!(shorter[shorter.len() - 2].1.starts_with("99:"));
}

/// NB-07, NB-20, NB-36
#[test]
fn a_person_who_writes_on_without_deciding_cancels_what_was_held() {
    let mut run = turn(Vec::new());
    run.answer(calls(&[("ask", r#"{"n":1}"#), ("ask", r#"{"n":2}"#)]));
    let held: Vec<HeldCall> = run.state.held();
    assert_eq!(held.iter().map(|call| call.args["n"].clone()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((held[0].tool.as_str(), held[0].call_id.as_str()), ("ask", "call_1_1"));
    assert!(held[0].expires_at > run.now_ms);
    run.step(vec![Event::Approval { call_id: "call_1_1".to_owned(), decision: Decision::Approve }]);
    assert_eq!(run.state.held().len(), 1);
    run.step(vec![Event::PassedOver]);
    assert!(run.state.held().is_empty());
    assert_eq!(run.called().len(), 1, "what was approved is carried out");
    run.done_all();
    let told = run.told();
    assert!(told["call_1_2"].0.contains("was cancelled") && told["call_1_2"].1, "{told:?}");
    run.step(vec![Event::PassedOver]);
    assert_eq!(run.ignored, 1, "there is nothing left to pass over");
    run.answer(says("All right."));
    assert_eq!(run.end().text.as_deref(), Some("All right."));
}

/// NB-24
#[test]
fn an_agent_that_is_asked_has_more_time_when_its_person_may_have_to_decide() {
    let deadlines = |approval| {
        let mut helper = tool("ALLOW", false);
        helper["kind"] = json!({"agent": {"agent": "helper"}});
        let tools = json!({"helper": helper, "other": tool("ALLOW", false)});
        let begin = Begin { approval, deadline_ms: START + 3_600_000, ..begin() };
        let mut run = Driven::new(definition(json!({}), tools), begin);
        run.answer(calls(&[("helper", "{}"), ("other", "{}")]));
        let outstanding = run.state.outstanding(&run.definition).into_iter();
        let deadline = |effect| match effect {
            Effect::CallTool { deadline_ms, .. } => Some((deadline_ms - START) / 1_000),
            _ => None,
        };
        outstanding.filter_map(deadline).collect::<Vec<_>>()
    };
    assert_eq!(deadlines(Approval::Person), [15 * 60 + 20, 20]);
    assert_eq!(deadlines(Approval::AutoApprove), [20, 20]);
}

/// NB-24
#[test]
fn a_call_is_held_no_longer_than_its_run_lasts() {
    let begin = Begin { approval: Approval::Person, ..begin() };
    let tools = json!({"ask": tool("ASK", false)});
    let mut run = Driven::new(definition(json!({}), tools), begin);
    run.answer(calls(&[("ask", "{}")]));
    assert_eq!(run.state.held()[0].expires_at, DEADLINE);
}

#[test]
fn an_agent_speaks_freely_unless_its_answers_are_held_against_rules() {
    let speaks =
        |guardrails| definition(json!({"guardrails": guardrails}), json!({})).speaks_freely();
    assert!(speaks(json!({})) && speaks(json!({"input": {"maxChars": 5}})));
    for rules in [
        json!({"maxChars": 5}),
        json!({"blockedPatterns": ["x"]}),
        json!({"blockedTopics": ["money"]}),
    ] {
        assert!(!speaks(json!({"output": rules})), "{rules}");
    }
}
