//! Options and answers of `agents.start` and `agents.get`.

use std::collections::HashSet;
use std::ops::Not;

use runfleet_domain::admission::{AgentWish, RunAs};
use runfleet_domain::limits::{
    AGENT_TIMEOUT_SECONDS, AGENT_TIMEOUT_SECONDS_DEFAULT, CONVERSATION_TITLE_CHARS_MAX,
    INSTRUCTION_CHARS_MAX, OBJECT_SLUG_CHARS_MAX, RECORD_ID_CHARS_MAX, RECORDS_MAX,
    VARIABLE_CHARS_MAX, VARIABLES_BYTES_MAX, VARIABLES_MAX,
};
use runfleet_domain::{IdempotencyKey, Name, RunId, RunKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::read;
use crate::request::{OutcomeJob, ValidOutcomeJob, named, object, sized};
use crate::result_schema;
use crate::strict::{given, given_object, given_objects, given_word};

/// Options of `agents.start` as they travel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentStart {
    /// The agent: 1 to 64 letters, digits, `_` or `-`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub agent_id: String,
    /// What the agent is to do: 1 to 10,000 characters, not blank.
    #[schemars(length(min = 1, max = 10_000), regex(pattern = "\\S"))]
    pub instruction: String,
    /// Facts for the agent: at most 50 strings, numbers and booleans, 65,536 bytes of JSON in all, a string at most 32,768
    /// characters.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub variables: Option<Box<RawValue>>,
    /// Records that the agent gets to see: at most 20, each once.
    #[serde(default, deserialize_with = "given_objects", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<AgentRecord>", length(max = 20))]
    pub records: Option<Vec<AgentRecord>>,
    /// JSON Schema that the result must fit: an object, at most 16,384 bytes, 8 levels deep.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub result_schema: Option<Box<RawValue>>,
    /// As whom the agent acts: `caller` unless the execution has no user.
    #[serde(default, deserialize_with = "given_word", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunAs")]
    pub run_as: Option<RunAs>,
    /// What happens to tool calls that want a person's approval: `deny` unless it is given.
    #[serde(default, deserialize_with = "given_word", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ApprovalPolicy")]
    pub approval_policy: Option<ApprovalPolicy>,
    /// Longest time of the run, in seconds: 10 to 1,800; 300 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 10, max = 1_800))]
    pub timeout_seconds: Option<u32>,
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
    pub on_result: Option<OutcomeJob>,
    /// The person who may get a message.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DeliverTo")]
    pub deliver_to: Option<DeliverTo>,
}

/// A record that an agent gets to see.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentRecord {
    /// The kind of record: a letter or `_`, then letters, digits and `_`, at most 355 characters.
    #[schemars(length(min = 1, max = 355), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub object_slug: String,
    /// Which one: 1 to 128 characters.
    #[schemars(length(min = 1, max = 128))]
    pub record_id: String,
    /// Whether its activities are shown too.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub with_activities: bool,
}

/// What happens to tool calls that want a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalPolicy {
    /// They are refused.
    #[default]
    Deny,
    /// They are approved, if the policy of the project allows that.
    AutoApprove,
}

/// The person who may get a message of an agent, and where it lands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeliverTo {
    /// The person.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub personnel_id: String,
    /// `new` unless it is given; `latest` opens a new one when there is none.
    #[serde(default, deserialize_with = "given_word", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Conversation")]
    pub conversation: Option<Conversation>,
    /// Names a conversation that is opened: one line of 1 to 200 characters.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 200))]
    pub title: Option<String>,
}

/// Which conversation a message lands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Conversation {
    /// One of its own.
    #[default]
    New,
    /// The newest one between the agent and the person.
    Latest,
}

