//! Stored job runs: everything that it takes to publish the message of a job again.

use runfleet_domain::{JobId, JobKey, Lane, Name, RunId, RunState};

use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::record::RunError;
use crate::reply::Fields;

/// Newest version of a job record that this program reads, and the one that it writes.
pub const JOB_VERSION: u64 = 2;

pub(crate) const JOB: &str = "job";

/// Attempts of a job in a record that does not say.
const ATTEMPTS_DEFAULT: u32 = 5;

/// Time of an attempt in a record that does not say, in milliseconds.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;

/// Where a job run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Waiting for its time, or for a host.
    Pending,
    /// A host has begun the attempt.
    Running,
    /// Its handler returned.
    Succeeded,
    /// It was given up.
    Failed,
}

impl JobState {
    const ALL: [Self; 4] = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed];

    /// The word in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }

    /// Whether nothing more happens.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        // The first form of records had one word for what waits or runs.
        if word == "LIVE" {
            return Some(Self::Pending);
        }
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// What a job run comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOrigin {
    /// The end of a run.
    Outcome(Box<JobOutcome>),
    /// A call of `jobs.enqueue`.
    Enqueued {
        /// What the handler gets, as JSON. Gone when the job has ended.
        payload: Option<String>,
    },
    /// The schedule of the job.
    Scheduled,
}

/// The outcome that a job tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutcome {
    /// The run whose outcome it is.
    pub run_id: RunId,
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
    /// What became of the message of the run to a person.
    pub delivery: Option<Delivery>,
}

/// Everything that the ledger holds about one job run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// The job run.
    pub id: JobId,
    /// What it comes from.
    pub origin: JobOrigin,
    /// What the history says about where it came from.
    pub enqueued_by: String,
    /// Where it is.
    pub state: JobState,
    /// The attempt that is under way, from 1.
    pub attempt: u32,
    /// Attempts that it has, the first included, by the version that was active when this was last looked at.
    pub max_attempts: u32,
    /// How long an attempt may take, in milliseconds, by the same version.
    pub timeout_ms: u32,
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
    /// Who owned the run, or enqueued it.
    pub identity: String,
    /// Automation steps that the job has.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of its job chain, itself included.
    pub chain: u32,
    /// Unix milliseconds.
    pub enqueued_at_ms: u64,
    /// Unix milliseconds before which the first attempt was not to begin; none for a job that was to begin at once.
    pub run_at_ms: Option<u64>,
    /// Unix milliseconds before which the attempt that is under way does not begin.
    pub due_at_ms: u64,
    /// Why the attempt before failed, in a word.
    pub last_error: Option<String>,
    /// W3C trace context of the start of the run.
    pub traceparent: Option<String>,
    /// How often its alarm has gone off in this attempt.
    pub alarm_tries: u32,
}

impl JobRecord {
    /// `enqueue` or `schedule`, as its handler is told.
    pub fn source(&self) -> &'static str {
        match self.origin {
            JobOrigin::Outcome(_) | JobOrigin::Enqueued { .. } => "enqueue",
            JobOrigin::Scheduled => "schedule",
        }
    }

    /// The run whose outcome it is.
    pub fn outcome(&self) -> Option<&JobOutcome> {
        match &self.origin {
            JobOrigin::Outcome(outcome) => Some(outcome),
            JobOrigin::Enqueued { .. } | JobOrigin::Scheduled => None,
        }
    }

    /// Reads the hash of `id`.
    pub(crate) fn read(id: JobId, mut fields: Fields) -> Result<Self, StoreError> {
        let fields = &mut fields;
        fields.check_version(JOB_VERSION)?;
        let origin = JobOrigin::read(fields)?;
        let enqueued_at_ms = fields.must("enqueued_at")?;
        let from_run = match &origin {
            JobOrigin::Outcome(outcome) => outcome_of(outcome.run_id),
            JobOrigin::Enqueued { .. } | JobOrigin::Scheduled => String::new(),
        };
        Ok(Self {
            id,
            origin,
            enqueued_by: fields.text("by").unwrap_or(from_run),
            state: fields.word("state", JobState::from_word)?,
            attempt: fields.must("attempt")?,
            max_attempts: fields.or("max_attempts", ATTEMPTS_DEFAULT)?,
            timeout_ms: fields.or("timeout", TIMEOUT_MS_DEFAULT)?,
            workspace: fields.must("workspace")?,
            project: fields.must("project")?,
            job: fields.must("job")?,
            lane: fields.word("lane", Lane::from_word)?,
            user: fields.maybe("user")?,
            identity: fields.must("identity")?,
            hops: fields.must("hops")?,
            depth: fields.must("depth")?,
            chain: fields.must("chain")?,
            enqueued_at_ms,
            run_at_ms: fields.maybe("run_at")?,
            due_at_ms: fields.or("due_at", enqueued_at_ms)?,
            last_error: fields.text("last_error"),
            traceparent: fields.text("trace"),
            alarm_tries: fields.or("tries", 0)?,
        })
    }
}

