//! Messages of agent runs to people: reserved before they are sent and marked after it, at most once for each id and within
//! the caps.
//!
//! Whoever reserves a message is the only one who may send it, until its lease is over. A message that was left in between is
//! sent again only to a sink that knows ids; otherwise it has failed, since nobody knows how far it got. Nothing is sent here.

use std::time::Duration;

use redis::Value;
use runfleet_domain::limits::{
    CHAT_LATE_MAX, CHAT_MESSAGE_CHARS_MAX, CHAT_MESSAGES_PER_DAY, CHAT_MESSAGES_PER_RUN,
    CHAT_NOTE_CHARS_MAX, CHAT_RATE_BURST, CHAT_RATE_PERIOD, CONVERSATION_TITLE_CHARS_MAX,
    DAY_COUNTER_MEMORY, MESSAGE_ID_MEMORY,
};
use runfleet_domain::{ConversationId, Name, RunId, Shard};
use ulid::Ulid;

use crate::chat::check_chars;
use crate::chat_settings::QuietHours;
use crate::delivery::{Delivery, DeliveryStatus};
use crate::error::StoreError;
use crate::keys::{AlarmSet, Keys};
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::store::{Args, Store, call_token, check_shard};

/// Longest name of a call in the id of a message, in bytes.
const CALL_BYTES_MAX: usize = 90;

/// Version of the record of a message.
const MESSAGE_VERSION: u64 = 1;

/// How many messages there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCaps {
    /// Messages of one run.
    pub per_run: u32,
    /// Messages of an agent to a person in a UTC day.
    pub per_day: u32,
    /// Messages of an agent to a person in a row.
    pub burst: u32,
    /// One more becomes possible after each of these.
    pub period: Duration,
}

impl Default for MessageCaps {
    fn default() -> Self {
        Self {
            per_run: CHAT_MESSAGES_PER_RUN,
            per_day: CHAT_MESSAGES_PER_DAY,
            burst: CHAT_RATE_BURST,
            period: CHAT_RATE_PERIOD,
        }
    }
}

/// A decision that a message is not sent, made by rules outside the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<'a> {
    /// [`DeliveryStatus::Blocked`] or [`DeliveryStatus::Failed`].
    pub status: DeliveryStatus,
    /// A word of the contract.
    pub code: &'a str,
}

impl Refused<'_> {
    fn word(&self) -> Result<String, StoreError> {
        if !matches!(self.status, DeliveryStatus::Blocked | DeliveryStatus::Failed) {
            return Err(StoreError::Invalid("what is refused is blocked or has failed"));
        }
        let letters = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
        if self.code.is_empty() || self.code.len() > 64 || !self.code.bytes().all(letters) {
            return Err(StoreError::Invalid("a code is 1 to 64 upper-case letters and `_`"));
        }
        Ok(format!("{}:{}", self.status.as_str(), self.code))
    }
}

/// A message that is to be sent. Who gets it from whom is compared with the record of the run.
#[derive(Debug, Clone, Copy)]
pub struct Reserve<'a> {
    /// The run that sends it.
    pub run_id: RunId,
    /// The call of the run: with the run it is the id of the message. At most 90 printable characters without spaces.
    pub call_id: &'a str,
    /// The workspace.
    pub workspace: &'a Name,
    /// The agent.
    pub agent: &'a Name,
    /// The person.
    pub person: &'a Name,
    /// Whether it goes on in the newest conversation of the two. Otherwise the first message of a run opens one. Later
    /// messages of a run go where its first one went.
    pub latest: bool,
    /// The title of a conversation that is opened, at most 200 characters.
    pub title: Option<&'a str>,
    /// The text, 1 to 8,000 characters.
    pub text: &'a str,
    /// What the agent tells itself, at most 2,000 characters; an empty one is none. Never shown to the person.
    pub note: Option<&'a str>,
    /// How many messages there may be.
    pub caps: MessageCaps,
    /// Whether the sink sends one id once, however often it gets it.
    pub sink_dedups: bool,
    /// How long the sending may take.
    pub lease: Duration,
    /// Set when the facts say that it must not be sent: that is recorded, and nothing counted.
    pub refused: Option<Refused<'a>>,
    /// Set when it must not be sent before this time, in Unix milliseconds: it waits in the ledger, also beyond the end of its
    /// run, and its alarm rings then. It counts for its run at once, for the day and the messages in a row when it is sent. As
    /// many messages as may be sent in a day may wait between the two. What was sent perhaps does not wait.
    pub not_before_ms: Option<u64>,
    /// What the person has said of quiet hours when that time was found. If it is something else by now, a message that waits
    /// rings at once, so that it is looked at again.
    pub quiet_hours: Option<&'a QuietHours>,
}

