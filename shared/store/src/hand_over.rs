//! Turning the outcome of an ended run into a job of its project.

use runfleet_domain::limits::{RETENTION, RETENTION_MARGIN};
use runfleet_domain::outcome::DropReason;
use runfleet_domain::{JobKey, Name, RunId};

use crate::error::StoreError;
use crate::finish::keeps_output;
use crate::job_record::{JOB, JOB_VERSION, JobRecord, JobState, outcome_of};
use crate::keys::{AlarmSet, Keys};
use crate::metrics::Operation;
use crate::record::drop_reason;
use crate::reply::Reply;
use crate::store::{Args, Store, check_shard};

/// What the rules say about an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandOverVerdict {
    /// It becomes a job.
    Deliver {
        /// Automation steps that the job has.
        job_hops: u32,
    },
    /// It does not.
    Drop(DropReason),
}

/// An outcome that is to be handed over. What it says of the run is compared with the record.
#[derive(Debug, Clone, Copy)]
pub struct HandOver<'a> {
    /// The run.
    pub run_id: RunId,
    /// Its workspace.
    pub workspace: &'a Name,
    /// Its project.
    pub project: &'a Name,
    /// The job named at the start.
    pub job: &'a JobKey,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Links of the job chain of the execution that called start.
    pub chain: u32,
    /// What the rules say, from the facts above.
    pub verdict: HandOverVerdict,
    /// Job runs of the project that may wait or run.
    pub jobs_waiting_max: u32,
    /// Attempts of the job, the first included.
    pub max_attempts: u32,
    /// How long an attempt may take, in milliseconds.
    pub timeout_ms: u32,
}

/// What became of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// It has become this job just now.
    Delivered(Box<JobRecord>),
    /// It has become this job before; its first attempt has not begun.
    Again(Box<JobRecord>),
    /// It has become a job that has gone on since.
    JobBegun,
    /// It is not delivered.
    Dropped {
        /// Why not.
        reason: DropReason,
        /// Whether that was decided just now.
        first: bool,
    },
    /// The start named no job.
    NotWanted,
    /// The run has not ended.
    NotEnded,
    /// The run is not what the caller says it is.
    Mismatch,
    /// There is no such run.
    Missing,
}

impl Store {
    /// Turns the outcome of an ended run into a job, once, or drops it with the reason.
    pub async fn hand_over(&self, outcome: &HandOver<'_>) -> Result<HandedOver, StoreError> {
        let run = outcome.run_id;
        check_shard(run.shard(), outcome.workspace.as_str())?;
        let job = run.outcome_job();
        let jobs_ref = Keys::jobs_ref(outcome.workspace, outcome.project);
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.job(job),
            keys.jobs(run.shard(), &jobs_ref),
            keys.alarms(run.shard(), AlarmSet::Done),
            keys.history(run),
            keys.kids(run),
        ];
        let (reason, job_hops) = match outcome.verdict {
            HandOverVerdict::Deliver { job_hops } => ("", job_hops),
            HandOverVerdict::Drop(reason) => (reason.as_str(), 0),
        };
        let args = Args::default()
            .with(run)
            .with(job)
            .with(outcome.workspace)
            .with(outcome.project)
            .with(outcome.job)
            .with(outcome.hops)
            .with(outcome.chain)
            .with(reason)
            .with(job_hops)
            .with(outcome.jobs_waiting_max)
            .with(DropReason::TooManyJobsWaiting.as_str())
            .millis(RETENTION + RETENTION_MARGIN)
            .millis(self.inner.timings.alarm_handover)
            .flag(keeps_output(run));
        let known = known(outcome, job_hops, jobs_ref);
        let args = known.iter().fold(args, |args, (field, value)| args.field(field, value));
        let lua = &self.scripts().outcome_hand_over;
        let value = self.run_script(Operation::HandOver, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("outcome_hand_over", value)?;
        match tag.as_str() {
            "delivered" => {
                let fields = reply.fields(JOB)?.with(known);
                Ok(HandedOver::Delivered(Box::new(JobRecord::read(job, fields)?)))
            }
            "again" => Ok(HandedOver::Again(Box::new(JobRecord::read(job, reply.fields(JOB)?)?))),
            "job_begun" => Ok(HandedOver::JobBegun),
            "dropped" => {
                Ok(HandedOver::Dropped { reason: reply.word(drop_reason)?, first: reply.flag()? })
            }
            "not_wanted" => Ok(HandedOver::NotWanted),
            "not_ended" => Ok(HandedOver::NotEnded),
            "mismatch" => Ok(HandedOver::Mismatch),
            "missing" => Ok(HandedOver::Missing),
            _ => reply.unknown(),
        }
    }
}

/// The fields of the job that do not depend on how the run has ended.
fn known(outcome: &HandOver<'_>, job_hops: u32, jobs_ref: String) -> [(&'static str, String); 16] {
    [
        ("v", JOB_VERSION.to_string()),
        ("state", JobState::Pending.as_str().to_owned()),
        ("source", "outcome".to_owned()),
        ("by", outcome_of(outcome.run_id)),
        ("max_attempts", outcome.max_attempts.to_string()),
        ("timeout", outcome.timeout_ms.to_string()),
        ("offered", "1".to_owned()),
        ("attempt", "1".to_owned()),
        ("run", outcome.run_id.to_string()),
        ("workspace", outcome.workspace.to_string()),
        ("project", outcome.project.to_string()),
        ("job", outcome.job.to_string()),
        ("hops", job_hops.to_string()),
        ("chain", outcome.chain.saturating_add(1).to_string()),
        ("jobs_ref", jobs_ref),
        ("tries", "0".to_owned()),
    ]
}
