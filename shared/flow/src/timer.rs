//! When timers are due: ISO 8601 texts and FEEL values to data, data to points in time. Everything is in UTC, and times are
//! milliseconds since 1970; a clock is not read here.
//!
//! - a date: `2027-01-31T08:00:00Z`, `2027-01-31T08:00:00+02:00`;
//! - a duration: `PT15M`, `P1Y2M3DT4H5M6S`, `P2W`, at most ten years;
//! - a cycle: `R3/PT10S` (three times), `R/PT1H` (without end), `R2/2027-01-01T00:00:00Z/P1D` (from then on).
//!
//! Years and months go by the calendar: a month after 31 January is the last day of February. Cycles with a start keep to
//! its day where the month has it; without one, each time is counted from the one before.

use dsntk_feel::values::Value as Feel;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::value;

/// Longest duration and interval, in milliseconds: ten years.
const DURATION_MAX_MS: u64 = 3_653 * DAY_MS;
/// Shortest interval of a cycle, in milliseconds.
const INTERVAL_MIN_MS: u64 = 1_000;
/// Longest text, in bytes; the longest that means something is shorter.
const TEXT_BYTES_MAX: usize = 256;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// An average month, to judge the length of a duration.
const MONTH_MS: u64 = 2_629_800_000;

/// Which kind of text a timer is given by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// A point in time.
    Date,
    /// A time from now.
    Duration,
    /// A repeating interval.
    Cycle,
}

/// When a timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Once, at this time; at once when it has passed.
    At(u64),
    /// Once, after this time.
    After(Duration),
    /// Again and again.
    Every(Cycle),
}

/// A length of time: months of the calendar, and then milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration {
    months: u32,
    millis: u64,
}

/// A repeating interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// How often it is due, at least 1; none is without end.
    times: Option<u32>,
    /// When it is due first; none is one interval after the timer was set.
    start: Option<u64>,
    interval: Duration,
}

/// Why a text or value is no timer. The messages repeat nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimerProblem {
    /// Not a date and time.
    #[error("a date is written like `2027-01-31T08:00:00Z`, from 1970 on")]
    Date,
    /// A date and time that may be anywhere on earth.
    #[error("a date needs `Z` or an offset such as `+02:00` at its end")]
    Offset,
    /// A date with the name of a time zone.
    #[error(
        "the name of a time zone is not supported in a timer; write an offset such as `+02:00`"
    )]
    Zone,
    /// Not a duration.
    #[error("a duration is written like `PT15M` or `P1DT12H` and is not negative")]
    Duration,
    /// More than ten years.
    #[error("a timer waits at most ten years")]
    TooLong,
    /// Not a cycle.
    #[error("a cycle is written like `R3/PT10S`, `R/PT1H` or `R2/2027-01-01T00:00:00Z/P1D`")]
    Cycle,
    /// A cycle that is never due.
    #[error(
        "a cycle is repeated at least once and at most 4294967295 times; without a number it has no end"
    )]
    Times,
    /// An interval under one second.
    #[error("the interval of a cycle is at least one second")]
    TooOften,
    /// A cron expression.
    #[error(
        "cron expressions are not supported; write a cycle such as `R/2027-01-01T06:00:00Z/P1D`"
    )]
    Cron,
    /// A FEEL value of another type.
    #[error(
        "the expression of a timer gives a text, a date and time, or a duration, as its kind needs it"
    )]
    Type,
}

impl Schedule {
    /// Reads the text of a timer.
    pub(crate) fn parse(kind: TimerKind, text: &str) -> Result<Self, TimerProblem> {
        match kind {
            TimerKind::Date => parse_date_time(text).map(Self::At),
            TimerKind::Duration => parse_duration(text).map(Self::After),
            TimerKind::Cycle => parse_cycle(text).map(Self::Every),
        }
    }

