//! Options and answers of what people and code do to Process runs that exist: end, hold, correct, tell, and look back.
//!
//! Checks what needs nothing but the request. Whether a run exists, waits for a task or may be touched is decided elsewhere.

use std::time::Duration;

use runfleet_domain::limits::{
    ASSIGNEE_CHARS_MAX, EVENT_NAME_BYTES_MAX, EVENT_VARIABLES_BYTES_MAX, HISTORY_ENTRIES_AT_ONCE,
    MESSAGE_TTL_MAX, SENT_NAME_BYTES_MAX,
};
use runfleet_domain::{MessageId, RunId, RunKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::read;
use crate::request::{named, object, sized};
use crate::strict::given;

pub use crate::history::{HistoryEntry, HistoryPage, HistoryWhat};

/// Options of `processes.cancel`, `processes.delete`, `processes.pause` and `processes.resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OnRun {
    /// The run.
    pub instance_id: String,
}

/// Options of `processes.retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryRun {
    /// The run.
    pub instance_id: String,
    /// The incident that is tried again; all of the run unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub task: Option<u64>,
}

/// Options of `processes.set`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetVariables {
    /// The run.
    pub instance_id: String,
    /// The instance of a sub-process whose variables are set; those of the run itself unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub scope: Option<u64>,
    /// The new values: a JSON object of at most 65,536 bytes. Variables that are not named stay as they are.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub variables: Box<RawValue>,
}

/// Options of `processes.completeTask`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteTask {
    /// The run.
    pub instance_id: String,
    /// The user task.
    pub task: u64,
    /// What the task gives to the run: a JSON object of at most 65,536 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub variables: Option<Box<RawValue>>,
}

/// Options of `processes.assignTask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssignTask {
    /// The run.
    pub instance_id: String,
    /// The user task.
    pub task: u64,
    /// The person: 1 to 255 characters; null for nobody. Never absent.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(schema_with = "person_or_nobody")]
    pub assignee: Option<String>,
}

/// An option that must be given and may be null.
fn person_or_nobody(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "minLength": 1, "maxLength": 255})
}

/// Options of `processes.history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryOf {
    /// The run.
    pub instance_id: String,
    /// Entries to pass over, from the oldest that is kept: 0 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub from: Option<u32>,
    /// Most entries of the answer: 1 to 200; 200 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 200))]
    pub count: Option<u32>,
}

/// Options of `processes.message`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PublishMessage {
    /// The name of the message as Processes have it: 1 to 255 bytes.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// The value that tells which run it is for: 1 to 256 bytes. Without it, it is for runs that wait without one.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 256))]
    pub correlation_key: Option<String>,
    /// What it carries: a JSON object of at most 65,536 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub variables: Option<Box<RawValue>>,
    /// How long it waits when no run wants it yet, in seconds: 0 to 604,800; 0, which is not at all, unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 0, max = 604_800))]
    pub time_to_live_seconds: Option<u32>,
    /// Makes two messages one, whatever requests bring them: 1 to 128 printable ASCII characters. The id of the request unless
    /// it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 128), regex(pattern = "^[!-~]+$"))]
    pub message_id: Option<String>,
}

/// Options of `processes.signal`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendSignal {
    /// The name of the signal as Processes have it: 1 to 255 bytes.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// What it carries: a JSON object of at most 65,536 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub variables: Option<Box<RawValue>>,
}

/// Options of `processes.message` after every check that needs nothing but the request.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidMessage {
    /// The name.
    pub name: String,
    /// The value that tells which run it is for.
    pub key: Option<String>,
    /// What it carries.
    pub variables: Map<String, Value>,
    /// How long it waits for a run.
    pub ttl: Duration,
    /// What makes two messages one, if it is not the id of the request.
    pub id: Option<MessageId>,
}

/// Options that name a run, with that run. A text that is no id of a Process run cannot name one: that is "not found", decided
/// later.
pub trait NamesRun {
    /// What the caller wrote.
    fn text(&self) -> &str;

    /// The run.
    fn run(&self) -> Option<RunId> {
        self.text().parse::<RunId>().ok().filter(|run| run.kind() == RunKind::Process)
    }
}

macro_rules! name_runs {
    ($($options:ty),*) => {$(
        impl NamesRun for $options {
            fn text(&self) -> &str {
                &self.instance_id
            }
        }
    )*};
}

name_runs!(OnRun, RetryRun, SetVariables, CompleteTask, AssignTask, HistoryOf);

