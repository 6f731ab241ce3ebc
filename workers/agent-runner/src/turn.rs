//! Model calls: asks the model that a stored run waits for, once per message, and puts the answer into its inbox.
//!
//! The message says only which attempt of which question; the question is built from the stored run, and only while it is
//! still asked. When a runner dies in the middle, the model is asked again, unless the answer is stored already. Two runners do not
//! ask at once, and an answer is charged by the script that stores it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runfleet_agent::{
    Answer, AnswerCall, AnswerUsage, Effect, ErrorCode, Event, FailureKind, Message, ModelFailure,
    ModelRequest, Stop,
};
use runfleet_broker::{Classify, Failure, HandlerResult, Inbound, Verdict};
use runfleet_catalog::Snapshot;
use runfleet_contracts::AgentTurn;
use runfleet_domain::MessageId;
use runfleet_model as model;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Held, StoreError};
use runfleet_worker::inbox::TurnInbox;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::calls::{Bill, Calls, Found, Live};
use crate::models::{CALL_MAX, Models};
use crate::rights;
use crate::saying::Saying;

/// Less time than this is not worth a call.
const LEFT_MIN: Duration = Duration::from_millis(50);

/// Bound of one handler: the longest call, and reading and storing around it.
pub(crate) const HANDLER_BOUND: Duration = CALL_MAX.saturating_add(Duration::from_secs(30));

/// How long a runner is believed to be at a call of which nothing is heard. It says so again three times as often.
const LEASE: Duration = Duration::from_secs(6);

/// Takes one message and asks the model.
pub(crate) async fn handle(
    calls: Arc<Calls>,
    models: Arc<Models>,
    message: Inbound<TurnInbox>,
) -> HandlerResult {
    let turn = message.body.0;
    let id = turn.event_id().ok_or_else(|| Failure::permanent("naming an event"))?;
    let Some(flight) = calls.flights.take(turn.run_id, id.as_str()) else {
        return Ok(Verdict::Duplicate);
    };
    let live = match calls.find(turn.run_id, &id).await? {
        Found::Live(live) => *live,
        Found::Over(verdict) => return Ok(verdict),
    };
    let Some(request) = asked(&live, &turn) else { return Ok(Verdict::Duplicate) };
    // A copy of the message may be in the hands of another runner.
    if let Held::Busy { left } = hold(&calls, &turn, &id).await.transient("taking a call")? {
        return Ok(Verdict::Snooze(left.max(LEFT_MIN)));
    }
    let Some(snapshot) = rights::declared(&calls.deps, &live.record).await? else {
        return Err(Failure::transient("finding the catalog of a run"));
    };
    let may_ask = rights::may_ask(&calls.deps, &live.record, &live.definition, &snapshot).await?;
    if let Err(code) = may_ask {
        return calls.tell(&live.record, &id, Event::Stop { code }).await;
    }
    runfleet_faults::point("agent.before_turn");
    let asking = ask(&calls, &models, &live, &turn, &request, &flight.cancel);
    let asked = tokio::select! {
        asked = asking => asked,
        never = keep(&calls, &turn, &id) => match never {},
    };
    let event = match asked {
        Asked::Event(event) => event,
        Asked::Ended => return Ok(Verdict::Drop("run_ended")),
        Asked::TooLate => return Ok(Verdict::Drop("too_late")),
    };
    runfleet_faults::point("agent.answered");
    let Event::ModelAnswered { answer, .. } = &event else {
        return calls.tell(&live.record, &id, event).await;
    };
    let bill = bill(&live, &snapshot, answer.usage);
    calls.tell_answer(&live.record, &id, event, bill).await
}

async fn hold(calls: &Calls, turn: &AgentTurn, id: &MessageId) -> Result<Held, StoreError> {
    calls.store().hold_call(turn.run_id, id, &calls.holder, LEASE).await
}

/// Says again and again that the call is being made. Should that be lost, another runner may ask as well; the first answer counts.
async fn keep(calls: &Calls, turn: &AgentTurn, id: &MessageId) -> Infallible {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        if let Err(error) = hold(calls, turn, id).await {
            tracing::debug!(%error, run = %turn.run_id, "a call could not be kept");
        }
    }
}

