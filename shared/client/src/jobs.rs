//! Calls that are about background jobs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runfleet_contracts::Operation;
use runfleet_contracts::job::{EnqueueJob, JobEnqueued};
use serde::Serialize;

use crate::{Client, Error, written};

/// Enqueues jobs of the project; see [`Client::jobs`].
#[derive(Clone, Copy)]
pub struct Jobs<'a>(pub(crate) &'a Client);

/// A job that is to run; all but its key may be left out.
#[derive(Debug, Clone)]
pub struct Job(EnqueueJob);

impl Job {
    /// A job that the active version of the project declares. It runs at once, without a payload.
    pub fn new(job: impl Into<String>) -> Self {
        Self(EnqueueJob {
            job: job.into(),
            payload: None,
            delay_ms: None,
            run_at: None,
            idempotency_key: None,
        })
    }

    /// What its handler gets: at most 65,536 bytes as JSON.
    pub fn payload(mut self, payload: &impl Serialize) -> Result<Self, Error> {
        self.0.payload = Some(written(payload)?);
        Ok(self)
    }

    /// How long the first attempt waits: at most 30 days, in whole milliseconds.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.0.delay_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// When the first attempt begins at the earliest, in Unix milliseconds: at most 30 days ahead.
    #[must_use]
    pub fn run_at(mut self, at_ms: u64) -> Self {
        self.0.run_at = Some(at_ms);
        self
    }

    /// Makes two calls for this job one job run, for as long as that is stored: 1 to 128 letters, digits, `.`, `_`, `:` and
    /// `-`.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.0.idempotency_key = Some(key.into());
        self
    }
}

impl Jobs<'_> {
    /// Enqueues a job. Returns once the job run exists; it never waits for the job to run.
    pub async fn enqueue(self, job: Job) -> Result<JobEnqueued, Error> {
        let payload = written(&job.0)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        EnqueueJob::parse(&payload, u64::try_from(now.as_millis()).unwrap_or(u64::MAX))?;
        self.0.call(Operation::JobsEnqueue, payload).await
    }
}
