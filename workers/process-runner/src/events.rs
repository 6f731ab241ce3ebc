//! From what waits in the inbox of a run to what the engine takes in.

use runfleet_contracts::RunEvent;
use runfleet_domain::{MessageId, RunId, RunKind, RunState};
use runfleet_flow::Event;
use runfleet_store::Event as Stored;

use crate::agents;
use crate::slice::code_to_catch;

/// Why a called process did not complete, when nothing better is known.
const NOT_COMPLETED: &str = "NOT_COMPLETED";

/// Everything that could be read, and the ids of everything: what cannot be read leaves the inbox too, or it would hold up
/// the run for ever.
pub(crate) fn read(run: RunId, inbox: &[Stored]) -> (Vec<Event>, Vec<MessageId>) {
    let mut events = Vec::with_capacity(inbox.len());
    for stored in inbox {
        match RunEvent::parse(stored.body.as_bytes()) {
            Ok(event) => events.extend(of(run, event)),
            Err(error) => {
                tracing::error!(id = %stored.id, ?error, "an event of a run cannot be read");
            }
        }
    }
    (events, inbox.iter().map(|stored| stored.id.clone()).collect())
}

/// What an event means to the run; none when it is about nothing that the run has begun.
fn of(own: RunId, event: RunEvent) -> Option<Event> {
    Some(match event {
        RunEvent::Message { subscription, variables } => Event::Message { subscription, variables },
        RunEvent::Signal { name, variables } => Event::Signal { name, variables },
        RunEvent::TaskDone { task, attempt, answer } => Event::TaskDone { task, attempt, answer },
        RunEvent::TaskFailed { task, attempt, code, retry, retry_after_ms } => {
            Event::TaskFailed { task, attempt, code, retry, after_ms: retry_after_ms }
        }
        RunEvent::TaskError { task, attempt, code, variables } => {
            Event::TaskError { task, attempt, code, variables }
        }
        RunEvent::UserDone { task, variables } => Event::UserDone { task, variables },
        RunEvent::UserAssigned { task, assignee } => Event::UserAssigned { task, assignee },
        RunEvent::ChildEnded { task, run, state, output, code } if run.kind() == RunKind::Agent => {
            return agents::ended(own, task, run, &state, output, code);
        }
        RunEvent::ChildEnded { task, state, output, code, .. } => {
            let completed = state == RunState::Completed.as_str();
            let failed = (!completed)
                .then(|| code.map_or(NOT_COMPLETED.to_owned(), |code| code_to_catch(&code)));
            Event::ChildEnded { task, output, failed }
        }
        RunEvent::Retry { task } => Event::Retry { task },
        RunEvent::Set { scope, variables } => Event::Set { scope, variables },
    })
}
