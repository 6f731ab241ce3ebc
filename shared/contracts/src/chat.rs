//! Options and answers of what a person does in conversations with agents: list, read, write, decide about held calls, and say
//! when no messages are wanted.
//!
//! Checks what needs nothing but the request. Whose conversation it is is decided elsewhere. Notes that agents write to
//! themselves have no place in any answer.

use runfleet_domain::limits::{
    CHAT_MESSAGE_CHARS_MAX, CHAT_MESSAGES_AT_ONCE, CHAT_NOTE_CHARS_MAX, CONVERSATIONS_AT_ONCE,
};
use runfleet_domain::{ConversationId, RunId, RunKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::read;
use crate::request::{object, sized};
use crate::strict::{Object, given, word};

mod answers;

pub use self::answers::*;

/// Arguments that a person writes instead of those of the model, in bytes of JSON.
const ARGS_BYTES_MAX: usize = 32_768;

/// Longest name of a call, in characters.
const CALL_CHARS_MAX: usize = 90;

/// Longest name of a time zone, in characters.
const TIME_ZONE_CHARS_MAX: usize = 64;

/// Options of `chat.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatList {
    /// Only conversations whose last message is older than this, in Unix milliseconds.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub before: Option<u64>,
    /// Most conversations of the answer: 1 to 100; 50 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    pub limit: Option<u32>,
}

/// Options of `chat.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatRead {
    /// The conversation.
    pub conversation_id: String,
    /// Only messages with a lower number; the newest unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub before: Option<u64>,
    /// Most messages of the answer: 1 to 100; 50 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    pub limit: Option<u32>,
    /// Whether the person has seen these messages and all before them; false unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub mark_read: Option<bool>,
}

/// Options of `chat.reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatReply {
    /// The conversation.
    pub conversation_id: String,
    /// What the person says: 1 to 8,000 characters, not blank.
    #[schemars(length(min = 1, max = 8_000), regex(pattern = "\\S"))]
    pub text: String,
}

/// What a person decides about a call that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChatDecision {
    /// It is carried out.
    Approve,
    /// It is carried out with other arguments.
    Edit,
    /// It is not carried out.
    Reject,
}

/// Options of `chat.decide`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatDecide {
    /// The conversation.
    pub conversation_id: String,
    /// The run that wants to make the call.
    pub run_id: String,
    /// The call: 1 to 90 characters.
    #[schemars(length(min = 1, max = 90))]
    pub call_id: String,
    /// The decision.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "ChatDecision")]
    pub decision: ChatDecision,
    /// The other arguments, with `edit` and with nothing else: a JSON object of at most 32,768 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub args: Option<Box<RawValue>>,
    /// Why, with `reject` and with nothing else: 1 to 2,000 characters that the model is told.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 2_000))]
    pub message: Option<String>,
}

/// The hours in which a person wants no messages. Over midnight when they end before they begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatQuietHours {
    /// `HH:MM`
    #[schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub from: String,
    /// `HH:MM`
    #[schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub to: String,
    /// The name of a time zone, such as `Europe/Berlin`: 1 to 64 letters, digits, `_`, `+`, `-` and `/`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_+/-]+$"))]
    pub time_zone: String,
}

/// Options of `chat.settings`. Without any, the answer tells what is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatSettings {
    /// Whether no agent may write to the person.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub opt_out: Option<bool>,
    /// The hours in which no agent writes; null for none.
    #[serde(default, deserialize_with = "given_or_null", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ChatQuietHours>")]
    pub quiet_hours: Option<Option<ChatQuietHours>>,
}

/// An option that may be null when it is given.
#[expect(clippy::option_option, reason = "absent, null and given mean three things")]
fn given_or_null<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<ChatQuietHours>>, D::Error> {
    let hours = Option::<Object<ChatQuietHours>>::deserialize(deserializer)?;
    Ok(Some(hours.map(|Object(hours)| hours)))
}

