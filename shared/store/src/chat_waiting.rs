//! Messages to people that have had to wait: what is known of one whose run may be gone, and what is told of one that is due.
//!
//! They are made and decided about as all others, in `chat_message`; nothing here changes one.

use std::fmt;

use runfleet_domain::{Lane, Name, RunId};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply};
use crate::store::Store;

/// A message that has had to wait, whatever has become of it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    /// Who gets it.
    pub person: Name,
    /// The title of a conversation that it opens.
    pub title: Option<String>,
    /// When it began to wait, in Unix milliseconds.
    pub since_ms: u64,
    /// Until when it may be sent, in Unix milliseconds.
    pub until_ms: u64,
}

/// A message whose alarm rings, with all that it takes to publish it once more.
#[derive(Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// The run that has sent it.
    pub run_id: RunId,
    /// The call of the run.
    pub call_id: String,
    /// The text.
    pub text: String,
    /// What the agent tells itself.
    pub note: Option<String>,
    /// Until when it may be sent, in Unix milliseconds.
    pub until_ms: u64,
    /// The lane of its run.
    pub lane: Lane,
    /// W3C trace context of its run.
    pub traceparent: Option<String>,
}

/// Without the texts: they are nobody's business but the person's and the agent's.
impl fmt::Debug for DueMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DueMessage")
            .field("run_id", &self.run_id)
            .field("call_id", &self.call_id)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}

impl DueMessage {
    pub(crate) fn read(reply: &mut Reply) -> Result<Self, StoreError> {
        Ok(Self {
            run_id: reply.parsed()?,
            call_id: reply.parsed()?,
            text: reply.parsed()?,
            note: reply.optional()?,
            until_ms: reply.parsed()?,
            lane: reply.word(Lane::from_word)?,
            traceparent: reply.optional()?,
        })
    }
}

impl Store {
    /// What is known of a message that has had to wait; none when it never had to, or is not there (any more).
    pub async fn waiting_message(
        &self,
        run: RunId,
        call_id: &str,
    ) -> Result<Option<WaitingMessage>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys().chat_message(run, call_id));
        let value = self.run_command(Operation::LoadMessage, command).await?;
        let fields = &mut Fields::new("message", value)?;
        let Some(since_ms) = fields.maybe("since")? else { return Ok(None) };
        Ok(Some(WaitingMessage {
            person: fields.must("person")?,
            title: fields.text("title"),
            since_ms,
            until_ms: fields.must("until")?,
        }))
    }
}
