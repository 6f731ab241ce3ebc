//! Reading runs, and holding them or letting them go on.

use std::time::Duration;

use redis::Value;
use runfleet_domain::{RunId, RunState, Shard};

use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{RUN, RunRecord};
use crate::reply::{Fields, Reply, text};
use crate::store::{Args, Store};

/// A run that has been given something to do, with the message that says so on its way, is woken after this in any case.
pub(crate) const ALARM_WAKE: Duration = Duration::from_secs(5);

/// What an operator wants to know about a run beside its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunExplained {
    /// The record.
    pub record: RunRecord,
    /// Unix milliseconds at which its alarm is due, if it has one.
    pub alarm_at_ms: Option<u64>,
    /// Events that wait for it.
    pub inbox_events: u64,
    /// Unix milliseconds by the clock of the ledger.
    pub now_ms: u64,
    /// When the record will disappear; none while it is needed.
    pub expires_in: Option<Duration>,
    /// Runs that it has called and that have not ended.
    pub children: u64,
    /// Messages and signals that it waits for, as in the record.
    pub waits: usize,
    /// Incidents that are open, as in the record.
    pub incidents: u32,
}

/// What became of the wish to hold a run or to let it go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// It is as wished, since just now.
    Changed,
    /// It was so already, or has not been held.
    Unchanged(RunState),
    /// It has ended.
    Ended(RunState),
    /// There is no such run.
    Missing,
}

impl Store {
    /// The record of a run. It may be asked for up to a day longer than the contract promises.
    pub async fn load_run(&self, run: RunId) -> Result<Option<RunRecord>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys().run(run));
        let fields = Fields::new(RUN, self.run_command(Operation::LoadRun, command).await?)?;
        if fields.is_empty() {
            return Ok(None);
        }
        RunRecord::read(run, fields).map(Some)
    }

    /// Where a run is; none when it is not there. Much less to read than its record.
    pub async fn run_state(&self, run: RunId) -> Result<Option<RunState>, StoreError> {
        let mut command = redis::cmd("HGET");
        command.arg(self.keys().run(run)).arg("state");
        match self.run_command(Operation::LoadRun, command).await? {
            Value::Nil => Ok(None),
            value => text(value)
                .and_then(|word| RunState::from_word(&word))
                .map(Some)
                .ok_or(StoreError::Corrupt { kind: RUN, field: "state" }),
        }
    }

    /// The record of a run with its alarm and inbox, for an operator.
    pub async fn explain_run(&self, run: RunId) -> Result<Option<RunExplained>, StoreError> {
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.alarms(run.shard(), AlarmSet::Done),
            keys.inbox(run),
            keys.kids(run),
        ];
        let args = Args::default().with(run);
        let lua = &self.scripts().run_explain;
        let value = self.run_script(Operation::ExplainRun, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_explain", value)?;
        match tag.as_str() {
            "missing" => Ok(None),
            "run" => {
                let record = RunRecord::read(run, reply.fields(RUN)?)?;
                Ok(Some(RunExplained {
                    alarm_at_ms: reply.optional()?,
                    inbox_events: reply.parsed()?,
                    now_ms: reply.parsed()?,
                    expires_in: u64::try_from(reply.parsed::<i64>()?)
                        .ok()
                        .map(Duration::from_millis),
                    children: reply.parsed()?,
                    waits: record.waits,
                    incidents: record.incidents,
                    record,
                }))
            }
            _ => reply.unknown(),
        }
    }

    /// How many runs of a shard have an open incident.
    pub async fn count_incidents(&self, shard: Shard) -> Result<u64, StoreError> {
        let mut command = redis::cmd("ZCARD");
        command.arg(self.keys().incidents(shard));
        let answer = self.run_command(Operation::CountIncidents, command).await?;
        text(answer)
            .and_then(|count| count.parse().ok())
            .ok_or(StoreError::Corrupt { kind: "incidents", field: "answer" })
    }

    /// Holds a run: nobody can claim it, and whoever has it loses it.
    pub async fn pause_run(&self, run: RunId) -> Result<Paused, StoreError> {
        self.hold(Operation::PauseRun, run, true).await
    }

    /// Lets a held run go on. The caller publishes the wake-up; the alarm stands in for it after some seconds.
    pub async fn resume_run(&self, run: RunId) -> Result<Paused, StoreError> {
        self.hold(Operation::ResumeRun, run, false).await
    }

    async fn hold(
        &self,
        operation: Operation,
        run: RunId,
        hold: bool,
    ) -> Result<Paused, StoreError> {
        let keys = self.keys();
        let names = [keys.run(run), keys.alarms(run.shard(), AlarmSet::from(run.kind()))];
        let args = Args::default().with(run).flag(hold).millis(ALARM_WAKE);
        let lua = &self.scripts().run_pause;
        let value: Value = self.run_script(operation, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_pause", value)?;
        match tag.as_str() {
            "missing" => Ok(Paused::Missing),
            "ended" => Ok(Paused::Ended(reply.word(RunState::from_word)?)),
            "unchanged" => Ok(Paused::Unchanged(reply.word(RunState::from_word)?)),
            "changed" => Ok(Paused::Changed),
            _ => reply.unknown(),
        }
    }
}
