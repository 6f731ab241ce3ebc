//! What only process-runner knows.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use runfleet_domain::RunState;

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Runs ended here, by their final state.
    pub(crate) ended: IntCounterVec,
    /// Slices committed, by how they went.
    pub(crate) slices: IntCounterVec,
    /// Events that changed nothing.
    pub(crate) ignored: IntCounter,
}

/// How a slice went.
pub(crate) const SLICES: [&str; 4] = ["ended", "continued", "waiting", "superseded"];

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let ended = IntCounterVec::new(
            Opts::new("runfleet_process_runs_ended_total", "Process runs ended by this worker."),
            &["state"],
        )?;
        let slices = IntCounterVec::new(
            Opts::new("runfleet_process_slices_total", "Slices of Process runs, by how they went."),
            &["result"],
        )?;
        let ignored = IntCounter::new(
            "runfleet_process_events_ignored_total",
            "Events that changed nothing: what they are about was over, or they did not fit.",
        )?;
        registry.register(Box::new(ended.clone()))?;
        registry.register(Box::new(ignored.clone()))?;
        registry.register(Box::new(slices.clone()))?;
        for state in RunState::ALL.into_iter().filter(|state| state.is_final()) {
            ended.with_label_values(&[state.as_str()]);
        }
        for result in SLICES {
            slices.with_label_values(&[result]);
        }
        Ok(Self { ended, slices, ignored })
    }
}
