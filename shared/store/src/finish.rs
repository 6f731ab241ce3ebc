//! Ending runs. Whoever ends a run first wins.

use runfleet_domain::limits::{
    BODY_BYTES_MAX, MESSAGE_ID_MEMORY, PROCESS_OUTPUT_BYTES_MAX, RETENTION, RETENTION_MARGIN,
    RUN_HISTORY_MAX,
};
use runfleet_domain::{Name, RunId, RunKind, RunState};

use crate::conversations::ChatFrom;
use crate::error::StoreError;
use crate::history::newest;
use crate::inbox::{SEEN_MAX, Woken};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{RUN, RunRecord};
use crate::reply::Reply;
use crate::runs::ALARM_WAKE;
use crate::store::{Args, Store, call_token, check_size};

/// How a run ends.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// A final state.
    pub state: RunState,
    /// Output as JSON.
    pub output: Option<&'a str>,
    /// Code and sentence of the error.
    pub error: Option<(&'a str, &'a str)>,
    /// What has happened since the last checkpoint, oldest first. Each entry has at most 512 bytes; of more than 1,000 only the
    /// newest are kept.
    pub history: &'a [&'a str],
}

impl End<'_> {
    /// An end in `state` without output or error.
    pub fn plain(state: RunState) -> Self {
        Self { state, output: None, error: None, history: &[] }
    }
}

/// What became of the wish to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The caller has ended it.
    Finished {
        /// Whether its outcome has to be handed over now.
        outcome_wanted: bool,
        /// Whether children of it have not ended. The caller ends them ([`Store::open_children`]); until they have ended the
        /// run keeps an alarm.
        children: bool,
        /// The run that has called it and that has its end in its inbox now. The caller publishes the wake-up; the alarm of
        /// that run stands in for it.
        parent_to_wake: Option<Woken>,
        /// The turn of the same conversation that has begun because this one has ended. The caller publishes the wake-up;
        /// its alarm stands in for it.
        next_turn: Option<Woken>,
        /// Who has said something in the conversation because its turn has ended: the agent its answer, or the fleet why there
        /// is none. Also none when the same call had ended the run before.
        said: Option<ChatFrom>,
    },
    /// The run is no longer the caller's. Only for a holder.
    Lost,
    /// The run has changed since it was seen, somebody has it, or an event waits. Only without a claim.
    Busy,
    /// Somebody else has ended it. What that has called for may not have been done: the record names the outcome, the parent
    /// ([`RunRecord::parent`]) and whether there may be children ([`RunRecord::has_called`]).
    Ended(Box<RunRecord>),
    /// There is no such run.
    Missing,
}

/// What a message said about a run that has just been made, for a runner that has not read its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its workspace.
    pub workspace: &'a Name,
    /// The Process or agent.
    pub target: &'a Name,
    /// The version of the target.
    pub target_version: u32,
    /// Input as JSON.
    pub input: Option<&'a str>,
}

/// By what right a run is ended.
enum Right<'a> {
    Fence(u64),
    Version(u64),
    Told(&'a Told<'a>),
    Any,
}

/// The version of a run that nothing has happened to.
const UNTOUCHED: u64 = 1;

impl Store {
    /// Ends a run that the caller holds.
    pub async fn finish_run(
        &self,
        run: RunId,
        fence: u64,
        end: &End<'_>,
    ) -> Result<Finished, StoreError> {
        self.end(Operation::FinishRun, run, &Right::Fence(fence), end).await
    }

    /// Ends a run that nobody holds and that has not changed since the caller has seen `version` of it: a run that was
    /// carried out from beginning to end before it was claimed.
    pub async fn claim_and_finish_run(
        &self,
        run: RunId,
        version: u64,
        end: &End<'_>,
    ) -> Result<Finished, StoreError> {
        self.end(Operation::ClaimAndFinishRun, run, &Right::Version(version), end).await
    }

    /// The same for a run that nothing has happened to since its start, and whose record the caller has not read: what it was
    /// told is compared with the record. [`Finished::Busy`] when anything differs, also when the deadline has passed.
    pub async fn finish_untouched_run(
        &self,
        run: RunId,
        told: &Told<'_>,
        end: &End<'_>,
    ) -> Result<Finished, StoreError> {
        self.end(Operation::ClaimAndFinishRun, run, &Right::Told(told), end).await
    }

