//! Stored job runs: everything that it takes to publish the message of a job again.

use runfleet_domain::{JobId, JobKey, Lane, Name, RunId, RunState};

use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::record::RunError;
use crate::reply::Fields;

/// Newest version of a job record that this program reads, and the one that it writes.
pub const JOB_VERSION: u64 = 1;

pub(crate) const JOB: &str = "job";

/// Where a job run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waiting or running.
    Live,
    /// Its handler returned.
    Succeeded,
    /// It was given up.
    Failed,
}

impl JobState {
    /// The word in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "LIVE",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Live, Self::Succeeded, Self::Failed].into_iter().find(|state| state.as_str() == word)
    }
}

/// Everything that the ledger holds about one job run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// The job run.
    pub id: JobId,
    /// The run whose outcome it is.
    pub run_id: RunId,
    /// Where it is.
    pub state: JobState,
    /// The attempt that is under way, from 1.
    pub attempt: u32,
    /// Its workspace.
    pub workspace: Name,
    /// Its project.
    pub project: Name,
    /// Which job of the project.
    pub job: JobKey,
    /// The lane of the run.
    pub lane: Lane,
    /// The person it runs as; none for a run without a user.
    pub user: Option<Name>,
    /// Who owned the run.
    pub identity: String,
    /// Automation steps that the job has.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of its job chain, itself included.
    pub chain: u32,
    /// Unix milliseconds.
    pub enqueued_at_ms: u64,
    /// What the start wanted given back, as JSON. Gone when the job has ended, as are output and error.
    pub echo: Option<String>,
    /// Output of the run as JSON.
    pub output: Option<String>,
    /// Why the run failed.
    pub error: Option<RunError>,
    /// How the run ended.
    pub ended: RunState,
    /// The Process or agent.
    pub target: Name,
    /// The version of the target that ran.
    pub target_version: u32,
    /// Unix milliseconds at which the run was accepted.
    pub run_created_at_ms: u64,
    /// Unix milliseconds at which the run was claimed first.
    pub run_started_at_ms: Option<u64>,
    /// Unix milliseconds at which the run ended.
    pub run_finished_at_ms: u64,
    /// W3C trace context of the start of the run.
    pub traceparent: Option<String>,
    /// How often its alarm has gone off in this attempt.
    pub alarm_tries: u32,
    /// What became of the message of the run to a person.
    pub delivery: Option<Delivery>,
}

impl JobRecord {
    /// What the history says about where the job came from.
    pub fn enqueued_by(&self) -> String {
        format!("{}:{}", self.run_id.kind(), self.run_id)
    }

    /// Reads the hash of `id`.
    pub(crate) fn read(id: JobId, mut fields: Fields) -> Result<Self, StoreError> {
        let fields = &mut fields;
        fields.check_version(JOB_VERSION)?;
        Ok(Self {
            id,
            run_id: fields.must("run")?,
            state: fields.word("state", JobState::from_word)?,
            attempt: fields.must("attempt")?,
            workspace: fields.must("workspace")?,
            project: fields.must("project")?,
            job: fields.must("job")?,
            lane: fields.word("lane", Lane::from_word)?,
            user: fields.maybe("user")?,
            identity: fields.must("identity")?,
            hops: fields.must("hops")?,
            depth: fields.must("depth")?,
            chain: fields.must("chain")?,
            enqueued_at_ms: fields.must("enqueued_at")?,
            echo: fields.text("echo"),
            output: fields.text("output"),
            error: RunError::read(fields),
            ended: fields.word("ended", RunState::from_word)?,
            target: fields.must("target")?,
            target_version: fields.must("target_version")?,
            run_created_at_ms: fields.must("created_at")?,
            run_started_at_ms: fields.maybe("started_at")?,
            run_finished_at_ms: fields.must("finished_at")?,
            traceparent: fields.text("trace"),
            alarm_tries: fields.or("tries", 0)?,
            delivery: fields.maybe("delivery")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::golden;

    #[test]
    fn a_job_that_an_older_program_has_stored_is_still_read() {
        let id: RunId = "PI1501KC5Q8A9B2C3D4E5F6G7H8J9K".parse().unwrap();
        let text = include_str!("../golden/job_v1.txt");
        let job = JobRecord::read(id.outcome_job(), golden(JOB, text)).unwrap();
        assert_eq!((job.run_id, job.attempt, job.state), (id, 2, JobState::Live));
        assert_eq!((job.hops, job.depth, job.chain), (8, 1, 3));
        assert_eq!(job.ended, RunState::Completed);
        assert_eq!(job.output.as_deref(), Some(r#"{"total":7}"#));
        assert_eq!(job.alarm_tries, 1);
        assert_eq!(job.enqueued_by(), format!("process:{id}"));
        let newer = text.replace("v=1\n", "v=2\n");
        let newer = JobRecord::read(id.outcome_job(), golden(JOB, &newer));
        assert!(matches!(newer, Err(StoreError::Newer { kind: JOB, version: 2 })), "{newer:?}");
    }
}