/// What an answer is charged with, by the price list that was in force when the model was asked.
fn bill(live: &Live, snapshot: &Snapshot, usage: AnswerUsage) -> Bill {
    let AnswerUsage { input_tokens, output_tokens, cached_tokens } = usage;
    let tokens = model::Usage { input_tokens, output_tokens, cached_tokens };
    let billing = snapshot.workspace.billing.as_ref();
    let name = &live.definition.blueprint().model;
    let cost = billing.and_then(|billing| model::cost(&billing.prices, name, &tokens));
    Bill { cost: cost.unwrap_or(0), input_tokens, output_tokens, counts: !live.judges() }
}

/// What the run asks in this attempt, if it still does.
fn asked(live: &Live, turn: &AgentTurn) -> Option<ModelRequest> {
    live.state.outstanding(&live.definition).into_iter().find_map(|effect| match effect {
        Effect::AskModel { turn: number, attempt, request }
            if (number, attempt) == (turn.turn, turn.attempt) =>
        {
            Some(*request)
        }
        _ => None,
    })
}

/// What came of a question.
enum Asked {
    Event(Event),
    Ended,
    TooLate,
}

async fn ask(
    calls: &Calls,
    models: &Models,
    live: &Live,
    turn: &AgentTurn,
    request: &ModelRequest,
    cancel: &CancellationToken,
) -> Asked {
    let left = Duration::from_millis(request.deadline_ms.saturating_sub(now_ms()));
    if left < LEFT_MIN {
        return Asked::TooLate;
    }
    let provider = live.definition.blueprint().provider.as_ref();
    let Some((name, provider)) = provider else {
        tracing::error!(agent = %live.record.target, "no provider is declared for the model of an agent");
        return Asked::Event(Event::Stop { code: ErrorCode::ConfigLoadFailed });
    };
    let Ok(chat) = models.of(&live.record.workspace, provider).await else {
        tracing::error!(agent = %live.record.target, provider = %name, "the provider of an agent cannot be used");
        return Asked::Event(Event::Stop { code: ErrorCode::ConfigLoadFailed });
    };
    let known = provider.models.get(&request.model).unwrap_or(&request.model);
    let question = question(request, known, turn, left.min(CALL_MAX));
    let began = Instant::now();
    let answered = match Saying::of(&calls.deps.publisher, live, turn) {
        Some(saying) => saying.hear(&*chat, &question, cancel.clone()).await,
        None => chat.turn(&question, cancel.clone()).await,
    };
    let result = answered.as_ref().map_or_else(|failure| failure.kind.as_str(), |_| "answered");
    calls.deps.metrics.turns.with_label_values(&[result]).observe(began.elapsed().as_secs_f64());
    match answered {
        Ok(answer) => {
            let (turn, attempt) = (turn.turn, turn.attempt);
            Asked::Event(Event::ModelAnswered { turn, attempt, answer: read(answer) })
        }
        // The time of the call was all that the run had left: it ends with that, by its alarm.
        Err(failure)
            if matches!(failure.kind, model::FailureKind::Timeout(_))
                && live.record.deadline_ms.is_some_and(|end| end <= request.deadline_ms) =>
        {
            Asked::TooLate
        }
        Err(failure) => match failed(&failure) {
            Some(failure) => {
                tracing::warn!(run = %turn.run_id, turn = turn.turn, attempt = turn.attempt, result, "a model gave no answer");
                let (turn, attempt) = (turn.turn, turn.attempt);
                Asked::Event(Event::ModelFailed { turn, attempt, failure })
            }
            None => Asked::Ended,
        },
    }
}

