//! One message: which run it is about, who may move it, and what becomes of a run that nobody may move any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runfleet_broker::{Classify, Failure, Inbound, Line, Publisher, Route, Verdict};
use runfleet_contracts::message::Fresh;
use runfleet_contracts::{Advance, OutcomeReady, RunEvent};
use runfleet_domain::limits::CRASHES_MAX;
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_flow::{Ask, Definition, Event, State};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Appended, Claim, Claimed, Finished, RunRecord, Store, Told, Woken};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::inbox::RunnerInbox;
use runfleet_worker::waking::{self, Came};
use runfleet_worker::{CatalogCache, Fleet, effects, ending};
use serde_json::value::RawValue;

use crate::answers::{self, Answers};
use crate::call::Asks;
use crate::definitions::Definitions;
use crate::held::Held;
use crate::metrics::Metrics;
use crate::slice::{self, Ending, Step, Worked};
use crate::threads::{Threads, Unfinished};

/// The queue of runs whose message came back after a crash.
pub(crate) const QUARANTINE: &str = "process-runner.quarantine";

/// Steps of a Process without costly expressions that are executed where its message is handled: going to another thread and
/// back costs more.
const IN_PLACE_STEPS: u32 = 100;

/// Longest time for those steps. Whatever takes longer is executed on the threads for expressions, whose limit then counts.
const IN_PLACE_TIME: Duration = Duration::from_millis(5);

/// What the handler may touch.
pub(crate) struct Deps {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    pub(crate) catalog: CatalogCache,
    definitions: Definitions,
    metrics: Metrics,
    threads: Threads,
    slice_steps: u32,
    pub(crate) answers: Arc<Answers>,
}

/// Finds what stored runs ask for.
pub(crate) struct StoredAsks(pub(crate) Definitions);

impl Asks for StoredAsks {
    async fn asked(&self, record: &RunRecord, task: u64) -> Result<Option<Ask>, Failure> {
        let Some(position) = record.position.as_deref() else { return Ok(None) };
        let (workspace, target) = (&record.workspace, &record.target);
        let definition = self.0.get(workspace, target, record.target_version).await?;
        let Some(definition) = definition else { return Ok(None) };
        let state = State::from_json(position).transient("reading the position of the run")?;
        Ok(state.ask(&definition, task))
    }
}

impl Deps {
    pub(crate) fn new(
        fleet: &Fleet,
        definitions: Definitions,
        threads: Threads,
        slice_steps: u32,
        answers: Arc<Answers>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            catalog: fleet.catalog.clone(),
            definitions,
            metrics: Metrics::new(&fleet.process.registry)?,
            threads,
            slice_steps,
            answers,
        })
    }

    pub(crate) fn count_end(&self, end: &Ending) {
        runfleet_faults::point("process.committed");
        self.metrics.ended.with_label_values(&[end.state.as_str()]).inc();
        self.count_slice("ended");
    }

    pub(crate) fn count_slice(&self, result: &str) {
        self.metrics.slices.with_label_values(&[result]).inc();
    }

    pub(crate) fn count_ignored(&self, ignored: u32) {
        self.metrics.ignored.inc_by(u64::from(ignored));
    }

    pub(crate) async fn publish(&self, effect: effects::Effect) -> Result<(), Failure> {
        effects::publish(&self.publisher, effect).await.transient("publishing an effect")
    }

    /// The definition that a run began with.
    pub(crate) async fn definition_of(
        &self,
        record: &RunRecord,
    ) -> Result<Option<Arc<Definition>>, Failure> {
        self.definitions.get(&record.workspace, &record.target, record.target_version).await
    }

    /// One slice, on a thread of its own and in bounded time. What takes longer would do so again: it ends the run.
    pub(crate) async fn evaluate(
        &self,
        definition: &Arc<Definition>,
        state: State,
        events: Vec<Event>,
    ) -> Result<Worked, Failure> {
        let (definition, steps) = (Arc::clone(definition), self.slice_steps);
        let work = move || slice::work(&definition, state, events, now_ms(), steps);
        match self.threads.run(work).await {
            Ok(worked) => Ok(worked),
            Err(Unfinished::TimedOut) => Ok(Worked::ended(too_slow())),
            Err(Unfinished::Panicked) => Ok(Worked::ended(broken())),
            Err(error @ Unfinished::NoThread) => Err(error).transient("evaluating a slice"),
        }
    }

    /// Puts an event of our own into the inbox of a run, once per id, and wakes it.
    pub(crate) async fn tell(
        &self,
        record: &RunRecord,
        id: &str,
        event: &RunEvent,
    ) -> Result<(), Failure> {
        let id = id.parse().permanent("making an id")?;
        let body = event.to_body().map_err(|_| Failure::permanent("writing an event"))?;
        let appended = self.store.append_event(record.id, &id, &body).await;
        match appended.transient("telling a run")? {
            Appended::Added | Appended::Known => {
                let traceparent = record.traceparent.clone();
                let woken = Woken { run_id: record.id, lane: record.lane, traceparent };
                ending::wake(&self.publisher, &woken).await
            }
            Appended::Full => Err(Failure::transient("the run can take no more events")),
            Appended::Ended | Appended::Missing => Ok(()),
        }
    }
}

