//! Background jobs as they travel: `jobs.enqueue`, the message of an attempt to the hosts of a project, and what hosts say of it.

use runfleet_domain::limits::{JOB_DELAY_MAX, JOB_PAYLOAD_BYTES_MAX};
use runfleet_domain::{IdempotencyKey, JobId, JobKey, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorBody;
use crate::json::{check_shape, read};
use crate::message::Message;
use crate::request::named;
use crate::strict::given;

/// Longest delay of a job, in milliseconds.
const DELAY_MS_MAX: u64 = JOB_DELAY_MAX.as_secs() * 1_000;

/// Options of `jobs.enqueue` as they travel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnqueueJob {
    /// A job that the active version of the project declares.
    #[schemars(length(min = 1, max = 100), regex(pattern = "^[A-Za-z][A-Za-z0-9_]*$"))]
    pub job: String,
    /// What the handler gets: JSON of at most 65,536 bytes. Null, and nothing, is no payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub payload: Option<Box<RawValue>>,
    /// How long the first attempt waits, in milliseconds: at most 30 days. Not together with `runAt`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 0, max = 2_592_000_000_u64))]
    pub delay_ms: Option<u64>,
    /// Unix milliseconds at which the first attempt begins at the earliest: at most 30 days ahead; in the past means at once.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub run_at: Option<u64>,
    /// Makes two calls for the same job one job run, for as long as that is stored.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 128),
        regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._:-]*$")
    )]
    pub idempotency_key: Option<String>,
}

/// When the first attempt of a job begins at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobTime {
    /// So many milliseconds after the call.
    After(u64),
    /// At this time, in Unix milliseconds.
    At(u64),
}

/// Options of `jobs.enqueue` after every check that needs nothing but the request.
#[derive(Debug, Clone)]
pub struct ValidEnqueue {
    /// Which job.
    pub job: JobKey,
    /// JSON text.
    pub payload: Option<Box<RawValue>>,
    /// When.
    pub time: JobTime,
    /// The key.
    pub key: Option<IdempotencyKey>,
}

impl EnqueueJob {
    /// Reads and checks the options. `now_ms` is the time by which `runAt` is judged.
    pub fn parse(payload: &RawValue, now_ms: u64) -> Result<ValidEnqueue, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let job = named("job", &options.job)?;
        let payload = options.payload.filter(|payload| payload.get() != "null");
        if let Some(payload) = &payload {
            let size = payload.get().len();
            if size > JOB_PAYLOAD_BYTES_MAX {
                let limit = JOB_PAYLOAD_BYTES_MAX;
                return Err(ErrorBody::too_large("payload", "bytes", limit, size));
            }
            check_shape("payload", payload)?;
        }
        let time = match (options.delay_ms, options.run_at) {
            (Some(_), Some(_)) => {
                return Err(ErrorBody::field("runAt", "must not be given together with `delayMs`"));
            }
            (Some(delay), None) if delay > DELAY_MS_MAX => {
                return Err(ErrorBody::field("delayMs", "must be from 0 to 2592000000"));
            }
            (None, Some(at)) if at > now_ms.saturating_add(DELAY_MS_MAX) => {
                return Err(ErrorBody::field("runAt", "must be at most 30 days ahead"));
            }
            (None, Some(at)) => JobTime::At(at),
            (delay, None) => JobTime::After(delay.unwrap_or(0)),
        };
        let key = options.idempotency_key.map(|key| named("idempotencyKey", &key)).transpose()?;
        Ok(ValidEnqueue { job, payload, time, key })
    }
}

/// Answer to `jobs.enqueue`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobEnqueued {
    /// The job run.
    pub run_id: String,
    /// Whether an earlier call with the same key made it.
    pub duplicate: bool,
}

/// One attempt of a background job, on the queue of its project. `reply_to` of the message is the routing key, on the exchange
/// `x.answers`, of everything that the host says about it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRun {
    /// The job run; the same for every attempt and every repetition of this message.
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// Which job of the project.
    #[schemars(with = "String")]
    pub job: JobKey,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// `enqueue` or `schedule`.
    pub source: String,
    /// What enqueued it: `process:<instanceId>` or `agent:<runId>` for outcomes.
    pub enqueued_by: String,
    /// Unix milliseconds.
    pub enqueued_at: u64,
    /// The person it runs as, or null.
    #[schemars(with = "Option<String>")]
    pub user: Option<Name>,
    /// Automation steps it has.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of its job chain, itself included.
    pub chain: u32,
    /// What the handler gets.
    #[schemars(with = "serde_json::Value")]
    pub payload: Box<RawValue>,
    /// Attempts that the job has, the first included.
    #[serde(default = "attempts_default")]
    pub max_attempts: u32,
    /// How long the attempt may take, in milliseconds.
    #[serde(default = "timeout_default")]
    pub timeout_ms: u32,
    /// Unix milliseconds before which the first attempt was not to begin; null for a job that was to begin at once.
    #[serde(default)]
    pub run_at: Option<u64>,
    /// Unix milliseconds after which the attempt must not be begun by this message any more; another one comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// The version of the project that was active when the message was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

fn attempts_default() -> u32 {
    5
}

fn timeout_default() -> u32 {
    30_000
}

impl Message for JobRun {
    const KIND: &'static str = "job.run.v1";
}

/// A host has begun an attempt of a job. From now on its time counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobAccepted {
    /// The job run.
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The attempt that has begun.
    pub attempt: u32,
}

impl Message for JobAccepted {
    const KIND: &'static str = "job.accepted.v1";
}

/// How one attempt of a job ended, as its host reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// The job run.
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// The attempt that ended.
    pub attempt: u32,
    /// Whether the handler returned without an error.
    pub succeeded: bool,
    /// Why it failed. Without it, a failure is for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobFailure>,
}

