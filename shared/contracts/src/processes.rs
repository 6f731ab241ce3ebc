//! Options and answers of `processes.start` and `processes.get`.

use runfleet_domain::limits::{INPUT_BYTES_MAX, INSTANCE_NAME_CHARS_MAX};
use runfleet_domain::{IdempotencyKey, Name, RunId, RunKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorBody;
use crate::json::read;
use crate::request::{OutcomeJob, ValidOutcomeJob, named, object, sized};
use crate::strict::{given, given_object};

/// Options of `processes.start` as they travel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessStart {
    /// The Process: 1 to 64 letters, digits, `_` or `-`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub process_info_id: String,
    /// Values of the variables marked as input: a JSON object of at most 65,536 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub input: Option<Box<RawValue>>,
    /// A name for people: 1 to 255 characters.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 255))]
    pub instance_name: Option<String>,
    /// Makes two starts one run.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 128),
        regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._:-]*$")
    )]
    pub idempotency_key: Option<String>,
    /// The job that gets the outcome.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OutcomeJob")]
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
    pub on_complete: Option<ValidOutcomeJob>,
}

impl ProcessStart {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<ValidProcessStart, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let process = named("processInfoId", &options.process_info_id)?;
        if let Some(input) = &options.input {
            object("input", input, INPUT_BYTES_MAX)?;
        }
        if let Some(name) = &options.instance_name {
            sized("instanceName", name, INSTANCE_NAME_CHARS_MAX)?;
        }
        let key = options.idempotency_key.map(|key| named("idempotencyKey", &key)).transpose()?;
        let on_complete = options.on_complete.map(|job| job.check(RunKind::Process)).transpose()?;
        Ok(ValidProcessStart {
            process,
            input: options.input,
            instance_name: options.instance_name,
            key,
            on_complete,
        })
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
        let id: Option<RunId> = options.instance_id.parse().ok();
        let id = id.filter(|id| id.kind() == RunKind::Process);
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
    use crate::Request;

    fn parse(payload: &str) -> Result<ValidProcessStart, ErrorBody> {
        ProcessStart::parse(&RawValue::from_string(payload.to_owned()).unwrap())
    }

    fn refused(payload: &str) -> (String, String) {
        let error = parse(payload).unwrap_err();
        let fact =
            |name: &str| error.details.get(name).and_then(|v| v.as_str()).unwrap_or("").to_owned();
        (fact("field"), fact("problem"))
    }

    /// CG-020, CG-023
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

    /// CG-020, CG-025
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

    /// CG-025
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
