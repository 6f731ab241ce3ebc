//! Tells the time that the run knows, in a time zone: it is data, so the same call tells the same time.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::{Calling, Executor, ToolCall, texts};
use crate::outcome::ToolOutcome;

/// Longest name of a time zone, in bytes.
const ZONE_BYTES_MAX: usize = 64;

/// Tells the time. `timeZone` is a name, an offset such as `+02:00`, or UTC when it is not there.
#[derive(Debug, Clone, Copy, Default)]
pub struct CurrentTime;

impl Executor for CurrentTime {
    fn call(&self, call: ToolCall, _deadline: Instant) -> Calling<'_> {
        Box::pin(async move { tell(call.now_ms, call.arguments.get("timeZone")) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

fn tell(now_ms: u64, zone: Option<&Value>) -> ToolOutcome {
    let name = match zone {
        None | Some(Value::Null) => "UTC",
        Some(Value::String(name)) => name.trim(),
        Some(_) => return ToolOutcome::argument("timeZone", texts::TIME_ZONE),
    };
    let Some(zone) = read(name) else {
        return ToolOutcome::argument("timeZone", texts::TIME_ZONE);
    };
    let now = i64::try_from(now_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let Some(now) = now else { return ToolOutcome::failed(texts::NOT_SET_UP) };
    let (local, offset) = (zone.to_datetime(now), zone.to_offset(now).seconds());
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    let offset = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    ToolOutcome::success(json!({
        "dateTime": format!("{}{offset}", local.strftime("%Y-%m-%dT%H:%M:%S")),
        "date": local.strftime("%Y-%m-%d").to_string(),
        "weekday": local.strftime("%A").to_string(),
        "week": local.strftime("%G-W%V").to_string(),
        "timeZone": name,
        "unixMs": now_ms,
    }))
}

fn read(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("utc") || name == "Z" {
        return Some(TimeZone::UTC);
    }
    if let Some(offset) = offset(name) {
        return Some(TimeZone::fixed(offset));
    }
    (name.len() <= ZONE_BYTES_MAX).then(|| TimeZone::get(name).ok()).flatten()
}

/// An offset of hours and minutes, such as `+02:00`.
fn offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let number = |text: &str, most: i32| {
        let good = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| good && *number <= most)
    };
    let (hours, minutes) = (number(hours, 23)?, number(minutes, 59)?);
    Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{call, later};

    async fn told(arguments: Value) -> ToolOutcome {
        CurrentTime.call(call(&arguments), later()).await
    }

    #[tokio::test]
    async fn the_time_of_the_call_is_told_in_the_zone_that_is_asked_for() {
        for (arguments, date_time, weekday) in [
            (json!({}), "2026-11-30T10:14:56+00:00", "Monday"),
            (json!({"timeZone": null}), "2026-11-30T10:14:56+00:00", "Monday"),
            (json!({"timeZone": "Europe/Berlin"}), "2026-11-30T11:14:56+01:00", "Monday"),
            (json!({"timeZone": "-11:30"}), "2026-11-29T22:44:56-11:30", "Sunday"),
            (json!({"timeZone": "Pacific/Auckland"}), "2026-11-30T23:14:56+13:00", "Monday"),
        ] {
            let ToolOutcome::Done(got) = told(arguments.clone()).await else {
                panic!("{arguments}")
            };
            assert_eq!(got["content"]["dateTime"], date_time, "{arguments}");
            assert_eq!(got["content"]["weekday"], weekday, "{arguments}");
            assert_eq!(got["content"]["unixMs"], 1_796_033_696_789_u64, "{arguments}");
        }
    }

    #[tokio::test]
    async fn what_is_no_time_zone_is_told() {
        for zone in [json!("Mars/Base"), json!("+25:00"), json!("+2"), json!(""), json!(7)] {
            let expected = ToolOutcome::argument("timeZone", texts::TIME_ZONE);
            assert_eq!(told(json!({"timeZone": zone})).await, expected, "{zone}");
        }
    }
}
