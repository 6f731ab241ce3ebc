//! What a worker gets from its frame, besides its own settings.

use std::time::Duration;

use prometheus::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::readiness::Readiness;

/// The running process as its worker sees it. Clones share everything.
#[derive(Debug, Clone)]
pub struct Process {
    /// The name of the worker.
    pub worker: &'static str,
    /// Cancelled once, when the process is asked to stop: take nothing new from then on.
    pub shutdown: CancellationToken,
    /// How long work that is in hand may take after that; interrupt and give back what is left then.
    pub grace: Duration,
    /// Metrics registered here are served.
    pub registry: Registry,
    /// Whether the process should get work.
    pub readiness: Readiness,
    /// Tasks in the background. They must end after [`shutdown`](Self::shutdown); the process waits for them as long as
    /// for the worker itself.
    pub tasks: TaskTracker,
}

impl Process {
    /// A process without signals and admin server: what [`main`](crate::main) starts from, and enough for a test.
    pub fn new(worker: &'static str, grace: Duration) -> Self {
        let shutdown = CancellationToken::new();
        Self {
            worker,
            grace,
            registry: Registry::new(),
            readiness: Readiness::new(shutdown.clone()),
            shutdown,
            tasks: TaskTracker::new(),
        }
    }
}
