//! One message: load the run, evaluate a slice, commit it, publish what the new state calls for.

use std::sync::Arc;

use runfleet_broker::{Classify, Failure, Inbound, Line, Publisher, Route, Verdict};
use runfleet_contracts::OutcomeReady;
use runfleet_contracts::message::Fresh;
use runfleet_domain::limits::CRASHES_MAX;
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Checkpoint, Claim, Claimed, Finished, RunRecord, Saved, Store, Told, Wake};
use runfleet_worker::inbox::AdvanceInbox;
use runfleet_worker::{Fleet, effects};
use serde_json::value::RawValue;

use crate::definitions::Definitions;
use crate::metrics::Metrics;
use crate::slice::{self, Ending, Step};

/// The queue of runs whose message came back after a crash.
pub(crate) const QUARANTINE: &str = "process-runner.quarantine";

/// What the handler may touch.
pub(crate) struct Deps {
    store: Store,
    publisher: Publisher,
    definitions: Definitions,
    metrics: Metrics,
    slice_steps: u32,
}

impl Deps {
    pub(crate) fn new(fleet: &Fleet, slice_steps: u32) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            definitions: Definitions::new(fleet.store.clone()),
            metrics: Metrics::new(&fleet.process.registry)?,
            slice_steps,
        })
    }

    fn count_end(&self, end: &Ending) {
        runfleet_faults::point("process.committed");
        self.metrics.ended.with_label_values(&[end.state.as_str()]).inc();
        self.metrics.slices.with_label_values(&["ended"]).inc();
    }

    async fn publish(&self, effect: effects::Effect) -> Result<(), Failure> {
        effects::publish(&self.publisher, effect).await.transient("publishing an effect")
    }
}

pub(crate) async fn handle(
    deps: Arc<Deps>,
    message: Inbound<AdvanceInbox>,
) -> Result<Verdict, Failure> {
    let run_id = message.body.0.run_id;
    if run_id.kind() != RunKind::Process {
        return Ok(Verdict::Park("wrong_kind", "not a run of a Process".to_owned()));
    }
    let quarantined = &*message.queue == QUARANTINE;
    if message.redelivered && !quarantined {
        // It was in hand when a runner died or lost its connection. If it is the one that kills runners, it must do so
        // where nothing else is in hand.
        return Ok(Verdict::Move(Route::Process(Line::Quarantine)));
    }
    if quarantined {
        return in_quarantine(&deps, run_id).await;
    }
    if let Some(fresh) = &message.body.0.fresh
        && let Some(verdict) = untouched(&deps, &message, fresh).await?
    {
        return Ok(verdict);
    }
    let Some(record) = deps.store.load_run(run_id).await.transient("loading the run")? else {
        return Ok(Verdict::Drop("no_such_run"));
    };
    if record.state.is_final() {
        return ended_before(&deps, &record).await;
    }
    if record.deadline_ms.is_some_and(|deadline| deadline <= now_ms()) {
        return too_late(&deps, &record).await;
    }
    if record.state == RunState::Paused {
        return Ok(Verdict::Drop("paused"));
    }
    match evaluate(&deps, &record).await? {
        Step::End(end) => {
            runfleet_faults::point("process.before_commit");
            let done = deps.store.claim_and_finish_run(run_id, record.version, &end.as_end()).await;
            finished(&deps, &record, &end, done.transient("ending the run")?).await
        }
        Step::Continue { position } => {
            // Evaluation is pure: what was computed from this version is right if the claim finds the same version.
            match deps
                .store
                .claim_run(run_id, Claim { quarantine: false })
                .await
                .transient("claiming the run")?
            {
                Claimed::Claimed { fence, record: claimed, .. }
                    if claimed.position == record.position =>
                {
                    save(&deps, &record, fence, &position).await
                }
                // Somebody else has moved the run: look again from where it stands now. The lease just taken runs out by
                // itself if this process dies here.
                Claimed::Claimed { fence, record: claimed, .. } => {
                    claimed_slice(&deps, &claimed, fence).await
                }
                other => superseded(&deps, other).await,
            }
        }
    }
}

/// The short way for the first message of a run: evaluated from what the message says, committed only if the record says the
/// same. `None` when that does not bring the run to its end; then the record is read.
async fn untouched(
    deps: &Deps,
    message: &Inbound<AdvanceInbox>,
    fresh: &Fresh,
) -> Result<Option<Verdict>, Failure> {
    let found = deps.definitions.get(&fresh.workspace, &fresh.target, fresh.target_version).await?;
    let Some(definition) = found else { return Ok(None) };
    let input = fresh.input.as_deref().map(RawValue::get);
    let Ok(Step::End(end)) = slice::evaluate(&definition, None, input, now_ms(), deps.slice_steps)
    else {
        return Ok(None);
    };
    runfleet_faults::point("process.before_commit");
    let told = Told {
        workspace: &fresh.workspace,
        target: &fresh.target,
        target_version: fresh.target_version,
        input,
    };
    let run_id = message.body.0.run_id;
    let done = deps.store.finish_untouched_run(run_id, &told, &end.as_end()).await;
    match done.transient("ending the run")? {
        Finished::Finished { outcome_wanted, .. } => {
            deps.count_end(&end);
            if outcome_wanted {
                let Some(job) = &fresh.job else { return Ok(None) };
                let ready = OutcomeReady {
                    run_id,
                    workspace: fresh.workspace.clone(),
                    project: fresh.project.clone(),
                    job: job.clone(),
                    hops: fresh.hops,
                    chain: fresh.chain,
                };
                let effect = effects::outcome(&ready, message.lane, message.traceparent.as_deref());
                deps.publish(effect.permanent("writing the outcome message")?).await?;
            }
            Ok(Some(Verdict::Done))
        }
        Finished::Ended(now) => ended_before(deps, &now).await.map(Some),
        Finished::Missing => Ok(Some(Verdict::Drop("no_such_run"))),
        Finished::Lost | Finished::Busy => Ok(None),
    }
}

