//! Attempts of jobs: published when they are due, begun, failed, tried again, ended.
//!
//! The ledger decides which attempt is under way and when it is due. A message only makes somebody look.

use std::time::Duration;

use runfleet_broker::{Classify, Failure, PublishError, Route, Verdict};
use runfleet_catalog::{Project, Snapshot};
use runfleet_contracts::{JobAccepted, JobDue, JobResult, JobRun};
use runfleet_domain::job::{JobErrorCode, wait_after};
use runfleet_domain::limits::JOB_BEGIN_WITHIN;
use runfleet_domain::{JobId, JobKey};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{self as store, JobBegun, JobFailed, JobFinished, JobRecord};
use runfleet_worker::effects::{self, JobTerms};

use crate::handler::Deps;

/// From when on the message of an attempt is published again although its queue is not empty: it may not be among those that
/// wait there. Until then a copy would most likely only have the attempt made twice.
const RENEWED_AFTER: Duration = Duration::from_hours(1);

/// What the active version of a project says about a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    pub(crate) version: String,
    pub(crate) max_attempts: u32,
    pub(crate) timeout_ms: u32,
}

impl Declared {
    pub(crate) fn of(project: &Project, job: &JobKey) -> Option<Self> {
        let job = project.jobs.get(job)?;
        Some(Self {
            version: project.version.clone(),
            max_attempts: job.max_attempts,
            timeout_ms: job.timeout_ms,
        })
    }

    fn in_snapshot(snapshot: Option<&Snapshot>, due: &JobDue) -> Option<Self> {
        Self::of(snapshot?.project(&due.project)?, &due.job)
    }
}

/// Looks at a job whose alarm has rung, or that was made a moment ago.
pub(crate) async fn due(deps: &Deps, due: &JobDue, redelivered: bool) -> Result<Verdict, Failure> {
    let declared = declared(deps, due).await?;
    let bounds = declared.as_ref().map(|job| (job.max_attempts, job.timeout_ms));
    runfleet_faults::point("dispatcher.before_due");
    let found = deps.store.job_due(due.job_id, bounds).await.transient("looking at a job")?;
    match found {
        store::JobDue::Publish { age, again, job } => {
            let Some(declared) = declared else {
                return fail(deps, &job, JobErrorCode::NOT_DECLARED, false).await;
            };
            if !is_active(deps, &job).await? {
                return fail(deps, &job, JobErrorCode::ACTOR_UNAVAILABLE, false).await;
            }
            if again && !redelivered && age < RENEWED_AFTER && waits_in_queue(deps, &job).await {
                return Ok(Verdict::Duplicate);
            }
            runfleet_faults::point("dispatcher.due");
            publish(deps, &job, declared).await
        }
        store::JobDue::Overtime(attempt) => {
            fail_attempt(deps, due.job_id, attempt, JobErrorCode::TIMEOUT, true).await
        }
        store::JobDue::Early | store::JobDue::Running | store::JobDue::Ended => {
            Ok(Verdict::Duplicate)
        }
        store::JobDue::Missing => Ok(Verdict::Drop("no_such_job")),
    }
}

/// The job as the active version declares it. One that is not in the catalog in memory is looked for once more.
async fn declared(deps: &Deps, due: &JobDue) -> Result<Option<Declared>, Failure> {
    let known = deps.catalog.get(&due.workspace).await.transient("loading the catalog")?;
    let found = Declared::in_snapshot(known.as_deref(), due);
    if found.is_some() {
        return Ok(found);
    }
    let fresh = deps.catalog.refresh(&due.workspace).await.transient("loading the catalog")?;
    Ok(Declared::in_snapshot(fresh.as_deref(), due))
}

/// Whether the person that a job runs as is still there. Of somebody whom only other services know nothing is assumed.
async fn is_active(deps: &Deps, job: &JobRecord) -> Result<bool, Failure> {
    let Some(user) = &job.user else { return Ok(true) };
    let snapshot = deps.catalog.get(&job.workspace).await.transient("loading the catalog")?;
    let person = snapshot.as_ref().and_then(|snapshot| snapshot.person(user));
    Ok(person.is_none_or(|person| person.active && person.account))
}

/// Whether messages wait in the queue of the project: then this one is most likely among them, and a copy would only take the
/// place of others.
async fn waits_in_queue(deps: &Deps, job: &JobRecord) -> bool {
    let queue = route(job).queue();
    matches!(deps.broker.queue(&queue).await, Ok(Some(queue)) if queue.messages > 0)
}

fn route(job: &JobRecord) -> Route {
    Route::Job { workspace: job.workspace.clone(), project: job.project.clone() }
}