/// The right to send one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Goes with what is said about it later. Above 1 an earlier attempt was given up.
    pub fence: u64,
    /// Where it goes.
    pub conversation: ConversationId,
    /// Whether it opens that conversation.
    pub new_conversation: bool,
}

/// What became of the wish to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The caller may send it now, and says how that went: [`Store::mark_message`].
    Reserved(Sending),
    /// Something was decided about it for good.
    Known {
        /// What became of it.
        delivery: Delivery,
        /// Whether that was decided just now.
        first: bool,
    },
    /// Somebody is sending it.
    Busy {
        /// Unix milliseconds.
        lease_until_ms: u64,
    },
    /// It must not be sent yet: for the reason of [`Reserve::not_before_ms`], or because too many have come in a row. Its alarm
    /// rings at that time.
    Waiting {
        /// Unix milliseconds.
        due_ms: u64,
    },
    /// The run has ended: nothing is sent for it any more.
    RunEnded,
    /// There is no such run.
    Missing,
    /// The run is of another workspace or agent, or may not write to that person.
    Mismatch,
}

/// How the sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkHow<'a> {
    /// The sink has it.
    Sent,
    /// This is the sending: the conversation is all there is. Nothing happens when the run has ended meanwhile.
    Post,
    /// It was not sent, or nobody knows. It counts.
    Failed(Refused<'a>),
    /// Surely nothing was sent. It does not count, unless an earlier attempt may have sent it.
    NotSent(Refused<'a>),
    /// Surely nothing was sent, and it will be tried again.
    Later,
    /// Nobody knows, and it will be tried again if the sink knows ids.
    Unsure,
}

/// What became of the wish to say how the sending went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marked {
    /// What became of the message, decided now or before.
    Known {
        /// What became of it.
        delivery: Delivery,
        /// The number of the message in its conversation, if it was sent.
        seq: Option<u64>,
        /// Whether that was decided just now.
        first: bool,
    },
    /// It can be reserved again at once.
    Later,
    /// Somebody else has reserved it since.
    Lost,
    /// There is no such message.
    Missing,
}

impl Reserve<'_> {
    fn check(&self) -> Result<(), StoreError> {
        check_shard(self.run_id.shard(), self.workspace.as_str())?;
        check_call(self.call_id)?;
        let texts = [
            (Some(self.text), CHAT_MESSAGE_CHARS_MAX, "a message has 1 to 8,000 characters"),
            (self.note(), CHAT_NOTE_CHARS_MAX, "a note has at most 2,000 characters"),
            (self.title, CONVERSATION_TITLE_CHARS_MAX, "a title has 1 to 200 characters"),
        ];
        for (text, chars_max, complaint) in texts {
            text.map_or(Ok(()), |text| check_chars(text, chars_max, complaint))?;
        }
        let whole = |span: Duration| (1..=86_400_000).contains(&span.as_millis());
        if !whole(self.lease) || !whole(self.caps.period) || self.caps.burst == 0 {
            return Err(StoreError::Invalid("lease and period are 1 ms to one day, a burst is 1"));
        }
        Ok(())
    }

    fn note(&self) -> Option<&str> {
        self.note.filter(|note| !note.is_empty())
    }

    fn fields(&self, args: Args) -> Args {
        let Self { workspace, agent, person, .. } = *self;
        args.field("v", MESSAGE_VERSION)
            .field("run", self.run_id)
            .field("workspace", workspace)
            .field("agent", agent)
            .field("person", person)
            .field("caps_ref", Keys::caps_ref(workspace, agent, person))
            .field("pair_ref", Keys::pair_ref(workspace, agent, person))
            .field("person_ref", Keys::person_ref(workspace, person))
            .field("text", self.text)
            .field_if("note", self.note())
            .field_if("title", self.title)
    }
}

