//! Tasks of a Process that somebody else carries out: what hosts of a project are asked and answer, and the message by which
//! process-runner makes its own HTTP calls.
//!
//! A request waits in the queue of its project until a host takes it. The host may say that it has begun and how far it has
//! got, and answers once; what it answers later again changes nothing. Nothing here decides what an answer does to a run.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use runfleet_domain::limits::{BODY_BYTES_MAX, JSON_DEPTH_MAX};
use runfleet_domain::{Name, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::{check_shape_to, read};
use crate::message::Message;
use crate::models::{ModelMessage, Role};
use crate::run_event::RunEvent;

/// Longest part of a progress report, in bytes.
pub const PROGRESS_BYTES_MAX: usize = 16_384;

/// Longest text of what an agent was asked, as its tools are told, in bytes.
const ASKED_BYTES_MAX: usize = 32_768;

/// The answer, its outcome, the object of variables in it, and a value as deep as any may be.
const ANSWER_DEPTH_MAX: usize = JSON_DEPTH_MAX + 3;

/// One attempt of one task of a run, written `<run>:<instance>:<attempt>`. It is the message id of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AskId {
    /// The run.
    pub run_id: RunId,
    /// The instance of the task in the run.
    pub instance: u64,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl AskId {
    /// The same for every attempt of the task: what another system tells repetitions by.
    pub fn task(self) -> String {
        format!("{}:{}", self.run_id, self.instance)
    }
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.run_id, self.instance, self.attempt)
    }
}

/// A text is not the id of a request. Does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not `run:instance:attempt`")]
pub struct AskIdError;

impl FromStr for AskId {
    type Err = AskIdError;

    fn from_str(text: &str) -> Result<Self, AskIdError> {
        let mut parts = text.split(':');
        let (Some(run), Some(instance), Some(attempt), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(AskIdError);
        };
        let id = Self {
            run_id: run.parse().map_err(|_| AskIdError)?,
            instance: instance.parse().map_err(|_| AskIdError)?,
            attempt: attempt.parse().map_err(|_| AskIdError)?,
        };
        // One way to write it, because texts are compared.
        if id.attempt > 0 && id.to_string() == text { Ok(id) } else { Err(AskIdError) }
    }
}

impl Serialize for AskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a host is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HostWork {
    /// A task of a Process.
    Task,
    /// A tool of an agent. `name` is the function, `variables` are its arguments, `element_id` is the call.
    Tool,
}

/// A request to the hosts of a project. Published to the queue of the project; `reply_to` names the routing key of the answer
/// on the exchange `x.answers`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRequest {
    /// `<run>:<instance>:<attempt>`, also the message id. The same on every repetition of this message.
    #[schemars(with = "String")]
    pub request_id: AskId,
    /// What kind of work it is.
    pub kind: HostWork,
    /// Which work of that kind: the type of the task.
    pub name: String,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The element of the Process.
    pub element_id: String,
    /// The instance of the task in the run.
    pub instance: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Fixed settings of the task.
    pub headers: BTreeMap<String, String>,
    /// Variables of the task.
    pub variables: Map<String, Value>,
    /// Unix milliseconds after which nobody waits for the answer. A host that takes the request later drops it.
    pub deadline: u64,
    /// What the answer has to repeat, so that nobody else can give it. Absent where the fleet has no key for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_key: Option<String>,
    /// For a tool: what its agent is working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ToolConversation>,
}

/// What an agent is working on while it calls a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolConversation {
    /// The conversation with a person, or the run when there is none.
    pub session_id: String,
    /// The model that the run asks.
    pub model: String,
    /// Whether the agent can search the web.
    pub web_search: bool,
    /// What it was asked: one message of a user, cut at 32 KiB. Empty for a tool of another project than that of the run.
    pub messages: Vec<ModelMessage>,
}

impl ToolConversation {
    /// About a run that was asked this, where that may be told.
    pub fn new(session_id: String, model: String, web_search: bool, asked: Option<&str>) -> Self {
        let said = |asked: &str| ModelMessage {
            role: Role::User,
            content: asked[..asked.floor_char_boundary(ASKED_BYTES_MAX)].to_owned(),
        };
        let messages = asked.map(said).into_iter().collect();
        Self { session_id, model, web_search, messages }
    }
}

impl fmt::Debug for HostRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRequest")
            .field("request_id", &self.request_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Message for HostRequest {
    const KIND: &'static str = "host.request.v1";
}

/// A host has begun. For a task it is taken note of and changes nothing: its attempt has the time that the Process gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostAccepted {
    /// The request.
    #[schemars(with = "String")]
    pub request_id: AskId,
    /// Unix milliseconds by which the host means to be done.
    pub until: u64,
}

