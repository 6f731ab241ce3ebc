//! Work on a run that is held: slice by slice until it ends or waits.

use runfleet_agent::{Begin, Definition, Effect, ErrorCode, State};
use runfleet_broker::{Classify, Failure, Verdict};
use runfleet_contracts::facts::Progress;
use runfleet_contracts::{AgentTool, AgentTurn, DeliverMessage};
use runfleet_domain::MessageId;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Checkpoint, Event as Stored, Finished, RunRecord, Saved};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::waking::{self, Came};
use runfleet_worker::{effects, ending};

use crate::handler::Deps;
use crate::slice::{self, Ending, Save, Step, Worked};
use crate::tools::{call_of, turn_of};
use crate::{begin, conversation, events, rights};

/// Why a run is woken whose person has written on before its calls could be shown.
const PASSED: &str = "passed";

/// Slices in one delivery. More than one only while events come in, each of which brings up to a hundred of them.
const SLICES_AT_ONCE: u32 = 32;

/// Runs that one run has started and that are looked through.
const CHILDREN_MAX: u32 = 1_000;

/// A run that this worker holds.
pub(crate) struct Held<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) record: &'a RunRecord,
    pub(crate) fence: u64,
    /// Whether what could not be had yet will not be had later either.
    pub(crate) last_attempt: bool,
}

