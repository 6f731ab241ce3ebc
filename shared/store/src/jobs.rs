//! Job runs: reading them, beginning and failing their attempts, ending them.

use std::time::Duration;

use runfleet_domain::JobId;
use runfleet_domain::job::{CODE_BYTES_MAX, JobErrorCode};
use runfleet_domain::limits::{JOB_HISTORY_MAX, JOB_RESULT_GRACE, RETENTION, RETENTION_MARGIN};

use crate::error::StoreError;
use crate::job_record::{JOB, JobRecord, JobState};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply};
use crate::store::{Args, Store, check_size};

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

/// What became of an attempt that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFailed {
    /// This attempt comes next, after the wait.
    Retried(u32),
    /// There is no further attempt: the run has failed just now.
    Ended,
    /// It had ended before.
    Known(JobState),
    /// Another attempt is under way.
    OtherAttempt(u32),
    /// There is no such job run.
    Missing,
}

/// What became of the beginning of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobBegun {
    /// Its time counts from now.
    Begun {
        /// Whether it has begun before, and begins anew.
        again: bool,
    },
    /// The run has ended.
    Known(JobState),
    /// Another attempt is under way.
    OtherAttempt(u32),
    /// There is no such job run.
    Missing,
}

/// What is to be done about a job run now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobDue {
    /// Its message is to be published: for the first time, or because nothing was heard of it.
    Publish {
        /// For how long its attempt has been due.
        age: Duration,
        /// Whether somebody was about to publish it before.
        again: bool,
        /// The run.
        job: Box<JobRecord>,
    },
    /// The attempt that is under way takes too long.
    Overtime(u32),
    /// Nothing: its time has not come.
    Early,
    /// Nothing: a host has begun it and has time left.
    Running,
    /// Nothing: it has ended.
    Ended,
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

    fn job_keys(&self, job: JobId) -> [String; 2] {
        let keys = self.keys();
        [keys.job(job), keys.alarms(job.shard(), AlarmSet::Done)]
    }

    /// Ends a job run: its handler returned, or it is given up. Only the attempt that is under way can end it.
    pub async fn finish_job(
        &self,
        job: JobId,
        attempt: u32,
        succeeded: bool,
    ) -> Result<JobFinished, StoreError> {
        let (state, code) = if succeeded {
            (JobState::Succeeded, "")
        } else {
            (JobState::Failed, JobErrorCode::SCRIPT_ERROR)
        };
        let args = over(job, attempt).with(state.as_str()).with(code);
        let lua = &self.scripts().job_finish;
        let value = self.run_script(Operation::FinishJob, lua, &self.job_keys(job), args).await?;
        let (tag, mut reply) = Reply::open("job_finish", value)?;
        match tag.as_str() {
            "ended" => Ok(JobFinished::Ended),
            "known" => Ok(JobFinished::Known(reply.word(JobState::from_word)?)),
            "other_attempt" => Ok(JobFinished::OtherAttempt(reply.parsed()?)),
            "missing" => Ok(JobFinished::Missing),
            _ => reply.unknown(),
        }
    }

    /// Fails an attempt of a job run. With `wait` the next one begins after that, if the run has attempts left; without, or when
    /// none is left, the run has failed. `code` is at most 64 bytes.
    ///
    /// When the answer is lost and the call comes again, the attempt is no longer under way: nothing happens twice.
    pub async fn fail_job(
        &self,
        job: JobId,
        attempt: u32,
        code: &str,
        wait: Option<Duration>,
    ) -> Result<JobFailed, StoreError> {
        check_size(Some(code), CODE_BYTES_MAX, "the code of the error is too long")?;
        let args =
            over(job, attempt).with(code).flag(wait.is_some()).millis(wait.unwrap_or_default());
        let lua = &self.scripts().job_fail;
        let value = self.run_script(Operation::FailJob, lua, &self.job_keys(job), args).await?;
        let (tag, mut reply) = Reply::open("job_fail", value)?;
        match tag.as_str() {
            "retried" => Ok(JobFailed::Retried(reply.parsed()?)),
            "ended" => Ok(JobFailed::Ended),
            "known" => Ok(JobFailed::Known(reply.word(JobState::from_word)?)),
            "other_attempt" => Ok(JobFailed::OtherAttempt(reply.parsed()?)),
            "missing" => Ok(JobFailed::Missing),
            _ => reply.unknown(),
        }
    }

    /// An attempt of a job run has begun: its alarm rings when its time is over, and a moment for the result.
    pub async fn begin_job(&self, job: JobId, attempt: u32) -> Result<JobBegun, StoreError> {
        let args = Args::default().with(job).with(attempt).millis(JOB_RESULT_GRACE);
        let lua = &self.scripts().job_begin;
        let value = self.run_script(Operation::BeginJob, lua, &self.job_keys(job), args).await?;
        let (tag, mut reply) = Reply::open("job_begin", value)?;
        match tag.as_str() {
            "begun" => Ok(JobBegun::Begun { again: reply.flag()? }),
            "known" => Ok(JobBegun::Known(reply.word(JobState::from_word)?)),
            "other_attempt" => Ok(JobBegun::OtherAttempt(reply.parsed()?)),
            "missing" => Ok(JobBegun::Missing),
            _ => reply.unknown(),
        }
    }

    /// The message of the attempt that is under way was not taken by the broker: whoever looks next publishes it.
    pub async fn withdraw_job(&self, job: JobId) -> Result<(), StoreError> {
        let mut command = redis::cmd("HDEL");
        command.arg(self.keys().job(job)).arg("offered");
        self.run_command(Operation::JobDue, command).await.map(drop)
    }

    /// What is to be done about a job run now. `bounds` are attempts, and milliseconds of an attempt, by the version of the
    /// project that is active now; they are kept when the job is to be published.
    pub async fn job_due(
        &self,
        job: JobId,
        bounds: Option<(u32, u32)>,
    ) -> Result<JobDue, StoreError> {
        let names = [self.keys().job(job)];
        let args = match bounds {
            Some((attempts, millis)) => Args::default().with(millis).with(attempts),
            None => Args::default().with("").with(""),
        };
        let lua = &self.scripts().job_due;
        let value = self.run_script(Operation::JobDue, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("job_due", value)?;
        match tag.as_str() {
            "publish" => Ok(JobDue::Publish {
                age: Duration::from_millis(reply.parsed()?),
                again: reply.flag()?,
                job: Box::new(JobRecord::read(job, reply.fields(JOB)?)?),
            }),
            "overtime" => Ok(JobDue::Overtime(reply.parsed()?)),
            "early" => Ok(JobDue::Early),
            "running" => Ok(JobDue::Running),
            "ended" => Ok(JobDue::Ended),
            "missing" => Ok(JobDue::Missing),
            _ => reply.unknown(),
        }
    }
}

/// The arguments of `job_over.lua`.
fn over(job: JobId, attempt: u32) -> Args {
    Args::default()
        .with(job)
        .with(attempt)
        .millis(RETENTION + RETENTION_MARGIN)
        .millis(RETENTION)
        .with(JOB_HISTORY_MAX)
}
