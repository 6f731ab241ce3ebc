//! What a model has answered: the end, a result, a judgement, or calls.

use serde_json::Value;

use super::Run;
use crate::code::ErrorCode;
use crate::event::{Answer, FailureKind, ModelFailure, Stop};
use crate::limits::{REPAIRS_MAX, TEXT_BYTES_MAX};
use crate::request::judgement_schema;
use crate::result;
use crate::schema::Problem;
use crate::state::{Exchange, Purpose, Step};
use crate::text::clean;

/// What the model is told when no further turn is granted.
const SUM_UP: &str = "You have reached the limit of this run. No tool can be called any more. Say in a few sentences what you \
    have found and done, and what is left to do.";

impl Run<'_> {
    /// A model has answered. Whether that was news.
    pub(super) fn answered(&mut self, turn: u32, attempt: u32, answer: Answer) -> bool {
        let purpose = match &mut self.state.step {
            // An earlier attempt was slow, not lost: its answer is as good. None counts twice.
            Step::Asking(ask) if ask.turn == turn && ask.awaits(attempt) => {
                ask.heard = attempt;
                ask.purpose
            }
            _ => return false,
        };
        self.account(&answer, purpose);
        if answer.stop == Stop::Filtered {
            self.end(Some(ErrorCode::LlmResponseFailed));
            return true;
        }
        match purpose {
            Purpose::JudgeInput | Purpose::JudgeOutput => self.judged(&answer),
            Purpose::Turn if !answer.calls.is_empty() => {
                self.state.turns = self.state.turns.saturating_add(1);
                self.open_round(turn, answer);
            }
            Purpose::Turn | Purpose::Summary if answer.text.trim().is_empty() => {
                self.empty(answer.stop);
            }
            Purpose::Turn => {
                self.state.turns = self.state.turns.saturating_add(1);
                self.said(&answer);
            }
            Purpose::Summary => {
                let code = self.state.ending.unwrap_or(ErrorCode::MaxTurns);
                self.finish(&answer.text, None, Some(code));
            }
        }
        true
    }

    fn account(&mut self, answer: &Answer, purpose: Purpose) {
        let usage = &mut self.state.usage;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut usage.input_tokens, answer.usage.input_tokens);
        add(&mut usage.output_tokens, answer.usage.output_tokens);
        add(&mut usage.cached_tokens, answer.usage.cached_tokens);
        if matches!(purpose, Purpose::Turn | Purpose::Summary) {
            usage.iterations = usage.iterations.saturating_add(1);
        }
    }

    fn empty(&mut self, stop: Stop) {
        match (stop, self.state.ending) {
            (Stop::Length, _) => self.end(Some(ErrorCode::OutputTruncated)),
            // There is nothing to sum up, and why it ends is known.
            (_, Some(code)) => self.end(Some(code)),
            (_, None) => {
                self.retry(ModelFailure { kind: FailureKind::Empty, retry_after_ms: None });
            }
        }
    }

    /// The model has said something and calls nothing: the end, unless a result is wanted and this is none.
    fn said(&mut self, answer: &Answer) {
        if answer.stop == Stop::Length {
            return self.finish(&answer.text, None, Some(ErrorCode::OutputTruncated));
        }
        let Some(schema) = &self.state.result_schema else {
            return self.finish(&answer.text, None, None);
        };
        match result::read(schema, &answer.text) {
            Ok(result) => self.finish(&answer.text, Some(result), None),
            Err(problems) if self.state.repairs < REPAIRS_MAX && !self.tokens_are_used_up() => {
                self.state.repairs += 1;
                let cap = TEXT_BYTES_MAX.min(self.state.room() / 6);
                self.state.exchanges.push(Exchange {
                    text: clean(&answer.text, cap),
                    calls: Vec::new(),
                    note: repair(&problems),
                });
                self.ask(Purpose::Turn);
            }
            Err(_) => self.finish(&answer.text, None, Some(ErrorCode::ResultSchemaMismatch)),
        }
    }

    fn judged(&mut self, answer: &Answer) {
        let judgement = result::read(&judgement_schema(), &answer.text);
        let blocked =
            judgement.ok().and_then(|value| value.get("blocked").and_then(Value::as_bool));
        let Some(blocked) = blocked else {
            return self.retry(ModelFailure { kind: FailureKind::Malformed, retry_after_ms: None });
        };
        if blocked {
            return self.end(Some(ErrorCode::GuardrailRejected));
        }
        self.state.judged.clear();
        let draft = match &mut self.state.step {
            Step::Asking(ask) => ask.end.take(),
            Step::Ready | Step::Calling { .. } | Step::Ended(_) => None,
        };
        match draft {
            Some(draft) => {
                let (text, result) = (Some(draft.text), draft.result);
                super::end(&mut self.state, self.now_ms, draft.code, text, result);
            }
            None => self.ask(Purpose::Turn),
        }
    }

    /// Whether the run may use no more tokens.
    pub(super) fn tokens_are_used_up(&self) -> bool {
        let used = self.state.usage.input_tokens.saturating_add(self.state.usage.output_tokens);
        let budget = self.definition.blueprint.spec.token_budget;
        budget.is_some_and(|budget| used >= u64::from(budget))
    }

    /// Has the model sum up in a last turn, and ends the run with `code` then.
    pub(super) fn sum_up(&mut self, code: ErrorCode) {
        if self.tokens_are_used_up() {
            return self.end(Some(code));
        }
        self.state.ending = Some(code);
        if let Some(last) = self.state.exchanges.last_mut() {
            SUM_UP.clone_into(&mut last.note);
        }
        self.ask(Purpose::Summary);
    }
}

fn repair(problems: &[Problem]) -> String {
    let list = serde_json::to_string(problems).unwrap_or_default();
    format!(
        "Your answer does not fit the schema of the result. What is wrong, by JSON Pointer: {list}\n\
         Answer again with JSON that fits the schema, and nothing else."
    )
}
