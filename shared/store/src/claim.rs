//! Holding a run for the time of a lease: claim, renew, checkpoint. Every write of a holder carries its fence.

use runfleet_domain::limits::{CHECKPOINT_BYTES_MAX, MESSAGE_ID_MEMORY, RUN_HISTORY_MAX};
use runfleet_domain::{MessageId, RunId, RunState};

use crate::error::StoreError;
use crate::history::newest;
use crate::inbox::{EVENTS_AT_ONCE, EVENTS_BYTES_AT_ONCE, Event, SEEN_MAX};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{RUN, RUN_VERSION, RunRecord};
use crate::reply::Reply;
use crate::store::{Args, Store, call_token, check_size};
use crate::waits::Waits;

/// How a run is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claim {
    /// In quarantine each claim counts as a crash until the run gets further.
    pub quarantine: bool,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// There is no such run.
    Missing,
    /// It has ended; its outcome may still have to be handed over.
    Ended(Box<RunRecord>),
    /// A person holds it.
    Paused(Box<RunRecord>),
    /// Somebody has it.
    Busy {
        /// Unix milliseconds.
        lease_until_ms: u64,
    },
    /// The caller has it.
    Claimed {
        /// Goes with every later write.
        fence: u64,
        /// Claims in quarantine since the run last got further, this one included.
        crashes: u32,
        /// Whether the holder before this one did not give its lease back: its slice was cut off.
        cut_off: bool,
        /// The record after the claim, but for [`RunRecord::alarm_tries`]: that is how often the alarm has rung since somebody
        /// last had the run.
        record: Box<RunRecord>,
        /// The oldest events that wait; there may be more.
        inbox: Vec<Event>,
    },
}

/// What became of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is longer.
    Renewed {
        /// Whether events wait.
        inbox: bool,
    },
    /// The run is no longer the caller's: stop at once.
    Lost,
}

/// When a run that is given back wants to be looked at again. Never later than its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// At once: the caller publishes the wake-up, and the alarm stands in for it.
    Now,
    /// At this time in Unix milliseconds, by the alarm.
    At(u64),
    /// When an event comes.
    Never,
}

/// How far the holder of a run has got.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint<'a> {
    /// The state of the run in the words of its runner, at most 256 KiB.
    pub position: &'a str,
    /// Whether to give the lease back. It is kept when events wait.
    pub release: bool,
    /// When to look at it again. Counts only when the lease is given back.
    pub wake: Wake,
    /// Events that are in the position now, and leave the inbox.
    pub consumed: &'a [MessageId],
    /// What has happened since the last checkpoint, oldest first. Each entry has at most 512 bytes; of more than 1,000 only the
    /// newest are kept.
    pub history: &'a [&'a str],
    /// Everything that the run waits for from now on; none when that stays as it is. A message that is kept for a new
    /// subscription is in the inbox at once.
    pub waits: Option<&'a Waits<'a>>,
    /// Incidents that are open.
    pub incidents: u32,
}

impl<'a> Checkpoint<'a> {
    /// The position alone: the lease is kept, no event is used, what the run waits for stays as it is, and no incident is open.
    pub const fn new(position: &'a str) -> Self {
        Self {
            position,
            release: false,
            wake: Wake::Now,
            consumed: &[],
            history: &[],
            waits: None,
            incidents: 0,
        }
    }
}

/// What became of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// It is stored.
    Saved {
        /// Whether the lease was given back. If not although that was asked for, deal with `inbox` first.
        released: bool,
        /// The oldest events that still wait; there may be more.
        inbox: Vec<Event>,
    },
    /// The run is no longer the caller's: nothing was stored, stop at once.
    Lost,
    /// The run has been ended from outside.
    Ended(RunState),
}

