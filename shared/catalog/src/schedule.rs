//! When a job runs by itself: a cron expression in a time zone, and whether it names a certain minute.
//!
//! Zones come from the data that this program was built with, so that every dispatcher decides alike. Nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil};
use runfleet_domain::cron::{Cron, WallMinute};
use serde::{Deserialize, Serialize};

/// Longest name of a time zone, in characters.
const ZONE_CHARS_MAX: usize = 64;

const MINUTE_MS: i64 = 60_000;

/// Minutes of the longest hour that a clock was ever put ahead by; what is skipped is looked for no further.
const SKIPPED_MINUTES_MAX: u16 = 25 * 60;

/// A time zone of the IANA data base.
#[derive(Debug, Clone)]
pub(crate) struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }
}

/// A text names no time zone.
#[derive(Debug, thiserror::Error)]
#[error("must be a time zone of the IANA data base, at most {ZONE_CHARS_MAX} characters")]
pub(crate) struct ZoneError;

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, ZoneError> {
        if text.len() > ZONE_CHARS_MAX {
            return Err(ZoneError);
        }
        let zone = TimeZoneDatabase::bundled().get(text).map_err(|_| ZoneError)?;
        // The spelling of the data base: one zone has one name.
        let name = zone.iana_name().ok_or(ZoneError)?.to_owned();
        Ok(Self { name, zone })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// When a job runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Five fields, at most 128 characters.
    pub cron: String,
    /// A zone of the IANA data base, at most 64 characters.
    pub time_zone: String,
}

/// A schedule is none: a phrase that completes "`schedule` …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct ScheduleError {
    /// `cron` or `timeZone`.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl Schedule {
    pub(crate) fn new(cron: &Cron, zone: &Zone) -> Self {
        Self { cron: cron.to_string(), time_zone: zone.to_string() }
    }

    /// Checks a schedule that does not come from a document. Spaces are normalised, the zone gets its own spelling.
    pub fn parse(cron: &str, time_zone: Option<&str>) -> Result<Self, ScheduleError> {
        let wrong =
            |field, error: &dyn fmt::Display| ScheduleError { field, problem: error.to_string() };
        let cron: Cron = cron.parse().map_err(|error| wrong("cron", &error))?;
        let zone = time_zone.map_or_else(|| Ok(Zone::utc()), str::parse);
        let zone = zone.map_err(|error: ZoneError| wrong("timeZone", &error))?;
        Ok(Self::new(&cron, &zone))
    }

    /// The schedule ready to be asked; none if this program cannot read it.
    pub fn clock(&self) -> Option<Clock> {
        let zone: Zone = self.time_zone.parse().ok()?;
        Some(Clock { cron: self.cron.parse().ok()?, zone: zone.zone })
    }
}

/// A schedule that can be asked about minutes.
#[derive(Debug, Clone)]
pub struct Clock {
    cron: Cron,
    zone: TimeZone,
}

impl Clock {
    /// Whether the job runs in the minute that begins `minute` minutes after the beginning of 1970 (UTC).
    ///
    /// An expression that names hours means the clock on the wall, and each of its minutes once a day: when clocks are put back, a
    /// minute that comes twice counts the first time; when they are put ahead, what would have been in the skipped time is in
    /// the first minute after it. One that leaves the hour open follows the time that passes.
    pub fn rings(&self, minute: u64) -> bool {
        let Some((now, wall)) = self.wall(minute) else { return false };
        if !self.cron.names_hours() {
            return self.cron.matches(wall_minute(wall));
        }
        if self.cron.matches(wall_minute(wall)) {
            return !self.is_repeated(wall, now);
        }
        self.skipped_before(minute, wall)
    }

    fn wall(&self, minute: u64) -> Option<(Timestamp, civil::DateTime)> {
        let millis = i64::try_from(minute).ok()?.checked_mul(MINUTE_MS)?;
        let now = Timestamp::from_millisecond(millis).ok()?;
        Some((now, self.zone.to_datetime(now)))
    }

    /// Whether the clock shows this minute for the second time.
    fn is_repeated(&self, wall: civil::DateTime, now: Timestamp) -> bool {
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Fold { before, .. } => self.zone.to_offset(now) != before,
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => false,
        }
    }

    /// Whether the clock has skipped a minute of the expression just before this one.
    fn skipped_before(&self, minute: u64, wall: civil::DateTime) -> bool {
        let Some((_, before)) = minute.checked_sub(1).and_then(|minute| self.wall(minute)) else {
            return false;
        };
        let mut skipped = before;
        for _ in 0..SKIPPED_MINUTES_MAX {
            let Ok(next) = skipped.checked_add(jiff::SignedDuration::from_mins(1)) else {
                return false;
            };
            skipped = next;
            if skipped >= wall {
                return false;
            }
            if self.cron.matches(wall_minute(skipped)) {
                return true;
            }
        }
        false
    }
}