pub(crate) async fn handle(
    deps: Arc<Deps>,
    message: Inbound<RunnerInbox>,
) -> Result<Verdict, Failure> {
    let (body, message) = message.split();
    if answers::is_smuggled(&message, &body) {
        return Ok(Verdict::Drop("not_an_answer"));
    }
    match body {
        RunnerInbox::Advance(advance) => move_on(&deps, message.with(advance)).await,
        // Storing an answer evaluates nothing, so it needs no quarantine when it comes again.
        RunnerInbox::Answer(answer) => deps.answers.take(&message, answer).await,
        RunnerInbox::Progress(_) | RunnerInbox::Note => Ok(Verdict::Done),
    }
}

async fn move_on(deps: &Deps, message: Inbound<Advance>) -> Result<Verdict, Failure> {
    let run_id = message.body.run_id;
    if run_id.kind() != RunKind::Process {
        return Ok(Verdict::Park("wrong_kind", "not a run of a Process".to_owned()));
    }
    let quarantined = &*message.queue == QUARANTINE;
    if message.redelivered && !quarantined {
        // It was in hand when a runner died or lost its connection. If it is the one that kills runners, it must do so
        // where nothing else is in hand.
        return Ok(Verdict::Move(Route::Process(Line::Quarantine)));
    }
    if let (Some(fresh), false) = (&message.body.fresh, quarantined)
        && let Some(verdict) = untouched(deps, &message, fresh).await?
    {
        return Ok(verdict);
    }
    let again = quarantined || message.attempt > 1;
    let claimed = deps.store.claim_run(run_id, Claim { quarantine: quarantined }).await;
    match claimed.transient("claiming the run")? {
        Claimed::Claimed { fence, crashes, cut_off, record, inbox } => {
            let held = Held { deps, record: &record, fence };
            if quarantined {
                if crashes > CRASHES_MAX {
                    tracing::error!(%run_id, crashes, "a run is given up: each attempt killed its runner");
                    return held.finish(&given_up(), &[]).await;
                }
                runfleet_faults::point("process.quarantined");
            }
            if record.is_late(now_ms()) {
                return held.finish(&too_late(), &[]).await;
            }
            held.work(inbox, Came::of(&message.message_id, again || cut_off)).await
        }
        Claimed::Ended(record) => ended_before(deps, &record).await,
        Claimed::Missing => Ok(Verdict::Drop("no_such_run")),
        // Its deadline counts also while somebody holds it up.
        Claimed::Paused(record) if record.is_late(now_ms()) => end_late(deps, &record).await,
        Claimed::Paused(_) => Ok(Verdict::Drop("paused")),
        Claimed::Busy { .. } => {
            if !again {
                deps.count_slice("superseded");
            }
            Ok(waking::of_held(again))
        }
    }
}

