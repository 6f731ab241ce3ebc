//! Whatever models and tools answer, in whatever order and with whatever crashes: a run comes to one end, within its
//! budgets, and never asks again for what is recorded.

use std::collections::BTreeSet;

use proptest::prelude::*;
use runfleet_agent::{
    Answer, AnswerCall, AnswerUsage, Approval, Begin, Decision, Definition, Effect, ErrorCode,
    Event, FailureKind, Message, ModelFailure, Outcome, State, Status, Stop, ToolFault, advance,
};
use serde_json::{Value, json};

use crate::support::{DEADLINE, START, definition_with, tool};

const CALLS_MAX: u32 = 12;
const TURNS_MAX: u32 = 6;

/// What chance decides in one step.
#[derive(Debug, Clone)]
struct Luck {
    pick: u8,
    what: u8,
    text: String,
    calls: Vec<(u8, u8)>,
    pause_ms: u64,
    twice: bool,
}

fn luck() -> impl Strategy<Value = Luck> {
    let text = prop_oneof![
        Just(String::new()),
        Just(r#"{"n": 4}"#.to_owned()),
        Just(r#"{"blocked": false}"#.to_owned()),
        Just("x".repeat(70_000)),
        "\\PC{0,40}",
    ];
    let calls = prop::collection::vec((0..7_u8, 0..7_u8), 0..6);
    (any::<u8>(), any::<u8>(), text, calls, 0..40_000_u64, any::<bool>()).prop_map(
        |(pick, what, text, calls, pause_ms, twice)| Luck {
            pick,
            what,
            text,
            calls,
            pause_ms,
            twice,
        },
    )
}

fn answer(luck: &Luck) -> Answer {
    let name =
        |n: u8| ["allow", "once", "ask", "hidden", "getSkill", "nothing", ""][usize::from(n)];
    let arguments = |n: u8| {
        ["{}", r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":"x"}"#, "{", r#"{"skillName":"deals"}"#, "[]"]
            [usize::from(n)]
    };
    let call = |(tool, written): &(u8, u8)| AnswerCall {
        name: name(*tool).to_owned(),
        arguments: arguments(*written).to_owned(),
    };
    Answer {
        text: luck.text.clone(),
        calls: luck.calls.iter().map(call).collect(),
        usage: AnswerUsage { input_tokens: 3, output_tokens: 2, cached_tokens: 1 },
        stop: if luck.what % 23 == 22 { Stop::Length } else { Stop::End },
    }
}

fn model_event(luck: &Luck, turn: u32, attempt: u32, judged: bool) -> Event {
    let kind = match luck.what % 10 {
        0 => FailureKind::RateLimited,
        1 => FailureKind::Network,
        2 if luck.pick.is_multiple_of(4) => FailureKind::ContextTooLong,
        3 if luck.pick.is_multiple_of(8) => FailureKind::Malformed,
        // Most runs are let in, so that there is something to see.
        what if judged && what < 9 => {
            let answer = Answer { text: r#"{"blocked": false}"#.to_owned(), ..answer(luck) };
            return Event::ModelAnswered { turn, attempt, answer };
        }
        _ => return Event::ModelAnswered { turn, attempt, answer: answer(luck) },
    };
    let failure = ModelFailure {
        kind,
        retry_after_ms: (luck.pick.is_multiple_of(3)).then_some(luck.pause_ms),
    };
    Event::ModelFailed { turn, attempt, failure }
}

fn tool_event(luck: &Luck, call_id: String) -> Event {
    match luck.what % 6 {
        3 if luck.pick.is_multiple_of(2) => Event::ToolBegan { call_id },
        0 => {
            let fault = if luck.pick.is_multiple_of(16) {
                ToolFault::OutcomeUnknown
            } else {
                ToolFault::Failed
            };
            Event::ToolFailed { call_id, fault, problems: Vec::new() }
        }
        1 => Event::ToolDone { call_id, output: Value::Null },
        2 => Event::ToolDone { call_id, output: json!({"status": "error", "content": luck.text}) },
        _ => Event::ToolDone { call_id, output: json!(luck.text) },
    }
}

fn subject() -> Definition {
    definition_with(json!({
        "spec": {"maxTurns": TURNS_MAX, "toolCalls": CALLS_MAX, "parallel": 2, "tokenBudget": 200,
            "guardrails": {"input": {"blockedTopics": ["a"]}, "output": {"blockedTopics": ["b"]}}},
        "tools": {"allow": tool("ALLOW", true), "once": tool("ALLOW", false), "ask": tool("ASK", true), "hidden": tool("ALLOW", true)},
        "skills": {"deals": {"description": "d", "instructions": "i", "tools": ["hidden"]}}
    }))
}

/// Ids of what is asked for.
fn ids(effects: &[Effect]) -> Vec<String> {
    let id = |effect: &Effect| match effect {
        Effect::AskModel { turn, attempt, .. } => Some(format!("turn:{turn}:{attempt}")),
        Effect::CallTool { call_id, .. } => Some(call_id.clone()),
        _ => None,
    };
    effects.iter().filter_map(id).collect()
}

/// Every call of an assistant has its result behind it, in order.
fn check_order(effects: &[Effect]) {
    for effect in effects {
        let Effect::AskModel { request, .. } = effect else { continue };
        let mut awaited: Vec<String> = Vec::new();
        for message in &request.messages {
            match message {
                Message::Tool { call_id, .. } => {
                    assert!(!awaited.is_empty());
                    assert_eq!(*call_id, awaited.remove(0));
                }
                Message::Assistant { calls, .. } => {
                    assert!(awaited.is_empty(), "a call has no result");
                    awaited = calls.iter().map(|call| call.id.clone()).collect();
                }
                Message::User { .. } => assert!(awaited.is_empty(), "a call has no result"),
            }
        }
        assert!(awaited.is_empty());
    }
}

fn next_event(luck: &Luck, state: &State, outstanding: &[Effect]) -> Option<Event> {
    if let Some(held) = held(state) {
        let decision = match luck.what % 3 {
            0 => Decision::Approve,
            1 => Decision::Reject { reason: Some(luck.text.clone()) },
            _ => Decision::Edit { arguments: json!({"n": 5}).as_object().unwrap().clone() },
        };
        return Some(Event::Approval { call_id: held, decision });
    }
    match outstanding.get(usize::from(luck.pick) % outstanding.len().max(1))? {
        Effect::AskModel { turn, attempt, request } => {
            let judged = request.system.starts_with("You judge");
            Some(model_event(luck, *turn, *attempt, judged))
        }
        Effect::CallTool { call_id, .. } => Some(tool_event(luck, call_id.clone())),
        _ => None,
    }
}

fn repeatable(outstanding: &[Effect], id: &str) -> bool {
    outstanding.iter().any(|effect| {
        matches!(effect, Effect::CallTool { call_id, idempotent: true, .. } if call_id == id)
    })
}

fn held(state: &State) -> Option<String> {
    let runfleet_agent::Doing::Calling { calls } = state.view().doing else { return None };
    let held = calls.into_iter().find(|call| call.doing == runfleet_agent::CallDoing::Held);
    held.map(|call| call.call_id)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn every_run_comes_to_one_end_and_never_asks_for_what_is_recorded(
        approval in prop_oneof![Just(Approval::Deny), Just(Approval::AutoApprove), Just(Approval::Person)],
        with_schema in any::<bool>(),
        lucks in prop::collection::vec(luck(), 20..80),
    ) {
        let definition = subject();
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let begin = Begin {
            instruction: "Go.".to_owned(), approval, now_ms: START, deadline_ms: DEADLINE,
            result_schema: with_schema.then_some(schema), ..Begin::default()
        };
        let mut state = definition.begin(begin);
        let mut now_ms = START;
        let mut recorded: BTreeSet<String> = BTreeSet::new();
        let mut asked: BTreeSet<String> = BTreeSet::new();
        let mut tokens = 0;
        let mut carried_out = BTreeSet::new();
        for luck in &lucks {
            // A crash: what is asked for comes out of the stored state alone.
            let stored = state.to_json().unwrap();
            prop_assert!(stored.len() <= 256 * 1024);
            state = State::from_json(&stored).unwrap();
            let outstanding = state.outstanding(&definition);
            for id in ids(&outstanding) {
                prop_assert!(!recorded.contains(&id), "{id} is recorded and asked for again");
            }
            check_order(&outstanding);
            let mut events = Vec::new();
            if let Some(event) = next_event(luck, &state, &outstanding) {
                match &event {
                    Event::ModelAnswered { turn, attempt, .. } => {
                        recorded.insert(format!("turn:{turn}:{attempt}"));
                        tokens += 5;
                    }
                    Event::ModelFailed { turn, attempt, .. } => {
                        recorded.insert(format!("turn:{turn}:{attempt}"));
                    }
                    Event::ToolDone { call_id, .. } | Event::ToolFailed { call_id, .. } => {
                        recorded.insert(call_id.clone());
                        carried_out.insert(call_id.clone());
                    }
                    Event::ToolBegan { call_id } if !repeatable(&outstanding, call_id) => {
                        recorded.insert(call_id.clone());
                    }
                    _ => {}
                }
                if luck.twice {
                    events.push(event.clone());
                }
                events.push(event);
            } else if let Status::Waiting { wake_ms } = state.status() {
                now_ms = now_ms.max(wake_ms);
            }
            now_ms += luck.pause_ms % 500;
            let advanced = advance(&definition, state.clone(), events.clone(), now_ms);
            let again = advance(&definition, state, events, now_ms);
            prop_assert_eq!(&advanced, &again, "the same arguments give the same");
            for id in ids(&advanced.effects) {
                prop_assert!(asked.insert(id.clone()), "{} became due twice", id);
            }
            state = advanced.state;
            prop_assert!(state.view().turns <= TURNS_MAX + 2, "turns and repairs");
            prop_assert!(state.view().tool_calls <= CALLS_MAX);
            prop_assert!(carried_out.len() <= CALLS_MAX as usize);
        }
        let usage = state.usage();
        prop_assert_eq!(usage.input_tokens + usage.output_tokens, tokens);
        // Nobody answers any more: time alone brings the end.
        let mut wakes = 0;
        while let Status::Waiting { wake_ms } = state.status() {
            prop_assert!(wake_ms <= DEADLINE && wakes < 200);
            now_ms = now_ms.max(wake_ms);
            wakes += 1;
            state = advance(&definition, state, Vec::new(), now_ms).state;
        }
        let end = state.end().unwrap().clone();
        prop_assert_eq!(end.error.map_or(Outcome::Completed, ErrorCode::outcome), end.outcome);
        prop_assert!(end.text.as_ref().is_none_or(|text| text.len() <= 32 * 1024));
        prop_assert_eq!(end.result.is_some(), with_schema && end.error.is_none());
        let after = advance(&definition, state.clone(), vec![Event::Cancelled { caller_gave_up: false }], now_ms + 1);
        prop_assert_eq!(&after.state, &state, "one end");
        prop_assert!(state.to_json().unwrap().len() <= 256 * 1024);
    }
}