impl Store {
    /// Gives a message to the caller to send it, once for its id and within the caps. A message over a cap is blocked for good
    /// and counts nowhere.
    ///
    /// # Errors
    /// After [`StoreError::Unavailable`] with `maybe_written` the message may be reserved, and counted, for its lease.
    pub async fn reserve_message(&self, reserve: &Reserve<'_>) -> Result<Reserved, StoreError> {
        reserve.check()?;
        let refused = reserve.refused.map(|refused| refused.word()).transpose()?;
        let Reserve { run_id, workspace, agent, person, caps, .. } = *reserve;
        let (keys, shard) = (self.keys(), run_id.shard());
        let names = [
            keys.chat_message(run_id, reserve.call_id),
            keys.run(run_id),
            keys.named(shard, &Keys::caps_ref(workspace, agent, person)),
            keys.named(shard, &Keys::pair_ref(workspace, agent, person)),
            keys.alarms(shard, AlarmSet::Chat),
            keys.chat_waiting(workspace, person),
            keys.chat_settings(workspace, person),
        ];
        let quiet = reserve.quiet_hours.map(QuietHours::words).transpose()?;
        let args = Args::default()
            .with(call_token())
            .millis(reserve.lease)
            .with(workspace)
            .with(agent)
            .with(person)
            .flag(reserve.latest)
            .with(fresh_conversation(shard))
            .flag(reserve.sink_dedups)
            .with(refused.unwrap_or_default())
            .with(caps.per_run)
            .with(caps.per_day)
            .with(caps.burst)
            .millis(caps.period)
            .millis(MESSAGE_ID_MEMORY)
            .millis(DAY_COUNTER_MEMORY)
            .millis(self.inner.chat_retention)
            .with(reserve.not_before_ms.map(|at| at.to_string()).unwrap_or_default())
            .millis(CHAT_LATE_MAX)
            .with(format_args!("{run_id}.{}", reserve.call_id))
            .with(quiet.unwrap_or_default());
        let (lua, args) = (&self.scripts().message_reserve, reserve.fields(args));
        let value = self.run_script(Operation::ReserveMessage, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("message_reserve", value)?;
        Ok(match tag.as_str() {
            "reserved" => Reserved::Reserved(Sending {
                fence: reply.parsed()?,
                conversation: reply.parsed()?,
                new_conversation: reply.flag()?,
            }),
            "known" => Reserved::Known { delivery: reply.parsed()?, first: reply.flag()? },
            "busy" => Reserved::Busy { lease_until_ms: reply.parsed()? },
            "waiting" => Reserved::Waiting { due_ms: reply.parsed()? },
            "ended" => Reserved::RunEnded,
            "missing" => Reserved::Missing,
            "mismatch" => Reserved::Mismatch,
            _ => return reply.unknown(),
        })
    }

    /// Records how the sending of a message went, for whoever has reserved it. A message that was sent is in its conversation
    /// from then on. `period` is that of the caps with which it was reserved.
    pub async fn mark_message(
        &self,
        run_id: RunId,
        call_id: &str,
        fence: u64,
        how: MarkHow<'_>,
        period: Duration,
    ) -> Result<Marked, StoreError> {
        check_call(call_id)?;
        let (verb, refused) = match how {
            MarkHow::Sent => ("sent", None),
            MarkHow::Post => ("post", None),
            MarkHow::Failed(refused) => ("failed", Some(refused)),
            MarkHow::NotSent(refused) => ("not_sent", Some(refused)),
            MarkHow::Later => ("later", None),
            MarkHow::Unsure => ("unsure", None),
        };
        let refused = refused.map(|refused| refused.word()).transpose()?;
        let names = [self.keys().chat_message(run_id, call_id), self.keys().run(run_id)];
        let args = Args::default()
            .with(fence)
            .with(verb)
            .with(refused.unwrap_or_default())
            .millis(MESSAGE_ID_MEMORY)
            .millis(period)
            .with(self.conversation_bounds());
        let lua = &self.scripts().message_mark;
        read_marked(self.run_script(Operation::MarkMessage, lua, &names, args).await?)
    }
}

fn read_marked(value: Value) -> Result<Marked, StoreError> {
    let (tag, mut reply) = Reply::open("message_mark", value)?;
    Ok(match tag.as_str() {
        "known" => Marked::Known {
            delivery: reply.parsed()?,
            seq: reply.optional()?,
            first: reply.flag()?,
        },
        "later" => Marked::Later,
        "lost" => Marked::Lost,
        "missing" => Marked::Missing,
        _ => return reply.unknown(),
    })
}

fn fresh_conversation(shard: Shard) -> ConversationId {
    ConversationId::new(shard, Ulid::generate())
}

fn check_call(call: &str) -> Result<(), StoreError> {
    if (1..=CALL_BYTES_MAX).contains(&call.len())
        && call.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(());
    }
    Err(StoreError::Invalid("a call has a name of 1 to 90 printable characters"))
}