/// The short way for the first message of a run: evaluated from what the message says, committed only if the record says the
/// same. `None` when that does not bring the run to its end, or more has to be done than to end it; then the record is read.
async fn untouched(
    deps: &Deps,
    message: &Inbound<Advance>,
    fresh: &Fresh,
) -> Result<Option<Verdict>, Failure> {
    let found = deps.definitions.get(&fresh.workspace, &fresh.target, fresh.target_version).await?;
    let Some(definition) = found else { return Ok(None) };
    let input = fresh.input.as_deref().map(RawValue::get);
    let Ok(Ok(state)) = slice::state_of(&definition, None, input) else { return Ok(None) };
    // Its input is small, or it would not have travelled.
    let worked = if definition.is_quick() {
        let (begun, steps) = (Instant::now(), deps.slice_steps.min(IN_PLACE_STEPS));
        let in_time = || begun.elapsed() < IN_PLACE_TIME;
        let ended = slice::to_the_end(&definition, state, now_ms(), steps, in_time);
        let Some(ended) = ended else { return Ok(None) };
        ended
    } else {
        deps.evaluate(&definition, state, Vec::new()).await?
    };
    let (Step::End(end), true) = (&worked.step, worked.effects.is_empty()) else { return Ok(None) };
    runfleet_faults::point("process.before_commit");
    let told = Told {
        workspace: &fresh.workspace,
        target: &fresh.target,
        target_version: fresh.target_version,
        input,
    };
    let run_id = message.body.run_id;
    let history: Vec<&str> = worked.history.iter().map(String::as_str).collect();
    let done = deps.store.finish_untouched_run(run_id, &told, &end.as_end(&history)).await;
    match done.transient("ending the run")? {
        Finished::Finished { outcome_wanted, parent_to_wake, .. } => {
            deps.count_end(end);
            let Fresh { workspace, project, target, .. } = fresh;
            facts::ended(&deps.publisher, run_id, Of { workspace, project, target }, end.state);
            if let Some(parent) = parent_to_wake {
                ending::wake(&deps.publisher, &parent).await?;
            }
            if outcome_wanted {
                let Some(ready) = outcome_of(run_id, fresh) else { return Ok(None) };
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

fn outcome_of(run_id: RunId, fresh: &Fresh) -> Option<OutcomeReady> {
    Some(OutcomeReady {
        run_id,
        workspace: fresh.workspace.clone(),
        project: fresh.project.clone(),
        job: fresh.job.clone()?,
        hops: fresh.hops,
        chain: fresh.chain,
    })
}

fn too_late() -> Ending {
    Ending {
        state: RunState::TimedOut,
        output: None,
        error: Some((
            "DEADLINE_EXCEEDED".to_owned(),
            "The run did not end before its deadline.".to_owned(),
        )),
    }
}

fn too_slow() -> Ending {
    slice::failed("EVALUATION_TOO_SLOW", "An expression of the run took more time than is allowed.")
}

fn broken() -> Ending {
    slice::failed("INTERNAL_ERROR", "The run could not be continued.")
}

fn given_up() -> Ending {
    slice::failed("INTERNAL_ERROR", "The run was stopped after repeated failures of its runner.")
}

/// The deadline of a run that a person holds up has passed: it ends from outside.
async fn end_late(deps: &Deps, record: &RunRecord) -> Result<Verdict, Failure> {
    let end = too_late();
    let done = deps.store.end_run(record.id, &end.as_end(&[])).await.transient("ending the run")?;
    if matches!(done, Finished::Finished { .. }) {
        deps.count_end(&end);
        facts::ended(&deps.publisher, record.id, Of::record(record), end.state);
    }
    ending::follow(&deps.store, &deps.publisher, record, &done).await?;
    Ok(Verdict::Done)
}

/// A repeated message of a run that has ended: what its end calls for may not have been done.
async fn ended_before(deps: &Deps, record: &RunRecord) -> Result<Verdict, Failure> {
    ending::follow_again(&deps.store, &deps.publisher, record).await?;
    Ok(Verdict::Duplicate)
}
