//! JSON to FEEL values and back.
//!
//! Between two elements a variable is always JSON, also inside one slice, so that a run does not depend on where its
//! slices end: a number is an integer of 64 bits or a double, a date is a string.

use dsntk_feel::context::FeelContext;
use dsntk_feel::values::Value as Feel;
use dsntk_feel::{FeelNumber, Name};
use serde_json::{Map, Number, Value as Json};

use crate::feel::TYPE_STEPS;
use crate::limits::VALUE_DEPTH_MAX;
use crate::variable::VariableType;

/// A value that has no place in a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unstorable {
    /// It is the trace of an error inside the expression.
    Error,
    /// It is a function, a range, a number beyond JSON, or nests too deep.
    Kind,
}

/// FEEL value of a variable. Only values that passed [`is_plain`] or came from [`to_json`] are given here.
pub(crate) fn to_feel(json: &Json, kind: VariableType) -> Feel {
    let typed = match (kind, json) {
        (VariableType::Date, Json::String(text)) => Feel::try_from_xsd_date(text).ok(),
        (VariableType::DateTime, Json::String(text)) => Feel::try_from_xsd_date_time(text).ok(),
        _ => None,
    };
    typed.unwrap_or_else(|| plain(json))
}

fn plain(json: &Json) -> Feel {
    match json {
        Json::Null => Feel::Null(None),
        Json::Bool(value) => Feel::Boolean(*value),
        Json::Number(number) => feel_number(number),
        Json::String(text) => Feel::String(text.clone()),
        Json::Array(items) => Feel::List(items.iter().map(plain).collect()),
        Json::Object(entries) => {
            let mut context = FeelContext::default();
            for (key, value) in entries {
                context.set_entry(&Name::from(key), plain(value));
            }
            Feel::Context(context)
        }
    }
}

fn feel_number(number: &Number) -> Feel {
    if let Some(value) = number.as_u64() {
        return Feel::Number(value.into());
    }
    if let Some(value) = number.as_i64() {
        return Feel::Number(value.into());
    }
    // The shortest text of a double is what its author wrote: 0.1 stays 0.1.
    number.to_string().parse::<FeelNumber>().map_or(Feel::Null(None), Feel::Number)
}

/// JSON of a FEEL value, or why there is none.
pub(crate) fn to_json(value: &Feel) -> Result<Json, Unstorable> {
    json_within(value, VALUE_DEPTH_MAX)
}

fn json_within(value: &Feel, depth: usize) -> Result<Json, Unstorable> {
    Ok(match value {
        Feel::Null(None) => Json::Null,
        Feel::Null(Some(trace)) if is_absence(trace) => Json::Null,
        Feel::Null(Some(_)) => return Err(Unstorable::Error),
        Feel::Boolean(value) => Json::Bool(*value),
        Feel::Number(number) => json_number(number)?,
        Feel::String(text) => Json::String(text.clone()),
        Feel::Date(_)
        | Feel::Time(_)
        | Feel::DaysAndTimeDuration(_)
        | Feel::YearsAndMonthsDuration(_) => Json::String(value.to_string()),
        Feel::DateTime(_) => Json::String(iso_date_time(value)),
        Feel::List(items) => {
            let depth = depth.checked_sub(1).ok_or(Unstorable::Kind)?;
            Json::Array(
                items.iter().map(|item| json_within(item, depth)).collect::<Result<_, _>>()?,
            )
        }
        Feel::Context(context) => {
            let depth = depth.checked_sub(1).ok_or(Unstorable::Kind)?;
            let entries = context
                .iter()
                .map(|(name, item)| Ok((name.to_string(), json_within(item, depth)?)));
            Json::Object(entries.collect::<Result<Map<_, _>, Unstorable>>()?)
        }
        _ => return Err(Unstorable::Kind),
    })
}

/// Whether a null only says that there is nothing at a place that was looked up, which is no error in FEEL.
fn is_absence(trace: &str) -> bool {
    trace.starts_with("build_path: no entry ")
        || trace.starts_with("index in filter is out of range ")
}

fn json_number(number: &FeelNumber) -> Result<Json, Unstorable> {
    // Only finite numbers have an exponent, and the library can print no others.
    if !format!("{number:?}").contains('E') {
        return Err(Unstorable::Kind);
    }
    let text = number.to_string();
    if number.is_integer() {
        // A literal such as 5.00 is an integer that remembers its zeros.
        let whole = text.split('.').next().unwrap_or_default();
        if let Ok(value) = whole.parse::<u64>() {
            return Ok(value.into());
        }
        if let Ok(value) = whole.parse::<i64>() {
            return Ok(value.into());
        }
    }
    let double = text.parse::<f64>().map_err(|_| Unstorable::Kind)?;
    Number::from_f64(double).map(Json::Number).ok_or(Unstorable::Kind)
}

/// ISO 8601 text; FEEL would name a time zone after an `@`, which no other program reads.
fn iso_date_time(value: &Feel) -> String {
    let text = value.to_string();
    let Some((local, _)) = text.split_once('@') else { return text };
    let Feel::DateTime(date_time) = value else { return text };
    let Some(offset) = date_time.feel_time_offset() else { return local.to_owned() };
    let minutes = offset.unsigned_abs() / 60;
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Whether a JSON value from outside can be held by a variable without change: bounded depth, and no key that begins
/// or ends with white space, which FEEL would drop.
pub(crate) fn is_plain(json: &Json) -> bool {
    plain_within(json, VALUE_DEPTH_MAX)
}

fn plain_within(json: &Json, depth: usize) -> bool {
    match json {
        Json::Array(items) => depth
            .checked_sub(1)
            .is_some_and(|depth| items.iter().all(|item| plain_within(item, depth))),
        Json::Object(entries) => depth.checked_sub(1).is_some_and(|depth| {
            entries
                .iter()
                .all(|(key, item)| key.trim().len() == key.len() && plain_within(item, depth))
        }),
        _ => true,
    }
}

/// What taking a value into an expression costs, in units of work.
pub(crate) fn work(json: &Json) -> u64 {
    let (copied, type_steps) = costs(json);
    copied.saturating_add(type_steps / TYPE_STEPS)
}

/// Units of work of copying a value, and the steps of naming its type, as the meter of expressions counts them.
fn costs(json: &Json) -> (u64, u64) {
    let mut sum = (4, 1_u64);
    let mut add = |(copied, type_steps): (u64, u64)| {
        sum = (sum.0 + copied, sum.1.saturating_add(type_steps));
    };
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => add((text.len() as u64 / 32, 0)),
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let (copied, type_steps) = costs(item);
                add((copied, type_steps));
                if index == 0 {
                    add((0, type_steps));
                }
            }
        }
        Json::Object(entries) => {
            for (key, item) in entries {
                add((4 + key.len() as u64 / 32, 0));
                add(costs(item));
            }
        }
    }
    sum
}

/// Size of a value in bytes of JSON, approximately.
pub(crate) fn bytes(json: &Json) -> usize {
    match json {
        Json::Null | Json::Bool(_) => 5,
        Json::Number(_) => 8,
        Json::String(text) => text.len() + 3,
        Json::Array(items) => 2 + items.iter().map(bytes).sum::<usize>(),
        Json::Object(entries) => {
            2 + entries.iter().map(|(key, item)| key.len() + 4 + bytes(item)).sum::<usize>()
        }
    }
}