impl Store {
    /// Gives the run to the caller for the time of the lease, unless somebody has it.
    pub async fn claim_run(&self, run: RunId, claim: Claim) -> Result<Claimed, StoreError> {
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.inbox(run),
            keys.events(run),
        ];
        let args = Args::default()
            .with(run)
            .with(call_token())
            .millis(self.inner.timings.lease)
            .flag(claim.quarantine)
            .with(EVENTS_AT_ONCE)
            .with(EVENTS_BYTES_AT_ONCE)
            .with(RUN_VERSION);
        let lua = &self.scripts().run_claim;
        let value = self.run_script(Operation::ClaimRun, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_claim", value)?;
        match tag.as_str() {
            "missing" => Ok(Claimed::Missing),
            "newer" => Err(StoreError::Newer { kind: RUN, version: reply.parsed()? }),
            "ended" => Ok(Claimed::Ended(Box::new(RunRecord::read(run, reply.fields(RUN)?)?))),
            "paused" => Ok(Claimed::Paused(Box::new(RunRecord::read(run, reply.fields(RUN)?)?))),
            "busy" => Ok(Claimed::Busy { lease_until_ms: reply.parsed()? }),
            "claimed" => Ok(Claimed::Claimed {
                fence: reply.parsed()?,
                crashes: reply.parsed()?,
                cut_off: reply.flag()?,
                record: Box::new(RunRecord::read(run, reply.fields(RUN)?)?),
                inbox: Event::read_all(&mut reply)?,
            }),
            _ => reply.unknown(),
        }
    }

    /// Makes the lease of the holder longer.
    pub async fn renew_lease(&self, run: RunId, fence: u64) -> Result<Renewed, StoreError> {
        let keys = self.keys();
        let names =
            [keys.run(run), keys.alarms(run.shard(), AlarmSet::from(run.kind())), keys.inbox(run)];
        let args = Args::default().with(run).with(fence).millis(self.inner.timings.lease);
        let lua = &self.scripts().run_renew;
        let value = self.run_script(Operation::RenewLease, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_renew", value)?;
        match tag.as_str() {
            "renewed" => Ok(Renewed::Renewed { inbox: reply.parsed::<u64>()? > 0 }),
            "lost" => Ok(Renewed::Lost),
            _ => reply.unknown(),
        }
    }

    /// Stores how far the holder has got, and gives the run back if that is asked for and no event waits.
    pub async fn checkpoint_run(
        &self,
        run: RunId,
        fence: u64,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Saved, StoreError> {
        check_size(Some(checkpoint.position), CHECKPOINT_BYTES_MAX, "the position is too large")?;
        let keys = self.keys();
        let mut names = vec![
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.inbox(run),
            keys.events(run),
            keys.seen(run),
            keys.history(run),
            keys.incidents(run.shard()),
        ];
        names.extend(
            checkpoint
                .waits
                .map(|waits| keys.kept_of_project(run.shard(), waits.workspace, waits.project)),
        );
        let args = self.checkpoint_args(run, fence, checkpoint)?;
        let lua = &self.scripts().run_checkpoint;
        let value = self.run_script(Operation::CheckpointRun, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_checkpoint", value)?;
        match tag.as_str() {
            "lost" => Ok(Saved::Lost),
            "ended" => Ok(Saved::Ended(reply.word(RunState::from_word)?)),
            "saved" => {
                Ok(Saved::Saved { released: reply.flag()?, inbox: Event::read_all(&mut reply)? })
            }
            _ => reply.unknown(),
        }
    }

    fn checkpoint_args(
        &self,
        run: RunId,
        fence: u64,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Args, StoreError> {
        let history = newest(checkpoint.history)?;
        let waits = checkpoint.waits.map(|waits| waits.words(run)).transpose()?;
        let wake = match checkpoint.wake {
            Wake::Now => "now".to_owned(),
            Wake::At(at_ms) => at_ms.to_string(),
            Wake::Never => "never".to_owned(),
        };
        Ok(Args::default()
            .with(run)
            .with(fence)
            .with(call_token())
            .with(checkpoint.position)
            .flag(checkpoint.release)
            .with(wake)
            .millis(self.inner.timings.lease)
            .millis(self.inner.timings.alarm_unclaimed)
            .with(EVENTS_AT_ONCE)
            .with(EVENTS_BYTES_AT_ONCE)
            .with(checkpoint.incidents)
            .with(RUN_HISTORY_MAX)
            .millis(MESSAGE_ID_MEMORY)
            .with(SEEN_MAX)
            .with(history.len())
            .with(waits.as_ref().map_or(String::new(), |words| words.len().to_string()))
            .all(history)
            .all(waits.unwrap_or_default())
            .all(checkpoint.consumed))
    }
}
