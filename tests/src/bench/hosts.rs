//! From the start of a run to its outcome job handled by a host of the project: a host in Rust, and the project host of the SDK under
//! Node.js, each with Processes and with agents whose model answers at once.
//!
//! So many runs are between their start and the end of their handler at any time as the plan says are in flight. The end of a handler
//! is the time at which the handler itself is at its end, by the clock of this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runfleet_contracts::JobRun;
use runfleet_domain::JobId;
use serde_json::Value;

use super::agents::Shape;
use super::board::{Board, Ended};
use super::fleet::{Bench, Start, example};
use super::host::{Host, Says, ending};
use crate::NodeHost;

/// Longest time of all runs of one kind with one host.
const BOUND: Duration = Duration::from_mins(1);

/// Most lines of a host that are repeated when it has failed.
const LINES_MAX: usize = 3;

/// What was measured of one kind of run with one host.
pub(crate) struct Handled {
    /// First start to the end of the last handler.
    pub(crate) wall: Duration,
    /// Start to the end of the handler, each.
    pub(crate) waits: Vec<Duration>,
    /// The same of runs that were started one after the other.
    pub(crate) alone: Vec<Duration>,
}

/// What was measured with one host.
pub(crate) struct ByHost {
    /// Runs of a Process.
    pub(crate) process: Handled,
    /// Runs of an agent.
    pub(crate) agent: Handled,
}

/// The code that the host under Node.js runs.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench/project")
}

/// The time of day beside the clock that all else is measured with.
struct Clock {
    instant: Instant,
    unix: Duration,
}

impl Clock {
    fn look() -> Result<Self> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).context("it is before 1970")?;
        Ok(Self { instant: Instant::now(), unix })
    }

    fn instant(&self, unix_ms: f64) -> Option<Instant> {
        let unix = Duration::try_from_secs_f64(unix_ms / 1_000.0).ok()?;
        let later = unix.checked_sub(self.unix);
        match later {
            Some(later) => self.instant.checked_add(later),
            None => self.instant.checked_sub(self.unix.saturating_sub(unix)),
        }
    }
}

/// What a line of the host's log says of a handler; none when it is about something else.
fn handled(line: &Value, clock: &Clock) -> Option<(JobId, Ended)> {
    if line["message"] != "handled" {
        return None;
    }
    let fields: Value = serde_json::from_str(line["fields"].as_str()?).ok()?;
    let job = fields["job"].as_str()?.parse().ok()?;
    let at = clock.instant(fields["at"].as_f64()?)?;
    let how = fields["ended"].as_str().unwrap_or("without an outcome").to_owned();
    Some((job, Ended { at, heard: Instant::now(), how }))
}

impl Bench {
    /// Has a host in Rust handle the outcome jobs of `runs` runs of each kind.
    pub(crate) async fn by_rust(&self, runs: usize, in_flight: usize) -> Result<ByHost> {
        let board = Board::default();
        let seen = board.clone();
        let handler = move |job: &JobRun| {
            let at = Instant::now();
            seen.tell(job.job_id, Ended { at, heard: at, how: ending(job) });
        };
        let _host = Host::start(&self.fleet, Says::Everything, handler, |_| ());
        self.both(&board, runs, in_flight).await
    }

    /// Has the project host of the SDK handle them.
    pub(crate) async fn by_node(&self, runs: usize, in_flight: usize) -> Result<ByHost> {
        let (board, clock) = (Board::default(), Clock::look()?);
        let seen = board.clone();
        let heard = move |line: &Value| {
            if let Some((job, ended)) = handled(line, &clock) {
                seen.tell(job, ended);
            }
        };
        let mut host = NodeHost::start_heard(&self.fleet, &project(), heard).await?;
        let taken = tokio::select! {
            taken = self.both(&board, runs, in_flight) => taken,
            gone = host.gone() => Err(gone),
        };
        let taken = taken.with_context(|| {
            let bad = host.lines(|line| line["level"] == "WARN" || line["level"] == "ERROR");
            format!("the host under Node.js; it has said {:?}", &bad[..bad.len().min(LINES_MAX)])
        })?;
        ensure!(host.stop().await?.success(), "the host has failed when it was asked to stop");
        Ok(taken)
    }

