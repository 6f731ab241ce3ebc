//! Messages and signals between runs of a project, and from its code to them.
//!
//! A message goes to one subscription, or is kept for the next one; a signal goes to every run that waits for it. Both go into
//! inboxes by the script that decides who gets them, so whatever dies later, they are there.

use std::time::Duration;

use runfleet_domain::limits::{
    EVENT_VARIABLES_BYTES_MAX, INBOX_EVENTS_MAX, MESSAGE_ID_MEMORY, MESSAGE_TTL_MAX,
    MESSAGES_KEPT_OF_KEY_MAX, MESSAGES_KEPT_OF_PROJECT_MAX,
};
use runfleet_domain::{MessageId, Name, RunId, Shard};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::inbox::{SEEN_MAX, Woken};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::runs::ALARM_WAKE;
use crate::store::{Args, Store, check_size};
use crate::waits::{message_digest, signal_digest};

/// Most runs that one call of [`Store::broadcast_signal`] tells.
pub const SIGNAL_RUNS_AT_ONCE_MAX: u32 = 500;

/// Subscriptions that one script looks at. More than one is needed only when leftovers of ended runs come first.
const LOOKED_AT: u32 = 1_000;

/// Scripts that one message may take to get past leftovers.
const LOOKS_MAX: u32 = 100;

/// A message for one run of a project.
#[derive(Debug, Clone, Copy)]
pub struct PublishMessage<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// The name of the message, 1 to 256 bytes.
    pub name: &'a str,
    /// The correlation key, at most 256 bytes; none is the same as an empty one.
    pub key: Option<&'a str>,
    /// A JSON object, at most 64 KiB.
    pub variables_json: &'a str,
    /// In a project, one id is one message, for eight days.
    pub id: &'a MessageId,
    /// How long it is kept when nobody waits for it: at most seven days, zero not at all.
    pub ttl: Duration,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// It is in the inbox of a run. The caller publishes the wake-up; the alarm of the run stands in for it.
    Delivered {
        /// The run.
        to: Woken,
        /// Whether the same message had come before.
        again: bool,
    },
    /// It is kept for the next subscription. (When it came before: it was, and may have been given to somebody since.)
    Buffered {
        /// Whether the same message had come before.
        again: bool,
    },
    /// Nobody waits for it and it is not to be kept: nothing is remembered of it.
    Nobody,
    /// The run that waits has as many events as may wait, or as many messages are kept as may be. Passing: nothing has
    /// happened.
    Full,
}

/// A signal for all runs of a project that wait for it.
#[derive(Debug, Clone, Copy)]
pub struct BroadcastSignal<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// The name of the signal, 1 to 256 bytes.
    pub name: &'a str,
    /// A JSON object, at most 64 KiB.
    pub variables_json: &'a str,
    /// Each run gets one signal id once.
    pub id: &'a MessageId,
}

/// One page of the runs that wait for a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    /// Runs that have got it now, or by an earlier call with the same id. The caller publishes the wake-ups.
    pub woken: Vec<Woken>,
    /// Runs that have not got it because as many events wait for them as may wait. Passing: the same signal once more reaches
    /// them.
    pub full: u32,
    /// The last run of this page, to go on after; none when there are no more.
    pub next: Option<RunId>,
}

impl Store {
    /// Gives a message to the subscription that has waited for it longest, or keeps it for the next one; once per message id.
    pub async fn publish_message(
        &self,
        message: &PublishMessage<'_>,
    ) -> Result<Published, StoreError> {
        check_variables(message.variables_json)?;
        if message.ttl > MESSAGE_TTL_MAX {
            return Err(StoreError::Invalid("a message is kept for seven days at most"));
        }
        let PublishMessage { workspace, project, name, key, .. } = *message;
        let digest = message_digest(workspace, project, name, key)?;
        let id = id_digest("message-id", workspace, project, message.id);
        let (keys, shard) = (self.keys(), Shard::of_workspace(workspace.as_str()));
        let names = [
            keys.sent(shard, &id),
            keys.wait(shard, &digest),
            keys.kept(shard, &digest),
            keys.bodies(shard, &digest),
            keys.kept_of_project(shard, workspace, project),
            keys.alarms(shard, AlarmSet::Process),
        ];
        for _ in 0..LOOKS_MAX {
            let args = publish_args(message, &digest, &id);
            let lua = &self.scripts().message_publish;
            let value = self.run_script(Operation::PublishMessage, lua, &names, args).await?;
            if let Some(published) = read_published(value)? {
                return Ok(published);
            }
        }
        Ok(Published::Full)
    }

