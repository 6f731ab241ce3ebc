//! Messages between the workers and to projects. A message says "look at this run"; the ledger says what is true.

use runfleet_domain::{JobKey, Name, RunId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A body with the kind that names it in the AMQP `type` property.
pub trait Message: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind with its major version.
    const KIND: &'static str;
}

/// Look at a run and move it on, if it can move.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advance {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// With the first message of a run: what its record says, so that the runner need not read it. A hint: the ledger
    /// compares it when the run is committed, and anything that differs makes the runner read the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Fresh>,
}

/// What the record of a run that has just been made says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fresh {
    /// Its workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// Its project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The Process or agent.
    #[schemars(with = "String")]
    pub target: Name,
    /// The version of the target that it began with.
    pub target_version: u32,
    /// Its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub input: Option<Box<RawValue>>,
    /// The job that gets its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub job: Option<JobKey>,
    /// Automation steps that it carries.
    pub hops: u32,
    /// Links of the job chain of the execution that called start.
    pub chain: u32,
}

impl Message for Advance {
    const KIND: &'static str = "run.advance.v1";
}

/// A run has ended and its outcome wants to become a job. Repeats what the run's record says, so that the hand-over needs
/// one round trip; the hand-over compares it with the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeReady {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Its workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// Its project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The job named at start.
    #[schemars(with = "String")]
    pub job: JobKey,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Links of the job chain of the execution that called start.
    pub chain: u32,
}

impl Message for OutcomeReady {
    const KIND: &'static str = "run.outcome.v1";
}

/// The payload of a Process completion job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessCompletion {
    /// What `onComplete.payload` said, or null.
    #[schemars(with = "serde_json::Value")]
    pub payload: Option<Box<RawValue>>,
    /// The ended run.
    pub process: EndedProcess,
}

/// A Process run that has ended, as its job sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedProcess {
    /// The run.
    pub instance_id: String,
    /// The version of the Process that ran.
    pub process_id: String,
    /// The Process.
    pub process_info_id: String,
    /// `COMPLETED`, `FAILED`, `CANCELED` or `DELETED`.
    pub state: String,
    /// Output variables; null when there are none or when they are too large.
    #[schemars(with = "serde_json::Value")]
    pub output: Option<Box<RawValue>>,
    /// Unix milliseconds.
    pub finished_at: Option<u64>,
}
