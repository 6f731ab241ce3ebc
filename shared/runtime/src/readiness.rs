//! Whether the process should get work: named conditions, all of which must hold, until it is asked to stop.
//!
//! It speaks of this process only and never of the services behind it being healthy for others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The conditions of one process. Clones share them.
#[derive(Debug, Clone)]
pub struct Readiness {
    conditions: Arc<Mutex<BTreeMap<&'static str, bool>>>,
    shutdown: CancellationToken,
}

impl Readiness {
    /// No conditions yet, which is not ready.
    pub(crate) fn new(shutdown: CancellationToken) -> Self {
        Self { conditions: Arc::default(), shutdown }
    }

    /// Names conditions that do not hold yet. Declare all of them before the first is [`set`](Self::set): with one that
    /// holds and none that fails the process is ready.
    pub fn declare(&self, names: &[&'static str]) {
        let mut conditions = self.lock();
        for name in names {
            conditions.entry(name).or_insert(false);
        }
    }

    /// Says whether a condition holds now. A condition that was not declared is added.
    pub fn set(&self, name: &'static str, holds: bool) {
        let before = self.lock().insert(name, holds).unwrap_or(false);
        if before != holds {
            tracing::info!(condition = name, holds, "readiness changed");
        }
    }

    /// Whether the process should get work.
    pub fn is_ready(&self) -> bool {
        self.failing().is_empty()
    }

    /// What stands in the way: names of conditions, `starting` while there are none, `stopping` after the request to stop.
    pub fn failing(&self) -> Vec<&'static str> {
        let conditions = self.lock();
        let mut failing: Vec<_> =
            conditions.iter().filter(|(_, holds)| !**holds).map(|(name, _)| *name).collect();
        if conditions.is_empty() {
            failing.push("starting");
        }
        if self.shutdown.is_cancelled() {
            failing.push("stopping");
        }
        failing
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, bool>> {
        // A map of flags is whole after a panic of whoever held it.
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_while_all_conditions_hold_and_nobody_asked_it_to_stop() {
        let shutdown = CancellationToken::new();
        let readiness = Readiness::new(shutdown.clone());
        assert_eq!(readiness.failing(), ["starting"]);
        readiness.declare(&["ledger", "broker"]);
        assert_eq!(readiness.failing(), ["broker", "ledger"]);
        readiness.set("broker", true);
        assert_eq!(readiness.failing(), ["ledger"]);
        readiness.clone().set("ledger", true);
        assert!(readiness.is_ready());
        readiness.declare(&["ledger"]);
        assert!(readiness.is_ready(), "declaring again takes nothing back");
        readiness.set("broker", false);
        assert_eq!(readiness.failing(), ["broker"]);
        readiness.set("broker", true);
        shutdown.cancel();
        assert_eq!(readiness.failing(), ["stopping"]);
    }
}