/// A decision after every check that needs nothing but the request.
#[derive(Debug, Clone, PartialEq)]
pub enum ValidDecision {
    /// It is carried out.
    Approve,
    /// It is carried out with these arguments.
    Edit(Map<String, Value>),
    /// It is not carried out. The model is told why.
    Reject(Option<String>),
}

/// A text that is no id of a conversation cannot name one: that is "not found", decided later.
pub fn conversation(text: &str) -> Option<ConversationId> {
    text.parse().ok()
}

fn limit(limit: Option<u32>, most: u32) -> Result<u32, ErrorBody> {
    match limit {
        None => Ok(50),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => Err(ErrorBody::field("limit", "must be from 1 to 100")),
    }
}

impl ChatList {
    /// Reads and checks the options; gives the most conversations of the answer as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, u32), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let limit = limit(options.limit, CONVERSATIONS_AT_ONCE)?;
        Ok((options, limit))
    }
}

impl ChatRead {
    /// Reads and checks the options; gives the most messages of the answer as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, u32), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let limit = limit(options.limit, CHAT_MESSAGES_AT_ONCE)?;
        Ok((options, limit))
    }
}

impl ChatReply {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        sized("text", &options.text, CHAT_MESSAGE_CHARS_MAX)?;
        if options.text.trim().is_empty() {
            return Err(ErrorBody::field("text", "must not be blank"));
        }
        Ok(options)
    }
}

impl ChatDecide {
    /// Reads and checks the options; gives the decision as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, ValidDecision), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        sized("callId", &options.call_id, CALL_CHARS_MAX)?;
        if let Some(message) = &options.message {
            sized("message", message, CHAT_NOTE_CHARS_MAX)?;
        }
        let decision = match (options.decision, &options.args, &options.message) {
            (ChatDecision::Approve, None, None) => ValidDecision::Approve,
            (ChatDecision::Reject, None, message) => ValidDecision::Reject(message.clone()),
            (ChatDecision::Edit, Some(args), None) => {
                object("args", args, ARGS_BYTES_MAX)?;
                let args = serde_json::from_str(args.get());
                let args = args.map_err(|_| ErrorBody::field("args", "must be an object"))?;
                ValidDecision::Edit(args)
            }
            (ChatDecision::Edit, None, _) => {
                return Err(ErrorBody::field("args", "must be given with `edit`"));
            }
            (ChatDecision::Edit, Some(_), Some(_)) | (ChatDecision::Approve, None, Some(_)) => {
                return Err(ErrorBody::field("message", "is for `reject` only"));
            }
            (ChatDecision::Approve | ChatDecision::Reject, Some(_), _) => {
                return Err(ErrorBody::field("args", "is for `edit` only"));
            }
        };
        Ok((options, decision))
    }

    /// The run, if the text is the id of one.
    pub fn run(&self) -> Option<RunId> {
        self.run_id.parse::<RunId>().ok().filter(|run| run.kind() == RunKind::Agent)
    }
}

impl ChatSettings {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        if let Some(Some(hours)) = &options.quiet_hours {
            hours.check()?;
        }
        Ok(options)
    }

    /// Whether nothing is changed.
    pub fn only_reads(&self) -> bool {
        self.opt_out.is_none() && self.quiet_hours.is_none()
    }
}

impl ChatQuietHours {
    fn check(&self) -> Result<(), ErrorBody> {
        for (field, time) in [("quietHours.from", &self.from), ("quietHours.to", &self.to)] {
            if !is_time(time) {
                return Err(ErrorBody::field(field, "must be a time of the day as `HH:MM`"));
            }
        }
        sized("quietHours.timeZone", &self.time_zone, TIME_ZONE_CHARS_MAX)?;
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        if self.time_zone.bytes().all(letters) {
            return Ok(());
        }
        Err(ErrorBody::field("quietHours.timeZone", "must be the name of a time zone"))
    }
}

/// Whether a text is `HH:MM`.
fn is_time(text: &str) -> bool {
    let two = |part: &str, below: u8| {
        part.len() == 2
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|number| number < below)
    };
    text.split_once(':').is_some_and(|(hour, minute)| two(hour, 24) && two(minute, 60))
}

#[cfg(test)]
mod tests;
