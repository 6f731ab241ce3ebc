//! Whether a message may go to a person now: who the person is, what the person has said, what time it is. Pure.

use runfleet_catalog::{QuietPolicy, QuietRules};
use runfleet_domain::admission::RecipientFacts;
use runfleet_store::{ChatSettings, DeliveryStatus, Refused};

use crate::outcome::UNAVAILABLE;
use crate::quiet::Hours;

/// What is known when a message is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The person, as of now.
    pub(crate) facts: RecipientFacts,
    /// What the person has said.
    pub(crate) settings: &'a ChatSettings,
    /// How the agent treats quiet hours.
    pub(crate) rules: &'a QuietRules,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// It may go.
    Go,
    /// Not before this time, in Unix milliseconds. It waits in the ledger.
    Wait(u64),
    /// It must not.
    Not(Refused<'static>),
}

const fn blocked(code: &'static str) -> May {
    May::Not(Refused { status: DeliveryStatus::Blocked, code })
}

/// Whether a message may go now. It is of use until `deadline_ms`, and can wait until `wait_until_ms` for the end of quiet hours.
pub(crate) fn may(known: &Known<'_>, now_ms: u64, deadline_ms: u64, wait_until_ms: u64) -> May {
    if now_ms >= deadline_ms {
        return May::Not(UNAVAILABLE);
    }
    let facts = &known.facts;
    if !facts.delivery {
        return May::Not(UNAVAILABLE);
    }
    if !facts.exists {
        return blocked("RECIPIENT_NOT_FOUND");
    }
    // Whoever has opted out has said that agents may not write.
    if !facts.may_use || known.settings.opt_out {
        return blocked("RECIPIENT_ACCESS_DENIED");
    }
    if !facts.ai_seat {
        return blocked("RECIPIENT_AI_SEAT_REQUIRED");
    }
    match quiet_until(known, now_ms) {
        None => May::Go,
        Some(end) if known.rules.policy == QuietPolicy::Wait && end <= wait_until_ms => {
            May::Wait(end)
        }
        // At this hour there may be none.
        Some(_) => blocked("RECIPIENT_RATE_LIMITED"),
    }
}

/// The hours of the person come before those that the agent has for everybody.
fn quiet_until(known: &Known<'_>, now_ms: u64) -> Option<u64> {
    if let Some(own) = &known.settings.quiet_hours {
        let hours = Hours { from: &own.from, to: &own.to, time_zone: &own.time_zone };
        return hours.end_ms(now_ms);
    }
    let hours = known.rules.hours.as_ref()?;
    let hours = Hours { from: &hours.from, to: &hours.to, time_zone: &hours.time_zone };
    hours.end_ms(now_ms)
}

#[cfg(test)]
mod tests {
    use runfleet_catalog::QuietHours;

    use super::*;

    const GOOD: RecipientFacts =
        RecipientFacts { delivery: true, exists: true, may_use: true, ai_seat: true };

    // 22:30 in Berlin, 2026-11-30.
    const NOW: u64 = 1_796_074_200_000;

    fn settings(opt_out: bool) -> ChatSettings {
        ChatSettings { opt_out, quiet_hours: None }
    }

    /// CG-165
    #[test]
    fn a_person_who_has_changed_since_the_start_blocks_with_the_code_of_that() {
        let told = |facts: RecipientFacts, opt_out| {
            let settings = settings(opt_out);
            let known = Known { facts, settings: &settings, rules: &QuietRules::default() };
            may(&known, NOW, NOW + 1_000, NOW)
        };
        assert_eq!(told(GOOD, false), May::Go);
        for (facts, opt_out, expected) in [
            (RecipientFacts { exists: false, ..GOOD }, false, blocked("RECIPIENT_NOT_FOUND")),
            (RecipientFacts { may_use: false, ..GOOD }, false, blocked("RECIPIENT_ACCESS_DENIED")),
            (GOOD, true, blocked("RECIPIENT_ACCESS_DENIED")),
            (
                RecipientFacts { ai_seat: false, ..GOOD },
                false,
                blocked("RECIPIENT_AI_SEAT_REQUIRED"),
            ),
            (RecipientFacts { delivery: false, ..GOOD }, false, May::Not(UNAVAILABLE)),
        ] {
            assert_eq!(told(facts, opt_out), expected);
        }
    }

    #[test]
    fn in_quiet_hours_a_message_waits_or_is_blocked_as_the_agent_says() {
        let hours = |from: &str, to: &str| {
            let (from, to) = (from.to_owned(), to.to_owned());
            Some(QuietHours { from, to, time_zone: "Europe/Berlin".to_owned() })
        };
        let minute = 60_000;
        let night = QuietRules { policy: QuietPolicy::Wait, hours: hours("22:00", "22:40") };
        let settings = settings(false);
        let told = |rules: &QuietRules, settings: &ChatSettings, left| {
            may(&Known { facts: GOOD, settings, rules }, NOW, NOW + 1_000, NOW + left)
        };
        assert_eq!(told(&night, &settings, 20 * minute), May::Wait(NOW + 10 * minute));
        let blocked = blocked("RECIPIENT_RATE_LIMITED");
        assert_eq!(told(&night, &settings, 10 * minute), May::Wait(NOW + 10 * minute));
        assert_eq!(told(&night, &settings, 10 * minute - 1), blocked);
        let block = QuietRules { policy: QuietPolicy::Block, ..night.clone() };
        assert_eq!(told(&block, &settings, 20 * minute), blocked);
        // The hours of the person come first.
        let own = |from: &str, to: &str| ChatSettings {
            opt_out: false,
            quiet_hours: Some(runfleet_store::QuietHours {
                from: from.to_owned(),
                to: to.to_owned(),
                time_zone: "Europe/Berlin".to_owned(),
            }),
        };
        assert_eq!(told(&night, &own("23:00", "23:30"), minute), May::Go);
        assert_eq!(told(&QuietRules::default(), &own("22:30", "06:00"), minute), blocked);
    }

    #[test]
    fn nothing_is_sent_when_nobody_waits_for_it_any_more() {
        let settings = settings(false);
        let known = Known { facts: GOOD, settings: &settings, rules: &QuietRules::default() };
        assert_eq!(may(&known, NOW, NOW, NOW + 1_000), May::Not(UNAVAILABLE));
    }
}