impl Message for HostAccepted {
    const KIND: &'static str = "host.accepted.v1";
}

/// How far a host has got. For a tool live readers are told, if the report says what an answer would have to say: the answer key of
/// the request, or the workspace and project where the fleet has no keys. For a task it is taken note of and not kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostProgress {
    /// The request.
    #[schemars(with = "String")]
    pub request_id: AskId,
    /// The workspace, as the request said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub workspace: Option<Name>,
    /// The project, as the request said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub project: Option<Name>,
    /// What the request said, if it said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_key: Option<String>,
    /// Number of the report among those of the request, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u32>,
    /// A text of at most 16 KiB, of which readers get the first 8.
    #[schemars(length(max = 16_384))]
    pub chunk: String,
}

impl fmt::Debug for HostProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostProgress").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

impl HostProgress {
    /// A report about a request.
    pub fn on(request: &HostRequest, seq: u32, chunk: String) -> Self {
        Self {
            request_id: request.request_id,
            workspace: Some(request.workspace.clone()),
            project: Some(request.project.clone()),
            answer_key: request.answer_key.clone(),
            seq: Some(seq),
            chunk,
        }
    }
}

impl Message for HostProgress {
    const KIND: &'static str = "host.progress.v1";
}

/// How a host has done what it was asked for. Message id: `answer:<requestId>`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostAnswer {
    /// The request.
    #[schemars(with = "String")]
    pub request_id: AskId,
    /// The workspace, as the request said.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project, as the request said.
    #[schemars(with = "String")]
    pub project: Name,
    /// The run, as the request said.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The instance, as the request said.
    pub instance: u64,
    /// The attempt, as the request said.
    pub attempt: u32,
    /// What the request said, if it said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_key: Option<String>,
    /// How it went.
    pub outcome: HostOutcome,
}

impl fmt::Debug for HostAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostAnswer").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

impl Message for HostAnswer {
    const KIND: &'static str = "host.answer.v1";
}

/// How a request went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HostOutcome {
    /// It was done; these are the results.
    Ok(Map<String, Value>),
    /// An error that the Process knows and may catch.
    Error {
        /// Its code: 1 to 128 characters.
        code: String,
        /// What it carries.
        #[serde(default)]
        variables: Map<String, Value>,
    },
    /// It could not be done.
    Failed {
        /// A fixed word: capital letters, digits and `_`, at most 64.
        code: String,
        /// Whether another attempt can help.
        retry: bool,
        /// Milliseconds that the next attempt should wait, at most a day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl HostAnswer {
    /// The answer to a request.
    pub fn to(request: &HostRequest, outcome: HostOutcome) -> Self {
        Self {
            request_id: request.request_id,
            workspace: request.workspace.clone(),
            project: request.project.clone(),
            run_id: request.run_id,
            instance: request.instance,
            attempt: request.attempt,
            answer_key: request.answer_key.clone(),
            outcome,
        }
    }

    /// Reads an answer and checks that it speaks of one request only. An error names a field and never repeats a value.
    pub fn parse(body: &[u8]) -> Result<Self, ErrorBody> {
        if body.len() > BODY_BYTES_MAX {
            return Err(ErrorBody::too_large("answer", "bytes", BODY_BYTES_MAX, body.len()));
        }
        let raw: &RawValue = serde_json::from_slice(body)
            .map_err(|_| ErrorBody::field("answer", "is not valid JSON"))?;
        check_shape_to("answer", raw, ANSWER_DEPTH_MAX)?;
        let answer: Self = read(body)?;
        let named =
            AskId { run_id: answer.run_id, instance: answer.instance, attempt: answer.attempt };
        if named == answer.request_id {
            Ok(answer)
        } else {
            Err(ErrorBody::field("requestId", "is that of another request"))
        }
    }

    /// What the answer is to its run.
    pub fn into_event(self) -> RunEvent {
        let (task, attempt) = (self.instance, self.attempt);
        match self.outcome {
            HostOutcome::Ok(variables) => {
                RunEvent::TaskDone { task, attempt, answer: Value::Object(variables) }
            }
            HostOutcome::Error { code, variables } => {
                RunEvent::TaskError { task, attempt, code, variables }
            }
            HostOutcome::Failed { code, retry, retry_after_ms } => {
                RunEvent::TaskFailed { task, attempt, code, retry, retry_after_ms }
            }
        }
    }
}