impl Held<'_> {
    /// Moves the run on.
    pub(crate) async fn work(&self, inbox: Vec<Stored>, came: Came) -> Result<Verdict, Failure> {
        let definition = match self.deps.definitions.of(self.record).await? {
            Ok(definition) => definition,
            Err(code) => return self.finish(&Ending::failed(code)).await,
        };
        let state = match self.record.position.as_deref() {
            Some(position) => {
                match slice::state_of(position).transient("reading the position of the run")? {
                    Ok(state) => state,
                    Err(end) => return self.finish(&end).await,
                }
            }
            None => match self.begin(&definition).await? {
                Ok(begin) => definition.begin(begin),
                Err(code) => return self.finish(&Ending::failed(code)).await,
            },
        };
        // Whoever stored this state may not have come to doing what it calls for. Nobody wakes a run for nothing.
        let unsure = match came {
            Came::Again => true,
            Came::Unfounded => inbox.is_empty() && !slice::is_due(&state, now_ms()),
            Came::Told => false,
        };
        self.slices(&definition, state, inbox, unsure).await
    }

    /// What the run begins with, or the code with which it ends.
    async fn begin(&self, definition: &Definition) -> Result<Result<Begin, ErrorCode>, Failure> {
        let snapshot = rights::declared(self.deps, self.record).await?;
        let snapshot = snapshot.as_deref();
        if let Some(Err(code)) = snapshot.map(|declared| rights::may_go_on(declared, self.record)) {
            return Ok(Err(code));
        }
        let earlier = conversation::earlier(&self.deps.store, self.record).await?;
        let begun = begin::begin(&self.deps.tools, definition, self.record, earlier, now_ms());
        match begun.await {
            Ok(begin) => {
                let denied = rights::denied(snapshot, self.record, definition, &begin.found);
                Ok(Ok(Begin { denied, ..begin }))
            }
            Err(begin::Failed::Code(code)) => Ok(Err(code)),
            Err(begin::Failed::Passing) if self.last_attempt => {
                Ok(Err(ErrorCode::ConfigLoadFailed))
            }
            Err(begin::Failed::Passing) => Err(Failure::transient("fetching the records of a run")),
        }
    }

    /// Ends runs that calls have started which nobody waits for any more.
    async fn call_off(&self, definition: &Definition, state: &State) -> Result<(), Failure> {
        if !self.record.has_called {
            return Ok(());
        }
        let wanted = state.outstanding(definition);
        let is_wanted = |instance| {
            let call = call_of(instance);
            wanted.iter().any(
                |effect| matches!(effect, Effect::CallTool { call_id, .. } if *call_id == call),
            )
        };
        let (store, publisher) = (&self.deps.store, &self.deps.publisher);
        let children = store.open_children(self.record.id, CHILDREN_MAX).await;
        for child in children.transient("listing the children of a run")? {
            if !is_wanted(child.instance) {
                ending::call_off(store, publisher, child.run_id).await?;
            }
        }
        Ok(())
    }

    /// `unsure`: whether what the state calls for already has to be done once more.
    async fn slices(
        &self,
        definition: &Definition,
        mut state: State,
        mut inbox: Vec<Stored>,
        mut unsure: bool,
    ) -> Result<Verdict, Failure> {
        for _ in 0..SLICES_AT_ONCE {
            let (events, consumed) = events::read(&inbox);
            let held_before = !state.held().is_empty();
            let worked = slice::work(definition, state, events, now_ms());
            self.deps.metrics.ignored.inc_by(u64::from(worked.ignored));
            runfleet_faults::point("agent.before_commit");
            let Worked { step, effects, .. } = worked;
            let save = match step {
                Step::End(end) => return self.finish(&end).await,
                Step::Save(save) => save,
            };
            match self.save(&save, &consumed).await? {
                Saved::Saved { released, inbox: waiting } => {
                    runfleet_faults::point("agent.checkpointed");
                    let wanted = if unsure { save.state.outstanding(definition) } else { effects };
                    self.show(&save.state, held_before || unsure).await?;
                    self.perform(wanted).await?;
                    self.call_off(definition, &save.state).await?;
                    if released {
                        self.deps.count_slice("waiting");
                        return Ok(Verdict::Done);
                    }
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

    async fn save(&self, save: &Save, consumed: &[MessageId]) -> Result<Saved, Failure> {
        let checkpoint = Checkpoint {
            release: true,
            wake: save.wake,
            consumed,
            ..Checkpoint::new(&save.position)
        };
        let saved = self.deps.store.checkpoint_run(self.record.id, self.fence, &checkpoint).await;
        saved.transient("storing the position")
    }

    /// Shows the person who decides which calls wait; `changed`: whether some may have been shown before.
    async fn show(&self, state: &State, changed: bool) -> Result<(), Failure> {
        let Deps { store, publisher, .. } = self.deps;
        let Some(asks_in) = self.record.decided_in() else { return Ok(()) };
        let held = state.held();
        if changed || !held.is_empty() {
            let written =
                conversation::show(store, self.record, asks_in, self.fence, &held).await?;
            runfleet_faults::point("agent.held_shown");
            if let Some(first) = held.first().filter(|_| written) {
                conversation::pass_over(store, self.record.id, &first.call_id).await?;
                let (lane, trace) = (self.record.lane, self.record.traceparent.as_deref());
                let wake = effects::advance(self.record.id, PASSED, lane, trace);
                self.deps.publish(wake.permanent("writing the message that wakes a run")?).await?;
            }
        }
        conversation::tell_held(publisher, self.record, held);
        Ok(())
    }

    /// Asks for what a stored state calls for. Asking twice is asking once: ids are made of the run and what is asked.
    async fn perform(&self, effects: Vec<Effect>) -> Result<(), Failure> {
        let (run_id, lane) = (self.record.id, self.record.lane);
        let trace = self.record.traceparent.as_deref();
        if let Some((turn, doing)) = progress(&effects) {
            facts::progress(&self.deps.publisher, self.record, turn, doing);
        }
        for effect in effects {
            let effect = match effect {
                Effect::AskModel { turn, attempt, request } => {
                    let deadline = request.deadline_ms;
                    effects::turn(&AgentTurn { run_id, turn, attempt, deadline }, lane, trace)
                }
                Effect::CallTool { call_id, deadline_ms: deadline, .. } => {
                    effects::tool(&AgentTool { run_id, call_id, deadline }, lane, trace)
                }
                Effect::SendMessage { call_id, message, note, deadline_ms: deadline } => {
                    let deliver = DeliverMessage { run_id, call_id, message, note, deadline };
                    effects::deliver(&deliver, lane, trace)
                }
                _ => return Err(Failure::transient("an effect that this runner does not know")),
            };
            self.deps.publish(effect.permanent("writing the message of a call")?).await?;
            runfleet_faults::point("agent.asked");
        }
        Ok(())
    }

    /// Ends the run and does what its end calls for.
    pub(crate) async fn finish(&self, end: &Ending) -> Result<Verdict, Failure> {
        let (store, record) = (&self.deps.store, self.record);
        let done = store.finish_run(record.id, self.fence, &end.as_end()).await;
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
}

/// What live readers hear of what is asked for, with the number of its question.
fn progress(effects: &[Effect]) -> Option<(u32, Progress)> {
    let mut tools = Vec::new();
    let mut turn = None;
    for effect in effects {
        let (call_id, name) = match effect {
            Effect::AskModel { turn, .. } => return Some((*turn, Progress::Asking)),
            Effect::CallTool { call_id, name, .. } => (call_id, name.as_str()),
            Effect::SendMessage { call_id, .. } => (call_id, "sendMessage"),
            _ => continue,
        };
        turn = turn.or_else(|| turn_of(call_id));
        tools.push(name.to_owned());
    }
    Some((turn?, Progress::Calling { tools }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_hear_which_tools_an_answer_has_called() {
        let send = |call: &str| Effect::SendMessage {
            call_id: call.to_owned(),
            message: "s3cret".to_owned(),
            note: None,
            deadline_ms: 1,
        };
        let tools = vec!["sendMessage".to_owned(); 2];
        let told = progress(&[send("call_3_1"), send("call_3_2")]);
        assert_eq!(told, Some((3, Progress::Calling { tools })));
        assert_eq!(progress(&[]), None);
    }
}