/// The deadline of the run has passed: it ends from outside, whoever holds it.
async fn too_late(deps: &Deps, record: &RunRecord) -> Result<Verdict, Failure> {
    let end = Ending {
        state: RunState::TimedOut,
        output: None,
        error: Some((
            "DEADLINE_EXCEEDED".to_owned(),
            "The run did not end before its deadline.".to_owned(),
        )),
    };
    let done = deps.store.end_run(record.id, &end.as_end()).await.transient("ending the run")?;
    finished(deps, record, &end, done).await
}

/// The careful way: claim first, so that a crash is counted, then evaluate.
async fn in_quarantine(deps: &Deps, run_id: RunId) -> Result<Verdict, Failure> {
    match deps
        .store
        .claim_run(run_id, Claim { quarantine: true })
        .await
        .transient("claiming the run")?
    {
        Claimed::Claimed { fence, crashes, record, .. } if crashes > CRASHES_MAX => {
            tracing::error!(%run_id, crashes, "a run is given up: each attempt killed its runner");
            let end = slice::failed(
                "INTERNAL_ERROR",
                "The run was stopped after repeated failures of its runner.",
            );
            finish(deps, &record, fence, &end).await
        }
        Claimed::Claimed { fence, record, .. } => {
            runfleet_faults::point("process.quarantined");
            claimed_slice(deps, &record, fence).await
        }
        other => superseded(deps, other).await,
    }
}

async fn claimed_slice(deps: &Deps, record: &RunRecord, fence: u64) -> Result<Verdict, Failure> {
    let step = evaluate(deps, record).await?;
    runfleet_faults::point("process.before_commit");
    match step {
        Step::End(end) => finish(deps, record, fence, &end).await,
        Step::Continue { position } => save(deps, record, fence, &position).await,
    }
}

async fn evaluate(deps: &Deps, record: &RunRecord) -> Result<Step, Failure> {
    let found =
        deps.definitions.get(&record.workspace, &record.target, record.target_version).await?;
    let Some(definition) = found else {
        let end = slice::failed(
            "DEFINITION_MISSING",
            "The version of the Process that the run began with is not there.",
        );
        return Ok(Step::End(end));
    };
    let (position, input) = (record.position.as_deref(), record.input.as_deref());
    slice::evaluate(&definition, position, input, now_ms(), deps.slice_steps)
        .transient("reading the position of the run")
}

async fn finish(
    deps: &Deps,
    record: &RunRecord,
    fence: u64,
    end: &Ending,
) -> Result<Verdict, Failure> {
    let done =
        deps.store.finish_run(record.id, fence, &end.as_end()).await.transient("ending the run")?;
    finished(deps, record, end, done).await
}

/// After the commit of an end: publish the outcome that it calls for.
async fn finished(
    deps: &Deps,
    record: &RunRecord,
    end: &Ending,
    done: Finished,
) -> Result<Verdict, Failure> {
    match done {
        Finished::Finished { .. } => {
            deps.count_end(end);
            if let Some(effect) =
                effects::of_ended_run(record).permanent("writing the outcome message")?
            {
                deps.publish(effect).await?;
            }
            Ok(Verdict::Done)
        }
        Finished::Ended(now) => ended_before(deps, &now).await,
        Finished::Lost | Finished::Busy => {
            deps.metrics.slices.with_label_values(&["superseded"]).inc();
            Ok(Verdict::Duplicate)
        }
        Finished::Missing => Ok(Verdict::Drop("no_such_run")),
    }
}

/// A repeated message of a run that has ended: its outcome may not have been published.
async fn ended_before(deps: &Deps, record: &RunRecord) -> Result<Verdict, Failure> {
    if let Some(effect) = effects::of_ended_run(record).permanent("writing the outcome message")? {
        deps.publish(effect).await?;
    }
    Ok(Verdict::Duplicate)
}

/// Commits the position after a slice and asks for the next one.
async fn save(
    deps: &Deps,
    record: &RunRecord,
    fence: u64,
    position: &str,
) -> Result<Verdict, Failure> {
    let checkpoint = Checkpoint { release: true, wake: Wake::Now, ..Checkpoint::new(position) };
    match deps
        .store
        .checkpoint_run(record.id, fence, &checkpoint)
        .await
        .transient("storing the position")?
    {
        Saved::Saved { .. } => {
            runfleet_faults::point("process.checkpointed");
            deps.metrics.slices.with_label_values(&["continued"]).inc();
            let next =
                effects::advance(record.id, fence, record.lane, record.traceparent.as_deref());
            deps.publish(next.permanent("writing the next message")?).await?;
            Ok(Verdict::Done)
        }
        Saved::Lost | Saved::Ended(_) => {
            deps.metrics.slices.with_label_values(&["superseded"]).inc();
            Ok(Verdict::Duplicate)
        }
    }
}

async fn superseded(deps: &Deps, claimed: Claimed) -> Result<Verdict, Failure> {
    match claimed {
        Claimed::Ended(record) => ended_before(deps, &record).await,
        Claimed::Missing => Ok(Verdict::Drop("no_such_run")),
        Claimed::Paused(_) => Ok(Verdict::Drop("paused")),
        // Whoever holds the lease moves it on; if that one is dead, the alarm at the end of the lease wakes the run.
        Claimed::Busy { .. } | Claimed::Claimed { .. } => Ok(Verdict::Duplicate),
    }
}
