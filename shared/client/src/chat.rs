//! Calls about the conversations of the token's user with agents.

use runfleet_contracts::Operation;
use runfleet_contracts::chat::{
    ChatDecide, ChatDecided, ChatList, ChatListPage, ChatPage, ChatRead, ChatReply, ChatSaid,
    ChatSettings, ChatSettingsNow,
};

use crate::{Client, Error, written};

/// Lists, reads and answers conversations; see [`Client::chat`].
#[derive(Clone, Copy)]
pub struct Chat<'a>(pub(crate) &'a Client);

impl Chat<'_> {
    /// Conversations of the user, the one with the newest message first: at most `limit` (1 to 100), whose last message is older
    /// than `before` in Unix milliseconds.
    pub async fn list(
        self,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<ChatListPage, Error> {
        let payload = written(&ChatList { before, limit })?;
        ChatList::parse(&payload)?;
        self.0.call(Operation::ChatList, payload).await
    }

    /// Messages of a conversation, oldest first.
    pub async fn read(self, options: &ChatRead) -> Result<ChatPage, Error> {
        let payload = written(options)?;
        ChatRead::parse(&payload)?;
        self.0.call(Operation::ChatRead, payload).await
    }

    /// Says something: 1 to 8,000 characters. The agent answers in the conversation, as the user.
    pub async fn reply(
        self,
        conversation_id: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<ChatSaid, Error> {
        let options = ChatReply { conversation_id: conversation_id.into(), text: text.into() };
        let payload = written(&options)?;
        ChatReply::parse(&payload)?;
        self.0.call(Operation::ChatReply, payload).await
    }

    /// Decides about a tool call that waits for the user. The first decision about a call counts.
    pub async fn decide(self, options: &ChatDecide) -> Result<ChatDecided, Error> {
        let payload = written(options)?;
        ChatDecide::parse(&payload)?;
        self.0.call(Operation::ChatDecide, payload).await
    }

    /// Says when the user wants no messages; what is not given stays as it is. The answer tells what is so now.
    pub async fn settings(self, options: &ChatSettings) -> Result<ChatSettingsNow, Error> {
        let payload = written(options)?;
        ChatSettings::parse(&payload)?;
        self.0.call(Operation::ChatSettings, payload).await
    }
}
