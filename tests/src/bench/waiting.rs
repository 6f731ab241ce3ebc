//! Runs that wait for a timer: what each of them costs while it waits, and how fast all of them go on when they are due at
//! once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use runfleet_contracts::request::ProcessStart;
use runfleet_runtime::clock::now_ms;

use super::count;
use super::fleet::{Arrivals, Bench, Start, Started, start_of};
use super::usage::{Counts, Memory};

/// Time on top of what the starts should take, so that all runs wait before they are due.
const SPARE: Duration = Duration::from_secs(15);

/// Longest time from the due time to the last outcome.
const BOUND: Duration = Duration::from_mins(2);

/// The memory of a process follows what happens with a delay, and Redis frees in the background.
const SETTLE: Duration = Duration::from_secs(2);

/// What was measured of runs that wait.
pub(crate) struct Waiting {
    /// How many.
    pub(crate) runs: usize,
    /// First start until the last run waits.
    pub(crate) began: Duration,
    /// Before the first start.
    pub(crate) before: Memory,
    /// While all wait.
    pub(crate) during: Memory,
    /// Bytes and number of the keys of one run that waits.
    pub(crate) keys: (f64, usize),
    /// For each run, until it waits.
    pub(crate) to_wait: Counts,
    /// For each run, from there to its outcome.
    pub(crate) to_end: Counts,
    /// First outcome to last outcome.
    pub(crate) resumed: Duration,
    /// From the due time to each outcome.
    pub(crate) late: Vec<Duration>,
}

fn start(due_ms: u64) -> Result<ProcessStart> {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(due_ms)?)?;
    start_of("bench-timer", &format!(r#"{{"at": "{at}", "order": 7}}"#))
}

impl Bench {
    /// Lets `runs` runs wait for the same date.
    pub(crate) async fn waiting(&self, runs: usize, in_flight: usize) -> Result<Waiting> {
        let took = self.wait_shortly(runs / 20 + 1, in_flight).await.context("warming up")?;
        tokio::time::sleep(SETTLE).await;
        let (before, first_counts) = (self.memory().await?, self.counts().await?);
        let arrivals = Arrivals::take(&self.fleet, self.says);
        let ahead = took * 40 + SPARE;
        let (first, due_ms) = (Instant::now(), now_ms() + u64::try_from(ahead.as_millis())?);
        let Started { one, .. } = self.start_and_wait(due_ms, runs, in_flight).await?;
        let began = first.elapsed();
        tokio::time::sleep(SETTLE).await;
        let (during, wait_counts) = (self.memory().await?, self.counts().await?);
        let keys = self.memory_of(one)?;
        ensure!(now_ms() < due_ms, "the machine is too busy: runs were due before all waited");

        let due = first + ahead;
        let arrived = arrivals.all(runs, ahead + BOUND).await?;
        tokio::time::sleep(SETTLE).await;
        let end_counts = self.counts().await?;
        let ends = || arrived.values().copied();
        let (earliest, last) = (ends().min(), ends().max());
        let (earliest, last) = (earliest.context("no outcome")?, last.context("no outcome")?);
        ensure!(earliest >= due, "a run went on before it was due");
        Ok(Waiting {
            runs,
            began,
            before,
            during,
            keys,
            to_wait: wait_counts.since(&first_counts, count(runs)),
            to_end: end_counts.since(&wait_counts, count(runs)),
            resumed: last.duration_since(earliest),
            late: ends().map(|at| at.duration_since(due)).collect(),
        })
    }

    /// Fills what is filled by the first runs, and tells how long it took until all waited.
    async fn wait_shortly(&self, runs: usize, in_flight: usize) -> Result<Duration> {
        let arrivals = Arrivals::take(&self.fleet, self.says);
        let first = Instant::now();
        self.start_and_wait(now_ms() + 10_000, runs, in_flight).await?;
        let took = first.elapsed();
        arrivals.all(runs, BOUND).await?;
        Ok(took)
    }

    /// Starts runs that are due at `due_ms`, and waits until all of them wait.
    async fn start_and_wait(&self, due_ms: u64, runs: usize, in_flight: usize) -> Result<Started> {
        let series = r#"runfleet_process_slices_total{result="waiting"}"#;
        let before = self.fleet.metric("process-runner", series).await?;
        let started = self.start_many(&Start::Process(start(due_ms)?), runs, in_flight).await?;
        while self.fleet.metric("process-runner", series).await? - before < count(runs) {
            ensure!(now_ms() < due_ms, "the machine is too busy: runs were due before all waited");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(started)
    }
}