/// What the history says about the outcome of a run.
pub(crate) fn outcome_of(run: RunId) -> String {
    format!("{}:{run}", run.kind())
}

impl JobOrigin {
    fn read(fields: &mut Fields) -> Result<Self, StoreError> {
        match fields.text("source").as_deref() {
            None | Some("outcome") => JobOutcome::read(fields).map(Box::new).map(Self::Outcome),
            Some("enqueue") => Ok(Self::Enqueued { payload: fields.text("payload") }),
            Some("schedule") => Ok(Self::Scheduled),
            Some(_) => Err(StoreError::Corrupt { kind: JOB, field: "source" }),
        }
    }

    /// The word in the ledger.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Outcome(_) => "outcome",
            Self::Enqueued { .. } => "enqueue",
            Self::Scheduled => "schedule",
        }
    }
}

impl JobOutcome {
    fn read(fields: &mut Fields) -> Result<Self, StoreError> {
        Ok(Self {
            run_id: fields.must("run")?,
            echo: fields.text("echo"),
            output: fields.text("output"),
            error: RunError::read(fields),
            ended: fields.word("ended", RunState::from_word)?,
            target: fields.must("target")?,
            target_version: fields.must("target_version")?,
            run_created_at_ms: fields.must("created_at")?,
            run_started_at_ms: fields.maybe("started_at")?,
            run_finished_at_ms: fields.must("finished_at")?,
            delivery: fields.maybe("delivery")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::golden;

    const RUN: &str = "PI1501KC5Q8A9B2C3D4E5F6G7H8J9K";

    fn read(text: &str) -> Result<JobRecord, StoreError> {
        let id: RunId = RUN.parse().unwrap();
        JobRecord::read(id.outcome_job(), golden(JOB, text))
    }

    #[test]
    fn a_job_that_an_older_program_has_stored_is_still_read() {
        let text = include_str!("../golden/job_v1.txt");
        let job = read(text).unwrap();
        assert_eq!((job.attempt, job.state), (2, JobState::Pending));
        assert_eq!((job.hops, job.depth, job.chain), (8, 1, 3));
        assert_eq!((job.max_attempts, job.timeout_ms, job.alarm_tries), (5, 30_000, 1));
        assert_eq!((job.due_at_ms, job.run_at_ms), (job.enqueued_at_ms, None));
        assert_eq!(job.enqueued_by, format!("process:{RUN}"));
        let outcome = job.outcome().unwrap();
        assert_eq!(
            (outcome.run_id.to_string().as_str(), outcome.ended),
            (RUN, RunState::Completed)
        );
        assert_eq!(outcome.output.as_deref(), Some(r#"{"total":7}"#));
        assert_eq!(outcome.delivery, None);
        let told = read(&format!("{text}delivery=BLOCKED:RECIPIENT_RATE_LIMITED\n")).unwrap();
        let code = told.outcome().unwrap().delivery.as_ref().unwrap().error_code.clone();
        assert_eq!(code.as_deref(), Some("RECIPIENT_RATE_LIMITED"));
    }

    #[test]
    fn a_job_that_this_program_stores_is_read() {
        let job = read(include_str!("../golden/job_v2.txt")).unwrap();
        assert_eq!((job.attempt, job.max_attempts, job.timeout_ms), (2, 3, 1_000));
        assert_eq!((job.state, job.source()), (JobState::Running, "enqueue"));
        assert_eq!(job.origin, JobOrigin::Enqueued { payload: Some("[7]".to_owned()) });
        assert_eq!(job.enqueued_by, "job:nightly");
        assert_eq!((job.run_at_ms, job.due_at_ms), (Some(1_764_468_060_000), 1_764_468_065_000));
        assert_eq!(job.last_error.as_deref(), Some("RETRYABLE"));
        assert_eq!((&job.user, job.outcome()), (&None, None));
    }

    #[test]
    fn a_job_of_a_newer_program_is_left_alone() {
        let newer = include_str!("../golden/job_v2.txt").replace("v=2\n", "v=3\n");
        let newer = read(&newer);
        assert!(matches!(newer, Err(StoreError::Newer { kind: JOB, version: 3 })), "{newer:?}");
    }
}
