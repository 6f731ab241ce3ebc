//! One message: which run it is about, who may move it, and what becomes of a run that nobody may move any more.

use std::sync::Arc;

use runfleet_agent::ErrorCode;
use runfleet_broker::names::ANSWER_EXCHANGE;
use runfleet_broker::{Classify, Failure, Inbound, Line, Publisher, Route, Verdict};
use runfleet_contracts::Advance;
use runfleet_domain::RunKind;
use runfleet_domain::limits::CRASHES_MAX;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Claim, Claimed, Finished, RunRecord, Store};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::inbox::RunnerInbox;
use runfleet_worker::waking::{self, Came};
use runfleet_worker::{CatalogCache, Fleet, effects, ending};

use crate::calls::Calls;
use crate::definitions::Definitions;
use crate::held::Held;
use crate::metrics::Metrics;
use crate::slice::Ending;
use crate::tools::{self, Tools};

/// The queue of runs whose message came back after a crash.
pub(crate) const QUARANTINE: &str = "agent-runner.quarantine";

/// Attempts to begin a run whose records cannot be fetched.
const ATTEMPTS: u32 = 3;

/// What the handler may touch.
pub(crate) struct Deps {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    pub(crate) definitions: Definitions,
    pub(crate) metrics: Metrics,
    pub(crate) catalog: CatalogCache,
    pub(crate) tools: Arc<Tools>,
}

impl Deps {
    pub(crate) fn new(fleet: &Fleet, tools: Arc<Tools>) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            definitions: Definitions::new(fleet.store.clone()),
            metrics: Metrics::new(&fleet.process.registry)?,
            catalog: fleet.catalog.clone(),
            tools,
        })
    }

    pub(crate) fn count_end(&self, end: &Ending) {
        runfleet_faults::point("agent.committed");
        self.metrics.ended.with_label_values(&[end.state.as_str()]).inc();
        self.count_slice("ended");
    }

    pub(crate) fn count_slice(&self, result: &str) {
        self.metrics.slices.with_label_values(&[result]).inc();
    }

    pub(crate) async fn publish(&self, effect: effects::Effect) -> Result<(), Failure> {
        effects::publish(&self.publisher, effect).await.transient("publishing an effect")
    }
}

pub(crate) async fn handle(
    calls: Arc<Calls>,
    message: Inbound<RunnerInbox>,
) -> Result<Verdict, Failure> {
    let (body, message) = message.split();
    match body {
        // Hosts publish through the exchange of answers. "Look at this run" is not for them to say.
        RunnerInbox::Advance(_) if message.exchange == ANSWER_EXCHANGE => {
            Ok(Verdict::Drop("not_an_answer"))
        }
        RunnerInbox::Advance(advance) => move_on(&calls.deps, message.with(advance)).await,
        RunnerInbox::Answer(answer) => {
            tools::take(&calls, calls.deps.tools.answer_keys(), &message, answer).await
        }
        RunnerInbox::Progress(progress) => {
            tools::hear(&calls, calls.deps.tools.answer_keys(), progress).await
        }
        RunnerInbox::Note => Ok(Verdict::Done),
    }
}

async fn move_on(deps: &Deps, message: Inbound<Advance>) -> Result<Verdict, Failure> {
    let run_id = message.body.run_id;
    if run_id.kind() != RunKind::Agent {
        return Ok(Verdict::Park("wrong_kind", "not a run of an agent".to_owned()));
    }
    let quarantined = &*message.queue == QUARANTINE;
    if message.redelivered && !quarantined {
        // It was in hand when a runner died or lost its connection. If it is the one that kills runners, it must do so
        // where nothing else is in hand.
        return Ok(Verdict::Move(Route::Agent(Line::Quarantine)));
    }
    let again = quarantined || message.attempt > 1;
    let claimed = deps.store.claim_run(run_id, Claim { quarantine: quarantined }).await;
    match claimed.transient("claiming the run")? {
        Claimed::Claimed { fence, crashes, cut_off, record, inbox } => {
            runfleet_faults::point("agent.claimed");
            let last_attempt = message.attempt >= ATTEMPTS;
            let held = Held { deps, record: &record, fence, last_attempt };
            if quarantined && crashes > CRASHES_MAX {
                tracing::error!(%run_id, crashes, "a run is given up: each attempt killed its runner");
                return held.finish(&Ending::failed(ErrorCode::InternalError)).await;
            }
            held.work(inbox, Came::of(&message.message_id, again || cut_off)).await
        }
        Claimed::Ended(record) => {
            // What its end calls for may not have been done.
            ending::follow_again(&deps.store, &deps.publisher, &record).await?;
            Ok(Verdict::Duplicate)
        }
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

/// The deadline of a run that a person holds up has passed: it ends from outside.
async fn end_late(deps: &Deps, record: &RunRecord) -> Result<Verdict, Failure> {
    let end = Ending::failed(ErrorCode::Timeout);
    let done = deps.store.end_run(record.id, &end.as_end()).await.transient("ending the run")?;
    if matches!(done, Finished::Finished { .. }) {
        deps.count_end(&end);
        facts::ended(&deps.publisher, record.id, Of::record(record), end.state);
    }
    ending::follow(&deps.store, &deps.publisher, record, &done).await?;
    Ok(Verdict::Done)
}
