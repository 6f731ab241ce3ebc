//! What only completion-dispatcher knows.

use prometheus::{IntCounterVec, Opts, Registry};
use runfleet_domain::outcome::DropReason;

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Outcomes handed over, by what became of them.
    pub(crate) outcomes: IntCounterVec,
    /// Jobs ended, by how.
    pub(crate) jobs: IntCounterVec,
}

/// How a job ended.
pub(crate) const JOBS: [&str; 2] = ["succeeded", "failed"];

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let outcomes = IntCounterVec::new(
            Opts::new(
                "runfleet_outcomes_total",
                "Outcomes of runs: delivered as a job, or dropped and why.",
            ),
            &["result"],
        )?;
        let jobs = IntCounterVec::new(
            Opts::new("runfleet_jobs_ended_total", "Jobs ended, by how."),
            &["result"],
        )?;
        registry.register(Box::new(outcomes.clone()))?;
        registry.register(Box::new(jobs.clone()))?;
        for result in
            ["delivered", "repeated"].into_iter().chain(DropReason::ALL.map(DropReason::as_str))
        {
            outcomes.with_label_values(&[result]);
        }
        for result in JOBS {
            jobs.with_label_values(&[result]);
        }
        Ok(Self { outcomes, jobs })
    }
}
