//! The inbox of a run: events that carry data wait in the ledger, not in a message.

use runfleet_domain::limits::{INBOX_EVENT_BYTES_MAX, INBOX_EVENTS_MAX, MESSAGE_ID_MEMORY};
use runfleet_domain::{Lane, MessageId, RunId};

use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::runs::ALARM_WAKE;
use crate::store::{Args, Store, check_size};

/// Most events that a claim or checkpoint returns.
pub const EVENTS_AT_ONCE: u32 = 100;

/// Most bytes of events that a claim or checkpoint returns; one event is returned in any case.
pub const EVENTS_BYTES_AT_ONCE: usize = 1_048_576;

/// Event ids that one run remembers.
pub(crate) const SEEN_MAX: u32 = 10_000;

/// Something that has happened to a run and that it has not dealt with yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id: of the message that brought it.
    pub id: MessageId,
    /// Its body, in the words of whoever sent it.
    pub body: String,
}

impl Event {
    /// The next item of `reply`: ids and bodies in turn.
    pub(crate) fn read_all(reply: &mut Reply) -> Result<Vec<Self>, StoreError> {
        let mut texts = reply.texts()?.into_iter();
        let mut events = Vec::with_capacity(texts.len() / 2);
        while let (Some(id), Some(body)) = (texts.next(), texts.next()) {
            let id = id.parse().map_err(|_| StoreError::Corrupt { kind: "inbox", field: "id" })?;
            events.push(Self { id, body });
        }
        Ok(events)
    }
}

/// A run that has got something, with all that its wake-up message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woken {
    /// The run.
    pub run_id: RunId,
    /// Its lane.
    pub lane: Lane,
    /// W3C trace context of its start.
    pub traceparent: Option<String>,
}

impl Woken {
    /// The next three items of `reply`.
    pub(crate) fn read(reply: &mut Reply) -> Result<Self, StoreError> {
        Ok(Self {
            run_id: reply.parsed()?,
            lane: reply.word(Lane::from_word)?,
            traceparent: reply.optional()?,
        })
    }

    /// The same; none when all three are empty.
    pub(crate) fn read_optional(reply: &mut Reply) -> Result<Option<Self>, StoreError> {
        let Some(run_id) = reply.optional()? else {
            reply.text()?;
            reply.text()?;
            return Ok(None);
        };
        let lane = reply.word(Lane::from_word)?;
        Ok(Some(Self { run_id, lane, traceparent: reply.optional()? }))
    }

    /// The next item of `reply`: a list of all three in turn.
    pub(crate) fn read_all(reply: &mut Reply) -> Result<Vec<Self>, StoreError> {
        let corrupt = || StoreError::Corrupt { kind: "woken", field: "run" };
        let mut texts = reply.texts()?.into_iter();
        let mut woken = Vec::with_capacity(texts.len() / 3);
        while let (Some(id), Some(lane), Some(trace)) = (texts.next(), texts.next(), texts.next()) {
            woken.push(Self {
                run_id: id.parse().map_err(|_| corrupt())?,
                lane: Lane::from_word(&lane).ok_or_else(corrupt)?,
                traceparent: Some(trace).filter(|trace| !trace.is_empty()),
            });
        }
        Ok(woken)
    }
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It waits. The caller publishes the wake-up; the alarm stands in for it after some seconds.
    Added,
    /// It has come before. The run may have ended since.
    Known,
    /// As many events wait as may wait. Passing, if the run is still at work.
    Full,
    /// The run has ended.
    Ended,
    /// There is no such run.
    Missing,
}

impl Appended {
    pub(crate) fn read(script: &'static str, value: redis::Value) -> Result<Self, StoreError> {
        let (tag, reply) = Reply::open(script, value)?;
        match tag.as_str() {
            "added" => Ok(Self::Added),
            "known" => Ok(Self::Known),
            "full" => Ok(Self::Full),
            "ended" => Ok(Self::Ended),
            "missing" => Ok(Self::Missing),
            _ => reply.unknown(),
        }
    }
}

impl Store {
    /// Puts an event into the inbox of a run, once per id. `body` has at most 65 KiB.
    pub async fn append_event(
        &self,
        run: RunId,
        id: &MessageId,
        body: &str,
    ) -> Result<Appended, StoreError> {
        check_size(Some(body), INBOX_EVENT_BYTES_MAX, "the event is too large")?;
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.inbox(run),
            keys.events(run),
            keys.seen(run),
        ];
        let args = Args::default()
            .with(run)
            .with(id)
            .with(body)
            .with(INBOX_EVENTS_MAX)
            .millis(ALARM_WAKE)
            .millis(MESSAGE_ID_MEMORY)
            .with(SEEN_MAX);
        let lua = &self.scripts().event_append;
        let value = self.run_script(Operation::AppendEvent, lua, &names, args).await?;
        Appended::read("event_append", value)
    }

    /// Whether an event of this id has come to a run, so that what would bring it need not be done again.
    pub async fn knows_event(&self, run: RunId, id: &MessageId) -> Result<bool, StoreError> {
        let mut command = redis::cmd("ZSCORE");
        command.arg(self.keys().seen(run)).arg(id.as_str());
        let value = self.run_command(Operation::LoadRun, command).await?;
        Ok(value != redis::Value::Nil)
    }
}
