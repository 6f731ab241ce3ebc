//! What an attempt of a sink means: for the message, and for the next attempt. Pure.
//!
//! Nothing here ever says that a message was sent unless the sink has said so. Where nobody knows, it is tried again only if the
//! sink does one id once; otherwise it has failed.

use std::time::Duration;

use runfleet_domain::retry::{Rung, rung_after};
use runfleet_store::{DeliveryStatus, MarkHow, Refused};

/// Time that the last attempt must have left before the run gives up waiting, in milliseconds.
const LAST_MS: u64 = 2_000;

/// Time that a run has left after it was told that its message was given up, in milliseconds; a quarter of a shorter time.
const FINISH_MS: u64 = 30_000;

/// The sink, or the way to it, does not work.
pub(crate) const UNAVAILABLE: Refused<'static> =
    Refused { status: DeliveryStatus::Failed, code: "DELIVERY_UNAVAILABLE" };

/// Anything else: another attempt would end the same.
pub(crate) const FAILED: Refused<'static> =
    Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The sink has it.
    Taken,
    /// The sink says no, and will again. Surely not sent.
    Refused,
    /// Surely not sent; perhaps later, when the sink wants to be left alone for so long.
    Busy(Option<Duration>),
    /// Nobody knows whether it was sent.
    Unsure(Option<Duration>),
}