    /// Takes what the expression of a timer gave: a text as above, or for a date a date and time with an offset or a date
    /// (its beginning in UTC), for a duration a duration.
    pub(crate) fn of_value(kind: TimerKind, given: &Feel) -> Result<Self, TimerProblem> {
        let fits = match given {
            Feel::String(_) => true,
            Feel::DateTime(_) | Feel::Date(_) => kind == TimerKind::Date,
            Feel::DaysAndTimeDuration(_) | Feel::YearsAndMonthsDuration(_) => {
                kind == TimerKind::Duration
            }
            _ => false,
        };
        match value::to_json(given) {
            Ok(serde_json::Value::String(text)) if fits => match given {
                Feel::Date(_) => parse_date_time(&format!("{text}T00:00:00Z")).map(Self::At),
                _ => Self::parse(kind, &text),
            },
            _ => Err(TimerProblem::Type),
        }
    }

    /// When a timer that is set now is due first. It may have passed. Never more than ten years after now but for a date
    /// that was given.
    pub(crate) fn first_due(&self, now_ms: u64) -> u64 {
        match self {
            Self::At(due) => *due,
            Self::After(duration) => duration.after(now_ms, 1).unwrap_or(u64::MAX),
            Self::Every(cycle) => cycle.first_due(now_ms),
        }
    }

    /// When a timer is due again that has fired `fired` times, for the last time at what was due at `last_due_ms`; none when
    /// that was all. Always later than `last_due_ms` and than now: times that were missed are passed over, not made up for,
    /// and do not count.
    pub(crate) fn next_due(&self, fired: u32, last_due_ms: u64, now_ms: u64) -> Option<u64> {
        match self {
            Self::At(_) | Self::After(_) => None,
            Self::Every(cycle) => cycle.next_due(fired, last_due_ms, now_ms),
        }
    }
}

impl Duration {
    /// Its length in milliseconds, with months of average length.
    fn about_ms(self) -> u64 {
        u64::from(self.months).saturating_mul(MONTH_MS).saturating_add(self.millis)
    }

    /// The time that is `times` durations after `from_ms`; none beyond the year 9999.
    fn after(self, from_ms: u64, times: u64) -> Option<u64> {
        let months = i32::try_from(u64::from(self.months).checked_mul(times)?).ok()?;
        let millis = i64::try_from(self.millis.checked_mul(times)?).ok()?;
        let from = Timestamp::from_millisecond(i64::try_from(from_ms).ok()?).ok()?;
        // Most timers need no calendar.
        let from = if months == 0 {
            from
        } else {
            let months = Span::new().try_months(months).ok()?;
            TimeZone::UTC
                .to_timestamp(TimeZone::UTC.to_datetime(from).checked_add(months).ok()?)
                .ok()?
        };
        let due = from.checked_add(millis.milliseconds()).ok()?;
        u64::try_from(due.as_millisecond()).ok()
    }

    /// The first of the times that are whole durations, at least `least`, after `anchor_ms` and not before `bound_ms`; none
    /// beyond the year 9999.
    fn grid(self, anchor_ms: u64, least: u64, bound_ms: u64) -> Option<u64> {
        let reaches = |times| self.after(anchor_ms, times).is_none_or(|due| due >= bound_ms);
        // The answer is in (low, high]: it is doubled until it is reached, and then halved.
        let (mut low, mut high) = (least, least.max(1));
        if reaches(least) {
            return self.after(anchor_ms, least);
        }
        while !reaches(high) {
            low = high;
            high = high.checked_mul(2)?;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reaches(middle) { high = middle } else { low = middle }
        }
        self.after(anchor_ms, high)
    }
}

impl Cycle {
    fn first_due(&self, now_ms: u64) -> u64 {
        let due = match self.start {
            Some(start) => self.interval.grid(start, 0, now_ms),
            None => self.interval.after(now_ms, 1),
        };
        due.unwrap_or(u64::MAX)
    }

    fn next_due(&self, fired: u32, last_due_ms: u64, now_ms: u64) -> Option<u64> {
        if self.times.is_some_and(|times| fired >= times) {
            return None;
        }
        let bound = last_due_ms.max(now_ms).checked_add(1)?;
        match self.start {
            Some(start) => self.interval.grid(start, 0, bound),
            None => self.interval.grid(last_due_ms, 1, bound),
        }
    }
}