/// Publishes the attempt of a job that is under way.
pub(crate) async fn publish(
    deps: &Deps,
    job: &JobRecord,
    declared: Declared,
) -> Result<Verdict, Failure> {
    let within = u64::try_from(JOB_BEGIN_WITHIN.as_millis()).unwrap_or(u64::MAX);
    let deadline_ms = now_ms().saturating_add(within);
    let terms = JobTerms {
        version: Some(declared.version),
        deadline_ms,
        token: deps.tokens.for_job(job, deadline_ms),
    };
    let effect = effects::job(job, terms).permanent("writing the job")?;
    match effects::publish(&deps.publisher, effect).await {
        // The job's alarm tries again; a missing or full queue of one project must not hold up the others.
        Err(error @ (PublishError::NoSuchQueue | PublishError::Refused)) => {
            tracing::warn!(job_id = %job.id, %error, "a job cannot be put on the queue of its project yet");
            deps.store.withdraw_job(job.id).await.transient("withdrawing the job")?;
            Ok(Verdict::Done)
        }
        result => {
            result.transient("publishing the job")?;
            runfleet_faults::point("dispatcher.published");
            Ok(Verdict::Done)
        }
    }
}

/// A host has begun an attempt.
pub(crate) async fn begun(deps: &Deps, accepted: &JobAccepted) -> Result<Verdict, Failure> {
    let begun = deps.store.begin_job(accepted.job_id, accepted.attempt).await;
    match begun.transient("beginning an attempt")? {
        JobBegun::Begun { .. } => {
            runfleet_faults::point("dispatcher.begun");
            Ok(Verdict::Done)
        }
        JobBegun::Known(_) | JobBegun::OtherAttempt(_) => Ok(Verdict::Duplicate),
        JobBegun::Missing => Ok(Verdict::Drop("no_such_job")),
    }
}

/// A host reports how an attempt ended.
pub(crate) async fn ended(deps: &Deps, result: &JobResult) -> Result<Verdict, Failure> {
    runfleet_faults::point("dispatcher.before_result");
    if !result.succeeded {
        let error = result.error.as_ref();
        let code = JobErrorCode::reported(error.and_then(|error| error.code.as_deref()));
        let retryable = error.is_some_and(|error| error.retryable);
        return fail_attempt(deps, result.job_id, result.attempt, code.as_str(), retryable).await;
    }
    let ended = deps.store.finish_job(result.job_id, result.attempt, true).await;
    match ended.transient("ending the job")? {
        JobFinished::Ended => {
            runfleet_faults::point("dispatcher.result_committed");
            deps.metrics.jobs.with_label_values(&["succeeded"]).inc();
            Ok(Verdict::Done)
        }
        JobFinished::Known(_) | JobFinished::OtherAttempt(_) => Ok(Verdict::Duplicate),
        JobFinished::Missing => Ok(Verdict::Drop("no_such_job")),
    }
}

/// The message of an attempt was given up: hosts died of it again and again, or refused it.
pub(crate) async fn given_up(deps: &Deps, job: &JobRun) -> Result<Verdict, Failure> {
    tracing::warn!(job_id = %job.job_id, attempt = job.attempt, "no host could carry out a job");
    fail_attempt(deps, job.job_id, job.attempt, JobErrorCode::GIVEN_UP, false).await
}

async fn fail(
    deps: &Deps,
    job: &JobRecord,
    code: &str,
    retryable: bool,
) -> Result<Verdict, Failure> {
    fail_attempt(deps, job.id, job.attempt, code, retryable).await
}

async fn fail_attempt(
    deps: &Deps,
    job: JobId,
    attempt: u32,
    code: &str,
    retryable: bool,
) -> Result<Verdict, Failure> {
    let wait = retryable.then(|| wait_after(job, attempt));
    let failed = deps.store.fail_job(job, attempt, code, wait).await;
    match failed.transient("failing an attempt")? {
        JobFailed::Retried(_) => {
            runfleet_faults::point("dispatcher.attempt_failed");
            deps.metrics.jobs.with_label_values(&["retried"]).inc();
            Ok(Verdict::Done)
        }
        JobFailed::Ended => {
            tracing::info!(job_id = %job, attempt, code, "a job has failed");
            deps.metrics.jobs.with_label_values(&["failed"]).inc();
            Ok(Verdict::Done)
        }
        JobFailed::Known(_) | JobFailed::OtherAttempt(_) => Ok(Verdict::Duplicate),
        JobFailed::Missing => Ok(Verdict::Drop("no_such_job")),
    }
}
