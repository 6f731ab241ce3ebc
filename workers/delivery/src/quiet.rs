//! When a person is left alone. Pure: the time is passed in.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use runfleet_catalog::minute_of;

/// Hours of a day in some time zone, as somebody has set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours<'a> {
    /// The first minute, `HH:MM`.
    pub(crate) from: &'a str,
    /// The first minute after them; before `from` on the next day.
    pub(crate) to: &'a str,
    /// An IANA time zone.
    pub(crate) time_zone: &'a str,
}

impl Hours<'_> {
    /// When the person can be written to again, in Unix milliseconds; none when that is now. Hours that cannot be read are none.
    pub(crate) fn end_ms(&self, now_ms: u64) -> Option<u64> {
        let (from, to) = (minute_of(self.from)?, minute_of(self.to)?);
        let zone = TimeZone::get(self.time_zone).ok()?;
        let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
        let local = zone.to_datetime(now);
        let minute = u16::try_from(local.hour()).ok()? * 60 + u16::try_from(local.minute()).ok()?;
        let quiet = if from < to {
            (from..to).contains(&minute)
        } else {
            from != to && (minute >= from || minute < to)
        };
        if !quiet {
            return None;
        }
        let day = if minute < to { local.date() } else { next_day(local.date())? };
        let end = zone.to_ambiguous_timestamp(day.to_datetime(time_of(to)?)).compatible().ok()?;
        // Where clocks are set back, the hour before the end comes twice; it is over after the second one at the latest.
        let end = u64::try_from(end.as_millisecond()).ok()?;
        Some(end.max(now_ms + 1))
    }
}

fn next_day(date: Date) -> Option<Date> {
    date.checked_add(Span::new().days(1)).ok()
}

fn time_of(minute: u16) -> Option<Time> {
    let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> u64 {
        time.parse::<Timestamp>().unwrap().as_millisecond().try_into().unwrap()
    }

    fn end(hours: (&str, &str, &str), now: &str) -> Option<String> {
        let hours = Hours { from: hours.0, to: hours.1, time_zone: hours.2 };
        let end = hours.end_ms(at(now))?;
        Some(Timestamp::from_millisecond(end.try_into().unwrap()).unwrap().to_string())
    }

    #[test]
    fn a_night_lasts_over_midnight_where_the_person_is() {
        let night = ("22:00", "07:00", "Europe/Berlin");
        for (now, expected) in [
            ("2026-11-30T20:59:59Z", None),
            ("2026-11-30T21:00:00Z", Some("2026-12-01T06:00:00Z")),
            ("2026-11-30T23:30:00Z", Some("2026-12-01T06:00:00Z")),
            ("2026-12-01T05:59:59Z", Some("2026-12-01T06:00:00Z")),
            ("2026-12-01T06:00:00Z", None),
            // In summer an hour earlier.
            ("2026-07-01T20:00:00Z", Some("2026-07-02T05:00:00Z")),
            // The last night of a year.
            ("2026-12-31T22:00:00Z", Some("2027-01-01T06:00:00Z")),
            // The night that has an hour less.
            ("2026-03-28T21:30:00Z", Some("2026-03-29T05:00:00Z")),
        ] {
            assert_eq!(end(night, now).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn hours_of_one_day_and_hours_that_cannot_be_read() {
        let noon = ("12:00", "13:30", "Asia/Kolkata");
        assert_eq!(end(noon, "2026-11-30T06:30:00Z").as_deref(), Some("2026-11-30T08:00:00Z"));
        assert_eq!(end(noon, "2026-11-30T08:00:00Z"), None);
        for hours in
            [("12:00", "12:00", "UTC"), ("x", "13:00", "UTC"), ("00:00", "23:59", "No/Where")]
        {
            assert_eq!(end(hours, "2026-11-30T12:00:00Z"), None, "{hours:?}");
        }
    }

    #[test]
    fn an_end_that_the_clock_skips_or_repeats_is_still_after_now() {
        // 02:30 is skipped on that night, and comes twice on the other.
        for now in ["2026-03-29T00:45:00Z", "2026-10-25T00:15:00Z", "2026-10-25T01:15:00Z"] {
            let hours = Hours { from: "22:00", to: "02:30", time_zone: "Europe/Berlin" };
            let end = hours.end_ms(at(now));
            assert!(end.is_none_or(|end| end > at(now) && end < at(now) + 3 * 3_600_000), "{now}");
        }
    }
}