/// Milliseconds since 1970 of a date and time with `Z` or an offset.
pub(crate) fn parse_date_time(text: &str) -> Result<u64, TimerProblem> {
    if text.contains(['[', '@']) {
        return Err(TimerProblem::Zone);
    }
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':')];
    let shaped = separators.iter().all(|(at, separator)| bytes.get(*at) == Some(separator));
    if !shaped || text.len() > TEXT_BYTES_MAX || text.contains(['z', 't', ' ']) {
        return Err(TimerProblem::Date);
    }
    match text.parse::<Timestamp>() {
        Ok(time) => u64::try_from(time.as_millisecond()).map_err(|_| TimerProblem::Date),
        Err(_) if text.parse::<jiff::civil::DateTime>().is_ok() && !text.ends_with('Z') => {
            Err(TimerProblem::Offset)
        }
        Err(_) => Err(TimerProblem::Date),
    }
}

/// A duration of at most ten years that is not negative. Parts of a millisecond are dropped.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, TimerProblem> {
    let shaped = text.starts_with('P')
        && text.len() <= TEXT_BYTES_MAX
        && text.chars().all(|c| c.is_ascii_digit() || "PYMWDTHS.".contains(c));
    if !shaped {
        return Err(if is_cron(text) { TimerProblem::Cron } else { TimerProblem::Duration });
    }
    let span: Span = text.parse().map_err(|_| TimerProblem::Duration)?;
    let duration = of_span(&span).ok_or(TimerProblem::TooLong)?;
    if duration.about_ms() > DURATION_MAX_MS { Err(TimerProblem::TooLong) } else { Ok(duration) }
}

/// None when it is too long to be counted.
fn of_span(span: &Span) -> Option<Duration> {
    let months = i32::from(span.get_years()).checked_mul(12)?.checked_add(span.get_months())?;
    let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
    let hours = days.checked_mul(24)?.checked_add(i64::from(span.get_hours()))?;
    let minutes = hours.checked_mul(60)?.checked_add(span.get_minutes())?;
    let seconds = minutes.checked_mul(60)?.checked_add(span.get_seconds())?;
    let millis = seconds
        .checked_mul(1_000)?
        .checked_add(span.get_milliseconds())?
        .checked_add(span.get_microseconds() / 1_000)?
        .checked_add(span.get_nanoseconds() / 1_000_000)?;
    Some(Duration { months: u32::try_from(months).ok()?, millis: u64::try_from(millis).ok()? })
}

/// A repeating interval.
pub(crate) fn parse_cycle(text: &str) -> Result<Cycle, TimerProblem> {
    if is_cron(text) {
        return Err(TimerProblem::Cron);
    }
    let repeated = text.strip_prefix('R').filter(|_| text.len() <= TEXT_BYTES_MAX);
    let (times, rest) =
        repeated.and_then(|rest| rest.split_once('/')).ok_or(TimerProblem::Cycle)?;
    let times = match times {
        "" => None,
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            let times: u32 = digits.parse().map_err(|_| TimerProblem::Times)?;
            Some(times).filter(|times| *times > 0).ok_or(TimerProblem::Times).map(Some)?
        }
        _ => return Err(TimerProblem::Cycle),
    };
    let (start, interval) = match rest.split_once('/') {
        Some((start, interval)) => (Some(parse_date_time(start)?), interval),
        None => (None, rest),
    };
    if !interval.starts_with('P') {
        return Err(TimerProblem::Cycle);
    }
    let interval = parse_duration(interval)?;
    if interval.about_ms() < INTERVAL_MIN_MS {
        return Err(TimerProblem::TooOften);
    }
    Ok(Cycle { times, start, interval })
}

/// Whether a text looks like a cron expression: a word such as `@daily`, or five to seven fields.
fn is_cron(text: &str) -> bool {
    let fields = text.split_ascii_whitespace();
    let of_cron =
        |field: &str| field.chars().all(|c| c.is_ascii_alphanumeric() || "*/,-?#".contains(c));
    text.starts_with('@') || (fields.clone().all(of_cron) && (5..=7).contains(&fields.count()))
}

#[cfg(test)]
mod tests;
