//! An agent and a person who may get its messages.

use std::time::Duration;

use runfleet_domain::{ConversationId, Name, RunId, RunKind};
use runfleet_store::{
    ChatMessage, ConversationPage, Delivery, DeliveryStatus, MarkHow, Marked, MessageCaps,
    ReadConversation, Refused, Reserve, Reserved, Sending,
};

use crate::world::{Request, World, name};

/// More than any test sends.
pub(crate) const NO_CAPS: MessageCaps = MessageCaps {
    per_run: 1_000_000,
    per_day: 1_000_000,
    burst: 1_000_000,
    period: Duration::from_millis(1),
};

pub(crate) const LEASE: Duration = Duration::from_mins(1);

/// Nobody knows what became of it.
pub(crate) const UNAVAILABLE: Refused<'static> =
    Refused { status: DeliveryStatus::Failed, code: "DELIVERY_UNAVAILABLE" };

pub(crate) fn not_sent(status: DeliveryStatus, code: &str) -> Delivery {
    Delivery {
        status,
        error_code: Some(code.to_owned()),
        conversation: None,
        new_conversation: false,
    }
}

pub(crate) fn rate_limited() -> Delivery {
    not_sent(DeliveryStatus::Blocked, "RECIPIENT_RATE_LIMITED")
}

pub(crate) fn sent(conversation: ConversationId, new_conversation: bool) -> Delivery {
    Delivery {
        status: DeliveryStatus::Sent,
        error_code: None,
        conversation: Some(conversation),
        new_conversation,
    }
}

/// The two, and their world.
pub(crate) struct Chat {
    pub(crate) world: World,
    pub(crate) agent: Name,
    pub(crate) person: Name,
}

impl Chat {
    pub(crate) fn of(world: World) -> Self {
        Self { world, agent: name("coach"), person: name("ada") }
    }

    pub(crate) async fn new() -> Self {
        Self::of(World::new().await)
    }

    /// A start of the agent that may write to the person.
    pub(crate) fn request(&self) -> Request {
        Request {
            target: self.agent.clone(),
            recipient: Some(self.person.clone()),
            day_limit: 1_000_000,
            calls_budget: None,
            calls_limit: None,
            ..Request::new(RunKind::Agent)
        }
    }

    /// A run that may write to the person.
    pub(crate) async fn run(&self) -> RunId {
        self.world.run(&self.request()).await
    }

    /// A message of a run.
    pub(crate) fn message<'a>(&'a self, run_id: RunId, call_id: &'a str) -> Reserve<'a> {
        Reserve {
            run_id,
            call_id,
            workspace: &self.world.workspace,
            agent: &self.agent,
            person: &self.person,
            latest: true,
            title: None,
            text: "Hello.",
            note: None,
            caps: NO_CAPS,
            sink_dedups: false,
            lease: LEASE,
            refused: None,
            not_before_ms: None,
            quiet_hours: None,
        }
    }

    pub(crate) async fn reserve(&self, message: &Reserve<'_>) -> Reserved {
        self.world.store.reserve_message(message).await.unwrap()
    }

    /// Reserves a message that nobody has.
    pub(crate) async fn sending(&self, message: &Reserve<'_>) -> Sending {
        match self.reserve(message).await {
            Reserved::Reserved(sending) => sending,
            other => panic!("not reserved: {other:?}"),
        }
    }

    pub(crate) async fn mark(&self, message: &Reserve<'_>, fence: u64, how: MarkHow<'_>) -> Marked {
        let period = message.caps.period;
        let marked =
            self.world.store.mark_message(message.run_id, message.call_id, fence, how, period);
        marked.await.unwrap()
    }

    /// Sends a message and gives its conversation.
    pub(crate) async fn send(&self, message: &Reserve<'_>) -> ConversationId {
        let sending = self.sending(message).await;
        let marked = self.mark(message, sending.fence, MarkHow::Sent).await;
        assert!(matches!(marked, Marked::Known { first: true, .. }), "{marked:?}");
        sending.conversation
    }

    /// The newest page as the person gets it.
    pub(crate) async fn page(&self, conversation: ConversationId) -> Option<ConversationPage> {
        let read = ReadConversation {
            conversation,
            workspace: &self.world.workspace,
            person: Some(&self.person),
            before: None,
            limit: 100,
            seen: false,
        };
        self.world.store.read_conversation(&read).await.unwrap()
    }

    pub(crate) async fn messages(&self, conversation: ConversationId) -> Vec<ChatMessage> {
        self.page(conversation).await.expect("a conversation").messages
    }

    pub(crate) async fn texts(&self, conversation: ConversationId) -> Vec<String> {
        self.messages(conversation).await.into_iter().map(|message| message.text).collect()
    }

    /// What the run tells about its message.
    pub(crate) async fn delivery(&self, run: RunId) -> Option<Delivery> {
        self.world.load(run).await.delivery
    }
}
