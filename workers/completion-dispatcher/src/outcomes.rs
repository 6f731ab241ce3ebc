//! An outcome of a run becomes a job of its project, once, or is dropped with its reason.

use runfleet_broker::{Classify, Failure, Verdict};
use runfleet_catalog::Snapshot;
use runfleet_contracts::OutcomeReady;
use runfleet_domain::limits::JOB_CHAIN_MAX;
use runfleet_domain::outcome::{self, DropReason, Facts};
use runfleet_store::{HandOver, HandOverVerdict, HandedOver};

use crate::attempts::{self, Declared};
use crate::handler::Deps;

/// What the catalog says about an outcome.
struct Decision {
    verdict: HandOverVerdict,
    jobs_waiting_max: u32,
    declared: Option<Declared>,
}

pub(crate) async fn hand_over(deps: &Deps, ready: &OutcomeReady) -> Result<Verdict, Failure> {
    let Decision { verdict, jobs_waiting_max, declared } = decide(deps, ready).await?;
    let declared = declared.unwrap_or_default();
    let command = HandOver {
        run_id: ready.run_id,
        workspace: &ready.workspace,
        project: &ready.project,
        job: &ready.job,
        hops: ready.hops,
        chain: ready.chain,
        verdict,
        jobs_waiting_max,
        max_attempts: declared.max_attempts,
        timeout_ms: declared.timeout_ms,
    };
    runfleet_faults::point("dispatcher.before_commit");
    let handed = deps.store.hand_over(&command).await.transient("handing over the outcome")?;
    runfleet_faults::point("dispatcher.committed");
    match handed {
        HandedOver::Delivered(job) => {
            deps.metrics.outcomes.with_label_values(&["delivered"]).inc();
            attempts::publish(deps, &job, declared).await
        }
        HandedOver::Again(job) => {
            deps.metrics.outcomes.with_label_values(&["repeated"]).inc();
            attempts::publish(deps, &job, declared).await
        }
        HandedOver::Dropped { reason, first } => {
            if first {
                tracing::warn!(run_id = %ready.run_id, reason = reason.as_str(), "an outcome is not delivered");
                deps.metrics.outcomes.with_label_values(&[reason.as_str()]).inc();
            }
            Ok(Verdict::Done)
        }
        HandedOver::JobBegun | HandedOver::NotWanted => Ok(Verdict::Duplicate),
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
async fn decide(deps: &Deps, ready: &OutcomeReady) -> Result<Decision, Failure> {
    let known = deps.catalog.get(&ready.workspace).await.transient("loading the catalog")?;
    let decision = look(ready, known.as_deref());
    let by_catalog = HandOverVerdict::Drop(DropReason::JobNotDeclared);
    let by_limit = HandOverVerdict::Drop(DropReason::ChainTooLong);
    if decision.verdict != by_catalog && decision.verdict != by_limit {
        return Ok(decision);
    }
    let fresh = deps.catalog.refresh(&ready.workspace).await.transient("loading the catalog")?;
    Ok(look(ready, fresh.as_deref()))
}

fn look(ready: &OutcomeReady, snapshot: Option<&Snapshot>) -> Decision {
    let project = snapshot.and_then(|snapshot| snapshot.project(&ready.project));
    let declared = project.and_then(|project| Declared::of(project, &ready.job));
    let facts = Facts {
        run_hops: ready.hops,
        chain: ready.chain,
        chain_max: project.map_or(JOB_CHAIN_MAX, |project| project.limits.job_chain),
        job_declared: declared.is_some(),
    };
    let verdict = match outcome::decide(facts) {
        Ok(job_hops) => HandOverVerdict::Deliver { job_hops },
        Err(reason) => HandOverVerdict::Drop(reason),
    };
    let jobs_waiting_max = project.map_or(0, |project| project.limits.jobs_waiting);
    Decision { verdict, jobs_waiting_max, declared }
}
