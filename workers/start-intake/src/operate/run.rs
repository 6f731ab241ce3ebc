//! Operations on one run of the project: its end, holding it, events for it, its history.

use runfleet_broker::Classify;
use runfleet_contracts::operations::{HistoryEntry, HistoryPage, RunOperated};
use runfleet_contracts::run_event::RunEvent;
use runfleet_contracts::{ErrorBody, ErrorCode};
use runfleet_domain::{MessageId, RunId, RunKind, RunState};
use runfleet_flow::State;
use runfleet_store::{Appended, End, Finished, Paused, RunRecord, Woken};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::{effects, ending};

use super::asked::OnRun;
use super::{Done, Operating, TOLD, Trouble, Written, answer, event_id};
use crate::get::missing;

impl Operating<'_> {
    pub(super) async fn on_run(&self, run: &RunRecord, what: OnRun) -> Result<Done, Trouble> {
        match what {
            OnRun::End(state) => self.end(run, state).await,
            OnRun::Pause => self.pause(run).await,
            OnRun::Resume => self.resume(run).await,
            OnRun::Tell(event) => self.tell(run, &event).await,
            OnRun::History { from, count } => self.history(run.id, from, count).await,
        }
    }

    /// Ends the run, if nobody has yet. Whoever did it first is told by the state.
    async fn end(&self, run: &RunRecord, state: RunState) -> Result<Done, Trouble> {
        let Self { deps, .. } = self;
        let end = End::plain(state);
        let ended = deps.store.end_run(run.id, &end).await.transient("ending the run");
        let ended = ended.after_writing()?;
        if matches!(ended, Finished::Finished { .. }) {
            facts::ended(&deps.publisher, run.id, Of::record(run), state);
        }
        runfleet_faults::point("intake.run_ended");
        ending::follow(&deps.store, &deps.publisher, run, &ended).await.after_writing()?;
        match ended {
            Finished::Finished { .. } => operated(run.id, state),
            Finished::Ended(before) => operated(run.id, before.state),
            // Only a holder can be told the first two.
            Finished::Lost | Finished::Busy | Finished::Missing => Ok(Done::Refused(gone(run.id))),
        }
    }

    async fn pause(&self, run: &RunRecord) -> Result<Done, Trouble> {
        let paused = self.deps.store.pause_run(run.id).await.transient("holding the run");
        match paused.after_writing()? {
            Paused::Changed => operated(run.id, RunState::Paused),
            Paused::Unchanged(state) => operated(run.id, state),
            Paused::Ended(state) => Ok(Done::Refused(over(state))),
            Paused::Missing => Ok(Done::Refused(gone(run.id))),
        }
    }

    async fn resume(&self, run: &RunRecord) -> Result<Done, Trouble> {
        let resumed = self.deps.store.resume_run(run.id).await.transient("resuming the run");
        let state = match resumed.after_writing()? {
            Paused::Changed => RunState::Running,
            Paused::Unchanged(state) => state,
            Paused::Ended(state) => return Ok(Done::Refused(over(state))),
            Paused::Missing => return Ok(Done::Refused(gone(run.id))),
        };
        runfleet_faults::point("intake.run_resumed");
        if state == RunState::Running {
            // Also when it goes on already: an earlier try of this request may have been cut off before this.
            self.wake(&woken(run), effects::RESUMED).await.after_writing()?;
        }
        operated(run.id, state)
    }

    /// Puts an event into the run's inbox, once for the request, and wakes its runner.
    async fn tell(&self, run: &RunRecord, event: &RunEvent) -> Result<Done, Trouble> {
        let body = match event.to_body() {
            Ok(body) => body,
            Err(error) => return Ok(Done::Refused(of_variables(error))),
        };
        let id = event_id::of_request(&self.id).permanent("naming the event").before_writing()?;
        if let Some(refused) = self.nobody_waits(run, event, &id).await? {
            return Ok(Done::Refused(refused));
        }
        let told = self.deps.store.append_event(run.id, &id, &body).await;
        match told.transient("telling the run").after_writing()? {
            Appended::Added | Appended::Known => {}
            Appended::Full => {
                return Ok(Done::no_room("INBOX_FULL", "finding room in the inbox of the run"));
            }
            Appended::Ended => return Ok(Done::Refused(over(self.state_of(run).await?))),
            Appended::Missing => return Ok(Done::Refused(gone(run.id))),
        }
        runfleet_faults::point("intake.run_told");
        if run.state != RunState::Paused {
            self.wake(&woken(run), TOLD).await.after_writing()?;
        }
        operated(run.id, run.state)
    }

    /// Why the event can have no effect: its user task is not open. A request that has been carried out before stays what it was.
    async fn nobody_waits(
        &self,
        run: &RunRecord,
        event: &RunEvent,
        id: &MessageId,
    ) -> Result<Option<ErrorBody>, Trouble> {
        let (RunEvent::UserDone { task, .. } | RunEvent::UserAssigned { task, .. }) = event else {
            return Ok(None);
        };
        // What has ended says so itself, and a state that this program cannot read is not its to judge.
        let state = run.position.as_deref().map(State::from_json);
        let open = match state {
            _ if run.state.is_final() => true,
            None => false,
            Some(state) => state.map_or(true, |state| state.is_open_task(*task)),
        };
        if open {
            return Ok(None);
        }
        let known =
            self.deps.store.knows_event(run.id, id).await.transient("looking for the event");
        let none = || ErrorBody::field("task", "is not an open user task of the run");
        Ok((!known.before_writing()?).then(none))
    }

    async fn history(&self, run: RunId, from: u32, count: u32) -> Result<Done, Trouble> {
        let stored = self.deps.store.history(run, from, count).await;
        let stored = stored.transient("reading the history of the run").before_writing()?;
        let more = u32::try_from(stored.len()).is_ok_and(|found| found == count);
        let next = more.then(|| from.saturating_add(count));
        let entries = stored.iter().filter_map(|text| HistoryEntry::from_stored(text)).collect();
        answer(HistoryPage { entries, next })
    }

    /// The state of a run that has ended since it was looked at.
    async fn state_of(&self, run: &RunRecord) -> Result<RunState, Trouble> {
        if run.state.is_final() {
            return Ok(run.state);
        }
        let now = self.deps.store.load_run(run.id).await.transient("loading the run");
        Ok(now.before_writing()?.map_or(run.state, |run| run.state))
    }
}

fn woken(run: &RunRecord) -> Woken {
    Woken { run_id: run.id, lane: run.lane, traceparent: run.traceparent.clone() }
}

fn operated(run: RunId, state: RunState) -> Result<Done, Trouble> {
    let state = state.public(RunKind::Process).to_owned();
    answer(RunOperated { instance_id: run.to_string(), state })
}

fn gone(run: RunId) -> ErrorBody {
    missing(RunKind::Process, &run.to_string())
}

/// The run has ended, so that nothing can be done to it any more.
fn over(state: RunState) -> ErrorBody {
    ErrorBody::field("instanceId", "names a run that has ended")
        .with("reason", "RUN_ENDED")
        .with("state", state.public(RunKind::Process))
}

/// An event that is too large is so because of its variables, whose numbers may be longer when they are written again.
fn of_variables(error: ErrorBody) -> ErrorBody {
    let too_large = error.code == ErrorCode::Validation && error.details.contains_key("limit");
    if too_large { error.with("field", "variables") } else { error }
}
