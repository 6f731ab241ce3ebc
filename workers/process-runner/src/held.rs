//! Work on a run that is held: slice by slice until it ends, waits, or another one may have its turn.

use std::sync::Arc;

use runfleet_broker::{Classify, Failure, Verdict};
use runfleet_flow::{Definition, Effect, State, Subscription};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Checkpoint, Event as Stored, Finished, RunRecord, Saved, Wait, Waits, Wake};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::waking::{self, Came};
use runfleet_worker::{effects, ending};

use crate::events;
use crate::handler::Deps;
use crate::perform::Performer;
use crate::slice::{self, Ending, Save, Step, Worked};

/// Slices in one delivery. More than one only while events come in, each of which brings up to a hundred of them.
const SLICES_AT_ONCE: u32 = 32;

/// A run that this worker holds.
pub(crate) struct Held<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) record: &'a RunRecord,
    pub(crate) fence: u64,
}

impl Held<'_> {
    /// Moves the run on.
    pub(crate) async fn work(&self, inbox: Vec<Stored>, came: Came) -> Result<Verdict, Failure> {
        let Some(definition) = self.deps.definition_of(self.record).await? else {
            return self.finish(&missing_definition(), &[]).await;
        };
        let (position, input) = (self.record.position.as_deref(), self.record.input.as_deref());
        let state = slice::state_of(&definition, position, input);
        let state = match state.transient("reading the position of the run")? {
            Ok(state) => state,
            Err(end) => return self.finish(&end, &[]).await,
        };
        // Whoever stored this state may not have come to doing what it calls for. Nobody wakes a run for nothing.
        let unsure = match came {
            Came::Again => true,
            // An alarm that rang before somebody else had the run says nothing.
            Came::Unfounded => {
                let nothing = inbox.is_empty() && !state.is_due(now_ms());
                nothing && self.record.alarm_tries > 0
            }
            Came::Told => false,
        };
        // Only a state whose holder was cut off has something that was to be sent; the next slice forgets it.
        self.performer().perform(state.sent()).await?;
        self.slices(&definition, state, inbox, unsure).await
    }

    /// `unsure`: whether what the state calls for already has to be done once more.
    async fn slices(
        &self,
        definition: &Arc<Definition>,
        mut state: State,
        mut inbox: Vec<Stored>,
        mut unsure: bool,
    ) -> Result<Verdict, Failure> {
        for _ in 0..SLICES_AT_ONCE {
            let (events, consumed) = events::read(self.record.id, &inbox);
            let worked = self.deps.evaluate(definition, state, events).await?;
            self.deps.count_ignored(worked.ignored);
            runfleet_faults::point("process.before_commit");
            let Worked { step, effects, history, .. } = worked;
            let history: Vec<&str> = history.iter().map(String::as_str).collect();
            let mut save = match step {
                Step::End(end) => {
                    // After the end nobody could tell what was to be sent; sending it twice is noticed by its id.
                    self.performer().perform(sent(effects)).await?;
                    return self.finish(&end, &history).await;
                }
                Step::Save(save) => save,
            };
            let mut saved = self.save(&save, &consumed, &history).await?;
            if matches!(saved, Saved::Saved { .. }) {
                runfleet_faults::point("process.checkpointed");
                self.follow(definition, &save.state, effects, unsure).await?;
                if save.settle() {
                    saved = self.save(&save, &[], &[]).await?;
                }
            }
            match saved {
                Saved::Saved { released: true, .. } => return self.released(&save).await,
                Saved::Saved { inbox: waiting, .. } => {
                    (state, inbox, unsure) = (save.state, waiting, false);
                }
                Saved::Lost | Saved::Ended(_) => {
                    self.deps.count_slice("superseded");
                    return Ok(Verdict::Duplicate);
                }
            }
        }
        // Events come faster than they are dealt with. The end of the lease wakes the run again.
        self.deps.count_slice("continued");
        Ok(Verdict::Done)
    }

    /// Does what a stored state calls for. When it is not sure what was done before, everything that is still wanted is done
    /// again, but nothing whose answer this slice has taken in.
    async fn follow(
        &self,
        definition: &Definition,
        state: &State,
        effects: Vec<Effect>,
        unsure: bool,
    ) -> Result<(), Failure> {
        let performer = self.performer();
        if !unsure {
            return performer.perform(effects).await;
        }
        performer.perform(state.outstanding(definition)).await?;
        if self.record.has_called {
            // A state does not name what it wants no more.
            performer.call_off(|instance| !state.wants_child_of(instance)).await?;
        }
        Ok(())
    }

    async fn save(
        &self,
        save: &Save,
        consumed: &[runfleet_domain::MessageId],
        history: &[&str],
    ) -> Result<Saved, Failure> {
        let list: Option<Vec<Wait<'_>>> =
            save.waits.as_ref().map(|waits| waits.iter().map(wait).collect());
        let waits = list.as_ref().map(|list| Waits {
            workspace: &self.record.workspace,
            project: &self.record.project,
            list,
        });
        let checkpoint = Checkpoint {
            position: &save.position,
            // Held until what it sends is sent: sent later, it could reach somebody who did not wait for it yet.
            release: save.state.sent().is_empty(),
            wake: save.wake,
            consumed,
            history,
            waits: waits.as_ref(),
            incidents: save.incidents,
        };
        let saved = self.deps.store.checkpoint_run(self.record.id, self.fence, &checkpoint).await;
        saved.transient("storing the position")
    }

    /// The run was given back: asks for its next slice, if it does not wait.
    async fn released(&self, save: &Save) -> Result<Verdict, Failure> {
        let record = self.record;
        if save.wake != Wake::Now {
            self.deps.count_slice("waiting");
            return Ok(Verdict::Done);
        }
        self.deps.count_slice("continued");
        let next =
            effects::advance(record.id, self.fence, record.lane, record.traceparent.as_deref());
        self.deps.publish(next.permanent("writing the next message")?).await?;
        Ok(Verdict::Done)
    }

    /// Ends the run and does what its end calls for.
    pub(crate) async fn finish(&self, end: &Ending, history: &[&str]) -> Result<Verdict, Failure> {
        let (store, record) = (&self.deps.store, self.record);
        let done = store.finish_run(record.id, self.fence, &end.as_end(history)).await;
        let done = done.transient("ending the run")?;
        if matches!(done, Finished::Finished { .. }) {
            self.deps.count_end(end);
            facts::ended(&self.deps.publisher, record.id, Of::record(record), end.state);
        } else {
            self.deps.count_slice("superseded");
        }
        ending::follow(store, &self.deps.publisher, record, &done).await?;
        Ok(waking::of_finished(&done))
    }

    fn performer(&self) -> Performer<'_> {
        Performer { deps: self.deps, record: self.record, fence: self.fence, now_ms: now_ms() }
    }
}

/// How a run ends whose definition is not there.
pub(crate) fn missing_definition() -> Ending {
    slice::failed(
        "DEFINITION_MISSING",
        "The version of the Process that the run began with is not there.",
    )
}

/// The effects that do not follow from the end of the run.
fn sent(effects: Vec<Effect>) -> Vec<Effect> {
    let sent = |effect: &Effect| matches!(effect, Effect::Message { .. } | Effect::Signal { .. });
    effects.into_iter().filter(sent).collect()
}

fn wait(subscription: &Subscription) -> Wait<'_> {
    match subscription {
        Subscription::Message { id, name, key } => {
            Wait::Message { name, key: key.as_deref(), subscription: *id }
        }
        Subscription::Signal { name } => Wait::Signal { name },
    }
}
