//! Job runs: reading them, beginning another attempt, ending them.

use std::time::Duration;

use runfleet_domain::JobId;
use runfleet_domain::limits::{RETENTION, RETENTION_MARGIN};

use crate::error::StoreError;
use crate::job_record::{JOB, JobRecord, JobState};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply};
use crate::store::{Args, Store};

/// What became of the end of a job run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFinished {
    /// It has ended just now.
    Ended,
    /// It had ended before.
    Known(JobState),
    /// Another attempt is under way.
    OtherAttempt(u32),
    /// There is no such job run.
    Missing,
}

/// What became of the wish to try a job run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobRetried {
    /// The next attempt is under way; the same answer when the call comes again.
    Retried(Box<JobRecord>),
    /// It has ended.
    Ended(JobState),
    /// Another attempt is under way.
    OtherAttempt(u32),
    /// There is no such job run.
    Missing,
}

impl Store {
    /// The record of a job run.
    pub async fn load_job(&self, job: JobId) -> Result<Option<JobRecord>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys().job(job));
        let fields = Fields::new(JOB, self.run_command(Operation::LoadJob, command).await?)?;
        if fields.is_empty() {
            return Ok(None);
        }
        JobRecord::read(job, fields).map(Some)
    }

    /// Ends a job run: its handler returned, or it is given up. Only the attempt that is under way can end it.
    pub async fn finish_job(
        &self,
        job: JobId,
        attempt: u32,
        succeeded: bool,
    ) -> Result<JobFinished, StoreError> {
        let keys = self.keys();
        let names = [keys.job(job), keys.alarms(job.shard(), AlarmSet::Done)];
        let state = if succeeded { JobState::Succeeded } else { JobState::Failed };
        let args = Args::default()
            .with(job)
            .with(attempt)
            .with(state.as_str())
            .millis(RETENTION + RETENTION_MARGIN);
        let lua = &self.scripts().job_finish;
        let value = self.run_script(Operation::FinishJob, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("job_finish", value)?;
        match tag.as_str() {
            "ended" => Ok(JobFinished::Ended),
            "known" => Ok(JobFinished::Known(reply.word(JobState::from_word)?)),
            "other_attempt" => Ok(JobFinished::OtherAttempt(reply.parsed()?)),
            "missing" => Ok(JobFinished::Missing),
            _ => reply.unknown(),
        }
    }

    /// Begins the next attempt of a job run after `attempt` has failed. Its message reaches the project after `delay`; the
    /// alarm that stands in for a lost one waits for that too.
    pub async fn retry_job(
        &self,
        job: JobId,
        attempt: u32,
        delay: Duration,
    ) -> Result<JobRetried, StoreError> {
        let keys = self.keys();
        let names = [keys.job(job), keys.alarms(job.shard(), AlarmSet::Done)];
        let alarm = delay.saturating_add(self.inner.timings.alarm_handover);
        let args = Args::default().with(job).with(attempt).millis(alarm);
        let lua = &self.scripts().job_retry;
        let value = self.run_script(Operation::RetryJob, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("job_retry", value)?;
        match tag.as_str() {
            "retried" => {
                Ok(JobRetried::Retried(Box::new(JobRecord::read(job, reply.fields(JOB)?)?)))
            }
            "ended" => Ok(JobRetried::Ended(reply.word(JobState::from_word)?)),
            "other_attempt" => Ok(JobRetried::OtherAttempt(reply.parsed()?)),
            "missing" => Ok(JobRetried::Missing),
            _ => reply.unknown(),
        }
    }
}
