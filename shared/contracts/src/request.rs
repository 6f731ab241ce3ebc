//! What callers ask of start-intake and what they get: `{operation, payload}` with the options of the contract.

use runfleet_domain::limits::{INPUT_BYTES_MAX, INSTANCE_NAME_CHARS_MAX, JOB_ECHO_BYTES_MAX};
use runfleet_domain::{IdempotencyKey, JobKey, Name, RunId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorBody;

/// The AMQP `type` of every request.
pub const REQUEST_KIND: &str = "request.v1";

/// The AMQP `type` of every reply.
pub const REPLY_KIND: &str = "reply.v1";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// Start a Process.
    #[serde(rename = "processes.start")]
    ProcessesStart,
    /// Where a Process run stands.
    #[serde(rename = "processes.get")]
    ProcessesGet,
    /// Start an agent.
    #[serde(rename = "agents.start")]
    AgentsStart,
    /// Where an agent run stands.
    #[serde(rename = "agents.get")]
    AgentsGet,
}

impl Operation {
    /// The word on the wire, also used as a metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessesStart => "processes.start",
            Self::ProcessesGet => "processes.get",
            Self::AgentsStart => "agents.start",
            Self::AgentsGet => "agents.get",
        }
    }
}

/// A request before its payload is looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// What is asked.
    pub operation: Operation,
    /// The options of that operation.
    #[schemars(with = "serde_json::Value")]
    pub payload: Box<RawValue>,
}

impl Request {
    /// Reads a request body, or says which field is wrong. Never repeats a value.
    pub fn parse(body: &[u8]) -> Result<Self, ErrorBody> {
        read(body)
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ErrorBody> {
    serde_json::from_slice(json).map_err(|error| {
        let text = error.to_string();
        // serde names the field between backticks; the rest of its text may repeat a value.
        let field = text.split('`').nth(1).filter(|name| name.len() <= 64).unwrap_or("").to_owned();
        let problem = if text.starts_with("unknown field") {
            "is not known"
        } else if text.starts_with("missing field") {
            "is required"
        } else if text.starts_with("unknown variant") {
            return ErrorBody::field("operation", "is not known");
        } else if error.is_data() {
            return ErrorBody::field("", "a field has a value of the wrong type")
                .with("column", error.column());
        } else {
            return ErrorBody::field("", "the request is not valid JSON")
                .with("column", error.column());
        };
        ErrorBody::field(&field, problem)
    })
}

/// The job that gets the outcome.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeJob {
    /// A job that the active version of the project declares.
    pub job: String,
    /// Given back to the job unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub payload: Option<Box<RawValue>>,
}

/// Options of `processes.start` as they travel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessStart {
    /// The Process: 1 to 64 letters, digits, `_` or `-`.
    pub process_info_id: String,
    /// Values of the variables marked as input: a JSON object of at most 65,536 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub input: Option<Box<RawValue>>,
    /// A name for people: 1 to 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name: Option<String>,
    /// Makes two starts one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The job that gets the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_complete: Option<OutcomeJob>,
}

/// Options of `processes.start` after every check that needs nothing but the request.
#[derive(Debug, Clone)]
pub struct ValidProcessStart {
    /// The Process.
    pub process: Name,
    /// JSON text of an object.
    pub input: Option<Box<RawValue>>,
    /// A name for people.
    pub instance_name: Option<String>,
    /// The key.
    pub key: Option<IdempotencyKey>,
    /// The job and its echo.
    pub on_complete: Option<(JobKey, Option<Box<RawValue>>)>,
}

fn too_big(field: &str, limit: usize, size: usize) -> ErrorBody {
    ErrorBody::field(field, "is too large").with("limit", limit).with("size", size)
}

fn named<T: std::str::FromStr<Err = runfleet_domain::NameError>>(
    field: &str,
    text: &str,
) -> Result<T, ErrorBody> {
    text.parse()
        .map_err(|error: runfleet_domain::NameError| ErrorBody::field(field, error.to_string()))
}

impl ProcessStart {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<ValidProcessStart, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let process = named("processInfoId", &options.process_info_id)?;
        if let Some(input) = &options.input {
            let size = input.get().len();
            if size > INPUT_BYTES_MAX {
                return Err(too_big("input", INPUT_BYTES_MAX, size));
            }
            if !input.get().trim_start().starts_with('{') {
                return Err(ErrorBody::field("input", "must be an object"));
            }
        }
        if let Some(name) = &options.instance_name {
            let chars = name.chars().count();
            if !(1..=INSTANCE_NAME_CHARS_MAX).contains(&chars) {
                return Err(ErrorBody::field("instanceName", "must have 1 to 255 characters")
                    .with("limit", INSTANCE_NAME_CHARS_MAX)
                    .with("size", chars));
            }
        }
        let key = options.idempotency_key.map(|key| named("idempotencyKey", &key)).transpose()?;
        let on_complete = options.on_complete.map(OutcomeJob::check).transpose()?;
        Ok(ValidProcessStart {
            process,
            input: options.input,
            instance_name: options.instance_name,
            key,
            on_complete,
        })
    }
}