/// The question in the words of the models.
fn question(
    request: &ModelRequest,
    known: &str,
    turn: &AgentTurn,
    within: Duration,
) -> model::TurnRequest {
    model::TurnRequest {
        model: known.to_owned(),
        system: request.system.clone(),
        messages: messages(&request.messages),
        tools: request
            .tools
            .iter()
            .map(|tool| model::ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: Value::Object(tool.input_schema.clone()),
            })
            .collect(),
        response_schema: request.response_schema.clone(),
        temperature: request.parameters.temperature_thousandths.map(|n| f64::from(n) / 1_000.0),
        top_p: request.parameters.top_p_thousandths.map(|n| f64::from(n) / 1_000.0),
        max_tokens: request.parameters.max_tokens,
        within,
        turn: turn.turn,
        attempt: turn.attempt,
    }
}

/// Results that follow each other are one message there.
fn messages(messages: &[Message]) -> Vec<model::Message> {
    let mut written: Vec<model::Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::User { text } => written.push(model::Message::User { text: text.clone() }),
            Message::Assistant { text, calls } => {
                let calls = calls.iter().map(|call| model::ToolCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                    signature: None,
                });
                let tool_calls = calls.collect();
                written.push(model::Message::Assistant { text: text.clone(), tool_calls });
            }
            Message::Tool { call_id, name, content, error } => {
                let result = model::ToolResult {
                    call_id: call_id.clone(),
                    name: name.clone(),
                    content: content.clone(),
                    failed: *error,
                };
                if let Some(model::Message::Tools { results }) = written.last_mut() {
                    results.push(result);
                } else {
                    written.push(model::Message::Tools { results: vec![result] });
                }
            }
        }
    }
    written
}

fn read(answer: model::TurnAnswer) -> Answer {
    let model::TurnAnswer { text, tool_calls, usage, stop } = answer;
    let calls = tool_calls.into_iter();
    Answer {
        text,
        calls: calls
            .map(|call| AnswerCall { name: call.name, arguments: call.arguments })
            .collect(),
        usage: AnswerUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
        },
        stop: match stop {
            model::Stop::End | model::Stop::ToolCalls | model::Stop::Other => Stop::End,
            model::Stop::MaxTokens => Stop::Length,
            model::Stop::Filtered => Stop::Filtered,
        },
    }
}

/// The failure as the run is told; none when nobody wants the answer any more.
fn failed(failure: &model::ModelFailure) -> Option<ModelFailure> {
    use model::FailureKind as Kind;
    let kind = match failure.kind {
        Kind::Cancelled => return None,
        Kind::RateLimited { .. } => FailureKind::RateLimited,
        Kind::Unavailable { .. } => FailureKind::Unavailable,
        Kind::Timeout(_) => FailureKind::Timeout,
        Kind::Network => FailureKind::Network,
        Kind::Refused { .. } | Kind::NotAllowed => FailureKind::Refused,
        Kind::Auth | Kind::Quota => FailureKind::Auth,
        Kind::ContextTooLong => FailureKind::ContextTooLong,
        Kind::Malformed => FailureKind::Malformed,
        Kind::TooLarge => FailureKind::TooLarge,
    };
    let retry_after_ms =
        failure.retry_after().map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    Some(ModelFailure { kind, retry_after_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_follow_each_other_are_told_together_and_in_their_order() {
        let tool = |id: &str| Message::Tool {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: "c".to_owned(),
            error: false,
        };
        let user = || Message::User { text: "u".to_owned() };
        let assistant = Message::Assistant { text: String::new(), calls: Vec::new() };
        let written = messages(&[user(), assistant, tool("a"), tool("b"), user()]);
        let [_, _, model::Message::Tools { results }, model::Message::User { .. }] = &written[..]
        else {
            panic!("{written:?}")
        };
        assert_eq!(results.iter().map(|result| &*result.call_id).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_call_that_nobody_wants_is_told_to_nobody_and_a_pause_is_passed_on() {
        let failure = |kind: model::FailureKind| failed(&kind.into());
        assert_eq!(failure(model::FailureKind::Cancelled), None);
        let retry_after = Some(Duration::from_secs(2));
        let limited = failure(model::FailureKind::RateLimited { retry_after }).unwrap();
        assert_eq!((limited.kind, limited.retry_after_ms), (FailureKind::RateLimited, Some(2_000)));
    }
}
