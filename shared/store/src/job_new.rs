//! Job runs that do not come from the end of a run: enqueued by project code, or by a schedule.

use std::time::Duration;

use runfleet_domain::limits::{EXECUTION_MEMORY, JOB_PAYLOAD_BYTES_MAX, MESSAGE_ID_MEMORY};
use runfleet_domain::{IdempotencyKey, JobId, JobKey, Lane, MessageId, Name};

use crate::error::StoreError;
use crate::find::IDENTITY_BYTES_MAX;
use crate::job_record::{JOB_VERSION, JobOrigin};
use crate::keys::{AlarmSet, Keys};
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::start::Verdict;
use crate::store::{Args, Store, check_shard, check_size};

/// Longest text that says where a job comes from, in bytes.
const BY_BYTES_MAX: usize = 128;

/// Keys of every new job run; that of an idempotency key and that of a batch follow.
const OWN_KEYS: usize = 5;

/// When the first attempt of a job begins at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobTime {
    /// So long after the call, by the clock of the ledger.
    After(Duration),
    /// At this time, in Unix milliseconds.
    At(u64),
}

/// What makes a job run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewJobOrigin<'a> {
    /// A call of `jobs.enqueue`, with what the handler gets, as JSON.
    Enqueued(Option<&'a str>),
    /// The schedule of the job.
    Scheduled,
}

/// Everything about a job run that is decided before the ledger is asked.
#[derive(Debug, Clone)]
pub struct EnqueueJob<'a> {
    /// The id that the job run gets if it is made. Fresh, in the shard of the workspace.
    pub id: JobId,
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// Which job of the project.
    pub job: &'a JobKey,
    /// What makes it.
    pub origin: NewJobOrigin<'a>,
    /// What the history says about where it comes from: at most 128 bytes.
    pub enqueued_by: &'a str,
    /// The request, or the minute of the schedule. The same one makes one job run.
    pub message_id: &'a MessageId,
    /// Makes two calls for the same job one job run.
    pub key: Option<&'a IdempotencyKey>,
    /// When.
    pub time: JobTime,
    /// The execution that calls; its calls are counted if there is a bound.
    pub execution: &'a Name,
    /// Whether the execution is a batch, which can be revoked.
    pub batch: bool,
    /// Calls of every kind that one execution may make.
    pub calls_budget: Option<u32>,
    /// Jobs that one execution may enqueue.
    pub calls_limit: Option<u32>,
    /// What the facts outside the ledger say.
    pub verdict: Verdict,
    /// Job runs of the project that may wait or run.
    pub jobs_waiting_max: u32,
    /// Attempts of the job, the first included.
    pub max_attempts: u32,
    /// How long an attempt may take, in milliseconds.
    pub timeout_ms: u32,
    /// The lane.
    pub lane: Lane,
    /// The person it runs as.
    pub user: Option<&'a Name>,
    /// Who enqueues it.
    pub identity: &'a str,
    /// Automation steps that the job has.
    pub hops: u32,
    /// Agents around it.
    pub depth: u32,
    /// Links of its job chain, itself included.
    pub chain: u32,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

/// What became of the wish to make a job run. Only [`Enqueued::Created`] has made something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The job run was made.
    Created {
        /// The job run.
        job: JobId,
        /// Whether its first attempt is due now.
        due: bool,
    },
    /// The same message has made this job run before.
    Replayed {
        /// The job run.
        job: JobId,
    },
    /// The key names this job run.
    Duplicate {
        /// The job run.
        job: JobId,
    },
    /// The execution has made as many calls of every kind as it may.
    BudgetExceeded {
        /// The budget.
        limit: u32,
        /// The calls that are counted.
        used: u32,
    },
    /// The execution has enqueued as many jobs as it may.
    CallsExceeded {
        /// The limit.
        limit: u32,
        /// The calls that are counted.
        used: u32,
    },
    /// As many job runs of the project wait or run as may.
    Full {
        /// The limit.
        limit: u32,
        /// How many do.
        used: u32,
    },
    /// The batch is revoked.
    Revoked,
    /// The verdict was to refuse, and neither message nor key names a job run.
    Refused,
}