/// Make the HTTP call that a task of a run asks for. What is to be called stands in the run, not in the message. Message id:
/// `<run>:<instance>:<attempt>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessCall {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The instance of the task in the run.
    pub instance: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Unix milliseconds after which nobody waits for the answer.
    pub deadline: u64,
}

impl ProcessCall {
    /// The attempt that it is about.
    pub fn ask(&self) -> AskId {
        AskId { run_id: self.run_id, instance: self.instance, attempt: self.attempt }
    }
}

impl Message for ProcessCall {
    const KIND: &'static str = "process.call.v1";
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "PI1501JDX3Z8GF0000000000000000:7:2";

    fn answer(outcome: &str) -> String {
        format!(
            r#"{{"requestId":"{ID}","workspace":"acme","project":"shop","runId":"PI1501JDX3Z8GF0000000000000000","instance":7,"attempt":2,"outcome":{outcome}}}"#
        )
    }

    #[test]
    fn an_ask_has_one_spelling() {
        let id: AskId = ID.parse().unwrap();
        assert_eq!((id.instance, id.attempt, id.to_string().as_str()), (7, 2, ID));
        assert_eq!(id.task(), "PI1501JDX3Z8GF0000000000000000:7");
        let run = "PI1501JDX3Z8GF0000000000000000";
        for text in ["", "7:2", ":7:2", "x:7:2"] {
            assert_eq!(text.parse::<AskId>(), Err(AskIdError), "{text}");
        }
        for rest in
            ["", ":7", ":7:0", ":7:2:1", ":07:2", ":+7:2", ":7:2 ", ":-7:2", ":7:4294967296"]
        {
            assert_eq!(format!("{run}{rest}").parse::<AskId>(), Err(AskIdError), "{rest}");
        }
    }

    #[test]
    fn every_outcome_becomes_an_event_of_its_attempt() {
        for (outcome, event) in [
            (
                r#"{"ok":{"paid":true}}"#,
                r#"{"kind":"taskDone","task":7,"attempt":2,"answer":{"paid":true}}"#,
            ),
            (
                r#"{"error":{"code":"no-stock"}}"#,
                r#"{"kind":"taskError","task":7,"attempt":2,"code":"no-stock","variables":{}}"#,
            ),
            (
                r#"{"failed":{"code":"BUSY","retry":true,"retryAfterMs":5}}"#,
                r#"{"kind":"taskFailed","task":7,"attempt":2,"code":"BUSY","retry":true,"retryAfterMs":5}"#,
            ),
        ] {
            let answer = HostAnswer::parse(answer(outcome).as_bytes()).unwrap();
            assert_eq!(answer.into_event().to_body().unwrap(), event);
        }
    }

    #[test]
    fn an_answer_that_speaks_of_two_requests_or_of_nothing_is_refused() {
        let good = answer(r#"{"ok":{}}"#);
        HostAnswer::parse(good.as_bytes()).unwrap();
        for (from, to, field) in [
            (r#""attempt":2"#, r#""attempt":3"#, "requestId"),
            (r#""instance":7"#, r#""instance":8"#, "requestId"),
            (r#":"acme""#, r#":"a c""#, "workspace"),
            (ID, "s3cret", "requestId"),
            (r#"{"ok":{}}"#, r#"{"s3cret":{}}"#, "outcome"),
            (r#"{"ok":{}}"#, r#"{"failed":{"code":"A"}}"#, "outcome.failed.retry"),
            (r#"{"ok":{}}"#, r#"{"ok":{"a":1,"a":1}}"#, "answer"),
        ] {
            let bad = good.replace(from, to);
            let error = HostAnswer::parse(bad.as_bytes()).unwrap_err();
            assert!(error.details["field"].as_str().unwrap().ends_with(field), "{bad}: {error:?}");
            assert!(!format!("{:?}", error.details["problem"]).contains("s3cret"), "{error:?}");
        }
        let large = answer(&format!(r#"{{"ok":{{"a":"{}"}}}}"#, "x".repeat(BODY_BYTES_MAX)));
        assert!(HostAnswer::parse(large.as_bytes()).is_err());
    }

    #[test]
    fn what_a_request_or_an_answer_carries_is_not_in_its_debug_text() {
        let answer = HostAnswer::parse(answer(r#"{"ok":{"a":"s3cret"}}"#).as_bytes()).unwrap();
        assert!(!format!("{answer:?}").contains("s3cret"));
    }
}
