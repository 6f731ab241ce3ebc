//! Conversations and settings as their person sees them.

use std::collections::BTreeMap;

use runfleet_broker::Classify;
use runfleet_contracts::chat::{
    ChatAuthor, ChatConversation, ChatEntry, ChatList, ChatListPage, ChatListed, ChatPage,
    ChatQuietHours, ChatRead, ChatSettings, ChatSettingsNow, HeldCall, conversation,
};
use runfleet_domain::RunId;
use runfleet_store::{
    ChangeQuietHours, ChatFrom, ChatMessage, Conversation, ListConversations, QuietHours,
};

use serde::de::DeserializeOwned;

use super::{Chatting, missing};
use crate::operate::{Done, Trouble, Written, answer};

impl Chatting<'_> {
    pub(super) async fn list(&self, options: &ChatList, limit: u32) -> Result<Done, Trouble> {
        let list = ListConversations {
            workspace: &self.claims().workspace,
            person: self.person,
            before_ms: options.before,
            limit,
        };
        let list = self.deps.store.list_conversations(&list).await;
        let list = list.transient("listing conversations").before_writing()?;
        let listed = list.conversations.into_iter().map(|(conversation, last)| ChatListed {
            conversation: shown(&conversation),
            last: entry(last),
        });
        answer(ChatListPage { conversations: listed.collect(), next: list.next_before_ms })
    }

    pub(super) async fn read(&self, options: &ChatRead, limit: u32) -> Result<Done, Trouble> {
        let seen = options.mark_read.unwrap_or(false) && !self.claims().read_only;
        let page = match conversation(&options.conversation_id) {
            Some(id) => self.page(id, options.before, limit, seen).await?,
            None => None,
        };
        let Some(page) = page else {
            return Ok(Done::Refused(missing(&options.conversation_id)));
        };
        answer(ChatPage {
            conversation: shown(&page.conversation),
            held: held(&page.conversation),
            messages: page.messages.into_iter().map(entry).collect(),
            older: page.older,
        })
    }

    pub(super) async fn settings(&self, options: &ChatSettings) -> Result<Done, Trouble> {
        let wanted = options.quiet_hours.as_ref();
        let wanted = wanted.map(|hours| hours.as_ref().map(stored));
        let change = match &wanted {
            None => ChangeQuietHours::Keep,
            Some(None) => ChangeQuietHours::Clear,
            Some(Some(hours)) => ChangeQuietHours::Set(hours),
        };
        let (store, workspace) = (&self.deps.store, &self.claims().workspace);
        let now = store.change_chat_settings(workspace, self.person, options.opt_out, change).await;
        let now = now.transient("changing the settings").after_writing()?;
        answer(ChatSettingsNow {
            opt_out: now.opt_out,
            quiet_hours: now.quiet_hours.map(|hours| ChatQuietHours {
                from: hours.from,
                to: hours.to,
                time_zone: hours.time_zone,
            }),
        })
    }
}

fn stored(hours: &ChatQuietHours) -> QuietHours {
    QuietHours {
        from: hours.from.clone(),
        to: hours.to.clone(),
        time_zone: hours.time_zone.clone(),
    }
}

fn shown(conversation: &Conversation) -> ChatConversation {
    ChatConversation {
        conversation_id: conversation.id.to_string(),
        chat_session_id: conversation.id.session(),
        agent_id: conversation.agent.to_string(),
        title: conversation.title.clone(),
        created_at: conversation.created_at_ms,
        updated_at: conversation.updated_at_ms,
        unread: conversation.unread,
        active_run_id: conversation.active.as_ref().map(RunId::to_string),
    }
}

/// Without the note of the agent.
fn entry(message: ChatMessage) -> ChatEntry {
    ChatEntry {
        seq: message.seq,
        at: message.at_ms,
        from: match message.from {
            ChatFrom::Agent => ChatAuthor::Agent,
            ChatFrom::Person => ChatAuthor::Person,
            ChatFrom::System => ChatAuthor::System,
        },
        text: message.text,
        run_id: message.run.as_ref().map(RunId::to_string),
    }
}

/// The calls that wait for the person: those of the active turn, then those of its parts. What cannot be read is as good as none.
pub(super) fn held(conversation: &Conversation) -> Vec<HeldCall> {
    let below = conversation.pending_below.as_deref();
    let below: BTreeMap<String, String> = below.and_then(read).unwrap_or_default();
    let lists = conversation.pending.iter().chain(below.values());
    lists.filter_map(|list| read::<Vec<HeldCall>>(list)).flatten().collect()
}

fn read<T: DeserializeOwned>(json: &str) -> Option<T> {
    let read = serde_json::from_str(json);
    let told = |error: &serde_json::Error| {
        tracing::error!(column = error.column(), "held calls cannot be read");
    };
    read.inspect_err(told).ok()
}