fn options<T: DeserializeOwned>(payload: &RawValue) -> Result<T, ErrorBody> {
    read(payload.get().as_bytes())
}

/// What a caller sends to runs: an object, which is empty when it is not given.
fn variables(given: Option<&RawValue>) -> Result<Map<String, Value>, ErrorBody> {
    let Some(json) = given else { return Ok(Map::new()) };
    object("variables", json, EVENT_VARIABLES_BYTES_MAX)?;
    serde_json::from_str(json.get()).map_err(|_| ErrorBody::field("variables", "is not valid JSON"))
}

/// A name or key that stands in a definition as well: one line of 1 to `limit` bytes.
fn line(field: &str, text: &str, limit: usize) -> Result<(), ErrorBody> {
    if text.len() > limit {
        return Err(ErrorBody::too_large(field, "bytes", limit, text.len()));
    }
    sized(field, text, limit)?;
    printable(field, text)
}

fn printable(field: &str, text: &str) -> Result<(), ErrorBody> {
    if text.chars().any(char::is_control) {
        return Err(ErrorBody::field(field, "must not hold control characters"));
    }
    Ok(())
}

macro_rules! read_as_they_are {
    ($($options:ty),*) => {$(
        impl $options {
            /// Reads the options.
            pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
                options(payload)
            }
        }
    )*};
}

read_as_they_are!(OnRun, RetryRun);

impl SetVariables {
    /// Reads and checks the options; gives the new values as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, Map<String, Value>), ErrorBody> {
        let options: Self = options(payload)?;
        let variables = variables(Some(&options.variables))?;
        Ok((options, variables))
    }
}

impl CompleteTask {
    /// Reads and checks the options; gives what the task gives as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, Map<String, Value>), ErrorBody> {
        let options: Self = options(payload)?;
        let variables = variables(options.variables.as_deref())?;
        Ok((options, variables))
    }
}

impl AssignTask {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = options(payload)?;
        if let Some(person) = &options.assignee {
            sized("assignee", person, ASSIGNEE_CHARS_MAX)?;
            printable("assignee", person)?;
        }
        Ok(options)
    }
}

impl HistoryOf {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = options(payload)?;
        if options.count.is_some_and(|count| !(1..=HISTORY_ENTRIES_AT_ONCE).contains(&count)) {
            return Err(ErrorBody::field("count", "must be from 1 to 200"));
        }
        Ok(options)
    }
}

impl PublishMessage {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<ValidMessage, ErrorBody> {
        let options: Self = options(payload)?;
        line("name", &options.name, SENT_NAME_BYTES_MAX)?;
        if let Some(key) = &options.correlation_key {
            line("correlationKey", key, EVENT_NAME_BYTES_MAX)?;
        }
        let variables = variables(options.variables.as_deref())?;
        let ttl = Duration::from_secs(options.time_to_live_seconds.unwrap_or(0).into());
        if ttl > MESSAGE_TTL_MAX {
            return Err(ErrorBody::field("timeToLiveSeconds", "must be from 0 to 604800"));
        }
        let id = options.message_id.map(|id| named("messageId", &id)).transpose()?;
        Ok(ValidMessage { name: options.name, key: options.correlation_key, variables, ttl, id })
    }
}

impl SendSignal {
    /// Reads and checks the options; gives the name and what the signal carries.
    pub fn parse(payload: &RawValue) -> Result<(String, Map<String, Value>), ErrorBody> {
        let options: Self = options(payload)?;
        line("name", &options.name, SENT_NAME_BYTES_MAX)?;
        Ok((options.name, variables(options.variables.as_deref())?))
    }
}

/// Answer to everything that is done to one run, but `processes.history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunOperated {
    /// The run.
    pub instance_id: String,
    /// Its state after that, in the words of `processes.get`. What the run makes of a retry, of variables or of a task shows
    /// later.
    pub state: String,
}

/// Answer to `processes.message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagePublished {
    /// Whether a run has got it.
    pub delivered: bool,
    /// Whether it waits for a run.
    pub buffered: bool,
    /// The run that has got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub instance_id: Option<String>,
}

/// Answer to `processes.signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalSent {
    /// How many runs have got it.
    pub runs: u32,
    /// How many runs have not got it, because too many events wait for them; absent when there are none. The same request
    /// with the same `message_id` reaches them later, and no other run twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub full: Option<u32>,
}

#[cfg(test)]
mod tests;