/// What the ledger keeps as the input of an agent run: the options with every default filled in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInput {
    /// What the agent is to do.
    pub instruction: String,
    /// Facts for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub variables: Option<Box<RawValue>>,
    /// Records that the agent gets to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<AgentRecord>,
    /// JSON Schema that the result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub result_schema: Option<Box<RawValue>>,
    /// As whom the agent acts.
    pub run_as: RunAs,
    /// What happens to tool calls that want a person's approval.
    pub approval_policy: ApprovalPolicy,
    /// Longest time of the run, in seconds.
    pub timeout_seconds: u32,
    /// The person who may get a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<DeliverTo>,
}

/// Options of `agents.start` after every check that needs nothing but the request.
#[derive(Debug, Clone)]
pub struct ValidAgentStart {
    /// The agent.
    pub agent: Name,
    /// The key.
    pub key: Option<IdempotencyKey>,
    /// The job and its echo.
    pub on_result: Option<ValidOutcomeJob>,
    /// The person who may get a message.
    pub recipient: Option<Name>,
    /// As whom the agent acts, when it was said.
    pub run_as: Option<RunAs>,
    /// What the run keeps. `run_as` in it is a default until admission has decided.
    pub input: AgentInput,
}

impl ValidAgentStart {
    /// What admission needs to know.
    pub fn wish(&self) -> AgentWish<'_> {
        AgentWish {
            run_as: self.run_as,
            auto_approve: self.input.approval_policy == ApprovalPolicy::AutoApprove,
            recipient: self.recipient.as_ref(),
        }
    }
}

impl AgentStart {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<ValidAgentStart, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let agent = named("agentId", &options.agent_id)?;
        sized("instruction", &options.instruction, INSTRUCTION_CHARS_MAX)?;
        if options.instruction.trim().is_empty() {
            return Err(ErrorBody::field("instruction", "must not be blank"));
        }
        if let Some(variables) = &options.variables {
            check_variables(variables)?;
        }
        let records = options.records.unwrap_or_default();
        check_records(&records)?;
        if let Some(schema) = &options.result_schema {
            result_schema::check(schema)?;
        }
        let timeout_seconds = options.timeout_seconds.unwrap_or(AGENT_TIMEOUT_SECONDS_DEFAULT);
        if !AGENT_TIMEOUT_SECONDS.contains(&timeout_seconds) {
            return Err(ErrorBody::field("timeoutSeconds", "must be from 10 to 1800"));
        }
        let key = options.idempotency_key.map(|key| named("idempotencyKey", &key)).transpose()?;
        let on_result = options.on_result.map(|job| job.check(RunKind::Agent)).transpose()?;
        let recipient = options.deliver_to.as_ref().map(DeliverTo::check).transpose()?;
        let input = AgentInput {
            instruction: options.instruction,
            variables: options.variables,
            records,
            result_schema: options.result_schema,
            run_as: options.run_as.unwrap_or(RunAs::Agent),
            approval_policy: options.approval_policy.unwrap_or_default(),
            timeout_seconds,
            deliver_to: options.deliver_to,
        };
        Ok(ValidAgentStart { agent, key, on_result, recipient, run_as: options.run_as, input })
    }
}

/// A letter (or `_` when `underscore`), then letters, digits and `_`.
pub(crate) fn is_identifier(text: &str, underscore: bool, chars_max: usize) -> bool {
    let starts = text
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || (underscore && first == b'_'));
    starts
        && text.len() <= chars_max
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn check_variables(json: &RawValue) -> Result<(), ErrorBody> {
    object("variables", json, VARIABLES_BYTES_MAX)?;
    let variables: Map<String, Value> = serde_json::from_str(json.get())
        .map_err(|_| ErrorBody::field("variables", "must be an object"))?;
    if variables.len() > VARIABLES_MAX {
        return Err(ErrorBody::too_large("variables", "entries", VARIABLES_MAX, variables.len()));
    }
    for (name, value) in &variables {
        if !is_identifier(name, false, 64) {
            return Err(ErrorBody::field(
                "variables",
                "has a name that is not a letter followed by at most 63 letters, digits and `_`",
            ));
        }
        let field = format!("variables.{name}");
        match value {
            Value::String(text) => {
                let size = text.chars().count();
                if size > VARIABLE_CHARS_MAX {
                    let unit = "characters";
                    return Err(ErrorBody::too_large(&field, unit, VARIABLE_CHARS_MAX, size));
                }
            }
            Value::Number(_) | Value::Bool(_) => {}
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(ErrorBody::field(&field, "must be a string, a number or a boolean"));
            }
        }
    }
    Ok(())
}

