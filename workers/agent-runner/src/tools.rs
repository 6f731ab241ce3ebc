//! Tool calls: carries out what a stored run waits for, and puts the result into its inbox.
//!
//! The message says only which call; tool and arguments are read from the stored run, and only while it still waits for them. A
//! call that must not be repeated is recorded before it is made: whoever finds it begun does not make it again.

mod children;
mod executors;
mod hosts;
mod progress;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use runfleet_agent::{Effect, Event, Problem, ToolFault};
use runfleet_broker::{Classify, Failure, HandlerResult, Inbound, Verdict};
use runfleet_catalog::ToolKind;
use runfleet_contracts::AgentTool;
use runfleet_domain::MessageId;
use runfleet_runtime::clock::now_ms;
use runfleet_store::Appended;
use runfleet_tools::{Caller, Executor, ToolCall, ToolOutcome, perform};
use runfleet_worker::inbox::ToolInbox;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::{Calls, Found, Live};
use crate::{events, rights};

pub(crate) use self::children::{call_of, ended, turn_of};
pub(crate) use self::executors::Tools;
pub(crate) use self::hosts::take;
pub(crate) use self::progress::{Reports, hear};

/// Bound of one handler: the longest call, and reading and storing around it.
pub(crate) const HANDLER_BOUND: Duration = Duration::from_mins(11);

/// When a call that somebody else may be at is looked at again.
const BEGUN_PAUSE: Duration = Duration::from_secs(5);

/// A call that a run waits for.
struct Asked {
    name: String,
    kind: ToolKind,
    arguments: Map<String, Value>,
    idempotent: bool,
    deadline_ms: u64,
}

/// Takes one message and carries out its call.
pub(crate) async fn handle(
    calls: Arc<Calls>,
    tools: Arc<Tools>,
    message: Inbound<ToolInbox>,
) -> HandlerResult {
    let (body, message) = message.split();
    let tool = body.0;
    let id = tool.event_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    let Some(flight) = calls.flights.take(tool.run_id, id.as_str()) else {
        return Ok(Verdict::Duplicate);
    };
    let live = match calls.find(tool.run_id, &id).await? {
        Found::Live(live) => *live,
        Found::Over(verdict) => return Ok(verdict),
    };
    let Some(asked) = asked(&live, &tool) else {
        return begun_before(&calls, &live, &tool, &id, message.redelivered).await;
    };
    if asked.deadline_ms <= now_ms() {
        return Ok(Verdict::Drop("too_late"));
    }
    let snapshot = rights::declared(&calls.deps, &live.record).await?;
    if let Some(Err(code)) = snapshot.as_deref().map(|it| rights::may_go_on(it, &live.record)) {
        return tell(&calls, &live, &id, Event::Stop { code }).await;
    }
    if !rights::may_call(snapshot.as_deref(), &live.record, &live.definition, &asked.name) {
        let (call_id, fault) = (tool.call_id.clone(), ToolFault::NotAllowed);
        let event = Event::ToolFailed { call_id, fault, problems: Vec::new() };
        return tell(&calls, &live, &id, event).await;
    }
    runfleet_faults::point("agent.before_tool");
    if let ToolKind::ProcessStart { .. } | ToolKind::Agent { .. } = asked.kind {
        let told = children::start(&calls.deps, &live, &tool, &asked.kind, &asked.arguments);
        // A started run tells its end itself.
        let Some(event) = told.await? else { return Ok(Verdict::Done) };
        return tell(&calls, &live, &id, event).await;
    }
    if let ToolKind::Project { project, function } = &asked.kind {
        if !asked.idempotent && !begin(&calls, &tool).await? {
            return begun_before(&calls, &live, &tool, &id, message.redelivered).await;
        }
        let (arguments, tokens) = (&asked.arguments, tools.tokens());
        let wanted = hosts::Wanted { project, function, arguments, tokens };
        let told = hosts::ask(&calls, &live, &tool, tools.answer_keys(), wanted).await?;
        // A host that was asked answers by itself.
        let Some(event) = told else { return Ok(Verdict::Done) };
        return tell(&calls, &live, &id, event).await;
    }
    let executor = match tools.of(&live, &asked.kind).await {
        Ok(executor) => executor,
        Err(outcome) => {
            return tell(&calls, &live, &id, event(&tool, outcome)).await;
        }
    };
    if !asked.idempotent && !executor.only_reads() && !begin(&calls, &tool).await? {
        return begun_before(&calls, &live, &tool, &id, message.redelivered).await;
    }
    runfleet_faults::point("agent.tool_begun");
    let outcome = carry_out(&*executor, &live, &tool, asked, &flight.cancel).await;
    let Some(outcome) = outcome else { return Ok(Verdict::Drop("run_ended")) };
    runfleet_faults::point("agent.tool_done");
    tell(&calls, &live, &id, event(&tool, outcome)).await
}

