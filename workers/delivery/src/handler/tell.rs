//! Whom an errand tells what became of its message: live readers, and the run that waits. All of it may be done again.

use runfleet_broker::{Classify, Failure, HandlerResult, Verdict};
use runfleet_contracts::facts::{ChatFrom, ChatMessage};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Appended, Delivery, DeliveryStatus};
use runfleet_worker::effects;
use serde_json::Value;

use super::Errand;
use crate::rules::May;
use crate::told;

impl Errand<'_> {
    /// Something was decided about the message.
    pub(super) async fn tell(&self, delivery: &Delivery) -> HandlerResult {
        self.tell_readers(delivery);
        self.tell_run(&told::result(delivery)).await
    }

    /// The message waits in the ledger. Its run is told so the first time; nobody waits when it is put off again because too many
    /// have come in a row.
    pub(super) async fn put_off(&self, kind: &str, may: May) -> HandlerResult {
        self.deps.metrics.put_off(kind);
        match may {
            May::Wait(_) => self.tell_run(&told::waiting()).await,
            May::Go | May::Not(_) => Ok(Verdict::Done),
        }
    }

    async fn tell_run(&self, result: &Value) -> HandlerResult {
        let (call, record) = (self.call, self.record);
        if record.state.is_final() {
            return Ok(Verdict::Done);
        }
        let id = call.event_id().ok_or_else(|| Failure::permanent("naming an event"))?;
        let body = call.done(result).to_string();
        let appended = self.deps.store.append_event(record.id, &id, &body).await;
        let verdict = match appended.transient("storing the result of a message")? {
            Appended::Added => Verdict::Done,
            // Whoever stored it may have died before the run was woken.
            Appended::Known => Verdict::Duplicate,
            Appended::Full => return Err(Failure::transient("storing a result in a full inbox")),
            Appended::Ended => return Ok(Verdict::Drop("run_ended")),
            Appended::Missing => return Ok(Verdict::Drop("no_such_run")),
        };
        runfleet_faults::point("delivery.told");
        let trace = record.traceparent.as_deref();
        let wake = effects::advance(record.id, &id, record.lane, trace);
        let wake = wake.permanent("writing the message that wakes a run")?;
        effects::publish(&self.deps.publisher, wake).await.transient("waking a run")?;
        runfleet_faults::point("delivery.woken");
        Ok(verdict)
    }

    fn tell_readers(&self, delivery: &Delivery) {
        let (DeliveryStatus::Sent, Some(conversation)) = (delivery.status, delivery.conversation)
        else {
            return;
        };
        self.deps.publisher.publish_fact(&ChatMessage {
            message_id: self.call.id_of_text(),
            conversation_id: conversation.to_string(),
            new_conversation: delivery.new_conversation,
            workspace: self.record.workspace.clone(),
            agent: self.record.target.clone(),
            person: self.to.person.clone(),
            from: ChatFrom::Agent,
            at: now_ms(),
        });
    }
}