fn check_records(records: &[AgentRecord]) -> Result<(), ErrorBody> {
    if records.len() > RECORDS_MAX {
        return Err(ErrorBody::too_large("records", "items", RECORDS_MAX, records.len()));
    }
    let mut seen = HashSet::new();
    for (place, record) in records.iter().enumerate() {
        if !is_identifier(&record.object_slug, true, OBJECT_SLUG_CHARS_MAX) {
            return Err(ErrorBody::field(
                &format!("records[{place}].objectSlug"),
                "must be a letter or `_`, followed by at most 354 letters, digits and `_`",
            ));
        }
        sized(&format!("records[{place}].recordId"), &record.record_id, RECORD_ID_CHARS_MAX)?;
        if !seen.insert((&record.object_slug, &record.record_id)) {
            return Err(ErrorBody::field(&format!("records[{place}]"), "is listed above"));
        }
    }
    Ok(())
}

impl DeliverTo {
    fn check(&self) -> Result<Name, ErrorBody> {
        let person = named("deliverTo.personnelId", &self.personnel_id)?;
        if let Some(title) = &self.title {
            sized("deliverTo.title", title, CONVERSATION_TITLE_CHARS_MAX)?;
            let breaks = |letter: char| letter.is_control() || "\u{2028}\u{2029}".contains(letter);
            if title.chars().any(breaks) || title.trim().is_empty() {
                return Err(ErrorBody::field("deliverTo.title", "must be one line, not blank"));
            }
        }
        Ok(person)
    }
}

/// Answer to `agents.start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStarted {
    /// The run.
    pub run_id: String,
    /// Whether an earlier start with the same key made this run.
    pub duplicate: bool,
}

/// Options of `agents.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentGet {
    /// The run.
    pub run_id: String,
}

impl AgentGet {
    /// Reads the options. A text that is no id of an agent run cannot name one: that is "not found", decided later.
    pub fn parse(payload: &RawValue) -> Result<(String, Option<RunId>), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let id: Option<RunId> = options.run_id.parse().ok();
        let id = id.filter(|id| id.kind() == RunKind::Agent);
        Ok((options.run_id, id))
    }
}

/// Answer to `agents.get`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunState {
    /// The run.
    pub run_id: String,
    /// `QUEUED`, `RUNNING`, `COMPLETED`, `FAILED`, `TIMEOUT` or `CANCELLED`; treat any other word as final.
    pub status: String,
    /// The last answer of the agent, or null.
    pub text: Option<String>,
    /// The result, or null. Fits `resultSchema`.
    #[schemars(with = "Value")]
    pub result: Option<Box<RawValue>>,
    /// Why it failed, or null.
    pub error: Option<AgentRunError>,
    /// What became of the message to a person; null for runs without `deliverTo`, and provisional until the run has ended.
    pub delivery: Option<AgentDelivery>,
}

/// Why an agent run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunError {
    /// A word of the contract.
    pub code: String,
    /// The fixed English sentence of that word.
    pub message: String,
}

/// What became of the message to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDelivery {
    /// `SENT`, `NOT_SENT`, `BLOCKED` or `FAILED`.
    pub status: String,
    /// Why it was blocked or failed, or null.
    pub error_code: Option<String>,
    /// Null unless a message was sent.
    pub chat_session_id: Option<String>,
    /// Null unless a message was sent.
    pub conversation_id: Option<String>,
    /// Whether the message opened a conversation.
    pub new_conversation: bool,
}

#[cfg(test)]
mod tests;
