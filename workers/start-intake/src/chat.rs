//! What a person does in conversations with agents: list, read, write, decide, and say when no messages are wanted. Decide,
//! commit, publish, answer. In this order.
//!
//! Everything here is about the user of the token and about nobody else. A conversation of somebody else is not there, like one
//! that never was; notes of agents are told to nobody.

mod decide;
mod reply;
mod show;

use runfleet_broker::{Classify, Failure, Inbound, PublishError, Verdict};
use runfleet_contracts::chat::{
    ChatDecide, ChatList, ChatRead, ChatReply, ChatSettings, ValidDecision, conversation,
};
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Request};
use runfleet_domain::admission;
use runfleet_domain::{ConversationId, Lane, MessageId, Name, RunId, RunKind};
use runfleet_identity::Verified;
use runfleet_store::{ConversationPage, GetRun, Got, ReadConversation};
use runfleet_worker::effects;
use serde_json::value::RawValue;

use crate::answer::Caller;
use crate::get::{ID_SHOWN_CHARS, budget};
use crate::handler::{Deps, RawRequest, message_id};
use crate::operate::{Done, Trouble, Written, conclude};
use crate::start::budget_spent;

/// The checked options.
enum Asked {
    List(ChatList, u32),
    Read(ChatRead, u32),
    Reply(ChatReply),
    Decide(ChatDecide, ValidDecision),
    Settings(ChatSettings),
}

impl Asked {
    fn parse(operation: Operation, payload: &RawValue) -> Result<Self, ErrorBody> {
        match operation {
            Operation::ChatList => {
                ChatList::parse(payload).map(|(options, limit)| Self::List(options, limit))
            }
            Operation::ChatRead => {
                ChatRead::parse(payload).map(|(options, limit)| Self::Read(options, limit))
            }
            Operation::ChatReply => ChatReply::parse(payload).map(Self::Reply),
            Operation::ChatDecide => ChatDecide::parse(payload)
                .map(|(options, decision)| Self::Decide(options, decision)),
            Operation::ChatSettings => ChatSettings::parse(payload).map(Self::Settings),
            _ => Err(ErrorBody::field("operation", "is not one about conversations")),
        }
    }

    fn only_reads(&self) -> bool {
        match self {
            Self::List(..) | Self::Read(..) => true,
            Self::Reply(_) | Self::Decide(..) => false,
            Self::Settings(options) => options.only_reads(),
        }
    }
}

/// One call of a person on its way.
struct Chatting<'a> {
    deps: &'a Deps,
    message: &'a Inbound<RawRequest>,
    asks: &'a Verified,
    id: MessageId,
    person: &'a Name,
}

pub(crate) async fn chat(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation;
    let id = message_id(message);
    let person = asks.claims.user.as_ref().ok_or_else(nobody);
    match (id, Asked::parse(operation, &request.payload), person) {
        (Ok(id), Ok(asked), Ok(person)) => {
            let chatting = Chatting { deps, message, asks, id, person };
            conclude(deps, caller, message, operation, chatting.run(asked)).await
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            Ok(deps.refuse(caller, operation.as_str(), error).await)
        }
    }
}

/// An execution without a user has no conversations.
fn nobody() -> ErrorBody {
    ErrorBody::new(ErrorCode::PermissionDenied).with("reason", "USER_REQUIRED")
}

/// The conversation is not there, or not for this person.
fn missing(text: &str) -> ErrorBody {
    let shown: String = text.chars().take(ID_SHOWN_CHARS).collect();
    ErrorBody::new(ErrorCode::NotFound).with("resource", "conversation").with("resourceId", shown)
}

impl Chatting<'_> {
    async fn run(&self, asked: Asked) -> Result<Done, Trouble> {
        if let Some(error) = self.counted(asked.only_reads()).await? {
            return Ok(Done::Refused(error));
        }
        match asked {
            Asked::List(options, limit) => self.list(&options, limit).await,
            Asked::Read(options, limit) => self.read(&options, limit).await,
            Asked::Reply(options) => self.reply(&options).await,
            Asked::Decide(options, decision) => self.decide(&options, decision).await,
            Asked::Settings(options) => self.settings(&options).await,
        }
    }

    fn claims(&self) -> &Claims {
        &self.asks.claims
    }

    /// Whether the call may not be made. One that may counts as a call of its execution.
    async fn counted(&self, only_reads: bool) -> Result<Option<ErrorBody>, Trouble> {
        let rule = if only_reads { admission::chat } else { admission::change_chat };
        let budget = budget(self.deps, self.asks, RunKind::Agent, rule).await;
        let calls_budget = match budget.before_writing()? {
            Ok(budget) => budget,
            Err(error) => return Ok(Some(error)),
        };
        let claims = self.claims();
        let call = GetRun {
            workspace: &claims.workspace,
            project: &claims.project,
            execution: &claims.execution,
            calls_budget,
            run: None,
        };
        let got = self.deps.store.get_run(&call).await.transient("counting the call");
        Ok(match got.before_writing()? {
            Got::BudgetExceeded { limit, used } => Some(budget_spent(limit, used)),
            Got::Found(_) | Got::Missing => None,
        })
    }

    /// A page of a conversation of the person.
    async fn page(
        &self,
        conversation: ConversationId,
        before: Option<u64>,
        limit: u32,
        seen: bool,
    ) -> Result<Option<ConversationPage>, Trouble> {
        let read = ReadConversation {
            conversation,
            workspace: &self.claims().workspace,
            person: Some(self.person),
            before,
            limit,
            seen,
        };
        let page = self.deps.store.read_conversation(&read).await;
        page.transient("reading a conversation").after_writing()
    }

    /// The conversation that a text names, as the person may know it, with its last message.
    async fn named(&self, text: &str) -> Result<Option<ConversationPage>, Trouble> {
        match conversation(text) {
            Some(id) => self.page(id, None, 1, false).await,
            None => Ok(None),
        }
    }

    /// Wakes the runner of a turn: `why` is a word for the id of the message. When its queue is full, the alarm of the run wakes
    /// it later.
    async fn wake(&self, run: RunId, why: &str) -> Result<(), Failure> {
        let trace = self.message.traceparent.as_deref();
        let wake = effects::advance(run, why, Lane::Interactive, trace);
        match effects::publish(&self.deps.publisher, wake.permanent("writing the wake-up")?).await {
            Err(PublishError::Refused) => {
                self.deps.hold_back(Lane::Interactive);
                Ok(())
            }
            published => published.transient("waking the runner"),
        }
    }
}