impl OutcomeJob {
    fn check(self) -> Result<(JobKey, Option<Box<RawValue>>), ErrorBody> {
        let job = named("onComplete.job", &self.job)?;
        if let Some(payload) = &self.payload {
            let size = payload.get().len();
            if size > JOB_ECHO_BYTES_MAX {
                return Err(too_big("onComplete.payload", JOB_ECHO_BYTES_MAX, size));
            }
        }
        Ok((job, self.payload))
    }
}

/// Answer to `processes.start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStarted {
    /// The run.
    pub instance_id: String,
    /// Whether an earlier start with the same key made this run.
    pub duplicate: bool,
}

/// Options of `processes.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessGet {
    /// The run.
    pub instance_id: String,
}

impl ProcessGet {
    /// Reads the options. A text that is no id of a Process run cannot name one: that is "not found", decided later.
    pub fn parse(payload: &RawValue) -> Result<(String, Option<RunId>), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let id = options.instance_id.parse().ok();
        Ok((options.instance_id, id))
    }
}

/// Answer to `processes.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessState {
    /// The run.
    pub instance_id: String,
    /// The version of the Process that runs.
    pub process_id: String,
    /// The Process.
    pub process_info_id: String,
    /// `NOT_STARTED`, `RUNNING`, `PAUSED`, `COMPLETED`, `FAILED`, `CANCELED` or `DELETED`.
    pub state: String,
    /// Unix milliseconds, or null before the run has begun.
    pub started_at: Option<u64>,
    /// Unix milliseconds, or null before the run has ended.
    pub finished_at: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(payload: &str) -> Result<ValidProcessStart, ErrorBody> {
        ProcessStart::parse(&RawValue::from_string(payload.to_owned()).unwrap())
    }

    fn refused(payload: &str) -> (String, String) {
        let error = parse(payload).unwrap_err();
        let fact =
            |name: &str| error.details.get(name).and_then(|v| v.as_str()).unwrap_or("").to_owned();
        (fact("field"), fact("problem"))
    }

    #[test]
    fn a_full_start_is_read_and_keeps_its_numbers() {
        let start = parse(
            r#"{"processInfoId":"p","input":{"n":9007199254740993},"instanceName":"é",
                "idempotencyKey":"k:1","onComplete":{"job":"done","payload":{"a":1}}}"#,
        )
        .unwrap();
        assert_eq!(start.input.unwrap().get(), r#"{"n":9007199254740993}"#);
        assert_eq!(start.key.unwrap().as_str(), "k:1");
        assert_eq!(start.on_complete.unwrap().0.as_str(), "done");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        assert_eq!(refused("{}").0, "processInfoId");
        assert_eq!(
            refused(r#"{"processInfoId":"p","inputs":{}}"#),
            ("inputs".into(), "is not known".into())
        );
        assert_eq!(refused(r#"{"processInfoId":"a b"}"#).0, "processInfoId");
        assert_eq!(
            refused(r#"{"processInfoId":"p","input":[1]}"#),
            ("input".into(), "must be an object".into())
        );
        assert_eq!(refused(r#"{"processInfoId":"p","instanceName":""}"#).0, "instanceName");
        assert_eq!(refused(r#"{"processInfoId":"p","idempotencyKey":" "}"#).0, "idempotencyKey");
        assert_eq!(
            refused(r#"{"processInfoId":"p","onComplete":{"job":"1"}}"#).0,
            "onComplete.job"
        );
    }

    #[test]
    fn sizes_are_bounded_in_bytes_and_the_error_tells_limit_and_size() {
        let text =
            |n: usize| format!(r#"{{"processInfoId":"p","input":{{"a":"{}"}}}}"#, "x".repeat(n));
        assert!(parse(&text(INPUT_BYTES_MAX - 8)).is_ok());
        let error = parse(&text(INPUT_BYTES_MAX - 7)).unwrap_err();
        assert_eq!(error.details["limit"], INPUT_BYTES_MAX);
        assert_eq!(error.details["size"], INPUT_BYTES_MAX + 1);
    }

    #[test]
    fn an_error_never_repeats_a_value() {
        for payload in [
            r#"{"processInfoId":"s3cret value"}"#,
            r#"{"processInfoId":7,"idempotencyKey":"s3cret value"}"#,
            r#"{"processInfoId":"p","instanceName":["s3cret value"]}"#,
        ] {
            let error = serde_json::to_string(&parse(payload).unwrap_err()).unwrap();
            assert!(!error.contains("s3cret"), "{error}");
        }
        let error = Request::parse(br#"{"operation":"s3cret","payload":{}}"#).unwrap_err();
        assert!(!serde_json::to_string(&error).unwrap().contains("s3cret"));
    }
}
