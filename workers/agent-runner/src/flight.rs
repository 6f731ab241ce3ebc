//! Calls that are under way from here: each once, and dropped when their run has ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use runfleet_domain::{RunId, RunState};
use runfleet_store::Store;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether runs with calls under way have ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs that are looked at together.
const LOOK_WIDTH: usize = 64;

/// The calls that are under way. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Flights {
    calls: Arc<Mutex<HashMap<(RunId, String), CancellationToken>>>,
}

/// One call; gone when it is dropped.
pub(crate) struct Flight {
    flights: Flights,
    key: (RunId, String),
    /// Told when the run has ended.
    pub(crate) cancel: CancellationToken,
}

impl Flights {
    /// Takes a call; none when it is under way already: its message may come twice.
    pub(crate) fn take(&self, run: RunId, call: &str) -> Option<Flight> {
        let key = (run, call.to_owned());
        let cancel = CancellationToken::new();
        let mut calls = self.lock();
        if calls.contains_key(&key) {
            return None;
        }
        calls.insert(key.clone(), cancel.clone());
        drop(calls);
        Some(Flight { flights: self.clone(), key, cancel })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(RunId, String), CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again and again whether runs have ended, and tells their calls.
    pub(crate) async fn watch(self, store: Store, shutdown: CancellationToken) {
        while shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            let mut runs: Vec<RunId> = self.lock().keys().map(|(run, _)| *run).collect();
            runs.sort_unstable_by_key(ToString::to_string);
            runs.dedup();
            let looks = runs.into_iter().map(|run| {
                let store = &store;
                async move { (run, store.run_state(run).await) }
            });
            let mut looks = futures_util::stream::iter(looks).buffer_unordered(LOOK_WIDTH);
            while let Some((run, state)) = looks.next().await {
                match state {
                    Ok(state) if state.is_none_or(RunState::is_final) => self.cancel(run),
                    Ok(_) => {}
                    // The next look tells.
                    Err(error) => tracing::debug!(%error, "looking for the end of a run failed"),
                }
            }
        }
    }

    fn cancel(&self, run: RunId) {
        for ((of, _), cancel) in &*self.lock() {
            if *of == run {
                cancel.cancel();
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_under_way_once_and_hears_of_the_end_of_its_run() {
        let flights = Flights::default();
        let [one, other]: [RunId; 2] =
            ["AG1501JDX3Z8GF0000000000000000", "AG1501JDX3Z8GF0000000000000001"]
                .map(|id| id.parse().unwrap());
        let first = flights.take(one, "turn:1:1").unwrap();
        assert!(flights.take(one, "turn:1:1").is_none());
        let second = flights.take(other, "turn:1:1").unwrap();
        flights.cancel(one);
        assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled());
        drop(first);
        assert!(!flights.take(one, "turn:1:1").unwrap().cancel.is_cancelled());
    }
}
