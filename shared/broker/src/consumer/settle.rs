//! What happens to a message after its handler: one pure table.

use runfleet_domain::retry::{Rung, rung_after};

use super::failure::{Failure, Verdict};
use crate::metrics::Settled;
use crate::route::Route;

/// Longest text about a parked message, in bytes.
pub(crate) const DETAIL_BYTES_MAX: usize = 1_024;

/// How the handling of one message ended.
#[derive(Debug)]
pub(crate) enum Finish {
    Returned(Result<Verdict, Failure>),
    Panicked,
    TimedOut,
    /// The grace at the end was over.
    Interrupted,
    /// The handler was not called: what is wrong with the message.
    Unreadable(&'static str, String),
    /// The handler was not called: a sender is ahead of this process.
    Newer,
}

/// What is done about it. Everything but `Ack` and `Requeue` is a publish, its confirm, and then the ack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    Ack,
    Retry { rung: Rung, attempt: u32 },
    Park { reason: &'static str, detail: String },
    Move(Route),
    Requeue,
}

/// The table. `spread` is any number; see [`rung_after`].
pub(crate) fn settle(finish: Finish, attempt: u32, spread: u32) -> (Settlement, Settled) {
    match finish {
        Finish::Returned(Ok(verdict)) => settle_verdict(verdict, attempt),
        Finish::Returned(Err(Failure::Permanent(trouble))) => {
            (park("rejected", trouble.doing().to_owned()), Settled::ParkedRejected)
        }
        Finish::Returned(Err(Failure::Transient(trouble))) => {
            again(attempt, spread, trouble.doing())
        }
        Finish::Panicked => again(attempt, spread, "the handler panicked"),
        Finish::TimedOut => again(attempt, spread, "the handler took too long"),
        Finish::Newer => again(attempt, spread, "the message is of a newer version"),
        Finish::Interrupted => (Settlement::Requeue, Settled::Requeued),
        Finish::Unreadable(reason, detail) => (park(reason, detail), Settled::ParkedUnreadable),
    }
}

fn settle_verdict(verdict: Verdict, attempt: u32) -> (Settlement, Settled) {
    match verdict {
        Verdict::Done => (Settlement::Ack, Settled::Completed),
        Verdict::Duplicate => (Settlement::Ack, Settled::Duplicate),
        Verdict::Drop(_) => (Settlement::Ack, Settled::Dropped),
        Verdict::Snooze(wait) => {
            (Settlement::Retry { rung: Rung::at_least(wait), attempt }, Settled::Snoozed)
        }
        Verdict::Park(reason, detail) => (park(reason, detail), Settled::ParkedRejected),
        Verdict::Move(route) => (Settlement::Move(route), Settled::Moved),
    }
}

fn again(attempt: u32, spread: u32, doing: &'static str) -> (Settlement, Settled) {
    match rung_after(attempt, spread) {
        Some(rung) => {
            (Settlement::Retry { rung, attempt: attempt.saturating_add(1) }, Settled::Retried)
        }
        None => (park("attempts_exhausted", doing.to_owned()), Settled::ParkedExhausted),
    }
}

fn park(reason: &'static str, mut detail: String) -> Settlement {
    let end = detail.floor_char_boundary(DETAIL_BYTES_MAX);
    detail.truncate(end);
    Settlement::Park { reason, detail }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runfleet_domain::Lane;

    use super::*;

    fn check(finish: Finish, attempt: u32, settlement: &Settlement, result: Settled) {
        let shown = format!("{finish:?} at attempt {attempt}");
        assert_eq!(settle(finish, attempt, 1), (settlement.clone(), result), "{shown}");
    }

    fn parked(reason: &'static str, detail: &str) -> Settlement {
        Settlement::Park { reason, detail: detail.to_owned() }
    }

    #[test]
    fn what_a_handler_says_is_done() {
        let ok = |verdict| Finish::Returned(Ok(verdict));
        check(ok(Verdict::Done), 1, &Settlement::Ack, Settled::Completed);
        check(ok(Verdict::Duplicate), 8, &Settlement::Ack, Settled::Duplicate);
        check(ok(Verdict::Drop("over")), 1, &Settlement::Ack, Settled::Dropped);
        let route = Route::Deliver(Lane::Backfill);
        check(ok(Verdict::Move(route.clone())), 1, &Settlement::Move(route), Settled::Moved);
        check(
            ok(Verdict::Park("odd", "why".into())),
            1,
            &parked("odd", "why"),
            Settled::ParkedRejected,
        );
    }

    #[test]
    fn a_snooze_uses_no_attempt_not_even_the_last_one() {
        for attempt in [1, 8, 9] {
            let snooze = Finish::Returned(Ok(Verdict::Snooze(Duration::from_secs(6))));
            check(
                snooze,
                attempt,
                &Settlement::Retry { rung: Rung::S30, attempt },
                Settled::Snoozed,
            );
        }
    }

    #[test]
    fn passing_failures_climb_the_ladder_and_are_parked_after_the_last_attempt() {
        let failed = || Finish::Returned(Err(Failure::transient("asking")));
        climbs(failed, "asking");
        climbs(|| Finish::Panicked, "the handler panicked");
        climbs(|| Finish::TimedOut, "the handler took too long");
        climbs(|| Finish::Newer, "the message is of a newer version");
    }

    fn climbs(end: fn() -> Finish, detail: &str) {
        check(end(), 1, &Settlement::Retry { rung: Rung::S5, attempt: 2 }, Settled::Retried);
        check(end(), 7, &Settlement::Retry { rung: Rung::H1, attempt: 8 }, Settled::Retried);
        for attempt in [8, u32::MAX] {
            check(end(), attempt, &parked("attempts_exhausted", detail), Settled::ParkedExhausted);
        }
    }

    #[test]
    fn lasting_failures_are_parked_at_once() {
        let failure = Finish::Returned(Err(Failure::permanent("applying")));
        check(failure, 1, &parked("rejected", "applying"), Settled::ParkedRejected);
        let unreadable = Finish::Unreadable("malformed", "no JSON".into());
        check(unreadable, 1, &parked("malformed", "no JSON"), Settled::ParkedUnreadable);
    }

    #[test]
    fn what_was_interrupted_goes_back() {
        check(Finish::Interrupted, 3, &Settlement::Requeue, Settled::Requeued);
    }

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        let finish = Finish::Returned(Ok(Verdict::Park("odd", "é".repeat(DETAIL_BYTES_MAX))));
        let (Settlement::Park { detail, .. }, _) = settle(finish, 1, 1) else {
            panic!("not parked")
        };
        assert_eq!(detail.len(), DETAIL_BYTES_MAX);
    }
}