    async fn both(&self, board: &Board, runs: usize, in_flight: usize) -> Result<ByHost> {
        let process = Start::Process(example()?);
        let process = self.bounded(board, &process, runs, in_flight).await.context("Processes")?;
        let agent = Shape::One.start();
        let agent = self.bounded(board, &agent, runs, in_flight).await.context("agents")?;
        Ok(ByHost { process, agent })
    }

    /// A tenth of the runs to warm up, all of them, and a tenth one after the other.
    async fn bounded(
        &self,
        board: &Board,
        start: &Start,
        runs: usize,
        in_flight: usize,
    ) -> Result<Handled> {
        let (before, few) = (board.ended(), runs.div_ceil(10));
        let all = async {
            self.handle_all(board, start, few, in_flight).await?;
            let (wall, waits) = self.handle_all(board, start, runs, in_flight).await?;
            let (_, alone) = self.handle_all(board, start, few, 1).await?;
            anyhow::Ok(Handled { wall, waits, alone })
        };
        let taken = tokio::time::timeout(BOUND, all).await;
        let (ended, expected) = (board.ended() - before, runs + 2 * few);
        let Ok(taken) = taken else {
            bail!("{ended} of {expected} outcome jobs were handled within {BOUND:?}");
        };
        let taken = taken?;
        ensure!(ended == expected, "{ended} handlers have ended for {expected} runs");
        Ok(taken)
    }

    /// Starts runs, `in_flight` of which are not handled yet at any time. From the first start to the end of the last handler, and
    /// how long each has taken.
    async fn handle_all(
        &self,
        board: &Board,
        start: &Start,
        runs: usize,
        in_flight: usize,
    ) -> Result<(Duration, Vec<Duration>)> {
        let first = Instant::now();
        let one = || async {
            let began = Instant::now();
            let run = start.make(&self.client).await?;
            let ended = board.wait(run.outcome_job()).await?;
            anyhow::Ok((ended.since(began)?, ended.at))
        };
        let all = stream::iter((0..runs).map(|_| one())).buffer_unordered(in_flight);
        let all: Vec<(Duration, Instant)> = all.try_collect().await?;
        let last = all.iter().map(|(_, at)| *at).max().context("nothing was started")?;
        let waits = all.into_iter().map(|(wait, _)| wait).collect();
        Ok((last.saturating_duration_since(first), waits))
    }
}

#[cfg(test)]
mod tests {
    use runfleet_domain::{RunId, RunKind, Shard};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_time_of_a_handler_is_read_to_the_microsecond_before_and_after_the_first_look() {
        let clock = Clock { instant: Instant::now(), unix: Duration::from_secs(1_700_000_000) };
        let at = |ms: f64| clock.instant(1_700_000_000_000.0 + ms).unwrap();
        let near = |one: Duration, other: Duration| one.abs_diff(other) < Duration::from_micros(2);
        assert!(near(at(1.25) - clock.instant, Duration::from_micros(1_250)));
        assert!(near(clock.instant - at(-1.25), Duration::from_micros(1_250)));
        assert!(clock.instant(f64::NAN).is_none());
    }

    #[test]
    fn only_lines_of_handlers_are_read() {
        let clock = Clock::look().unwrap();
        let shard = Shard::of_workspace("demo");
        let job = RunId::new(RunKind::Process, shard, ulid::Ulid::from(7_u128)).outcome_job();
        let line = |fields: &str| json!({"message": "handled", "fields": fields});
        let fields = json!({"job": job.to_string(), "ended": "FAILED", "at": 1.0}).to_string();
        let (read, ended) = handled(&line(&fields), &clock).unwrap();
        assert_eq!((read, ended.how.as_str()), (job, "FAILED"));
        assert!(handled(&json!({"message": "other", "fields": fields}), &clock).is_none());
        assert!(handled(&line(&fields[..20]), &clock).is_none());
        assert!(handled(&line(&fields.replace("at", "on")), &clock).is_none());
    }
}
