//! Messages and signals for runs of the project, whichever wait for them.

use futures_util::future::try_join_all;
use runfleet_broker::Classify;
use runfleet_contracts::ErrorBody;
use runfleet_contracts::operations::{MessagePublished, SignalSent, ValidMessage};
use runfleet_domain::limits::EVENT_VARIABLES_BYTES_MAX;
use runfleet_store::{BroadcastSignal, PublishMessage, Published, SIGNAL_RUNS_AT_ONCE_MAX};
use serde_json::{Map, Value};

use super::{Done, Operating, TOLD, Trouble, Written, answer};

impl Operating<'_> {
    /// Gives the message to one run, or keeps it; once for its id.
    pub(super) async fn publish(&self, message: ValidMessage) -> Result<Done, Trouble> {
        let Self { deps, asks, .. } = self;
        let variables = match written(&message.variables)? {
            Ok(variables) => variables,
            Err(error) => return Ok(Done::Refused(error)),
        };
        let command = PublishMessage {
            workspace: &asks.claims.workspace,
            project: &asks.claims.project,
            name: &message.name,
            key: message.key.as_deref(),
            variables_json: &variables,
            id: message.id.as_ref().unwrap_or(&self.id),
            ttl: message.ttl,
        };
        let published =
            deps.store.publish_message(&command).await.transient("publishing a message");
        let (delivered, buffered, to) = match published.after_writing()? {
            Published::Delivered { to, .. } => (true, false, Some(to)),
            Published::Buffered { .. } => (false, true, None),
            Published::Nobody => (false, false, None),
            Published::Full => {
                return Ok(Done::no_room("MESSAGES_FULL", "finding room for a message"));
            }
        };
        runfleet_faults::point("intake.message_published");
        if let Some(to) = &to {
            self.wake(to, TOLD).await.after_writing()?;
        }
        let instance_id = to.map(|to| to.run_id.to_string());
        answer(MessagePublished { delivered, buffered, instance_id })
    }

    /// Gives the signal to all runs that wait for it, page by page. What is cut off in between is done by the repetition: no
    /// run gets it twice.
    pub(super) async fn broadcast(
        &self,
        name: &str,
        variables: &Map<String, Value>,
    ) -> Result<Done, Trouble> {
        let Self { deps, asks, .. } = self;
        let variables = match written(variables)? {
            Ok(variables) => variables,
            Err(error) => return Ok(Done::Refused(error)),
        };
        let signal = BroadcastSignal {
            workspace: &asks.claims.workspace,
            project: &asks.claims.project,
            name,
            variables_json: &variables,
            id: &self.id,
        };
        let (mut runs, mut full, mut after) = (0_usize, 0_u32, None);
        loop {
            let page = deps.store.broadcast_signal(&signal, SIGNAL_RUNS_AT_ONCE_MAX, after).await;
            let page = page.transient("sending a signal").after_writing()?;
            runfleet_faults::point("intake.signal_sent");
            let wakes = page.woken.iter().map(|woken| self.wake(woken, TOLD));
            try_join_all(wakes).await.after_writing()?;
            runs += page.woken.len();
            full = full.saturating_add(page.full);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        let sent = answer(SignalSent { runs, full: (full > 0).then_some(full) })?;
        Ok(match sent {
            Done::Answer(answer) if full > 0 => Done::InPart(answer, "reaching every run"),
            sent => sent,
        })
    }
}

/// Variables as the ledger takes them. Numbers may be longer than they were when they are written again.
fn written(variables: &Map<String, Value>) -> Result<Result<String, ErrorBody>, Trouble> {
    let json = serde_json::to_string(variables).permanent("writing the variables");
    let json = json.before_writing()?;
    if json.len() <= EVENT_VARIABLES_BYTES_MAX {
        return Ok(Ok(json));
    }
    let (limit, size) = (EVENT_VARIABLES_BYTES_MAX, json.len());
    Ok(Err(ErrorBody::too_large("variables", "bytes", limit, size)))
}
