//! The message by which an agent's words go to delivery. To whom they go, as whom, and into which conversation is not in it: that is
//! what the record of the run says, and nothing that a model has written can change it.

use runfleet_domain::limits::{CHAT_MESSAGE_CHARS_MAX, CHAT_NOTE_CHARS_MAX};
use runfleet_domain::{MessageId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::message::Message;

/// Bring a message of an agent to the person of its run. Message id: `deliver:<run>:<call>`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliverMessage {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The call of `sendMessage`, unique in the run.
    pub call_id: String,
    /// What the person reads: 1 to 8,000 characters, not blank.
    #[schemars(length(min = 1, max = 8_000), regex(pattern = "\\S"))]
    pub message: String,
    /// What the agent tells itself: at most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2_000))]
    pub note: Option<String>,
    /// Unix milliseconds after which nobody waits for the result.
    pub deadline: u64,
}

impl DeliverMessage {
    /// The id of the message.
    pub fn message_id(&self) -> String {
        format!("deliver:{}:{}", self.run_id, self.call_id)
    }

    /// The id of what the person gets, the same for every repetition.
    pub fn id_of_text(&self) -> String {
        format!("{}.{}", self.run_id, self.call_id)
    }

    /// The id under which the result waits in the inbox of the run, so that a second one is known.
    pub fn event_id(&self) -> Option<MessageId> {
        format!("tool:{}", self.call_id).parse().ok()
    }

    /// The event that tells the run the result of the call, in the form of its inbox.
    pub fn done(&self, output: &Value) -> Value {
        json!({"kind": "toolDone", "callId": self.call_id, "output": output})
    }

    /// Whether the texts keep their bounds.
    pub fn is_within_bounds(&self) -> bool {
        let chars = self.message.chars().count();
        let note = self.note.as_deref().map_or(0, |note| note.chars().count());
        (1..=CHAT_MESSAGE_CHARS_MAX).contains(&chars)
            && !self.message.trim().is_empty()
            && note <= CHAT_NOTE_CHARS_MAX
    }
}

/// Without the texts: they are nobody's business but the person's and the agent's.
impl std::fmt::Debug for DeliverMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeliverMessage")
            .field("run_id", &self.run_id)
            .field("call_id", &self.call_id)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Message for DeliverMessage {
    const KIND: &'static str = "deliver.message.v1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::check;

    fn deliver(message: &str, note: Option<&str>) -> DeliverMessage {
        DeliverMessage {
            run_id: "AG1501JDX3Z8GF0000000000000000".parse().unwrap(),
            call_id: "call_1_1".into(),
            message: message.into(),
            note: note.map(str::to_owned),
            deadline: 1_764_468_060_000,
        }
    }

    #[test]
    fn the_message_to_delivery_keeps_its_form_and_names_everything_after_its_call() {
        let message = deliver("Schöne Grüße 👩‍👩‍👧 \u{202b}שלום\u{202c}", Some("Asked for it."));
        check(DeliverMessage::KIND, &message);
        assert_eq!(message.message_id(), "deliver:AG1501JDX3Z8GF0000000000000000:call_1_1");
        assert_eq!(message.id_of_text(), "AG1501JDX3Z8GF0000000000000000.call_1_1");
        assert_eq!(message.event_id().unwrap().as_str(), "tool:call_1_1");
        assert!(message.is_within_bounds());
        assert!(!format!("{message:?}").contains("Grüße"));
    }

    #[test]
    fn texts_beyond_their_bounds_are_known() {
        assert!(deliver(&"é".repeat(8_000), Some(&"é".repeat(2_000))).is_within_bounds());
        for (message, note) in
            [("", ""), (" \n", ""), (&*"é".repeat(8_001), ""), ("a", &*"é".repeat(2_001))]
        {
            assert!(!deliver(message, Some(note)).is_within_bounds());
        }
    }
}
