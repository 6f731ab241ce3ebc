//! What model calls and tool calls have in common: finding out whether they are still wanted, and storing what came of them.

use std::sync::Arc;

use runfleet_agent::{Definition, Doing, Event, State};
use runfleet_broker::{Classify, Failure, HandlerResult, Verdict};
use runfleet_domain::{MessageId, RunId, RunKind, RunState};
use runfleet_store::{Appended, ModelAnswer, RunRecord, Store};
use runfleet_worker::{Fleet, effects};
use ulid::Ulid;

use crate::events;
use crate::flight::Flights;
use crate::handler::Deps;
use crate::slice;
use crate::tools::Reports;

/// What making calls may touch.
pub(crate) struct Calls {
    pub(crate) deps: Arc<Deps>,
    pub(crate) flights: Flights,
    /// This process, among those that make calls.
    pub(crate) holder: String,
    /// What hosts tell of calls that are under way.
    pub(crate) reports: Reports,
}

/// What an answer of a model is charged with.
pub(crate) struct Bill {
    /// In millionths of a credit.
    pub(crate) cost: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Whether it counts as an iteration.
    pub(crate) counts: bool,
}

/// What the ledger says about a run of which a call was asked.
pub(crate) enum Found {
    /// It goes on.
    Live(Box<Live>),
    /// There is nothing to do.
    Over(Verdict),
}

/// A run that goes on.
pub(crate) struct Live {
    pub(crate) record: RunRecord,
    pub(crate) definition: Arc<Definition>,
    pub(crate) state: State,
}

impl Live {
    /// Whether its model is asked to judge, and not to answer.
    pub(crate) fn judges(&self) -> bool {
        matches!(self.state.view().doing, Doing::Asking { what: "judgement", .. })
    }
}

impl Calls {
    /// Watches the runs of calls until the worker stops.
    pub(crate) fn new(fleet: &Fleet, deps: Arc<Deps>) -> Self {
        let flights = Flights::default();
        let watch = flights.clone().watch(fleet.store.clone(), fleet.process.shutdown.clone());
        fleet.process.tasks.spawn(watch);
        let (holder, reports) = (Ulid::generate().to_string(), Reports::default());
        Self { deps, flights, holder, reports }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.deps.store
    }

    /// The run of a call, unless the call is over: its run has ended or is held, or what came of the call is stored.
    pub(crate) async fn find(&self, run: RunId, event: &MessageId) -> Result<Found, Failure> {
        let over = |reason| Ok(Found::Over(Verdict::Drop(reason)));
        if run.kind() != RunKind::Agent {
            return over("wrong_kind");
        }
        let record = self.store().load_run(run).await.transient("loading the run")?;
        let Some(record) = record else { return over("no_such_run") };
        if record.state.is_final() {
            return over("run_ended");
        }
        if record.state == RunState::Paused {
            // The call is asked for again when somebody lets the run go on.
            return over("paused");
        }
        let Some(position) = record.position.as_deref() else { return over("not_asked") };
        let Ok(definition) = self.deps.definitions.of(&record).await? else {
            return over("no_definition");
        };
        let state = slice::state_of(position).transient("reading the position of the run")?;
        let Ok(state) = state else { return over("unreadable") };
        if self.store().knows_event(run, event).await.transient("looking for an answer")? {
            return Ok(Found::Over(Verdict::Duplicate));
        }
        Ok(Found::Live(Box::new(Live { record, definition, state })))
    }

    /// Puts what came of a call into the inbox of its run and wakes it. What comes second changes nothing.
    pub(crate) async fn tell(
        &self,
        record: &RunRecord,
        id: &MessageId,
        event: Event,
    ) -> HandlerResult {
        let body = events::body(event).ok_or_else(|| Failure::permanent("writing an event"))?;
        let appended = self.store().append_event(record.id, id, &body).await;
        self.told(record, id, appended.transient("storing an answer")?).await
    }

    /// The same for the answer of a model, which is charged when it is stored.
    pub(crate) async fn tell_answer(
        &self,
        record: &RunRecord,
        id: &MessageId,
        event: Event,
        bill: Bill,
    ) -> HandlerResult {
        let body = events::body(event).ok_or_else(|| Failure::permanent("writing an event"))?;
        let Bill { cost, input_tokens, output_tokens, counts } = bill;
        let (workspace, agent, body) = (&record.workspace, &record.target, body.as_str());
        let answer =
            ModelAnswer { workspace, agent, body, cost, input_tokens, output_tokens, counts };
        let appended = self.store().append_answer(record.id, id, &answer).await;
        self.told(record, id, appended.transient("storing an answer")?).await
    }

    async fn told(&self, record: &RunRecord, id: &MessageId, appended: Appended) -> HandlerResult {
        let verdict = match appended {
            Appended::Added => Verdict::Done,
            // Whoever stored it may have died before the run was woken.
            Appended::Known => Verdict::Duplicate,
            Appended::Full => return Err(Failure::transient("storing an answer in a full inbox")),
            Appended::Ended => return Ok(Verdict::Drop("run_ended")),
            Appended::Missing => return Ok(Verdict::Drop("no_such_run")),
        };
        runfleet_faults::point("agent.answer_stored");
        let trace = record.traceparent.as_deref();
        let wake = effects::advance(record.id, id, record.lane, trace);
        self.deps.publish(wake.permanent("writing the message that wakes a run")?).await?;
        runfleet_faults::point("agent.answer_told");
        Ok(verdict)
    }
}
