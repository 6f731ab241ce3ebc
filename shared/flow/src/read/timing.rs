//! Times as a document gives them: whether they can be read.

use crate::timer::{Schedule, TimerKind};

/// What is wrong with a date and time, as a phrase that completes "the date …".
pub(super) fn date_problem(text: &str) -> Option<String> {
    problem(TimerKind::Date, text)
}

/// What is wrong with a duration, as a phrase that completes "the duration …".
pub(super) fn duration_problem(text: &str) -> Option<String> {
    problem(TimerKind::Duration, text)
}

/// What is wrong with a repeating interval, as a phrase that completes "the cycle …".
pub(super) fn cycle_problem(text: &str) -> Option<String> {
    problem(TimerKind::Cycle, text)
}

fn problem(kind: TimerKind, text: &str) -> Option<String> {
    Schedule::parse(kind, text).err().map(|problem| format!("cannot be read: {problem}"))
}

/// The length of a duration in milliseconds, if it is one.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    Some(Schedule::parse(TimerKind::Duration, text).ok()?.first_due(0))
}