fn wall_minute(at: civil::DateTime) -> WallMinute {
    let small = |number: i8| u8::try_from(number).unwrap_or_default();
    WallMinute {
        minute: small(at.minute()),
        hour: small(at.hour()),
        day: small(at.day()),
        month: small(at.month()),
        weekday: small(at.weekday().to_sunday_zero_offset()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(text: &str) -> u64 {
        let at: Timestamp = text.parse().unwrap();
        u64::try_from(at.as_millisecond() / MINUTE_MS).unwrap()
    }

    /// The minutes from `from` until `to` in which a schedule rings, as UTC.
    fn rings(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
        let clock = Schedule::parse(cron, Some(zone)).unwrap().clock().unwrap();
        let at = |minute: u64| {
            let at =
                Timestamp::from_millisecond(i64::try_from(minute).unwrap() * MINUTE_MS).unwrap();
            at.strftime("%dT%H:%M").to_string()
        };
        (minute(from)..minute(to)).filter(|minute| clock.rings(*minute)).map(at).collect()
    }

    #[test]
    fn a_schedule_means_the_clock_of_its_zone() {
        let day = ("2026-01-05T00:00Z", "2026-01-06T00:00Z");
        assert_eq!(rings("0 9 * * 1-5", "UTC", day.0, day.1), ["05T09:00"]);
        assert_eq!(rings("0 9 * * 1-5", "Asia/Ho_Chi_Minh", day.0, day.1), ["05T02:00"]);
        assert_eq!(rings("0 9 * * 1-5", "America/New_York", day.0, day.1), ["05T14:00"]);
        // It is Tuesday there already.
        assert_eq!(rings("0 2 * * 2", "Pacific/Kiritimati", day.0, day.1), ["05T12:00"]);
        assert_eq!(rings("45 5 * * *", "Asia/Kathmandu", day.0, day.1), ["05T00:00"]);
    }

    #[test]
    fn what_is_skipped_when_clocks_go_ahead_is_in_the_first_minute_after_it() {
        // 02:00 becomes 03:00 on the 29th of March 2026 at 01:00 UTC.
        let (from, to) = ("2026-03-29T00:00Z", "2026-03-29T04:00Z");
        assert_eq!(rings("30 2 * * *", "Europe/Berlin", from, to), ["29T01:00"]);
        assert_eq!(rings("0,30 2 * * *", "Europe/Berlin", from, to), ["29T01:00"]);
        assert_eq!(rings("0 3 * * *", "Europe/Berlin", from, to), ["29T01:00"]);
        assert_eq!(rings("30 1,4 * * *", "Europe/Berlin", from, to), ["29T00:30", "29T02:30"]);
        assert_eq!(
            rings("30 * * * *", "Europe/Berlin", from, to),
            ["29T00:30", "29T01:30", "29T02:30", "29T03:30"]
        );
    }

    #[test]
    fn what_comes_twice_when_clocks_go_back_counts_the_first_time() {
        // 03:00 becomes 02:00 on the 25th of October 2026 at 01:00 UTC.
        let (from, to) = ("2026-10-24T23:00Z", "2026-10-25T03:00Z");
        assert_eq!(rings("30 2 * * *", "Europe/Berlin", from, to), ["25T00:30"]);
        assert_eq!(
            rings("30 * * * *", "Europe/Berlin", from, to),
            ["24T23:30", "25T00:30", "25T01:30", "25T02:30"]
        );
        assert_eq!(
            rings("*/30 */2 * * *", "Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T02:00Z")
                .len(),
            4
        );
        // Half an hour, on Lord Howe: 02:00 becomes 01:30 on the 5th of April 2026.
        let (from, to) = ("2026-04-04T14:00Z", "2026-04-04T17:00Z");
        assert_eq!(rings("45 1 * * *", "Australia/Lord_Howe", from, to), ["04T14:45"]);
    }

    #[test]
    fn a_daily_job_runs_once_on_every_day_around_changes_of_the_clock() {
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
            for (from, to) in [
                ("2026-03-05T12:00Z", "2026-04-09T12:00Z"),
                ("2026-10-01T12:00Z", "2026-11-05T12:00Z"),
            ] {
                assert_eq!(rings("30 2 * * *", zone, from, to).len(), 35, "{zone} {from}");
                assert_eq!(rings("15 1 * * *", zone, from, to).len(), 35, "{zone} {from}");
            }
        }
    }

    #[test]
    fn a_schedule_that_is_none_is_told_by_its_field() {
        assert_eq!(Schedule::parse("@daily", None).unwrap_err().field, "cron");
        for zone in ["", "Mars/Olympus", "+01:00", &"A".repeat(65)] {
            assert_eq!(
                Schedule::parse("* * * * *", Some(zone)).unwrap_err().field,
                "timeZone",
                "{zone}"
            );
        }
        let schedule = Schedule::parse(" 0  9 * * * ", Some("europe/berlin")).unwrap();
        assert_eq!(
            (schedule.cron.as_str(), schedule.time_zone.as_str()),
            ("0 9 * * *", "Europe/Berlin")
        );
        assert_eq!(Schedule::parse("0 9 * * *", None).unwrap().time_zone, "UTC");
    }
}
