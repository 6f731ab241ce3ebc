//! Handlers that have ended, by the job that they worked for, and who waits for them. Knows no host: whoever runs or watches one says
//! what it has seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use runfleet_domain::JobId;
use tokio::sync::oneshot;

/// How far the clock of a host on the same machine may seem to be from ours.
const CLOCKS: Duration = Duration::from_millis(10);

/// A handler that has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// When, as the handler says.
    pub(super) at: Instant,
    /// When we heard of it.
    pub(super) heard: Instant,
    /// How the run of the outcome has ended.
    pub(super) how: String,
}

impl Ended {
    /// How long it took since the start of the run; an error when the run has failed, or when this cannot be.
    pub(super) fn since(&self, began: Instant) -> Result<Duration> {
        ensure!(self.how == "COMPLETED", "a run has ended as {}", self.how);
        let possible = self.at <= self.heard + CLOCKS && self.at + CLOCKS >= began;
        ensure!(possible, "the host has another time than the benchmark");
        Ok(self.at.saturating_duration_since(began))
    }
}

enum Slot {
    Wanted(oneshot::Sender<Ended>),
    Came(Ended),
    Taken,
}

#[derive(Default)]
struct State {
    slots: HashMap<JobId, Slot>,
    ended: usize,
}

/// Clones share one board.
#[derive(Clone, Default)]
pub(super) struct Board(Arc<Mutex<State>>);

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler has ended. Of several for one job the first counts.
    pub(super) fn tell(&self, job: JobId, ended: Ended) {
        let mut state = self.state();
        state.ended += 1;
        let slot = match state.slots.remove(&job) {
            None => Slot::Came(ended),
            Some(Slot::Wanted(waiting)) => {
                // Who waited may be gone by now.
                let _ = waiting.send(ended);
                Slot::Taken
            }
            Some(known) => known,
        };
        state.slots.insert(job, slot);
    }

    /// Waits for the handler of a job, without a bound of its own.
    pub(super) async fn wait(&self, job: JobId) -> Result<Ended> {
        let coming = {
            let mut state = self.state();
            match state.slots.insert(job, Slot::Taken) {
                Some(Slot::Came(ended)) => return Ok(ended),
                Some(_) => bail!("two runs have one outcome job"),
                None => {
                    let (sender, coming) = oneshot::channel();
                    state.slots.insert(job, Slot::Wanted(sender));
                    coming
                }
            }
        };
        coming.await.context("nobody looks at handlers any more")
    }

    /// How many handlers have ended, all told.
    pub(super) fn ended(&self) -> usize {
        self.state().ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u8) -> JobId {
        use runfleet_domain::{RunId, RunKind, Shard};
        let id = ulid::Ulid::from(u128::from(n));
        RunId::new(RunKind::Process, Shard::of_workspace("demo"), id).outcome_job()
    }

    fn ended(how: &str) -> Ended {
        let now = Instant::now();
        Ended { at: now, heard: now, how: how.to_owned() }
    }

    #[tokio::test]
    async fn a_handler_is_told_to_who_waits_whether_it_ended_before_or_ends_later() {
        let board = Board::default();
        board.tell(job(1), ended("COMPLETED"));
        assert_eq!(board.wait(job(1)).await.unwrap().how, "COMPLETED");
        let waiting = tokio::spawn({
            let board = board.clone();
            async move { board.wait(job(2)).await }
        });
        while !matches!(board.state().slots.get(&job(2)), Some(Slot::Wanted(_))) {
            tokio::task::yield_now().await;
        }
        board.tell(job(2), ended("FAILED"));
        assert_eq!(waiting.await.unwrap().unwrap().how, "FAILED");
        // A handler that runs again is counted, and changes nothing.
        board.tell(job(2), ended("COMPLETED"));
        assert_eq!(board.ended(), 3);
        assert!(board.wait(job(2)).await.is_err());
    }

    #[test]
    fn a_run_that_has_failed_or_a_time_that_cannot_be_is_no_measurement() {
        let began = Instant::now();
        let good = Ended { at: began + Duration::from_secs(1), ..ended("COMPLETED") };
        let good = Ended { heard: good.at, ..good };
        assert_eq!(good.since(began).unwrap(), Duration::from_secs(1));
        assert!(Ended { how: "FAILED".to_owned(), ..good.clone() }.since(began).is_err());
        assert!(Ended { heard: began, ..good.clone() }.since(began).is_err());
        assert!(good.since(began + Duration::from_secs(2)).is_err());
    }
}
