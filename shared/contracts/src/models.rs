//! Model calls of code of a project: messages in, one answer out, as a run of an agent that an administrator has declared for it.

use runfleet_domain::limits::{INSTRUCTION_CHARS_MAX, VARIABLE_CHARS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::agents::AgentStart;
use crate::error::ErrorBody;
use crate::json::read;
use crate::request::sized;
use crate::strict::{given, objects, word};

/// Messages of one call.
const MESSAGES_MAX: usize = 50;

/// The name of a model, in characters.
const MODEL_CHARS_MAX: usize = 128;

/// Who has said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Whoever asks, as a rule for the whole conversation.
    System,
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelMessage {
    /// Who has said it.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "Role")]
    pub role: Role,
    /// What.
    pub content: String,
}

/// Options of `models.invoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvokeModel {
    /// The model, as the price table names it; that of the first agent which the project has for model calls unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub model: Option<String>,
    /// The conversation: 1 to 50 messages, the last one of a user and of at most 10,000 characters; those of the system together, and
    /// all others together, at most 32,768.
    #[serde(deserialize_with = "objects")]
    #[schemars(length(min = 1, max = 50))]
    pub messages: Vec<ModelMessage>,
}

impl InvokeModel {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        if let Some(model) = &options.model {
            sized("model", model, MODEL_CHARS_MAX)?;
        }
        let count = options.messages.len();
        if count > MESSAGES_MAX {
            return Err(ErrorBody::too_large("messages", "entries", MESSAGES_MAX, count));
        }
        match options.messages.last() {
            Some(ModelMessage { role: Role::User, content }) => {
                let field = format!("messages[{}].content", count.saturating_sub(1));
                sized(&field, content, INSTRUCTION_CHARS_MAX)?;
            }
            _ => return Err(ErrorBody::field("messages", "must end with a message of a user")),
        }
        for text in [options.of_system(), options.before()] {
            let chars = text.chars().count();
            if chars > VARIABLE_CHARS_MAX {
                let limit = VARIABLE_CHARS_MAX;
                return Err(ErrorBody::too_large("messages", "characters", limit, chars));
            }
        }
        Ok(options)
    }

    fn of_system(&self) -> String {
        let of_system = self.messages.iter().filter(|message| message.role == Role::System);
        of_system.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    /// What was said before the last message, line by line.
    fn before(&self) -> String {
        let before = self.messages.split_last().map_or(&[][..], |(_, before)| before);
        let lines = before.iter().filter_map(|message| match message.role {
            Role::System => None,
            Role::User => Some(format!("User: {}", message.content)),
            Role::Assistant => Some(format!("Assistant: {}", message.content)),
        });
        lines.collect::<Vec<_>>().join("\n\n")
    }

    /// The start of a run of `agent` that answers: the last message as the instruction, and the variables `system` and
    /// `conversation` for what comes before it.
    pub fn start(&self, agent: &str) -> Result<AgentStart, serde_json::Error> {
        let variables = json!({"system": self.of_system(), "conversation": self.before()});
        let last = self.messages.last().map(|message| message.content.clone());
        Ok(AgentStart {
            agent_id: agent.to_owned(),
            instruction: last.unwrap_or_default(),
            variables: Some(to_raw_value(&variables)?),
            records: None,
            result_schema: None,
            run_as: None,
            approval_policy: None,
            timeout_seconds: None,
            idempotency_key: None,
            on_result: None,
            deliver_to: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(value: &Value) -> Result<InvokeModel, ErrorBody> {
        InvokeModel::parse(&to_raw_value(value).unwrap())
    }

    fn message(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content})
    }

    #[test]
    fn a_conversation_becomes_an_instruction_and_what_comes_before_it() {
        let messages = [
            message("system", "Be brief."),
            message("user", "One?"),
            message("assistant", "Two."),
            message("user", "Three?"),
        ];
        let start = parse(&json!({"messages": messages})).unwrap().start("writer").unwrap();
        assert_eq!((start.agent_id.as_str(), start.instruction.as_str()), ("writer", "Three?"));
        let variables: Value = serde_json::from_str(start.variables.unwrap().get()).unwrap();
        assert_eq!(variables["system"], "Be brief.");
        assert_eq!(variables["conversation"], "User: One?\n\nAssistant: Two.");
    }

    #[test]
    fn a_conversation_ends_with_a_user_and_is_bounded() {
        let user = |size: usize| message("user", &"x".repeat(size));
        for (messages, field) in [
            (json!([]), "messages"),
            (json!([message("assistant", "a")]), "messages"),
            (json!([message("robot", "a")]), "messages[0].role"),
            (json!([user(0)]), "messages[0].content"),
            (json!([user(INSTRUCTION_CHARS_MAX + 1)]), "messages[0].content"),
            (json!([user(VARIABLE_CHARS_MAX), user(1)]), "messages"),
            (json!(vec![user(1); MESSAGES_MAX + 1]), "messages"),
        ] {
            assert_eq!(parse(&json!({"messages": messages})).unwrap_err().details["field"], field);
        }
        assert_eq!(
            parse(&json!({"model": "", "messages": [user(1)]})).unwrap_err().details["field"],
            "model"
        );
    }
}