    /// Ends a run from outside, whoever holds it: cancelled, deleted, timed out, or given up.
    pub async fn end_run(&self, run: RunId, end: &End<'_>) -> Result<Finished, StoreError> {
        if end.state == RunState::Completed {
            return Err(StoreError::Invalid("only the holder of a run can complete it"));
        }
        self.end(Operation::EndRun, run, &Right::Any, end).await
    }

    async fn end(
        &self,
        operation: Operation,
        run: RunId,
        right: &Right<'_>,
        end: &End<'_>,
    ) -> Result<Finished, StoreError> {
        if !end.state.is_final() {
            return Err(StoreError::Invalid("a run can only end in a final state"));
        }
        check_size(end.output, BODY_BYTES_MAX, "the output is too large")?;
        check_size(end.error.map(|(code, _)| code), 128, "the error code is too long")?;
        check_size(end.error.map(|(_, message)| message), 4_096, "the error message is too long")?;
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.alarms(run.shard(), AlarmSet::Done),
            keys.inbox(run),
            keys.events(run),
            keys.seen(run),
            keys.history(run),
            keys.kids(run),
            keys.incidents(run.shard()),
            keys.alarms(run.shard(), AlarmSet::Process),
            keys.alarms(run.shard(), AlarmSet::Agent),
        ];
        let lua = &self.scripts().run_end;
        let args = self.end_args(run, right, end)?;
        let value = self.run_script(operation, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_end", value)?;
        match tag.as_str() {
            "missing" => Ok(Finished::Missing),
            "lost" => Ok(Finished::Lost),
            "busy" => Ok(Finished::Busy),
            "ended" => Ok(Finished::Ended(Box::new(RunRecord::read(run, reply.fields(RUN)?)?))),
            "finished" => Ok(Finished::Finished {
                outcome_wanted: reply.flag()?,
                children: reply.flag()?,
                parent_to_wake: Woken::read_optional(&mut reply)?,
                next_turn: Woken::read_optional(&mut reply)?,
                said: ChatFrom::read_optional(&mut reply)?,
            }),
            _ => reply.unknown(),
        }
    }

    fn end_args(&self, run: RunId, right: &Right<'_>, end: &End<'_>) -> Result<Args, StoreError> {
        let history = newest(end.history)?;
        let (word, number) = match right {
            Right::Fence(fence) => ("fence", *fence),
            Right::Version(version) => ("version", *version),
            Right::Told(_) => ("version", UNTOUCHED),
            Right::Any => ("any", 0),
        };
        Ok(Args::default()
            .with(run)
            .with(word)
            .with(number)
            .with(call_token())
            .with(end.state.as_str())
            .millis(RETENTION + RETENTION_MARGIN)
            .millis(self.inner.timings.alarm_handover)
            .flag(keeps_output(run))
            .told(right)
            .with(PROCESS_OUTPUT_BYTES_MAX)
            .millis(ALARM_WAKE)
            .millis(MESSAGE_ID_MEMORY)
            .with(SEEN_MAX)
            .with(RUN_HISTORY_MAX)
            .with(self.conversation_bounds())
            .with(history.len())
            .all(history)
            .field_if("output", end.output)
            .field_if("error_code", end.error.map(|(code, _)| code))
            .field_if("error_message", end.error.map(|(_, message)| message)))
    }
}

impl Args {
    fn told(self, right: &Right<'_>) -> Self {
        match right {
            Right::Told(told) => self
                .flag(true)
                .with(told.workspace)
                .with(told.target)
                .with(told.target_version)
                .with(told.input.unwrap_or_default()),
            Right::Fence(_) | Right::Version(_) | Right::Any => {
                self.flag(false).with("").with("").with("").with("")
            }
        }
    }
}

/// Whether callers can ask for the output after the end: that of an agent run can be read, that of a Process goes to its job
/// only.
pub(crate) fn keeps_output(run: RunId) -> bool {
    run.kind() == RunKind::Agent
}
