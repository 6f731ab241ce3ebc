//! Conversations between an agent and a person, as both of them see them.
//!
//! Messages come into them by the scripts that send them, that take what a person writes, and that end a turn. Notes are for
//! the agent: whoever shows messages to people leaves them out.

use runfleet_domain::limits::{
    CHAT_MESSAGES_AT_ONCE, CHAT_MESSAGES_BYTES_AT_ONCE, CONVERSATIONS_AT_ONCE,
};
use runfleet_domain::{ConversationId, Name, RunId, Shard};

use crate::error::StoreError;
use crate::keys::Keys;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply};
use crate::store::{Args, Store};

pub(crate) const CONVERSATION: &str = "conversation";

/// Newest version of a conversation that this program reads.
const CONVERSATION_VERSION: u64 = 1;

/// How much a list shows of the last message, in bytes.
const LAST_TEXT_BYTES_MAX: u32 = 400;

/// Who has written a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatFrom {
    /// The agent.
    Agent,
    /// The person.
    Person,
    /// The fleet: the text is a code that says why a turn has no answer.
    System,
}

impl ChatFrom {
    /// The word in the ledger and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
            Self::System => "system",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Agent, Self::Person, Self::System].into_iter().find(|from| from.as_str() == word)
    }

    /// The next item of an answer, none when it is empty.
    pub(crate) fn read_optional(reply: &mut Reply) -> Result<Option<Self>, StoreError> {
        reply.word(
            |word| {
                if word.is_empty() { Some(None) } else { Self::from_word(word).map(Some) }
            },
        )
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Its number in the conversation, from 1.
    pub seq: u64,
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Who has written it.
    pub from: ChatFrom,
    /// What it says.
    pub text: String,
    /// What the agent tells itself. Never for the person.
    pub note: Option<String>,
    /// The run that has sent it, or that is the turn of what a person has written.
    pub run: Option<RunId>,
}

impl ChatMessage {
    fn read(reply: &mut Reply) -> Result<Self, StoreError> {
        let full = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(Self {
            seq: reply.parsed()?,
            at_ms: reply.parsed()?,
            from: reply.word(ChatFrom::from_word)?,
            text: reply.text()?,
            note: full(reply.text()?),
            run: reply.optional()?,
        })
    }
}

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The conversation.
    pub id: ConversationId,
    /// Its workspace.
    pub workspace: Name,
    /// The project whose run has sent the last message that was no answer.
    pub project: Name,
    /// The agent.
    pub agent: Name,
    /// The person.
    pub person: Name,
    /// Its title.
    pub title: Option<String>,
    /// Unix milliseconds.
    pub created_at_ms: u64,
    /// Unix milliseconds of the last message. No two conversations of a person have the same.
    pub updated_at_ms: u64,
    /// Messages that the person has not seen.
    pub unread: u32,
    /// Number of the last message.
    pub last_seq: u64,
    /// The run that answers the person now.
    pub active: Option<RunId>,
    /// Calls of that run that wait for a decision of the person, as JSON.
    pub pending: Option<String>,
    /// The same of runs that are a part of that turn: a JSON object of texts, by the run the JSON of its calls.
    pub pending_below: Option<String>,
}

impl Conversation {
    fn read(id: ConversationId, mut fields: Fields) -> Result<Self, StoreError> {
        let fields = &mut fields;
        fields.check_version(CONVERSATION_VERSION)?;
        Ok(Self {
            id,
            workspace: fields.must("workspace")?,
            project: fields.must("project")?,
            agent: fields.must("agent")?,
            person: fields.must("person")?,
            title: fields.text("title"),
            created_at_ms: fields.must("created_at")?,
            updated_at_ms: fields.must("updated_at")?,
            unread: fields.or("unread", 0)?,
            last_seq: fields.or("seq", 0)?,
            active: fields.maybe("active")?,
            pending: fields.text("pending"),
            pending_below: fields.text("pending_below"),
        })
    }
}

/// Which conversations of a person are listed.
#[derive(Debug, Clone, Copy)]
pub struct ListConversations<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The person.
    pub person: &'a Name,
    /// Only those whose last message is older than this, in Unix milliseconds.
    pub before_ms: Option<u64>,
    /// Most of them, 1 to 100.
    pub limit: u32,
}

/// Conversations of a person, the one with the newest message first, each with that message. Of a long text the beginning is
/// given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationList {
    /// The conversations.
    pub conversations: Vec<(Conversation, ChatMessage)>,
    /// What to list before, to go on; none when there are no more.
    pub next_before_ms: Option<u64>,
}