async fn tell(calls: &Calls, live: &Live, id: &MessageId, event: Event) -> HandlerResult {
    let result = match &event {
        Event::ToolDone { .. } => "done",
        _ => "failed",
    };
    calls.deps.metrics.tools.with_label_values(&[result]).inc();
    calls.tell(&live.record, id, event).await
}

/// The call, if the run still waits for it and nobody has begun what must not be repeated.
fn asked(live: &Live, tool: &AgentTool) -> Option<Asked> {
    live.state.outstanding(&live.definition).into_iter().find_map(|effect| match effect {
        Effect::CallTool { call_id, name, kind, arguments, idempotent, deadline_ms }
            if call_id == tool.call_id =>
        {
            Some(Asked { name, kind, arguments, idempotent, deadline_ms })
        }
        _ => None,
    })
}

/// Records that the call is made now. False when somebody has recorded that before.
async fn begin(calls: &Calls, tool: &AgentTool) -> Result<bool, Failure> {
    let id = tool.began_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    let event = Event::ToolBegan { call_id: tool.call_id.clone() };
    let body = events::body(event).ok_or_else(|| Failure::permanent("writing an event"))?;
    let appended = calls.store().append_event(tool.run_id, &id, &body).await;
    match appended.transient("recording the beginning of a call")? {
        Appended::Added => Ok(true),
        Appended::Full => Err(Failure::transient("recording the beginning of a call")),
        Appended::Known | Appended::Ended | Appended::Missing => Ok(false),
    }
}

/// A call that is not waited for, or that somebody has begun. When this very message was in the hands of somebody who died, the
/// outcome is unknown; otherwise whoever has begun may be at it.
async fn begun_before(
    calls: &Calls,
    live: &Live,
    tool: &AgentTool,
    id: &MessageId,
    redelivered: bool,
) -> HandlerResult {
    let began = tool.began_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    let known = calls.store().knows_event(tool.run_id, &began).await;
    if !known.transient("looking for the beginning of a call")? {
        return Ok(Verdict::Duplicate);
    }
    if redelivered {
        tracing::warn!(run = %tool.run_id, call = tool.call_id, "a call that must not be repeated was cut off");
        let (call_id, fault) = (tool.call_id.clone(), ToolFault::OutcomeUnknown);
        let event = Event::ToolFailed { call_id, fault, problems: Vec::new() };
        return tell(calls, live, id, event).await;
    }
    if tool.deadline <= now_ms() {
        return Ok(Verdict::Drop("too_late"));
    }
    Ok(Verdict::Snooze(BEGUN_PAUSE))
}

/// Makes the call; none when its run has ended meanwhile.
async fn carry_out(
    executor: &dyn Executor,
    live: &Live,
    tool: &AgentTool,
    asked: Asked,
    cancel: &CancellationToken,
) -> Option<ToolOutcome> {
    let record = &live.record;
    let left = Duration::from_millis(asked.deadline_ms.saturating_sub(now_ms()));
    let call = ToolCall {
        key: format!("{}:{}", tool.run_id, tool.call_id),
        caller: Caller {
            workspace: record.workspace.clone(),
            project: Some(record.project.clone()),
            personnel_id: record.user.clone(),
        },
        arguments: asked.arguments,
        now_ms: now_ms(),
    };
    tracing::debug!(run = %tool.run_id, call = tool.call_id, tool = asked.name, "a tool is called");
    let performing = perform(executor, call, Instant::now() + left);
    cancel.run_until_cancelled(performing).await
}

/// What the run is told.
fn event(tool: &AgentTool, outcome: ToolOutcome) -> Event {
    let call_id = tool.call_id.clone();
    match outcome {
        ToolOutcome::Done(output) => Event::ToolDone { call_id, output },
        ToolOutcome::Failed { path, message } => Event::ToolFailed {
            call_id,
            fault: ToolFault::Failed,
            problems: vec![Problem::new(&path, message)],
        },
        ToolOutcome::Unknown => {
            Event::ToolFailed { call_id, fault: ToolFault::Timeout, problems: Vec::new() }
        }
    }
}
