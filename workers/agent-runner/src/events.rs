//! From what waits in the inbox of a run to what the state machine takes in.

use runfleet_agent::Event;
use runfleet_contracts::RunEvent;
use runfleet_domain::MessageId;
use runfleet_store::Event as Stored;

use crate::tools::ended;

/// Everything that could be read, and the ids of everything: what cannot be read leaves the inbox too, or it would hold up
/// the run for ever.
pub(crate) fn read(inbox: &[Stored]) -> (Vec<Event>, Vec<MessageId>) {
    let mut events = Vec::with_capacity(inbox.len());
    for stored in inbox {
        if let Some(event) = one(&stored.body) {
            events.push(event);
        } else {
            tracing::error!(id = %stored.id, "an event of a run cannot be read");
        }
    }
    (events, inbox.iter().map(|stored| stored.id.clone()).collect())
}

/// One event: of the agent itself, or the end of a run that a tool has started, which the ledger writes.
fn one(body: &str) -> Option<Event> {
    if let Ok(event) = serde_json::from_str(body) {
        return Some(event);
    }
    match RunEvent::parse(body.as_bytes()) {
        Ok(RunEvent::ChildEnded { task, run, state, output, code }) => {
            Some(ended(task, run, &state, output, code))
        }
        _ => None,
    }
}

/// An event as the inbox takes it; none when it cannot be written, which is a fault of ours.
pub(crate) fn body(event: Event) -> Option<String> {
    serde_json::to_string(&event.bounded()).ok()
}

#[cfg(test)]
mod tests {
    use runfleet_contracts::DeliverMessage;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_of_a_message_to_a_person_is_read_as_that_of_any_tool() {
        let deliver = DeliverMessage {
            run_id: "AG1501JDX3Z8GF0000000000000000".parse().unwrap(),
            call_id: "call_1_1".to_owned(),
            message: "Hello".to_owned(),
            note: None,
            deadline: 1,
        };
        let output = json!({"status": "success", "content": {"delivery": "SENT"}});
        let read = one(&deliver.done(&output).to_string());
        assert_eq!(read, Some(Event::ToolDone { call_id: "call_1_1".to_owned(), output }));
    }
}