    /// Gives a signal to a page of at most `limit` (1 to 500) runs that wait for it, beginning after `after`. The caller goes
    /// on until there is no next page. A signal is not kept for runs that wait later.
    pub async fn broadcast_signal(
        &self,
        signal: &BroadcastSignal<'_>,
        limit: u32,
        after: Option<RunId>,
    ) -> Result<Broadcast, StoreError> {
        check_variables(signal.variables_json)?;
        let BroadcastSignal { workspace, project, name, .. } = *signal;
        let digest = signal_digest(workspace, project, name)?;
        let id = id_digest("signal-id", workspace, project, signal.id);
        let (keys, shard) = (self.keys(), Shard::of_workspace(workspace.as_str()));
        let names = [keys.signal(shard, &digest), keys.alarms(shard, AlarmSet::Process)];
        let args = Args::default()
            .with(format_args!("signal:{id}"))
            .with(name)
            .with(signal.variables_json)
            .with(after.map_or(String::new(), |run| run.to_string()))
            .with(limit.clamp(1, SIGNAL_RUNS_AT_ONCE_MAX))
            .with(INBOX_EVENTS_MAX)
            .millis(ALARM_WAKE)
            .millis(MESSAGE_ID_MEMORY)
            .with(SEEN_MAX);
        let lua = &self.scripts().signal_broadcast;
        let value = self.run_script(Operation::BroadcastSignal, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("signal_broadcast", value)?;
        match tag.as_str() {
            "told" => Ok(Broadcast {
                next: reply.optional()?,
                full: reply.parsed()?,
                woken: Woken::read_all(&mut reply)?,
            }),
            _ => reply.unknown(),
        }
    }
}

fn publish_args(message: &PublishMessage<'_>, digest: &Digest, id: &Digest) -> Args {
    Args::default()
        .with(format_args!("message:{id}"))
        .with(digest)
        .with(message.variables_json)
        .millis(message.ttl)
        .millis(MESSAGE_ID_MEMORY)
        .with(INBOX_EVENTS_MAX)
        .millis(ALARM_WAKE)
        .millis(MESSAGE_ID_MEMORY)
        .with(SEEN_MAX)
        .with(MESSAGES_KEPT_OF_KEY_MAX)
        .with(MESSAGES_KEPT_OF_PROJECT_MAX)
        .with(LOOKED_AT)
}

/// None when the script has only removed leftovers.
fn read_published(value: redis::Value) -> Result<Option<Published>, StoreError> {
    let (tag, mut reply) = Reply::open("message_publish", value)?;
    Ok(Some(match tag.as_str() {
        "delivered" => Published::Delivered { to: Woken::read(&mut reply)?, again: reply.flag()? },
        "kept" => Published::Buffered { again: reply.flag()? },
        "nobody" => Published::Nobody,
        "full" => Published::Full,
        "more" => return Ok(None),
        _ => return reply.unknown(),
    }))
}

fn check_variables(json: &str) -> Result<(), StoreError> {
    check_size(Some(json), EVENT_VARIABLES_BYTES_MAX, "the variables are larger than 64 KiB")
}

/// Ids of a caller's choice are digested, so that none can pass for the id of another kind of event.
fn id_digest(kind: &str, workspace: &Name, project: &Name, id: &MessageId) -> Digest {
    Digest::of(&[kind, workspace.as_str(), project.as_str(), id.as_str()])
}
