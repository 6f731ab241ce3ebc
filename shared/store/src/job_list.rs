//! The job runs of a project, for people: what waits and runs, and what has ended in the last seven days. No payload.

use runfleet_domain::limits::{JOBS_LISTED_MAX, RETENTION};
use runfleet_domain::{JobId, JobKey, Name, RunId, Shard};

use crate::error::StoreError;
use crate::job_record::{JOB, JobState, outcome_of};
use crate::keys::Keys;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply};
use crate::store::{Args, Store};

/// One job run in a list. Times are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEntry {
    /// The job run.
    pub id: JobId,
    /// Which job of the project.
    pub job: JobKey,
    /// Where it is.
    pub state: JobState,
    /// The attempt that is under way, or was the last, from 1.
    pub attempt: u32,
    /// Attempts that it has.
    pub max_attempts: Option<u32>,
    /// Where it comes from.
    pub enqueued_by: String,
    /// When it was enqueued.
    pub enqueued_at_ms: u64,
    /// Before this the attempt does not begin.
    pub due_at_ms: Option<u64>,
    /// When a host began the attempt.
    pub began_at_ms: Option<u64>,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// Why the last attempt that failed did, in a word.
    pub last_error: Option<String>,
    /// Size of what its handler gets, without what the fleet adds, in bytes.
    pub payload_bytes: Option<u64>,
}

/// A list of job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPage {
    /// How many have not ended, in all.
    pub waiting: u64,
    /// Unix milliseconds by the clock of the ledger.
    pub now_ms: u64,
    /// Newest first: those that have not ended, then those that have.
    pub jobs: Vec<JobEntry>,
}

impl Store {
    /// The newest `count` (1 to 200) job runs of a project.
    pub async fn list_jobs(
        &self,
        workspace: &Name,
        project: &Name,
        count: u32,
    ) -> Result<JobPage, StoreError> {
        let (keys, shard) = (self.keys(), Shard::of_workspace(workspace.as_str()));
        let names = [
            keys.jobs(shard, &Keys::jobs_ref(workspace, project)),
            keys.jobs_ended(shard, workspace, project),
        ];
        let args = Args::default().with(count.clamp(1, JOBS_LISTED_MAX)).millis(RETENTION);
        let lua = &self.scripts().job_list;
        let value = self.run_script(Operation::ListJobs, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("job_list", value)?;
        if tag != "listed" {
            return reply.unknown();
        }
        let (waiting, now_ms) = (reply.parsed()?, reply.parsed()?);
        let mut jobs = Vec::new();
        while let Some((id, fields)) = reply.entry(JOB)? {
            jobs.push(entry(
                id.parse().map_err(|_| StoreError::Corrupt { kind: JOB, field: "id" })?,
                fields,
            )?);
        }
        Ok(JobPage { waiting, now_ms, jobs })
    }

    /// How many job runs of a project wait or run.
    pub async fn jobs_waiting(&self, workspace: &Name, project: &Name) -> Result<u64, StoreError> {
        let shard = Shard::of_workspace(workspace.as_str());
        let mut command = redis::cmd("SCARD");
        command.arg(self.keys().jobs(shard, &Keys::jobs_ref(workspace, project)));
        match self.run_command(Operation::JobsWaiting, command).await? {
            redis::Value::Int(count) => Ok(u64::try_from(count).unwrap_or_default()),
            _ => Err(StoreError::Corrupt { kind: "jobs", field: "count" }),
        }
    }
}

fn entry(id: JobId, mut fields: Fields) -> Result<JobEntry, StoreError> {
    let run: Option<RunId> = fields.maybe("run")?;
    Ok(JobEntry {
        id,
        job: fields.must("job")?,
        state: fields.word("state", JobState::from_word)?,
        attempt: fields.must("attempt")?,
        max_attempts: fields.maybe("max_attempts")?,
        enqueued_by: fields.text("by").or(run.map(outcome_of)).unwrap_or_default(),
        enqueued_at_ms: fields.must("enqueued_at")?,
        due_at_ms: fields.maybe("due_at")?,
        began_at_ms: fields.maybe("began_at")?,
        ended_at_ms: fields.maybe("ended_at")?,
        last_error: fields.text("last_error"),
        payload_bytes: fields.maybe("payload_bytes")?,
    })
}
