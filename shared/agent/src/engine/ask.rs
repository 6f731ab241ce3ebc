//! Questions to models: when they are asked, and what becomes of those that fail.

use super::Run;
use crate::code::ErrorCode;
use crate::compact;
use crate::event::{FailureKind, ModelFailure};
use crate::limits::{BACK_OFF_MS, BACK_OFF_MS_MAX, GRACE_MS, SHORTENINGS_MAX};
use crate::state::{Ask, Draft, Purpose, Step};

impl Run<'_> {
    /// Asks a model.
    pub(super) fn ask(&mut self, purpose: Purpose) {
        self.state.asks = self.state.asks.saturating_add(1);
        self.state.step = Step::Asking(Ask {
            turn: self.state.asks,
            attempt: 1,
            purpose,
            due_ms: None,
            expires_ms: self.model_expires(),
            heard: 0,
            shortened: 0,
            end: None,
        });
    }

    /// Has a model judge the end of the run.
    pub(super) fn ask_about(&mut self, draft: Draft) {
        self.ask(Purpose::JudgeOutput);
        if let Step::Asking(ask) = &mut self.state.step {
            ask.end = Some(Box::new(draft));
        }
    }

    fn model_expires(&self) -> u64 {
        let longest = u64::from(self.definition.blueprint.spec.model_timeout_seconds) * 1_000;
        self.now_ms.saturating_add(longest).min(self.state.deadline_ms)
    }

    /// A model has not answered. Whether that was news.
    pub(super) fn failed(&mut self, turn: u32, attempt: u32, failure: ModelFailure) -> bool {
        match &self.state.step {
            Step::Asking(ask)
                if ask.turn == turn && ask.attempt == attempt && ask.due_ms.is_none() =>
            {
                self.retry(failure);
                true
            }
            _ => false,
        }
    }

    /// Asks again after a pause, if that makes sense.
    pub(super) fn retry(&mut self, failure: ModelFailure) {
        if failure.kind == FailureKind::ContextTooLong {
            return self.shorten();
        }
        let (now_ms, deadline_ms) = (self.now_ms, self.state.deadline_ms);
        let Step::Asking(ask) = &mut self.state.step else { return };
        let pause = back_off(ask.attempt).max(failure.retry_after_ms.unwrap_or(0));
        let due_ms = now_ms.saturating_add(pause);
        if ask.attempt >= failure.kind.attempts() || due_ms >= deadline_ms {
            return self.end(Some(failure.kind.code()));
        }
        ask.attempt += 1;
        ask.due_ms = Some(due_ms);
    }

    /// Asks again at once, with less of what was before.
    fn shorten(&mut self) {
        let expires_ms = self.model_expires();
        let shorter = match &self.state.step {
            Step::Asking(ask) => ask.shortened < SHORTENINGS_MAX,
            _ => false,
        };
        if !shorter || !compact::halve(&mut self.state) {
            return self.end(Some(ErrorCode::LlmHttpError));
        }
        if let Step::Asking(ask) = &mut self.state.step {
            ask.shortened += 1;
            ask.attempt += 1;
            ask.expires_ms = expires_ms;
        }
    }

    /// A pause that is over, and an answer that never came.
    pub(super) fn ask_overdue(&mut self) {
        let (now_ms, expires_ms) = (self.now_ms, self.model_expires());
        let Step::Asking(ask) = &mut self.state.step else { return };
        match ask.due_ms {
            Some(due_ms) if due_ms <= now_ms => {
                ask.due_ms = None;
                ask.expires_ms = expires_ms;
            }
            None if ask.expires_ms.saturating_add(GRACE_MS) <= now_ms => {
                self.retry(ModelFailure { kind: FailureKind::Timeout, retry_after_ms: None });
            }
            _ => {}
        }
    }
}

/// The pause after a failed attempt, in milliseconds.
fn back_off(attempt: u32) -> u64 {
    let doubled = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
    BACK_OFF_MS.saturating_mul(doubled).min(BACK_OFF_MS_MAX)
}