/// Which messages of a conversation are read.
#[derive(Debug, Clone, Copy)]
pub struct ReadConversation<'a> {
    /// The conversation.
    pub conversation: ConversationId,
    /// The workspace that it must be of.
    pub workspace: &'a Name,
    /// The person who must be its person; none for its agent.
    pub person: Option<&'a Name>,
    /// Only messages with a lower number; none for the newest.
    pub before: Option<u64>,
    /// Most messages, 1 to 100. There may be fewer when they are long.
    pub limit: u32,
    /// Whether the person has seen them now. Does nothing for the agent.
    pub seen: bool,
}

/// A page of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPage {
    /// The conversation.
    pub conversation: Conversation,
    /// Its messages, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Whether there are older ones.
    pub older: bool,
}

impl Store {
    /// Lists conversations of a person.
    pub async fn list_conversations(
        &self,
        list: &ListConversations<'_>,
    ) -> Result<ConversationList, StoreError> {
        let shard = Shard::of_workspace(list.workspace.as_str());
        let names = [self.keys().named(shard, &Keys::person_ref(list.workspace, list.person))];
        let args = Args::default()
            .with(self.conversation_bounds())
            .with(list.before_ms.map_or(String::new(), |before| before.to_string()))
            .with(list.limit.clamp(1, CONVERSATIONS_AT_ONCE))
            .with(LAST_TEXT_BYTES_MAX);
        let lua = &self.scripts().chat_list;
        let value = self.run_script(Operation::ListConversations, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("chat_list", value)?;
        if tag != "conversations" {
            return reply.unknown();
        }
        let mut conversations = Vec::new();
        for mut item in reply.lists()? {
            let id = item.parsed()?;
            let conversation = Conversation::read(id, item.fields(CONVERSATION)?)?;
            conversations.push((conversation, ChatMessage::read(&mut item)?));
        }
        Ok(ConversationList { conversations, next_before_ms: reply.optional()? })
    }

    /// Reads messages of a conversation; none when there is no such conversation of that workspace and person, or it has not
    /// been used for too long.
    pub async fn read_conversation(
        &self,
        read: &ReadConversation<'_>,
    ) -> Result<Option<ConversationPage>, StoreError> {
        let id = read.conversation;
        if id.shard() != Shard::of_workspace(read.workspace.as_str()) {
            return Ok(None);
        }
        let args = Args::default()
            .with(id)
            .with(read.workspace)
            .with(read.person.map_or("", Name::as_str))
            .with(self.conversation_bounds())
            .with(read.before.map_or(String::new(), |before| before.to_string()))
            .with(read.limit.clamp(1, CHAT_MESSAGES_AT_ONCE))
            .with(CHAT_MESSAGES_BYTES_AT_ONCE)
            .flag(read.seen && read.person.is_some());
        let (lua, names) = (&self.scripts().chat_read, [self.keys().conversation(id)]);
        let value = self.run_script(Operation::ReadConversation, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("chat_read", value)?;
        match tag.as_str() {
            "missing" => Ok(None),
            "conversation" => {
                let conversation = Conversation::read(id, reply.fields(CONVERSATION)?)?;
                let mut lists = reply.lists()?;
                let messages = lists.iter_mut().map(ChatMessage::read).collect::<Result<_, _>>()?;
                Ok(Some(ConversationPage { conversation, messages, older: reply.flag()? }))
            }
            _ => reply.unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::golden;

    #[test]
    fn a_conversation_that_an_older_program_has_stored_is_still_read() {
        let id: ConversationId = "CV1501KC5Q8A9B2C3D4E5F6G7H8J9K".parse().unwrap();
        let text = include_str!("../golden/conversation_v1.txt");
        let read = |text: &str| Conversation::read(id, golden(CONVERSATION, text));
        let stored = read(text).unwrap();
        assert_eq!((stored.agent.as_str(), stored.person.as_str()), ("coach", "ada"));
        assert_eq!((stored.unread, stored.last_seq), (2, 7));
        assert_eq!(stored.title.as_deref(), Some("Deal 7"));
        assert_eq!(stored.active.unwrap().to_string(), "AG1501KC5Q8A9B2C3D4E5F6G7H8J9K");
        assert_eq!((stored.pending, stored.pending_below), (None, None));
        let newer = read(&text.replace("v=1\n", "v=2\n"));
        assert!(matches!(newer, Err(StoreError::Newer { kind: CONVERSATION, version: 2 })));
    }
}
