//! One message: an outcome becomes a job, or a job has ended.

use std::sync::Arc;

use runfleet_broker::{
    Classify, DecodeError, Failure, Inbound, Inbox, PublishError, Publisher, Verdict,
};
use runfleet_catalog::Snapshot;
use runfleet_contracts::{JobResult, Message, OutcomeReady};
use runfleet_domain::limits::JOB_CHAIN_MAX;
use runfleet_domain::outcome::{self, DropReason, Facts};
use runfleet_store::{HandOver, HandOverVerdict, HandedOver, JobFinished, JobRecord, Store};
use runfleet_worker::inbox::{decode, unknown_kind};
use runfleet_worker::{CatalogCache, Fleet, effects};

use crate::metrics::{JOBS, Metrics};

/// What completion-dispatcher takes.
#[derive(Debug)]
pub(crate) enum Done {
    /// A run has ended and wants its job.
    Outcome(OutcomeReady),
    /// An attempt of a job has ended.
    Job(JobResult),
}

impl Inbox for Done {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            OutcomeReady::KIND => decode(body).map(Self::Outcome),
            JobResult::KIND => decode(body).map(Self::Job),
            _ => Err(unknown_kind(kind, &[OutcomeReady::KIND, JobResult::KIND])),
        }
    }
}

/// What the handler may touch.
pub(crate) struct Deps {
    store: Store,
    publisher: Publisher,
    catalog: CatalogCache,
    metrics: Metrics,
}

impl Deps {
    pub(crate) fn new(fleet: &Fleet) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            catalog: fleet.catalog.clone(),
            metrics: Metrics::new(&fleet.process.registry)?,
        })
    }
}

pub(crate) async fn handle(deps: Arc<Deps>, message: Inbound<Done>) -> Result<Verdict, Failure> {
    match &message.body {
        Done::Outcome(ready) => hand_over(&deps, ready).await,
        Done::Job(result) => end_job(&deps, result).await,
    }
}

async fn hand_over(deps: &Deps, ready: &OutcomeReady) -> Result<Verdict, Failure> {
    let (verdict, jobs_waiting_max) = decide(deps, ready).await?;
    let command = HandOver {
        run_id: ready.run_id,
        workspace: &ready.workspace,
        project: &ready.project,
        job: &ready.job,
        hops: ready.hops,
        chain: ready.chain,
        verdict,
        jobs_waiting_max,
    };
    runfleet_faults::point("dispatcher.before_commit");
    let handed = deps.store.hand_over(&command).await.transient("handing over the outcome")?;
    runfleet_faults::point("dispatcher.committed");
    match handed {
        HandedOver::Delivered(job) => {
            deps.metrics.outcomes.with_label_values(&["delivered"]).inc();
            publish(deps, &job).await
        }
        HandedOver::Again(job) => {
            deps.metrics.outcomes.with_label_values(&["repeated"]).inc();
            publish(deps, &job).await
        }
        HandedOver::Dropped { reason, first } => {
            if first {
                tracing::warn!(run_id = %ready.run_id, reason = reason.as_str(), "an outcome is not delivered");
                deps.metrics.outcomes.with_label_values(&[reason.as_str()]).inc();
            }
            Ok(Verdict::Done)
        }
        HandedOver::JobEnded | HandedOver::NotWanted => Ok(Verdict::Duplicate),
        HandedOver::Missing => Ok(Verdict::Drop("no_such_run")),
        HandedOver::NotEnded => {
            Ok(Verdict::Park("not_ended", "an outcome message of a run that has not ended".into()))
        }
        HandedOver::Mismatch => {
            Ok(Verdict::Park("mismatch", "an outcome message that contradicts its run".into()))
        }
    }
}

/// Whether the outcome may become a job, as far as that does not need the ledger. A job that is not in the catalog in memory
/// is looked for once more: it may have been applied a moment ago, and an outcome that is dropped stays dropped.
async fn decide(deps: &Deps, ready: &OutcomeReady) -> Result<(HandOverVerdict, u32), Failure> {
    let known = deps.catalog.get(&ready.workspace).await.transient("loading the catalog")?;
    let decision = verdict(ready, known.as_deref());
    let by_catalog = HandOverVerdict::Drop(DropReason::JobNotDeclared);
    let by_limit = HandOverVerdict::Drop(DropReason::ChainTooLong);
    if decision.0 != by_catalog && decision.0 != by_limit {
        return Ok(decision);
    }
    let fresh = deps.catalog.refresh(&ready.workspace).await.transient("loading the catalog")?;
    Ok(verdict(ready, fresh.as_deref()))
}

fn verdict(ready: &OutcomeReady, snapshot: Option<&Snapshot>) -> (HandOverVerdict, u32) {
    let project = snapshot.and_then(|snapshot| snapshot.project(&ready.project));
    let facts = Facts {
        run_hops: ready.hops,
        chain: ready.chain,
        chain_max: project.map_or(JOB_CHAIN_MAX, |project| project.limits.job_chain),
        job_declared: project.is_some_and(|project| project.declares(&ready.job)),
    };
    let verdict = match outcome::decide(facts) {
        Ok(job_hops) => HandOverVerdict::Deliver { job_hops },
        Err(reason) => HandOverVerdict::Drop(reason),
    };
    (verdict, project.map_or(0, |project| project.limits.jobs_waiting))
}

async fn publish(deps: &Deps, job: &JobRecord) -> Result<Verdict, Failure> {
    let effect = effects::job(job).permanent("writing the job")?;
    match effects::publish(&deps.publisher, effect).await {
        // The job's alarm tries again; a missing or full queue of one project must not hold up the others.
        Err(error @ (PublishError::NoSuchQueue | PublishError::Refused)) => {
            tracing::warn!(job_id = %job.id, %error, "a job cannot be put on the queue of its project yet");
            Ok(Verdict::Done)
        }
        result => {
            result.transient("publishing the job")?;
            runfleet_faults::point("dispatcher.published");
            Ok(Verdict::Done)
        }
    }
}

async fn end_job(deps: &Deps, result: &JobResult) -> Result<Verdict, Failure> {
    let ended = deps.store.finish_job(result.job_id, result.attempt, result.succeeded).await;
    match ended.transient("ending the job")? {
        JobFinished::Ended => {
            deps.metrics.jobs.with_label_values(&[JOBS[usize::from(!result.succeeded)]]).inc();
            Ok(Verdict::Done)
        }
        JobFinished::Known(_) | JobFinished::OtherAttempt(_) => Ok(Verdict::Duplicate),
        JobFinished::Missing => Ok(Verdict::Drop("no_such_job")),
    }
}
