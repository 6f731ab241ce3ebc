//! What timers say and when they are due.

use dsntk_feel::values::Value as Feel;
use proptest::prelude::*;

use super::{
    DAY_MS, DURATION_MAX_MS, Schedule, TimerKind, TimerProblem, parse_cycle, parse_date_time,
    parse_duration,
};
use crate::feel::{Expression, Names};

fn at(text: &str) -> u64 {
    parse_date_time(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

fn schedule(kind: TimerKind, text: &str) -> Schedule {
    Schedule::parse(kind, text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

fn value(expression: &str) -> Feel {
    let expression = Expression::compile(expression, &Names::default()).expect("it can be read");
    expression.evaluate_in(|_| None, &mut 0).expect("it can be evaluated")
}

#[test]
fn dates_are_points_in_time() {
    for (text, expected) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00Z", 0),
        ("2027-01-01T00:00:00Z", 1_798_761_600_000),
        ("2027-01-01T02:00:00+02:00", 1_798_761_600_000),
        ("2026-12-31T18:30:00-05:30", 1_798_761_600_000),
        ("2027-01-01T00:00:00.25Z", 1_798_761_600_250),
        ("2028-02-29T00:00:00Z", 1_835_395_200_000),
    ] {
        assert_eq!(parse_date_time(text), Ok(expected), "{text}");
        let schedule = schedule(TimerKind::Date, text);
        assert_eq!(schedule.first_due(5), expected);
        assert_eq!(schedule.next_due(1, expected, expected), None);
    }
}

#[test]
fn what_is_no_date_is_refused_by_what_is_wrong_with_it() {
    for (text, problem) in [
        ("", TimerProblem::Date),
        ("2027-01-01", TimerProblem::Date),
        ("20270101T000000Z", TimerProblem::Date),
        ("2027-01-01 00:00:00Z", TimerProblem::Date),
        ("2027-02-29T00:00:00Z", TimerProblem::Date),
        ("2027-01-01T25:00:00Z", TimerProblem::Date),
        ("1969-12-31T23:59:59Z", TimerProblem::Date),
        ("2027-01-01T00:00:00ZZ", TimerProblem::Date),
        ("tomorrow", TimerProblem::Date),
        ("2027-01-01T00:00:00", TimerProblem::Offset),
        ("2027-01-01T00:00", TimerProblem::Offset),
        ("2027-01-01T00:00:00+01:00[Europe/Warsaw]", TimerProblem::Zone),
        ("2027-01-01T00:00:00@Europe/Warsaw", TimerProblem::Zone),
    ] {
        assert_eq!(parse_date_time(text), Err(problem), "{text}");
    }
}

#[test]
fn durations_are_counted_by_the_calendar_in_utc() {
    for (text, from, expected) in [
        ("PT0S", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("PT15M", "2027-01-01T00:00:00Z", "2027-01-01T00:15:00Z"),
        ("PT1.5S", "2027-01-01T00:00:00Z", "2027-01-01T00:00:01.5Z"),
        ("PT36H", "2027-01-01T00:00:00Z", "2027-01-02T12:00:00Z"),
        ("P2W", "2027-02-20T00:00:00Z", "2027-03-06T00:00:00Z"),
        ("P1M", "2027-01-31T08:00:00Z", "2027-02-28T08:00:00Z"),
        ("P1M", "2028-01-31T08:00:00Z", "2028-02-29T08:00:00Z"),
        ("P1Y", "2028-02-29T00:00:00Z", "2029-02-28T00:00:00Z"),
        ("P10Y", "2027-01-01T00:00:00Z", "2037-01-01T00:00:00Z"),
        ("P1Y2M3DT4H5M6S", "2027-01-01T00:00:00Z", "2028-03-04T04:05:06Z"),
        ("P1D", "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z"),
    ] {
        let schedule = schedule(TimerKind::Duration, text);
        assert_eq!(schedule.first_due(at(from)), at(expected), "{text}");
        assert_eq!(schedule.next_due(1, at(expected), at(expected)), None);
    }
}

#[test]
fn what_is_no_duration_is_refused_by_what_is_wrong_with_it() {
    for (text, problem) in [
        ("", TimerProblem::Duration),
        ("P", TimerProblem::Duration),
        ("PT", TimerProblem::Duration),
        ("P1DT", TimerProblem::Duration),
        ("PT1M1H", TimerProblem::Duration),
        ("pt1m", TimerProblem::Duration),
        ("-PT1M", TimerProblem::Duration),
        ("PT-1M", TimerProblem::Duration),
        ("15 minutes", TimerProblem::Duration),
        ("10", TimerProblem::Duration),
        ("R/PT1M", TimerProblem::Duration),
        ("P10Y1M", TimerProblem::TooLong),
        ("P3654D", TimerProblem::TooLong),
        ("PT87673H", TimerProblem::TooLong),
        ("P9999999999999999999D", TimerProblem::Duration),
        ("0 0 6 * * MON-FRI", TimerProblem::Cron),
    ] {
        assert_eq!(parse_duration(text), Err(problem), "{text}");
    }
}

#[test]
fn what_is_no_cycle_is_refused_by_what_is_wrong_with_it() {
    for (text, problem) in [
        ("", TimerProblem::Cycle),
        ("PT10S", TimerProblem::Cycle),
        ("R", TimerProblem::Cycle),
        ("R3", TimerProblem::Cycle),
        ("R3/", TimerProblem::Cycle),
        ("R-1/PT10S", TimerProblem::Cycle),
        ("Rx/PT10S", TimerProblem::Cycle),
        ("r3/PT10S", TimerProblem::Cycle),
        ("R/2027-01-01T00:00:00Z/2028-01-01T00:00:00Z", TimerProblem::Cycle),
        ("R0/PT10S", TimerProblem::Times),
        ("R4294967296/PT10S", TimerProblem::Times),
        ("R/PT0.999S", TimerProblem::TooOften),
        ("R/PT0S", TimerProblem::TooOften),
        ("R/P11Y", TimerProblem::TooLong),
        ("R/PT1X", TimerProblem::Duration),
        ("R/PT1H/PT1H", TimerProblem::Date),
        ("R/2027-01-01T00:00:00/PT1H", TimerProblem::Offset),
        ("R/2027-01-01T00:00:00Z[UTC]/PT1H", TimerProblem::Zone),
        ("0 0 6 * * MON-FRI", TimerProblem::Cron),
        ("*/5 * * * *", TimerProblem::Cron),
        ("0 0 12 1/1 * ? *", TimerProblem::Cron),
        ("@daily", TimerProblem::Cron),
    ] {
        assert_eq!(parse_cycle(text), Err(problem), "{text}");
    }
}

/// The times a cycle is due when whoever fires it is always there.
fn times(text: &str, set: &str, most: u32) -> Vec<u64> {
    let cycle = schedule(TimerKind::Cycle, text);
    let mut due = Some(cycle.first_due(at(set)));
    let mut times = Vec::new();
    while let Some(time) = due.filter(|_| times.len() < most as usize) {
        times.push(time);
        due = cycle.next_due(u32::try_from(times.len()).expect("few"), time, time);
    }
    times
}

#[test]
fn cycles_are_due_again_and_again() {
    for (text, set, expected) in [
        (
            "R3/PT10S",
            "2027-01-01T00:00:00Z",
            &["2027-01-01T00:00:10Z", "2027-01-01T00:00:20Z", "2027-01-01T00:00:30Z"][..],
        ),
        ("R1/PT1H", "2027-01-01T00:00:00Z", &["2027-01-01T01:00:00Z"]),
        (
            "R2/2027-01-01T00:00:00Z/P1D",
            "2026-12-01T09:30:00Z",
            &["2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"],
        ),
        // The start has passed: on with the next of its days.
        (
            "R2/2027-01-01T06:00:00+02:00/P7D",
            "2027-03-01T00:00:00Z",
            &["2027-03-05T04:00:00Z", "2027-03-12T04:00:00Z"],
        ),
        // It keeps to the 31st where there is one.
        (
            "R4/2027-01-31T00:00:00Z/P1M",
            "2027-01-31T00:00:00Z",
            &[
                "2027-01-31T00:00:00Z",
                "2027-02-28T00:00:00Z",
                "2027-03-31T00:00:00Z",
                "2027-04-30T00:00:00Z",
            ],
        ),
        (
            "R2/2020-02-29T12:00:00Z/P1Y",
            "2027-06-01T00:00:00Z",
            &["2028-02-29T12:00:00Z", "2029-02-28T12:00:00Z"],
        ),
    ] {
        let expected: Vec<u64> = expected.iter().map(|time| at(time)).collect();
        assert_eq!(times(text, set, 100), expected, "{text}");
    }
    assert_eq!(times("R/PT1H", "2027-01-01T00:00:00Z", 500).len(), 500, "it has no end");
}

#[test]
fn times_that_were_missed_fire_once_and_do_not_count() {
    let set = at("2027-01-01T00:00:00Z");
    let hour = 60 * 60 * 1_000;
    for text in ["R3/PT1H", "R3/2027-01-01T01:00:00Z/PT1H"] {
        let cycle = schedule(TimerKind::Cycle, text);
        assert_eq!(cycle.first_due(set), set + hour);
        // Everything was down for 10 hours and 20 minutes.
        let up = set + 10 * hour + hour / 3;
        let second = cycle.next_due(1, set + hour, up).expect("a second time");
        assert_eq!(second, set + 11 * hour);
        let third = cycle.next_due(2, second, second + 5).expect("a third time");
        assert_eq!(third, set + 12 * hour);
        assert_eq!(cycle.next_due(3, third, third), None);
    }
}

#[test]
fn values_of_expressions_are_timers_too() {
    for (kind, expression, text) in [
        (TimerKind::Date, "date and time(\"2027-01-01T00:00:00Z\")", "2027-01-01T00:00:00Z"),
        (
            TimerKind::Date,
            "date and time(\"2027-07-01T00:00:00@Europe/Warsaw\")",
            "2027-06-30T22:00:00Z",
        ),
        (
            TimerKind::Date,
            "date and time(\"2027-01-01T00:00:00Z\") + duration(\"PT90M\")",
            "2027-01-01T01:30:00Z",
        ),
        (TimerKind::Date, "date(\"2027-01-01\")", "2027-01-01T00:00:00Z"),
        (TimerKind::Date, "\"2027-01-01T00:00:00+01:00\"", "2026-12-31T23:00:00Z"),
        (TimerKind::Duration, "duration(\"PT90M\")", "PT90M"),
        (TimerKind::Duration, "duration(\"P14M\")", "P1Y2M"),
        (TimerKind::Duration, "\"PT\" + string(2 * 5) + \"M\"", "PT10M"),
        (TimerKind::Duration, "duration(\"PT1M\") * 3", "PT3M"),
        (TimerKind::Cycle, "\"R\" + string(1 + 2) + \"/PT10S\"", "R3/PT10S"),
    ] {
        let found = Schedule::of_value(kind, &value(expression));
        assert_eq!(found, Ok(schedule(kind, text)), "{expression}");
    }
    for (kind, expression, problem) in [
        (TimerKind::Date, "date and time(\"2027-01-01T00:00:00\")", TimerProblem::Offset),
        (TimerKind::Date, "duration(\"PT1M\")", TimerProblem::Type),
        (TimerKind::Date, "null", TimerProblem::Type),
        (TimerKind::Date, "date(\"2027-02-30\")", TimerProblem::Type),
        (TimerKind::Duration, "duration(\"-PT1M\")", TimerProblem::Duration),
        (TimerKind::Duration, "duration(\"P11Y\")", TimerProblem::TooLong),
        (TimerKind::Duration, "60", TimerProblem::Type),
        (TimerKind::Duration, "time(\"10:00:00\")", TimerProblem::Type),
        (TimerKind::Cycle, "duration(\"PT1H\")", TimerProblem::Type),
        (TimerKind::Cycle, "[\"R3/PT10S\"]", TimerProblem::Type),
    ] {
        assert_eq!(Schedule::of_value(kind, &value(expression)), Err(problem), "{expression}");
    }
}

#[test]
fn an_endless_cycle_ends_with_the_calendar() {
    let cycle = schedule(TimerKind::Cycle, "R/P10Y");
    let last = at("9995-01-01T00:00:00Z");
    assert_eq!(cycle.next_due(5, last, last), None);
    assert_eq!(cycle.first_due(u64::MAX), u64::MAX);
}

/// The day that is `months` after a day, by counting.
fn months_later((mut year, mut month, day): (i32, i32, i32), months: i32) -> (i32, i32, i32) {
    for _ in 0..months {
        month += 1;
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (year, month, day.min(days))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}", kind in 0..3_usize) {
        let kind = [TimerKind::Date, TimerKind::Duration, TimerKind::Cycle][kind];
        if let Ok(schedule) = Schedule::parse(kind, &text) {
            let _ = schedule.next_due(1, schedule.first_due(1_798_761_600_000), 1_798_761_600_000);
        }
    }

    #[test]
    fn texts_of_the_same_letters_are_read_or_refused(text in "[RPTYMWDHSZ0-9:/.+-]{0,24}", now in 0_u64..4_000_000_000_000) {
        if let Ok(cycle) = Schedule::parse(TimerKind::Cycle, &text) {
            let due = cycle.first_due(now);
            prop_assert!(due >= now);
            prop_assert!(cycle.next_due(1, due, due).is_none_or(|next| next > due));
        }
        if let Ok(duration) = Schedule::parse(TimerKind::Duration, &text) {
            let due = duration.first_due(now);
            prop_assert!(due >= now && due - now <= DURATION_MAX_MS + DAY_MS);
        }
    }

    #[test]
    fn a_fixed_duration_is_its_milliseconds(days in 0_u64..3_000, hours in 0_u64..100, minutes in 0_u64..1_000, seconds in 0_u64..1_000, millis in 0_u64..1_000, now in 0_u64..4_000_000_000_000) {
        let text = format!("P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S");
        let due = schedule(TimerKind::Duration, &text).first_due(now);
        prop_assert_eq!(due - now, (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + millis);
    }

    #[test]
    fn a_month_later_is_the_same_day_or_the_last_one(year in 1970..2300_i32, month in 1..=12_i32, day in 1..=31_i32, months in 0..=120_i32) {
        let (year, month, day) = months_later((year, month, day), 0);
        let from = at(&format!("{year:04}-{month:02}-{day:02}T10:20:30Z"));
        let due = schedule(TimerKind::Duration, &format!("P{months}M")).first_due(from);
        let (year, month, day) = months_later((year, month, day), months);
        prop_assert_eq!(due, at(&format!("{year:04}-{month:02}-{day:02}T10:20:30Z")));
    }

    #[test]
    fn a_cycle_keeps_to_its_grid_and_its_number_whatever_is_missed(
        times in 1_u32..20, seconds in 1_u64..100_000, set in 0_u64..4_000_000_000_000,
        start in proptest::option::of(0_u64..4_000_000_000), outages in prop::collection::vec(0_u64..1_000_000_000, 20),
    ) {
        let (text, anchor) = match start {
            Some(start) => {
                let text = jiff::Timestamp::from_second(i64::try_from(start).expect("small")).expect("a time");
                (format!("R{times}/{text}/PT{seconds}S"), start * 1_000)
            }
            None => (format!("R{times}/PT{seconds}S"), set),
        };
        let (cycle, interval) = (schedule(TimerKind::Cycle, &text), seconds * 1_000);
        let (mut due, mut now, mut fired) = (cycle.first_due(set), set, 0);
        prop_assert!(due >= set);
        loop {
            prop_assert!(due >= anchor && (due - anchor) % interval == 0);
            now = now.max(due) + outages[fired as usize];
            fired += 1;
            let Some(next) = cycle.next_due(fired, due, now) else { break };
            prop_assert!(next > due && next > now);
            prop_assert!(next == due + interval || next - interval <= now, "none is left out");
            due = next;
        }
        prop_assert_eq!(fired, times);
    }
}
