//! What a person is told about conversations. Notes of agents have no place in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ChatQuietHours;

/// Who has written a message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChatAuthor {
    /// The agent.
    Agent,
    /// The person.
    Person,
    /// The fleet: the text is a code that says why an agent has not answered.
    System,
}

/// A message as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatEntry {
    /// Its number in the conversation, from 1. Numbers of messages that were dropped are not given again.
    pub seq: u64,
    /// Unix milliseconds.
    pub at: u64,
    /// Who has written it.
    pub from: ChatAuthor,
    /// What it says.
    pub text: String,
    /// The run that has written it or answers it.
    pub run_id: Option<String>,
}

/// A conversation as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatConversation {
    /// The conversation.
    pub conversation_id: String,
    /// The chat session that it is held in.
    pub chat_session_id: String,
    /// The agent.
    pub agent_id: String,
    /// Its title, or null.
    pub title: Option<String>,
    /// Unix milliseconds.
    pub created_at: u64,
    /// Unix milliseconds of the last message. No two conversations of a person have the same.
    pub updated_at: u64,
    /// Messages that the person has not seen.
    pub unread: u32,
    /// The run that answers the person now, or null.
    pub active_run_id: Option<String>,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatListed {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: ChatConversation,
    /// Its last message; the beginning of it when it is long.
    pub last: ChatEntry,
}

/// Answer to `chat.list`: the conversation with the newest message first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatListPage {
    /// The conversations.
    pub conversations: Vec<ChatListed>,
    /// What to list `before`, to go on; null when there are no more.
    pub next: Option<u64>,
}

/// A tool call that waits for the decision of a person.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    /// The run that wants to make it.
    pub run_id: String,
    /// The call. Two runs may have one of the same name.
    pub call_id: String,
    /// The agent that wants it, when it is one that the agent of the conversation has asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[schemars(with = "Map<String, Value>")]
    pub args: Box<RawValue>,
    /// Unix milliseconds after which it is not carried out any more.
    pub expires_at: u64,
}

/// Answer to `chat.read`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatPage {
    /// The conversation.
    pub conversation: ChatConversation,
    /// Its messages, oldest first.
    pub messages: Vec<ChatEntry>,
    /// Whether there are older ones.
    pub older: bool,
    /// Calls that wait for a decision of the person.
    pub held: Vec<HeldCall>,
}

/// Answer to `chat.reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatSaid {
    /// The number of the message in the conversation.
    pub seq: u64,
    /// The run that answers it.
    pub run_id: String,
    /// Whether it waits for the turns before it.
    pub queued: bool,
}

/// Answer to `chat.decide`: the decision has reached the run. The first one about a call counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatDecided {
    /// The run.
    pub run_id: String,
    /// The call.
    pub call_id: String,
}

/// Answer to `chat.settings`: what is so now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatSettingsNow {
    /// Whether no agent may write to the person.
    pub opt_out: bool,
    /// The hours in which no agent writes, or null.
    pub quiet_hours: Option<ChatQuietHours>,
}
