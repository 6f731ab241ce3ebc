//! Ending runs. Whoever ends a run first wins.

use runfleet_domain::limits::{BODY_BYTES_MAX, RETENTION, RETENTION_MARGIN};
use runfleet_domain::{Name, RunId, RunKind, RunState};

use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{RUN, RunRecord};
use crate::reply::Reply;
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
}

impl End<'_> {
    /// An end in `state` without output or error.
    pub fn plain(state: RunState) -> Self {
        Self { state, output: None, error: None }
    }
}

/// What became of the wish to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
    /// The caller has ended it.
    Finished {
        /// Whether its outcome has to be handed over now.
        outcome_wanted: bool,
    },
    /// The run is no longer the caller's. Only for a holder.
    Lost,
    /// The run has changed since it was seen, somebody has it, or an event waits. Only without a claim.
    Busy,
    /// Somebody else has ended it.
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
        ];
        let (word, number) = match right {
            Right::Fence(fence) => ("fence", *fence),
            Right::Version(version) => ("version", *version),
            Right::Told(_) => ("version", UNTOUCHED),
            Right::Any => ("any", 0),
        };
        let args = Args::default()
            .with(run)
            .with(word)
            .with(number)
            .with(call_token())
            .with(end.state.as_str())
            .millis(RETENTION + RETENTION_MARGIN)
            .millis(self.inner.timings.alarm_handover)
            .flag(keeps_output(run))
            .told(right)
            .field_if("output", end.output)
            .field_if("error_code", end.error.map(|(code, _)| code))
            .field_if("error_message", end.error.map(|(_, message)| message));
        let lua = &self.scripts().run_end;
        let value = self.run_script(operation, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_end", value)?;
        match tag.as_str() {
            "missing" => Ok(Finished::Missing),
            "lost" => Ok(Finished::Lost),
            "busy" => Ok(Finished::Busy),
            "ended" => Ok(Finished::Ended(Box::new(RunRecord::read(run, reply.fields(RUN)?)?))),
            "finished" => Ok(Finished::Finished { outcome_wanted: reply.flag()? }),
            _ => reply.unknown(),
        }
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