impl Message for JobResult {
    const KIND: &'static str = "job.result.v1";
}

/// Why an attempt of a job failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobFailure {
    /// Capital letters, digits and `_`, at most 64; anything else, or nothing, is `SCRIPT_ERROR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// For the host's own use: neither stored nor logged by the fleet, because it may hold data of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the next attempt can help.
    #[serde(default)]
    pub retryable: bool,
}

/// The time of a job has come, or nothing has been heard of it: look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobDue {
    /// The job run.
    #[schemars(with = "String")]
    pub job_id: JobId,
    /// Its workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// Its project.
    #[schemars(with = "String")]
    pub project: Name,
    /// Which job of the project.
    #[schemars(with = "String")]
    pub job: JobKey,
}

impl Message for JobDue {
    const KIND: &'static str = "job.due.v1";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::golden::check;

    const NOW: u64 = 1_764_468_000_000;

    fn parse(options: &serde_json::Value) -> Result<ValidEnqueue, ErrorBody> {
        let raw = serde_json::value::to_raw_value(options).unwrap();
        EnqueueJob::parse(&raw, NOW)
    }

    #[test]
    fn a_job_is_enqueued_at_once_after_a_while_or_at_a_time() {
        let time = |options| parse(&options).unwrap().time;
        assert_eq!(time(json!({"job": "a"})), JobTime::After(0));
        assert_eq!(
            time(json!({"job": "a", "delayMs": 2_592_000_000_u64})),
            JobTime::After(2_592_000_000)
        );
        assert_eq!(time(json!({"job": "a", "runAt": 7})), JobTime::At(7));
        assert_eq!(
            time(json!({"job": "a", "runAt": NOW + 2_592_000_000})),
            JobTime::At(NOW + 2_592_000_000)
        );
    }

    #[test]
    fn a_null_payload_is_none_and_the_size_is_that_of_the_text() {
        assert!(parse(&json!({"job": "a", "payload": null})).unwrap().payload.is_none());
        assert!(parse(&json!({"job": "a", "payload": "x".repeat(65_534)})).is_ok());
        let error = parse(&json!({"job": "a", "payload": "x".repeat(65_535)})).unwrap_err();
        assert_eq!(
            (error.details["field"].clone(), error.details["size"].clone()),
            (json!("payload"), json!(65_537))
        );
        // Escapes count as they are written.
        let escaped = format!(r#"{{"job":"a","payload":"{}"}}"#, r"\u0061".repeat(10_923));
        let raw = RawValue::from_string(escaped).unwrap();
        assert_eq!(EnqueueJob::parse(&raw, NOW).unwrap_err().details["size"], json!(65_540));
    }

    #[test]
    fn options_that_can_never_work_are_refused_with_their_field() {
        let table = [
            (json!({}), "job"),
            (json!({"job": "1a"}), "job"),
            (json!({"job": "a", "delayMs": 2_592_000_001_u64}), "delayMs"),
            (json!({"job": "a", "delayMs": -1}), "delayMs"),
            (json!({"job": "a", "delayMs": 1.5}), "delayMs"),
            (json!({"job": "a", "delayMs": null}), "delayMs"),
            (json!({"job": "a", "delayMs": 1, "runAt": 1}), "runAt"),
            (json!({"job": "a", "runAt": NOW + 2_592_000_001}), "runAt"),
            (json!({"job": "a", "idempotencyKey": "-"}), "idempotencyKey"),
            (json!({"job": "a", "retries": 1}), "retries"),
        ];
        for (options, field) in table {
            let error = parse(&options).unwrap_err();
            assert_eq!(error.details["field"], json!(field), "{options}");
        }
    }

    #[test]
    fn a_message_that_an_older_program_has_published_is_still_read() {
        let old = json!({
            "jobId": "JB1501JDX3Z8GF0000000000000000", "job": "a", "project": "p", "workspace": "w", "attempt": 1,
            "source": "enqueue", "enqueuedBy": "x", "enqueuedAt": 1, "user": null, "hops": 1, "depth": 0, "chain": 1,
            "payload": null,
        });
        let run: JobRun = serde_json::from_value(old).unwrap();
        assert_eq!((run.max_attempts, run.timeout_ms, run.deadline), (5, 30_000, None));
        let old =
            json!({"jobId": "JB1501JDX3Z8GF0000000000000000", "attempt": 1, "succeeded": false});
        assert_eq!(serde_json::from_value::<JobResult>(old).unwrap().error, None);
    }

    #[test]
    fn jobs_keep_their_form() {
        let job_id: JobId = "JB1501JDX3Z8GF0000000000000000".parse().unwrap();
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        check("job.result.v1", &JobResult { job_id, attempt: 1, succeeded: true, error: None });
        let error = JobFailure { code: Some("RETRYABLE".into()), message: None, retryable: true };
        check(
            "job.result.v1-failed",
            &JobResult { job_id, attempt: 1, succeeded: false, error: Some(error) },
        );
        check("job.accepted.v1", &JobAccepted { job_id, attempt: 1 });
        let due = JobDue {
            job_id,
            workspace: "acme".parse().unwrap(),
            project: "shop".parse().unwrap(),
            job: "discount_decided".parse().unwrap(),
        };
        check("job.due.v1", &due);
        let enqueue = EnqueueJob {
            job: "discount_decided".into(),
            payload: Some(raw("9007199254740993")),
            delay_ms: Some(60_000),
            run_at: None,
            idempotency_key: Some("order:7".into()),
        };
        check("jobs.enqueue", &enqueue);
        let enqueued = JobEnqueued { run_id: job_id.to_string(), duplicate: false };
        check("jobs.enqueue.reply", &crate::Reply::Done(enqueued));
    }
}