impl Store {
    /// Makes a job run, once per message id and once per idempotency key of the job. One round trip, whatever comes of it.
    ///
    /// Checked in this order: batch revoked (a message that has made a job run is told it all the same), calls of the execution (all, then those that enqueue), message id, key, verdict, jobs that wait.
    /// What is refused writes nothing but the call.
    ///
    /// # Errors
    /// After [`StoreError::Unavailable`] with `maybe_written` the job run may exist; the same call again finds it.
    pub async fn enqueue_job(&self, new: &EnqueueJob<'_>) -> Result<Enqueued, StoreError> {
        check(new)?;
        let keys = self.new_job_keys(new);
        let lua = &self.scripts().job_enqueue;
        let value =
            self.run_script(Operation::EnqueueJob, lua, &keys, self.new_job_args(new)).await?;
        let (tag, mut reply) = Reply::open("job_enqueue", value)?;
        Ok(match tag.as_str() {
            "created" => Enqueued::Created { job: reply.parsed()?, due: reply.flag()? },
            "replayed" => match reply.parsed()? {
                // The first answer to this very call was lost. Whether it was due then does not matter: saying so once more does
                // no harm.
                job if job == new.id => Enqueued::Created { job, due: true },
                job => Enqueued::Replayed { job },
            },
            "duplicate" => Enqueued::Duplicate { job: reply.parsed()? },
            "budget_exceeded" => Enqueued::BudgetExceeded {
                limit: new.calls_budget.unwrap_or_default(),
                used: reply.parsed()?,
            },
            "calls_exceeded" => Enqueued::CallsExceeded {
                limit: new.calls_limit.unwrap_or_default(),
                used: reply.parsed()?,
            },
            "full" => Enqueued::Full { limit: new.jobs_waiting_max, used: reply.parsed()? },
            "revoked" => Enqueued::Revoked,
            "refused" => Enqueued::Refused,
            _ => return reply.unknown(),
        })
    }

    fn new_job_keys(&self, new: &EnqueueJob<'_>) -> Vec<String> {
        let EnqueueJob { id, workspace, project, .. } = *new;
        let (keys, shard) = (self.keys(), id.shard());
        let mut names = vec![
            keys.job_message(shard, workspace, project, new.message_id),
            keys.calls(shard, workspace, project, new.execution),
            keys.job(id),
            keys.jobs(shard, &Keys::jobs_ref(workspace, project)),
            keys.alarms(shard, AlarmSet::Done),
        ];
        names.extend(key_ref(new).map(|key_ref| keys.job_key(shard, &key_ref)));
        names.extend(new.batch.then(|| keys.revoked(shard, workspace, project, new.execution)));
        names
    }

    fn new_job_args(&self, new: &EnqueueJob<'_>) -> Args {
        let bound = |bound: Option<u32>| bound.map_or(String::new(), |bound| bound.to_string());
        let (wait, at) = match new.time {
            JobTime::After(wait) => (wait.as_millis().to_string(), String::new()),
            JobTime::At(at) => (String::new(), at.to_string()),
        };
        let (source, payload) = match new.origin {
            NewJobOrigin::Enqueued(payload) => {
                (JobOrigin::Enqueued { payload: None }.word(), payload)
            }
            NewJobOrigin::Scheduled => (JobOrigin::Scheduled.word(), None),
        };
        Args::default()
            .with(new.message_id)
            .with(new.identity)
            .with("jobs")
            .with("")
            .with(bound(new.calls_budget))
            .with(bound(new.calls_limit))
            .with(0)
            .with(if new.key.is_some() { OWN_KEYS + 1 } else { 0 })
            .with(if new.batch { OWN_KEYS + 1 + usize::from(new.key.is_some()) } else { 0 })
            .with(new.id)
            .with(new.jobs_waiting_max)
            .flag(new.verdict == Verdict::Accept)
            .with(wait)
            .with(at)
            .millis(self.inner.timings.alarm_handover)
            .millis(EXECUTION_MEMORY)
            .millis(MESSAGE_ID_MEMORY)
            .field("v", JOB_VERSION)
            .field("source", source)
            .field("by", new.enqueued_by)
            .field("workspace", new.workspace)
            .field("project", new.project)
            .field("job", new.job)
            .field("jobs_ref", Keys::jobs_ref(new.workspace, new.project))
            .field("lane", new.lane)
            .field("identity", new.identity)
            .field("hops", new.hops)
            .field("depth", new.depth)
            .field("chain", new.chain)
            .field("max_attempts", new.max_attempts)
            .field("timeout", new.timeout_ms)
            .field("payload_bytes", payload.map_or(0, str::len))
            .field_if("payload", payload)
            .field_if("key_ref", key_ref(new))
            .field_if("user", new.user)
            .field_if("trace", new.traceparent)
    }
}

fn key_ref(new: &EnqueueJob<'_>) -> Option<String> {
    new.key.map(|key| Keys::job_key_ref(new.workspace, new.project, new.job, key))
}

fn check(new: &EnqueueJob<'_>) -> Result<(), StoreError> {
    check_shard(new.id.shard(), new.workspace.as_str())?;
    if let NewJobOrigin::Enqueued(payload) = new.origin {
        check_size(payload, JOB_PAYLOAD_BYTES_MAX, "the payload of the job is too large")?;
    }
    check_size(Some(new.enqueued_by), BY_BYTES_MAX, "where the job comes from is too long")?;
    check_size(new.traceparent, 128, "the trace context is too long")?;
    check_size(Some(new.identity), IDENTITY_BYTES_MAX, "the identity is too long")
}
