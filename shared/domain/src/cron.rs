//! Five-field cron expressions: minute, hour, day of month, month, day of week. Which zone they are meant in and what time it is
//! is not known here.
//!
//! Numbers, `*`, ranges, lists and steps; 0 and 7 are Sunday. No names, no macros. When both days are restricted, either of them
//! is enough, as everywhere with cron.

use std::fmt;
use std::str::FromStr;

/// Longest expression, in characters, after runs of spaces have become one.
pub const CRON_CHARS_MAX: usize = 128;

/// Why a text is not an expression: a phrase that completes "`cron` …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(&'static str);

/// A minute on a clock on the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallMinute {
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 23.
    pub hour: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// 1 to 12.
    pub month: u8,
    /// 0, which is Sunday, to 6.
    pub weekday: u8,
}

/// The values of one field: bit n stands for n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    values: u64,
    /// Whether it begins with `*`, which does not restrict a day and leaves the hour free.
    any: bool,
}

impl Field {
    fn has(self, value: u8) -> bool {
        value < 64 && self.values & (1 << value) != 0
    }
}

/// An expression that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: Box<str>,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Cron {
    /// Whether the expression names this minute.
    pub fn matches(&self, at: WallMinute) -> bool {
        let day = match (self.day.any, self.weekday.any) {
            (false, false) => self.day.has(at.day) || self.weekday.has(at.weekday),
            _ => self.day.has(at.day) && self.weekday.has(at.weekday),
        };
        day && self.minute.has(at.minute) && self.hour.has(at.hour) && self.month.has(at.month)
    }

    /// Whether it names hours. What is meant for an hour of the day happens once on a day on which the clock is changed; what is
    /// meant for every hour, or every so many hours, follows the time that passes.
    pub fn names_hours(&self) -> bool {
        !self.hour.any
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        // Looked at before it is taken apart: an expression is short, whatever spaces it is written with.
        if text.len() > 8 * CRON_CHARS_MAX {
            return Err(CronError("must have at most 128 characters"));
        }
        let fields: Vec<_> = text.split_ascii_whitespace().collect();
        let text = fields.join(" ");
        if text.len() > CRON_CHARS_MAX {
            return Err(CronError("must have at most 128 characters"));
        }
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError("must have five fields: minute, hour, day, month and weekday"));
        };
        let mut weekday = field(weekday, 0, 7)?;
        if weekday.has(7) {
            weekday.values = (weekday.values | 1) & !(1 << 7);
        }
        Ok(Self {
            minute: field(minute, 0, 59)?,
            hour: field(hour, 0, 23)?,
            day: field(day, 1, 31)?,
            month: field(month, 1, 12)?,
            weekday,
            text: text.into(),
        })
    }
}

fn field(text: &str, low: u8, high: u8) -> Result<Field, CronError> {
    let mut values = 0;
    for item in text.split(',') {
        values |= self::item(item, low, high)?;
    }
    Ok(Field { values, any: text.starts_with('*') })
}

/// `*`, `n`, `n-m`, and the first and the last with `/step`.
fn item(text: &str, low: u8, high: u8) -> Result<u64, CronError> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(number(step)?)),
        None => (text, None),
    };
    let (from, to) = if range == "*" {
        // `*` of the weekday is seven days, and 7 is the first of them again.
        (low, high)
    } else if let Some((from, to)) = range.split_once('-') {
        (number(from)?, number(to)?)
    } else if step.is_some() {
        return Err(CronError("has a step without `*` or a range"));
    } else {
        let value = number(range)?;
        (value, value)
    };
    if from < low || to > high || from > to {
        return Err(CronError("has a number or range outside of its field"));
    }
    let step = step.unwrap_or(1);
    if step == 0 || step > high {
        return Err(CronError("has a step outside of its field"));
    }
    Ok((from..=to).step_by(step.into()).fold(0, |values, value| values | 1 << value))
}

fn number(text: &str) -> Result<u8, CronError> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or(CronError("has only numbers, `*`, ranges, lists and steps"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(text: &str) -> Cron {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    const MONDAY: WallMinute = WallMinute { minute: 30, hour: 9, day: 2, month: 3, weekday: 1 };

    #[test]
    fn numbers_ranges_lists_and_steps_name_their_minutes() {
        let table = [
            ("* * * * *", true),
            ("30 9 * * *", true),
            ("31 9 * * *", false),
            ("0,30 8-10 * * 1-5", true),
            ("*/15 * * * *", true),
            ("*/20 * * * *", false),
            ("10-50/20 9 * * *", true),
            ("10-50/15 9 * * *", false),
            ("30 9 2 3 *", true),
            ("30 9 2 4 *", false),
            ("30 9 * * 1", true),
            ("30 9 * * 0", false),
        ];
        for (text, expected) in table {
            assert_eq!(cron(text).matches(MONDAY), expected, "{text}");
        }
    }

    #[test]
    fn two_restricted_days_are_either_of_them_and_one_is_that_one() {
        for (text, expected) in [
            ("30 9 2 * 5", true),
            ("30 9 9 * 1", true),
            ("30 9 9 * 5", false),
            ("30 9 * * 5", false),
            ("30 9 9 * *", false),
            // A step of every day restricts nothing by itself, so both must hold.
            ("30 9 */2 * 1", false),
        ] {
            assert_eq!(cron(text).matches(MONDAY), expected, "{text}");
        }
    }

    #[test]
    fn sunday_is_0_and_7() {
        let sunday = WallMinute { weekday: 0, ..MONDAY };
        for text in ["* * * * 0", "* * * * 7", "* * * * 5-7", "* * * * */7"] {
            assert!(cron(text).matches(sunday), "{text}");
        }
        assert!(!cron("* * * * 5-7").matches(MONDAY));
        assert!(cron("* * * * 1-7").matches(sunday) && cron("* * * * 1-7").matches(MONDAY));
    }

    #[test]
    fn spaces_are_normalised_before_the_length_is_judged() {
        assert_eq!(cron("  0   9 *  *\t1-5 ").to_string(), "0 9 * * 1-5");
        let list = vec!["59"; 40].join(",");
        assert_eq!(
            format!("{list} * * * *").parse::<Cron>().ok().map(|cron| cron.to_string().len()),
            Some(127)
        );
        assert!(format!("{list} 10 * * *").parse::<Cron>().is_ok());
        assert!(format!("{list} 10 10 * *").parse::<Cron>().is_err());
    }

    #[test]
    fn what_is_not_an_expression_is_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "0 9 * * MON",
            "0 9 * JAN *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 0 *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "*/60 * * * *",
            "5/2 * * * *",
            "1,,2 * * * *",
            "-1 * * * *",
            "1- * * * *",
            "+1 * * * *",
            "1.5 * * * *",
            "? * * * *",
            "L * * * *",
            "001 * * * *",
        ] {
            assert!(text.parse::<Cron>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_expression_says_whether_it_names_hours() {
        assert!(cron("30 2 * * *").names_hours() && cron("0 1-3 * * *").names_hours());
        assert!(!cron("30 * * * *").names_hours() && !cron("0 */2 * * *").names_hours());
    }
}
