//! What only completion-dispatcher knows.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry};
use runfleet_domain::outcome::DropReason;

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Outcomes handed over, by what became of them.
    pub(crate) outcomes: IntCounterVec,
    /// Attempts of jobs ended, by how.
    pub(crate) jobs: IntCounterVec,
    /// Minutes of schedules, by what became of them.
    pub(crate) scheduled: IntCounterVec,
    /// Job runs that wait or run.
    pub(crate) waiting: IntGauge,
    /// Projects with jobs that nobody takes.
    pub(crate) without_host: IntGauge,
}

/// How an attempt ended: the job with it, or not.
const JOBS: [&str; 3] = ["succeeded", "failed", "retried"];

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
            Opts::new("runfleet_jobs_ended_total", "Attempts of jobs ended, by how."),
            &["result"],
        )?;
        let scheduled = IntCounterVec::new(
            Opts::new("runfleet_jobs_scheduled_total", "Job runs that schedules called for."),
            &["result"],
        )?;
        let waiting = IntGauge::new(
            "runfleet_jobs_waiting",
            "Job runs of all projects that wait or run; every dispatcher counts all.",
        )?;
        let without_host = IntGauge::new(
            "runfleet_projects_without_host",
            "Projects with jobs that wait and no host that takes them; every dispatcher counts all.",
        )?;
        registry.register(Box::new(outcomes.clone()))?;
        registry.register(Box::new(jobs.clone()))?;
        registry.register(Box::new(scheduled.clone()))?;
        registry.register(Box::new(waiting.clone()))?;
        registry.register(Box::new(without_host.clone()))?;
        for result in
            ["delivered", "repeated"].into_iter().chain(DropReason::ALL.map(DropReason::as_str))
        {
            outcomes.with_label_values(&[result]);
        }
        for result in JOBS {
            jobs.with_label_values(&[result]);
        }
        for result in ["created", "full"] {
            scheduled.with_label_values(&[result]);
        }
        Ok(Self { outcomes, jobs, scheduled, waiting, without_host })
    }
}