impl Outcome {
    /// The word for metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused => "refused",
            Self::Busy(_) => "busy",
            Self::Unsure(_) => "unsure",
        }
    }

    /// Every word of [`Outcome::as_str`].
    pub(crate) const WORDS: [&'static str; 4] = ["taken", "refused", "busy", "unsure"];
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is decided.
    Settle(MarkHow<'static>),
    /// It is tried again.
    Again {
        /// What the ledger is told.
        how: MarkHow<'static>,
        /// After this.
        wait: Duration,
    },
}

/// What the attempt number `attempt` (from 1) of a message means. `deduplicates`: whether the sink does one id once. `left_ms`: for
/// how long somebody still waits for the message.
pub(crate) fn next(outcome: Outcome, deduplicates: bool, attempt: u32, left_ms: u64) -> Next {
    let again = |how, asked: Option<Duration>, otherwise| match pause(asked, attempt, left_ms) {
        Some(wait) => Next::Again { how, wait },
        None => Next::Settle(otherwise),
    };
    match outcome {
        Outcome::Taken => Next::Settle(MarkHow::Sent),
        Outcome::Refused => Next::Settle(MarkHow::NotSent(FAILED)),
        Outcome::Busy(asked) => again(MarkHow::Later, asked, MarkHow::NotSent(UNAVAILABLE)),
        Outcome::Unsure(asked) if deduplicates => {
            again(MarkHow::Unsure, asked, MarkHow::Failed(UNAVAILABLE))
        }
        Outcome::Unsure(_) => Next::Settle(MarkHow::Failed(UNAVAILABLE)),
    }
}

/// Until when a message is tried for which its run waits until `deadline_ms`: the run is to be told in time to go on.
pub(crate) fn until(deadline_ms: u64, now_ms: u64) -> u64 {
    let left = deadline_ms.saturating_sub(now_ms);
    deadline_ms.saturating_sub(FINISH_MS.min(left / 4))
}

/// How long until the next attempt: what the sink asks for, but no less than the ladder says; none if nobody would wait that long.
fn pause(asked: Option<Duration>, attempt: u32, left_ms: u64) -> Option<Duration> {
    let own = rung_after(attempt, 1)?.delay();
    let wait = asked.unwrap_or_default().max(own);
    // Nothing waits for other times than those of the ladder.
    let rung = Rung::at_least(wait).delay().max(wait);
    let ends_ms = u64::try_from(rung.as_millis()).unwrap_or(u64::MAX).saturating_add(LAST_MS);
    (ends_ms < left_ms).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 300_000;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn only_what_a_sink_has_taken_is_sent() {
        let outcomes = [
            Outcome::Taken,
            Outcome::Refused,
            Outcome::Busy(None),
            Outcome::Busy(Some(seconds(1))),
            Outcome::Unsure(None),
            Outcome::Unsure(Some(seconds(1))),
        ];
        for outcome in outcomes {
            for (deduplicates, attempt, left_ms) in
                [(true, 1, LONG), (false, 1, LONG), (true, 8, LONG), (false, 3, 0)]
            {
                let next = next(outcome, deduplicates, attempt, left_ms);
                let sent = next == Next::Settle(MarkHow::Sent);
                assert_eq!(sent, outcome == Outcome::Taken, "{outcome:?} {next:?}");
            }
        }
    }

    #[test]
    fn what_nobody_knows_is_tried_again_only_where_one_id_is_done_once() {
        let unsure = Outcome::Unsure(None);
        let again = Next::Again { how: MarkHow::Unsure, wait: seconds(5) };
        assert_eq!(next(unsure, true, 1, LONG), again);
        assert_eq!(next(unsure, false, 1, LONG), Next::Settle(MarkHow::Failed(UNAVAILABLE)));
        assert_eq!(next(unsure, true, 1, 7_000), Next::Settle(MarkHow::Failed(UNAVAILABLE)));
    }

    #[test]
    fn a_sink_that_wants_to_be_left_alone_is_while_somebody_waits() {
        let busy = |asked, attempt, left_ms| next(Outcome::Busy(asked), false, attempt, left_ms);
        let again = |wait| Next::Again { how: MarkHow::Later, wait: seconds(wait) };
        assert_eq!(busy(Some(seconds(40)), 1, LONG), again(40));
        // No sooner than the ladder says.
        assert_eq!(busy(Some(seconds(1)), 2, LONG), again(30));
        assert_eq!(busy(None, 3, LONG), again(120));
        let given_up = Next::Settle(MarkHow::NotSent(UNAVAILABLE));
        assert_eq!(busy(Some(seconds(3_600)), 1, LONG), given_up);
        assert_eq!(busy(None, 8, u64::MAX), given_up);
    }

    #[test]
    fn a_run_is_told_in_time_to_go_on_and_a_pause_never_overshoots() {
        assert_eq!(until(1_000_000, 0), 970_000);
        assert_eq!(until(10_000, 0), 7_500);
        assert_eq!(until(10_000, 10_000), 10_000);
        assert_eq!(until(10_000, 20_000), 10_000);
        // A pause between two rungs takes as long as the longer one.
        let given_up = Next::Settle(MarkHow::NotSent(UNAVAILABLE));
        assert_eq!(next(Outcome::Busy(Some(seconds(130))), false, 1, LONG), given_up);
    }
    /// When attempts are made, in seconds, at a sink that is down for an hour, and what the last one decides; `left` is for how
    /// long the message is tried.
    fn hour(down: Outcome, deduplicates: bool, left: u64) -> (Vec<u64>, MarkHow<'static>) {
        let (mut at, mut attempts) = (0, Vec::new());
        for attempt in 1.. {
            attempts.push(at);
            let outcome = if at < 3_600 { down } else { Outcome::Taken };
            let left_ms = until(left * 1_000, at * 1_000).saturating_sub(at * 1_000);
            match next(outcome, deduplicates, attempt, left_ms) {
                Next::Settle(how) => return (attempts, how),
                // What no sink has asked for is a failure, which waits for as long as the ladder says.
                Next::Again { wait, .. } => at += Rung::at_least(wait).delay().as_secs(),
            }
        }
        unreachable!("attempts have an end")
    }

    #[test]
    fn a_sink_that_is_down_for_an_hour_is_tried_a_few_times_and_a_message_ends_one_way() {
        let (run, waited) = (1_800, 7_200);
        let ladder = vec![0, 5, 35, 155, 755, 4_355];
        let given_up = MarkHow::NotSent(UNAVAILABLE);
        // A run that waits for half an hour is told; what has waited for the morning goes when the sink is back.
        assert_eq!(hour(Outcome::Busy(None), false, run), (ladder[..5].to_vec(), given_up));
        assert_eq!(hour(Outcome::Busy(None), false, waited), (ladder.clone(), MarkHow::Sent));
        // A sink that asks for a pause gets it, and is asked no sooner.
        let asked = Outcome::Busy(Some(seconds(600)));
        assert_eq!(
            hour(asked, false, waited),
            (vec![0, 600, 1_200, 1_800, 2_400, 6_000], MarkHow::Sent)
        );
        // Nobody knows: never again without ids, and under the same id with them.
        let unsure = Outcome::Unsure(None);
        let failed = MarkHow::Failed(UNAVAILABLE);
        assert_eq!(hour(unsure, false, waited), (vec![0], failed));
        assert_eq!(hour(unsure, true, waited), (ladder.clone(), MarkHow::Sent));
        assert_eq!(hour(unsure, true, run), (ladder[..5].to_vec(), failed));
    }
}
