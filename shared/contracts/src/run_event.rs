//! What waits in the inbox of a Process run: everything that happens to a run and carries data.
//!
//! The inbox belongs to the ledger; whoever writes an event takes its text from [`RunEvent::to_body`], and the runner reads it
//! with [`RunEvent::parse`]. Both know the same bounds. Nothing here decides what an event does to a run.

use runfleet_domain::limits::{INBOX_EVENT_BYTES_MAX, JSON_DEPTH_MAX};
use runfleet_domain::{MessageId, RunId, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::{check_shape_to, read};

/// Longest code of a failed task, in bytes.
pub const FAILURE_CODE_BYTES_MAX: usize = 64;

/// Longest code of a BPMN error that a worker reports, in characters.
pub const BPMN_ERROR_CODE_CHARS_MAX: usize = 128;

/// Longest name of a signal, and of a person a task is assigned to, in characters.
pub const EVENT_NAME_CHARS_MAX: usize = 255;

/// Longest pause before the next attempt that a worker may ask for, in milliseconds: one day.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;

/// The event, an object of variables in it, and a value as deep as any may be.
const EVENT_DEPTH_MAX: usize = JSON_DEPTH_MAX + 2;

/// Something that has happened to a run. At most 64 KiB as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunEvent {
    /// A message was correlated with a subscription of the run.
    Message {
        /// The subscription, which is the instance that waits.
        subscription: u64,
        /// What the message carries.
        variables: Map<String, Value>,
    },
    /// A signal was broadcast that the run waits for.
    Signal {
        /// Its name: 1 to 255 characters.
        name: String,
        /// What it carries.
        variables: Map<String, Value>,
    },
    /// Whoever was asked to carry out a task has done it.
    TaskDone {
        /// The instance that asked.
        task: u64,
        /// The attempt that is answered, from 1.
        attempt: u32,
        /// What was answered: of an HTTP call an object with `status`, `headers` and `body`.
        answer: Value,
    },
    /// Whoever was asked to carry out a task could not.
    TaskFailed {
        /// The instance that asked.
        task: u64,
        /// The attempt that has failed, from 1.
        attempt: u32,
        /// A fixed word: capital letters, digits and `_`, at most 64. Never text of the other side.
        code: String,
        /// Whether another attempt can help.
        retry: bool,
        /// Milliseconds that the next attempt should wait, at most a day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// Whoever was asked to carry out a task reports a BPMN error.
    TaskError {
        /// The instance that asked.
        task: u64,
        /// The attempt that is answered, from 1.
        attempt: u32,
        /// The code that catch events name: 1 to 128 characters.
        code: String,
        /// What the error carries.
        variables: Map<String, Value>,
    },
    /// A person has completed a user task.
    UserDone {
        /// The instance.
        task: u64,
        /// What the person gave.
        variables: Map<String, Value>,
    },
    /// A user task has another assignee.
    UserAssigned {
        /// The instance.
        task: u64,
        /// The person: 1 to 255 characters; null for nobody.
        assignee: Option<String>,
    },
    /// A run that this run has called has ended.
    ChildEnded {
        /// The instance that called it.
        task: u64,
        /// The run that has ended.
        #[schemars(with = "String")]
        run: RunId,
        /// Its final state: `COMPLETED`, `FAILED`, `TIMED_OUT`, `CANCELED` or `DELETED`.
        state: String,
        /// Its output.
        output: Option<Map<String, Value>>,
        /// Why it failed.
        code: Option<String>,
    },
    /// Somebody wants what has failed for good to be tried again.
    Retry {
        /// The instance with an incident; null for all.
        task: Option<u64>,
    },
    /// Somebody sets variables.
    Set {
        /// The instance of a sub-process; null for the run itself.
        scope: Option<u64>,
        /// The new values. Variables that are not named stay as they are.
        variables: Map<String, Value>,
    },
}

impl RunEvent {
    /// Reads and checks the body of an event. An error names a field and never repeats a value.
    pub fn parse(body: &[u8]) -> Result<Self, ErrorBody> {
        size(body.len())?;
        let raw: &RawValue = serde_json::from_slice(body)
            .map_err(|_| ErrorBody::field("event", "is not valid JSON"))?;
        check_shape_to("event", raw, EVENT_DEPTH_MAX)?;
        let event: Self = read(body)?;
        event.check()?;
        Ok(event)
    }

    /// The event as the body that the inbox takes, if it keeps the bounds that [`RunEvent::parse`] asks for.
    pub fn to_body(&self) -> Result<String, ErrorBody> {
        self.check()?;
        let body = serde_json::to_string(self)
            .map_err(|_| ErrorBody::field("event", "cannot be written as JSON"))?;
        size(body.len())?;
        let raw: &RawValue = serde_json::from_str(&body)
            .map_err(|_| ErrorBody::field("event", "is nested too deeply"))?;
        check_shape_to("event", raw, EVENT_DEPTH_MAX)?;
        Ok(body)
    }

    /// The id under which the answer to one attempt of a task waits in the inbox, so that a second answer is known.
    pub fn answer_id(task: u64, attempt: u32) -> Option<MessageId> {
        format!("answer:{task}:{attempt}").parse().ok()
    }

    fn check(&self) -> Result<(), ErrorBody> {
        match self {
            Self::Signal { name, .. } => text("name", name, EVENT_NAME_CHARS_MAX),
            Self::TaskDone { attempt, .. } => counted(*attempt),
            Self::TaskFailed { attempt, code, retry_after_ms, .. } => {
                counted(*attempt)?;
                failure_code("code", code)?;
                retry_after("retryAfterMs", *retry_after_ms)
            }
            Self::TaskError { attempt, code, .. } => {
                counted(*attempt)?;
                text("code", code, BPMN_ERROR_CODE_CHARS_MAX)
            }
            Self::UserAssigned { assignee: Some(person), .. } => {
                text("assignee", person, EVENT_NAME_CHARS_MAX)
            }
            Self::ChildEnded { state, code, .. } => {
                if !RunState::from_word(state).is_some_and(RunState::is_final) {
                    return Err(ErrorBody::field("state", "is not a final state"));
                }
                code.as_deref().map_or(Ok(()), |code| text("code", code, BPMN_ERROR_CODE_CHARS_MAX))
            }
            Self::Message { .. }
            | Self::UserDone { .. }
            | Self::UserAssigned { assignee: None, .. }
            | Self::Retry { .. }
            | Self::Set { .. } => Ok(()),
        }
    }
}

fn size(bytes: usize) -> Result<(), ErrorBody> {
    if bytes > INBOX_EVENT_BYTES_MAX {
        return Err(ErrorBody::too_large("event", "bytes", INBOX_EVENT_BYTES_MAX, bytes));
    }
    Ok(())
}

pub(crate) fn counted(attempt: u32) -> Result<(), ErrorBody> {
    if attempt == 0 { Err(ErrorBody::field("attempt", "must be at least 1")) } else { Ok(()) }
}

/// A text between one and `limit` characters without control characters.
pub(crate) fn text(field: &str, text: &str, limit: usize) -> Result<(), ErrorBody> {
    crate::request::sized(field, text, limit)?;
    if text.chars().any(char::is_control) {
        return Err(ErrorBody::field(field, "must not hold control characters"));
    }
    Ok(())
}

/// A fixed word: a capital letter, then capital letters, digits and `_`.
pub(crate) fn failure_code(field: &str, code: &str) -> Result<(), ErrorBody> {
    let bytes = code.as_bytes();
    let word = (1..=FAILURE_CODE_BYTES_MAX).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
    if word {
        return Ok(());
    }
    Err(ErrorBody::field(
        field,
        "must start with a capital letter and have at most 64 capital letters, digits and `_`",
    ))
}

pub(crate) fn retry_after(field: &str, wait: Option<u64>) -> Result<(), ErrorBody> {
    if wait.is_some_and(|wait| wait > RETRY_AFTER_MS_MAX) {
        return Err(ErrorBody::field(field, "must be at most a day"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> (String, String) {
        let error = RunEvent::parse(body.as_bytes()).unwrap_err();
        let fact = |name: &str| error.details[name].as_str().unwrap().to_owned();
        (fact("field"), fact("problem"))
    }

    #[test]
    fn an_event_that_is_not_one_is_refused_by_its_field() {
        for (body, field, problem) in [
            ("{", "event", "is not valid JSON"),
            ("[]", "", "has a value of the wrong type"),
            ("{}", "kind", "is required"),
            (r#"{"kind":"s3cret"}"#, "kind", "is not one of the allowed words"),
            (r#"{"kind":"taskDone","task":1,"answer":1}"#, "attempt", "is required"),
            (
                r#"{"kind":"taskDone","task":"s3cret","attempt":1,"answer":1}"#,
                "",
                "has a value of the wrong type",
            ),
            (
                r#"{"kind":"taskDone","task":1,"attempt":0,"answer":1}"#,
                "attempt",
                "must be at least 1",
            ),
            (
                r#"{"kind":"taskDone","task":1,"attempt":1,"answer":{"a":1,"a":2}}"#,
                "event",
                "gives a name twice",
            ),
            (r#"{"kind":"signal","name":"","variables":{}}"#, "name", "must not be empty"),
            (
                r#"{"kind":"taskFailed","task":1,"attempt":1,"code":"s3cret","retry":true}"#,
                "code",
                "must start with a capital letter and have at most 64 capital letters, digits and `_`",
            ),
            (
                r#"{"kind":"taskFailed","task":1,"attempt":1,"code":"A","retry":true,"retryAfterMs":86400001}"#,
                "retryAfterMs",
                "must be at most a day",
            ),
            (
                r#"{"kind":"childEnded","task":1,"run":"PI1501JDX3Z8GF0000000000000000","state":"RUNNING","output":null,"code":null}"#,
                "state",
                "is not a final state",
            ),
            (
                r#"{"kind":"userAssigned","task":1,"assignee":"a\u0007"}"#,
                "assignee",
                "must not hold control characters",
            ),
        ] {
            assert_eq!(told(body), (field.to_owned(), problem.to_owned()), "{body}");
            let error = RunEvent::parse(body.as_bytes()).unwrap_err();
            assert!(!serde_json::to_string(&error).unwrap().contains("s3cret"), "{body}");
        }
    }

    #[test]
    fn an_event_is_as_large_as_the_inbox_takes_and_no_larger() {
        let event = |size: usize| RunEvent::TaskDone {
            task: 1,
            attempt: 1,
            answer: Value::String("x".repeat(size)),
        };
        let around = event(0).to_body().unwrap().len();
        let body = event(INBOX_EVENT_BYTES_MAX - around).to_body().unwrap();
        assert_eq!(body.len(), INBOX_EVENT_BYTES_MAX);
        RunEvent::parse(body.as_bytes()).unwrap();
        assert!(event(INBOX_EVENT_BYTES_MAX - around + 1).to_body().is_err());
        assert!(RunEvent::parse(format!("{body} ").as_bytes()).is_err());
    }

    #[test]
    fn a_field_of_a_newer_version_is_passed_over_and_numbers_stay() {
        let body =
            r#"{"kind":"set","scope":null,"variables":{"n":9007199254740993,"x":0.1},"newer":1}"#;
        let event = RunEvent::parse(body.as_bytes()).unwrap();
        let body = event.to_body().unwrap();
        assert!(body.contains("9007199254740993") && body.contains("0.1"), "{body}");
    }

    #[test]
    fn a_variable_may_be_as_deep_as_any_value_and_no_deeper() {
        let event = |depth: usize| {
            let value = "[".repeat(depth) + &"]".repeat(depth);
            format!(r#"{{"kind":"set","scope":null,"variables":{{"a":{value}}}}}"#)
        };
        RunEvent::parse(event(JSON_DEPTH_MAX).as_bytes()).unwrap();
        for depth in [JSON_DEPTH_MAX + 1, 10_000] {
            assert_eq!(told(&event(depth)), ("event".into(), "is nested too deeply".into()));
        }
    }

    #[test]
    fn every_answer_to_an_attempt_has_one_id() {
        assert_eq!(RunEvent::answer_id(7, 2).unwrap().as_str(), "answer:7:2");
        assert!(RunEvent::answer_id(u64::MAX, u32::MAX).is_some());
    }
}
