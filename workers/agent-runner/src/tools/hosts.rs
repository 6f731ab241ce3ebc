//! Tools that a project carries out: asking its hosts, and taking their answers.
//!
//! A request is delivered at least once, and its first answer counts. Answers come through the exchange of answers, where
//! hosts publish; beside them only what hosts tell meanwhile is taken from there.

use std::time::Duration;

use runfleet_agent::{Effect, Event, Problem, ToolFault};
use runfleet_broker::{Classify, Failure, HandlerResult, Inbound, PublishError, Verdict};
use runfleet_catalog::{Builtin, ToolDefinition, ToolKind};
use runfleet_contracts::{
    AgentTool, AskId, HostAnswer, HostOutcome, HostRequest, HostWork, ToolConversation,
};
use runfleet_domain::{Name, RunKind};
use runfleet_identity::AnswerKeys;
use runfleet_runtime::clock::now_ms;
use runfleet_worker::{Tokens, effects};
use serde_json::{Map, Value, json};

use super::children::{call_of, instance_of};
use crate::calls::{Calls, Found, Live};

/// How long a request is offered to the queue of a project. Short: a full queue must not hold up the runs of others.
const OFFER_BOUND: Duration = Duration::from_secs(2);

/// What a host is asked for.
pub(super) struct Wanted<'a> {
    pub(super) project: &'a Name,
    pub(super) function: &'a Name,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) tokens: &'a Tokens,
}

/// Asks the hosts of a project. An event when that comes to nothing; none when their answer is waited for.
pub(super) async fn ask(
    calls: &Calls,
    live: &Live,
    tool: &AgentTool,
    keys: Option<&AnswerKeys>,
    wanted: Wanted<'_>,
) -> Result<Option<Event>, Failure> {
    let record = &live.record;
    let instance =
        instance_of(&tool.call_id).ok_or_else(|| Failure::permanent("numbering a call"))?;
    let ask = AskId { run_id: record.id, instance, attempt: 1 };
    let request = HostRequest {
        request_id: ask,
        kind: HostWork::Tool,
        name: wanted.function.to_string(),
        workspace: record.workspace.clone(),
        project: wanted.project.clone(),
        run_id: record.id,
        element_id: tool.call_id.clone(),
        instance,
        attempt: 1,
        headers: std::collections::BTreeMap::new(),
        variables: wanted.arguments.clone(),
        deadline: tool.deadline,
        answer_key: keys.and_then(|keys| keys.word(&ask.to_string())),
        conversation: Some(conversation(live, wanted.project)),
    };
    let effect = effects::task(&request, record.lane, record.traceparent.as_deref());
    let mut effect = effect.permanent("writing a request to a host")?;
    effect.message.authorization = wanted.tokens.for_request(record, &request);
    let publisher = &calls.deps.publisher;
    match publisher.publish_within(&effect.route, effect.message, OFFER_BOUND).await {
        Ok(()) => Ok(None),
        Err(PublishError::NoSuchQueue | PublishError::Refused) => {
            Ok(Some(failed(tool.call_id.clone(), ToolFault::Unavailable)))
        }
        Err(PublishError::TooLarge) => Ok(Some(Event::ToolFailed {
            call_id: tool.call_id.clone(),
            fault: ToolFault::Failed,
            problems: vec![Problem::new("", "has too large arguments")],
        })),
        Err(error @ (PublishError::NotConfirmed | PublishError::NotConnected)) => {
            Err(error).transient("asking a host")
        }
    }
}

/// What the run works on, as its tools see it. What it was asked is told to its own project only.
fn conversation(live: &Live, project: &Name) -> ToolConversation {
    let blueprint = live.definition.blueprint();
    let searches =
        |tool: &ToolDefinition| matches!(tool.kind, ToolKind::Builtin(Builtin::WebSearch));
    let web_search = blueprint.tools.values().any(searches);
    let own = || live.record.id.to_string();
    let session = live.record.conversation.map_or_else(own, |id| id.to_string());
    let asked = (project == &live.record.project).then(|| live.state.asked());
    ToolConversation::new(session, blueprint.model.clone(), web_search, asked)
}

/// Takes an answer of a host.
pub(crate) async fn take(
    calls: &Calls,
    keys: Option<&AnswerKeys>,
    message: &Inbound<()>,
    answer: HostAnswer,
) -> HandlerResult {
    let ask = answer.request_id;
    if ask.run_id.kind() != RunKind::Agent {
        return Ok(Verdict::Park("wrong_kind", "not a run of an agent".to_owned()));
    }
    let (call_id, deadline) = (call_of(ask.instance), now_ms());
    let tool = AgentTool { run_id: ask.run_id, call_id, deadline };
    let id = tool.event_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    if let Some(keys) = keys {
        let word = answer.answer_key.as_deref().unwrap_or_default();
        if !keys.knows(&ask.to_string(), word) {
            tracing::warn!(%ask, "an answer is not believed");
            return Ok(Verdict::Drop("wrong_answer_key"));
        }
    }
    let live = match calls.find(ask.run_id, &id).await? {
        Found::Live(live) => *live,
        Found::Over(verdict) => return Ok(verdict),
    };
    if keys.is_none() && !is_of(&live, &tool, &answer) {
        tracing::warn!(%ask, "an answer is not believed");
        return Ok(Verdict::Drop("answer_of_another_project"));
    }
    let lane = message.lane;
    tracing::debug!(%ask, %lane, "a host has answered");
    super::tell(calls, &live, &id, event(tool.call_id, answer.outcome)).await
}

/// Whether an answer names the project that was asked. A call that has begun is not outstanding, so the agent's own tools count.
fn is_of(live: &Live, tool: &AgentTool, answer: &HostAnswer) -> bool {
    let asked =
        live.state.outstanding(&live.definition).into_iter().find_map(|effect| match effect {
            Effect::CallTool { call_id, kind: ToolKind::Project { project, .. }, .. }
                if call_id == tool.call_id =>
            {
                Some(project)
            }
            _ => None,
        });
    let declared = |project: &Name| {
        live.definition.blueprint().tools.values().any(|tool| {
            matches!(&tool.kind, ToolKind::Project { project: named, .. } if named == project)
        })
    };
    answer.workspace == live.record.workspace
        && asked.map_or_else(|| declared(&answer.project), |project| project == answer.project)
}

fn failed(call_id: String, fault: ToolFault) -> Event {
    Event::ToolFailed { call_id, fault, problems: Vec::new() }
}

fn event(call_id: String, outcome: HostOutcome) -> Event {
    match outcome {
        HostOutcome::Ok(output) => Event::ToolDone { call_id, output: Value::Object(output) },
        HostOutcome::Error { code, variables } => {
            let content = json!({"code": code, "variables": variables});
            Event::ToolDone { call_id, output: json!({"status": "error", "content": content}) }
        }
        // The word of a host is for operators.
        HostOutcome::Failed { .. } => failed(call_id, ToolFault::Failed),
    }
}
