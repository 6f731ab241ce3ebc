//! What a person decides about tool calls that are held: it goes into the inbox of the run that wants to make them, and that
//! run takes the first decision about each.

use std::collections::BTreeSet;

use runfleet_agent::{Decision, Event};
use runfleet_broker::{Classify, Failure};
use runfleet_contracts::ErrorBody;
use runfleet_contracts::chat::{ChatDecide, ChatDecided, HeldCall, ValidDecision};
use runfleet_domain::{MessageId, RunId};
use runfleet_store::Appended;

use super::{Chatting, missing, show};
use crate::operate::{Done, Trouble, Written, answer, event_id};

/// Why a run is woken about whose calls somebody has decided.
const DECIDED: &str = "decided";

/// Whether a call waits for a decision of the person.
fn is_held(held: &[HeldCall], run: &str, call: &str) -> bool {
    held.iter().any(|held| held.run_id == run && held.call_id == call)
}

/// The call does not wait for a decision (any more).
fn not_held() -> ErrorBody {
    ErrorBody::field("callId", "is not one that waits for a decision").with("reason", "NOT_HELD")
}

fn decision(decided: ValidDecision) -> Decision {
    match decided {
        ValidDecision::Approve => Decision::Approve,
        ValidDecision::Edit(arguments) => Decision::Edit { arguments },
        ValidDecision::Reject(reason) => Decision::Reject { reason },
    }
}

impl Chatting<'_> {
    pub(super) async fn decide(
        &self,
        options: &ChatDecide,
        decided: ValidDecision,
    ) -> Result<Done, Trouble> {
        let Some(page) = self.named(&options.conversation_id).await? else {
            return Ok(Done::Refused(missing(&options.conversation_id)));
        };
        // Of the active turn, or of a run that is a part of it: nobody else's calls are shown there.
        let held = show::held(&page.conversation);
        let run = options.run();
        let Some(run) = run.filter(|_| is_held(&held, &options.run_id, &options.call_id)) else {
            return Ok(Done::Refused(not_held()));
        };
        let id = event_id::of_request(&self.id).permanent("naming the event").before_writing()?;
        let call_id = options.call_id.clone();
        let event = Event::Approval { call_id, decision: decision(decided) }.bounded();
        match self.tell(run, &id, &event).await.after_writing()? {
            Appended::Added | Appended::Known => {}
            Appended::Full => {
                return Ok(Done::no_room("INBOX_FULL", "finding room in the inbox of the run"));
            }
            Appended::Ended | Appended::Missing => return Ok(Done::Refused(not_held())),
        }
        runfleet_faults::point("intake.decision_told");
        self.wake(run, DECIDED).await.after_writing()?;
        answer(ChatDecided { run_id: run.to_string(), call_id: options.call_id.clone() })
    }

    /// Closes everything that `turn` and its parts show in their conversation: the person has written something else. What is held
    /// from now on closes itself, and what a later turn holds is not concerned.
    pub(super) async fn close_held(&self, conversation: &str, turn: RunId) -> Result<(), Trouble> {
        let page = self.named(conversation).await?;
        let Some(page) = page.filter(|page| page.conversation.active == Some(turn)) else {
            return Ok(());
        };
        let held = show::held(&page.conversation);
        let runs: BTreeSet<&str> = held.iter().map(|held| held.run_id.as_str()).collect();
        let id = event_id::of_request(&self.id).permanent("naming the event").after_writing()?;
        for run in runs.into_iter().filter_map(|run| run.parse::<RunId>().ok()) {
            // A full inbox, or a run that has ended, needs no such word: calls that nobody decides about expire.
            self.tell(run, &id, &Event::PassedOver).await.after_writing()?;
            runfleet_faults::point("intake.decision_told");
            self.wake(run, DECIDED).await.after_writing()?;
        }
        Ok(())
    }

    async fn tell(&self, run: RunId, id: &MessageId, event: &Event) -> Result<Appended, Failure> {
        let body = serde_json::to_string(event).permanent("writing the event")?;
        self.deps.store.append_event(run, id, &body).await.transient("telling the run")
    }
}
