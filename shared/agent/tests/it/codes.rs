//! Every word of the contract for a failed run: how it comes about, or why nothing sets it.

use std::collections::BTreeSet;

use runfleet_agent::{Begin, Decision, ErrorCode, Event, FailureKind, Stop, ToolFault};
use serde_json::json;

use crate::support::{DEADLINE, Driven, START, begin, calls, definition, says, tool};

fn run() -> Driven {
    Driven::new(
        definition(json!({}), json!({"t": tool("ALLOW", false), "ask": tool("ASK", true)})),
        begin(),
    )
}

/// A run that ends with a code.
#[expect(clippy::too_many_lines, reason = "one row for each code")]
fn ended(code: ErrorCode) -> Driven {
    let mut run = run();
    match code {
        ErrorCode::ResultSchemaMismatch => {
            let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
            let begin = Begin { result_schema: Some(schema), ..begin() };
            run = Driven::new(definition(json!({}), json!({})), begin);
            (0..3).for_each(|_| {
                run.answer(says("no"));
            });
        }
        ErrorCode::Timeout => {
            run.at(DEADLINE - START);
        }
        ErrorCode::CallerTimeout => {
            run.step(vec![Event::Cancelled { caller_gave_up: true }]);
        }
        ErrorCode::Cancelled => {
            run.step(vec![Event::Cancelled { caller_gave_up: false }]);
        }
        ErrorCode::MaxTurns => {
            run = Driven::new(
                definition(json!({"tokenBudget": 1}), json!({"t": tool("ALLOW", true)})),
                begin(),
            );
            run.answer(calls(&[("t", "{}")])).done_all();
        }
        ErrorCode::GuardrailRejected => {
            let rules = json!({"guardrails": {"output": {"blockedPatterns": ["(?i)password"]}}});
            run = Driven::new(definition(rules, json!({})), begin());
            run.answer(says("The Password is x."));
        }
        ErrorCode::ApprovalDenied => {
            for n in 1..=3 {
                run.answer(calls(&[("ask", &format!("{{\"n\":{n}}}"))]));
            }
        }
        ErrorCode::ServerRestarted => {
            run.answer(calls(&[("t", "{}")]));
            let (call_id, fault) = ("call_1_1".to_owned(), ToolFault::OutcomeUnknown);
            run.step(vec![Event::ToolFailed { call_id, fault, problems: Vec::new() }]);
        }
        ErrorCode::AgentConfigInvalid => {
            let variables = json!({"v": "x".repeat(30_000)});
            let variables = variables.as_object().unwrap().clone();
            let prompt = json!({"systemPrompt": "{{v}}{{v}}{{v}}{{v}}{{v}}"});
            run = Driven::new(definition(prompt, json!({})), Begin { variables, ..begin() });
        }
        ErrorCode::LlmHttpError => {
            run.fail(FailureKind::Refused, None);
        }
        ErrorCode::LlmNetwork => {
            while run.state.end().is_none() {
                if run.asked().is_some() {
                    run.fail(FailureKind::Network, None);
                } else {
                    run.at(run.wake_ms() - START);
                }
            }
        }
        ErrorCode::LlmResponseFailed => {
            run.answer(runfleet_agent::Answer { stop: Stop::Filtered, ..says("x") });
        }
        ErrorCode::LlmParse => {
            run.fail(FailureKind::Malformed, None).at(5_000);
            run.fail(FailureKind::Malformed, None).at(15_000).fail(FailureKind::Malformed, None);
        }
        ErrorCode::OutputTruncated => {
            run.answer(runfleet_agent::Answer { stop: Stop::Length, ..says("half") });
        }
        // Told by the worker: the ledger, the catalog or the credits say so.
        ErrorCode::AgentInactive
        | ErrorCode::AgentAccessDenied
        | ErrorCode::ConfigLoadFailed
        | ErrorCode::InternalError
        | ErrorCode::InsufficientCredits
        | ErrorCode::AiSubscriptionRequired
        | ErrorCode::AiSeatRequired
        | ErrorCode::AgentCreditLimitExceeded
        | ErrorCode::ModelNotPriced
        | ErrorCode::SessionBusy
        | ErrorCode::SessionEvicted
        | ErrorCode::AgentError => {
            run.step(vec![Event::Stop { code }]);
        }
    }
    run
}

/// CG-092
#[test]
fn every_code_is_the_end_of_a_run_or_says_why_nothing_sets_it() {
    for code in ErrorCode::ALL {
        let run = ended(*code);
        assert_eq!(run.code(), code.as_str());
        assert_eq!(run.end().outcome, code.outcome());
    }
    let reserved: Vec<_> = ErrorCode::ALL
        .iter()
        .filter(|code| code.reserved().is_some())
        .map(|code| code.as_str())
        .collect();
    assert_eq!(reserved, ["SESSION_BUSY", "SESSION_EVICTED", "AGENT_ERROR"]);
}

/// CG-092, CG-093
#[test]
fn each_code_has_a_sentence_of_its_own() {
    let sentences: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.message()).collect();
    assert_eq!((sentences.len(), ErrorCode::ALL.len()), (26, 26));
    assert!(sentences.iter().all(|text| text.ends_with('.') && text.is_ascii()));
}

#[test]
fn nothing_changes_a_run_that_has_ended() {
    let mut run = ended(ErrorCode::Cancelled);
    let before = run.state.clone();
    let event = Event::Approval { call_id: "call_1_1".to_owned(), decision: Decision::Approve };
    run.step(vec![event, Event::Stop { code: ErrorCode::InternalError }]).at(10_000_000);
    assert_eq!((run.state, run.ignored), (before, 2));
}

/// CG-092
#[test]
fn the_page_of_the_contract_says_of_each_code_when_a_run_ends_with_it_or_that_it_is_reserved() {
    let page = include_str!("../../../../CONTRACT.md");
    for code in ErrorCode::ALL {
        let start = format!("| `{}` | ", code.as_str());
        let row = page.lines().find(|line| line.starts_with(&start)).unwrap();
        assert_eq!(row.contains("| reserved: "), code.reserved().is_some(), "{row}");
    }
}
