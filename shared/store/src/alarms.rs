//! Alarms: what has to be looked at because nothing has happened in time.

use redis::Value;
use runfleet_domain::limits::ALARM_MAX;
use runfleet_domain::{JobId, JobKey, Lane, Name, RunId, Shard};

use crate::chat_waiting::DueMessage;
use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::{Reply, items};
use crate::store::{Args, Store};

/// Most alarms that one call takes.
pub const DUE_AT_ONCE_MAX: u32 = 100;

/// Something that is overdue, with all that it takes to publish its message again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// A run wants to be looked at: it goes on, or it has ended before its children.
    Advance {
        /// The run.
        run_id: RunId,
        /// Its lane.
        lane: Lane,
        /// W3C trace context of its start.
        traceparent: Option<String>,
        /// Whether its holder did not give the lease back: its slice was cut off.
        cut_off: bool,
        /// Whether a person holds it, so that only its deadline can be the reason.
        paused: bool,
    },
    /// The outcome of a run wants to be handed over.
    Outcome {
        /// The run.
        run_id: RunId,
        /// Its workspace.
        workspace: Name,
        /// Its project.
        project: Name,
        /// The job named at the start.
        job: JobKey,
        /// Automation steps that the run carries.
        hops: u32,
        /// Links of the job chain of the execution that called start.
        chain: u32,
        /// Its lane.
        lane: Lane,
        /// W3C trace context of its start.
        traceparent: Option<String>,
    },
    /// The time of a job run has come, or nothing was heard of it in time.
    Job {
        /// The job run.
        job_id: JobId,
        /// Its workspace.
        workspace: Name,
        /// Its project.
        project: Name,
        /// Which job of the project.
        job: JobKey,
        /// Its lane.
        lane: Lane,
        /// W3C trace context of its cause.
        traceparent: Option<String>,
    },
    /// A message to a person that has had to wait may be sent, or nothing was heard of it in time.
    Message(DueMessage),
}

/// How many alarms one shard has in one set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmCount {
    /// All of them.
    pub all: u64,
    /// Those that are due.
    pub overdue: u64,
    /// Unix milliseconds at which the first one is or was due.
    pub next_at_ms: Option<u64>,
    /// Unix milliseconds by the clock of the ledger.
    pub now_ms: u64,
}

impl Store {
    /// Takes up to `limit` (1 to 100) alarms of a shard that are due. Each is put ahead by the same script, twice as far each
    /// time, so no other sweeper gets it too. When the answer is lost they come again at their next time.
    pub async fn due_alarms(
        &self,
        shard: Shard,
        set: AlarmSet,
        limit: u32,
    ) -> Result<Vec<Due>, StoreError> {
        let names = [self.keys().alarms(shard, set)];
        let (first, done) = match set {
            AlarmSet::Process | AlarmSet::Agent | AlarmSet::Chat => {
                (self.inner.timings.alarm_unclaimed, false)
            }
            AlarmSet::Done => (self.inner.timings.alarm_handover, true),
        };
        let args = Args::default()
            .with(limit.clamp(1, DUE_AT_ONCE_MAX))
            .millis(first)
            .millis(ALARM_MAX)
            .flag(done);
        let lua = &self.scripts().alarms_due;
        let value = self.run_script(Operation::DueAlarms, lua, &names, args).await?;
        let entries =
            items(value).ok_or(StoreError::Corrupt { kind: "alarms_due", field: "answer" })?;
        let mut due = Vec::with_capacity(entries.len());
        for entry in entries {
            match read(entry) {
                Ok(entry) => due.push(entry),
                // One bad record must not keep the others of its shard from being woken.
                Err(error) => {
                    tracing::error!(%error, shard = %shard, "an overdue record cannot be read");
                }
            }
        }
        Ok(due)
    }

    /// How many alarms a shard has in one set.
    pub async fn count_alarms(
        &self,
        shard: Shard,
        set: AlarmSet,
    ) -> Result<AlarmCount, StoreError> {
        let names = [self.keys().alarms(shard, set)];
        let lua = &self.scripts().alarms_count;
        let value = self.run_script(Operation::CountAlarms, lua, &names, Args::default()).await?;
        let (tag, mut reply) = Reply::open("alarms_count", value)?;
        match tag.as_str() {
            "counted" => Ok(AlarmCount {
                all: reply.parsed()?,
                overdue: reply.parsed()?,
                next_at_ms: reply.optional()?,
                now_ms: reply.parsed()?,
            }),
            _ => reply.unknown(),
        }
    }
}

fn read(entry: Value) -> Result<Due, StoreError> {
    let (tag, mut reply) = Reply::open("alarms_due", entry)?;
    match tag.as_str() {
        "advance" => Ok(Due::Advance {
            run_id: reply.parsed()?,
            lane: reply.word(Lane::from_word)?,
            traceparent: reply.optional()?,
            cut_off: reply.flag()?,
            paused: reply.flag()?,
        }),
        "outcome" => Ok(Due::Outcome {
            run_id: reply.parsed()?,
            workspace: reply.parsed()?,
            project: reply.parsed()?,
            job: reply.parsed()?,
            hops: reply.parsed()?,
            chain: reply.parsed()?,
            lane: reply.word(Lane::from_word)?,
            traceparent: reply.optional()?,
        }),
        "job" => Ok(Due::Job {
            job_id: reply.parsed()?,
            workspace: reply.parsed()?,
            project: reply.parsed()?,
            job: reply.parsed()?,
            lane: reply.word(Lane::from_word)?,
            traceparent: reply.optional()?,
        }),
        "message" => Ok(Due::Message(DueMessage::read(&mut reply)?)),
        _ => reply.unknown(),
    }
}
