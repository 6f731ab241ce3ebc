//! What a stored state calls for: the only place that turns records into messages.
//!
//! Message ids are derived from the record, never random, so that whoever publishes the same effect again publishes the same
//! message.

use std::fmt::Display;

use runfleet_broker::{Confirm, Line, Outgoing, PublishError, Publisher, Route};
use runfleet_contracts::agent_run::{AgentOutput, AgentResult, EndedAgentRun};
use runfleet_contracts::agents::{AgentDelivery, AgentRunError};
use runfleet_contracts::message::{EndedProcess, Fresh, ProcessCompletion};
use runfleet_contracts::{
    Advance, AgentTool, AgentTurn, DeliverMessage, HostRequest, JobDue, JobRun, Message,
    OutcomeReady, ProcessCall,
};
use runfleet_domain::limits::PROCESS_OUTPUT_BYTES_MAX;
use runfleet_domain::{ConversationId, Lane, RunId, RunKind};
use runfleet_store::{Delivery, JobOrigin, JobOutcome, JobRecord, OutcomeState, RunRecord};
use secrecy::SecretString;
use serde_json::value::RawValue;

/// Why a run is woken that a person has let go on: what it called for before may not have been done.
pub const RESUMED: &str = "resumed";

/// Why a run is woken whose alarm rang: perhaps nothing has happened.
pub const ALARM: &str = "alarm";

/// A message that has to be published because of what is stored.
#[derive(Debug)]
pub struct Effect {
    /// Where it goes.
    pub route: Route,
    /// What is published.
    pub message: Outgoing,
}

/// An effect could not be written down. A fault of ours: every body is plain data.
#[derive(Debug, thiserror::Error)]
#[error("a body could not be written as JSON")]
pub struct EffectError(#[source] serde_json::Error);

fn outgoing<M: Message>(
    id: String,
    body: &M,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Outgoing, EffectError> {
    let body = serde_json::to_vec(body).map_err(EffectError)?;
    let mut message = Outgoing::new(M::KIND, id, body);
    message.lane = lane;
    message.traceparent = trace.map(str::to_owned);
    Ok(message)
}

/// Wakes the runner of a run. `after` names the point of its life: the fence of the claim that was given back, or a word
/// for an alarm.
pub fn advance(
    run_id: RunId,
    after: impl Display,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    wake(&Advance { run_id, fresh: None }, after, lane.into(), lane, trace)
}

/// Wakes the runner of a run that has just been made, and spares it the reading of the record.
pub fn begin(
    run_id: RunId,
    fresh: Option<Fresh>,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    wake(&Advance { run_id, fresh }, 0, lane.into(), lane, trace)
}

/// Wakes a run whose last slice was cut off, where it can harm no neighbour if it does that again.
pub fn quarantine(
    run_id: RunId,
    after: impl Display,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    wake(&Advance { run_id, fresh: None }, after, Line::Quarantine, lane, trace)
}

fn wake(
    body: &Advance,
    after: impl Display,
    line: Line,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    let route = match body.run_id.kind() {
        RunKind::Process => Route::Process(line),
        RunKind::Agent => Route::Agent(line),
    };
    let message = outgoing(format!("advance:{}:{after}", body.run_id), body, lane, trace)?;
    Ok(Effect { route, message })
}

/// Tells the dispatcher that a run has an outcome to hand over.
pub fn outcome(
    outcome: &OutcomeReady,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    let message = outgoing(format!("outcome:{}", outcome.run_id), outcome, lane, trace)?;
    Ok(Effect { route: Route::Done(lane), message })
}

/// What an ended run calls for: its outcome message while the outcome is pending, otherwise nothing. Also for a record as it
/// was just before its end, since an end does not change what the outcome message says.
pub fn of_ended_run(record: &RunRecord) -> Result<Option<Effect>, EffectError> {
    let Some(job) = record.job.as_ref().filter(|_| record.outcome == OutcomeState::Pending) else {
        return Ok(None);
    };
    let ready = OutcomeReady {
        run_id: record.id,
        workspace: record.workspace.clone(),
        project: record.project.clone(),
        job: job.clone(),
        hops: record.hops,
        chain: record.chain,
    };
    outcome(&ready, record.lane, record.traceparent.as_deref()).map(Some)
}

/// What an attempt of a job is published with.
#[derive(Debug)]
pub struct JobTerms {
    /// The version of the project that is active.
    pub version: Option<String>,
    /// Unix milliseconds after which the attempt must not be begun by this message.
    pub deadline_ms: u64,
    /// What its code calls the fleet with.
    pub token: Option<SecretString>,
}

/// The attempt of a job that is under way, for the queue of its project.
pub fn job(record: &JobRecord, terms: JobTerms) -> Result<Effect, EffectError> {
    let body = JobRun {
        job_id: record.id,
        job: record.job.clone(),
        project: record.project.clone(),
        workspace: record.workspace.clone(),
        attempt: record.attempt,
        source: record.source().to_owned(),
        enqueued_by: record.enqueued_by.clone(),
        enqueued_at: record.enqueued_at_ms,
        user: record.user.clone(),
        hops: record.hops,
        depth: record.depth,
        chain: record.chain,
        payload: job_payload(record)?,
        max_attempts: record.max_attempts,
        timeout_ms: record.timeout_ms,
        run_at: record.run_at_ms,
        deadline: Some(terms.deadline_ms),
        version: terms.version,
    };
    let id = format!("job:{}:{}", record.id, record.attempt);
    let mut message = outgoing(id, &body, record.lane, record.traceparent.as_deref())?;
    message.reply_to = Some(Route::JobAnswer(record.lane).queue().into_owned());
    message.expires_at_ms = Some(terms.deadline_ms);
    message.authorization = terms.token;
    message.correlation_id = Some(record.id.to_string());
    let route = Route::Job { workspace: record.workspace.clone(), project: record.project.clone() };
    Ok(Effect { route, message })
}

/// Has the dispatcher look at a job run.
pub fn job_due(due: &JobDue, lane: Lane, trace: Option<&str>) -> Result<Effect, EffectError> {
    let message = outgoing(format!("due:{}", due.job_id), due, lane, trace)?;
    Ok(Effect { route: Route::Done(lane), message })
}

/// One attempt of a task that is an HTTP call.
pub fn call(call: &ProcessCall, lane: Lane, trace: Option<&str>) -> Result<Effect, EffectError> {
    let mut message = outgoing(call.ask().to_string(), call, lane, trace)?;
    message.expires_at_ms = Some(call.deadline);
    Ok(Effect { route: Route::Call(lane), message: message.about(call.run_id.to_string()) })
}

/// One attempt of a question of an agent run to its model.
pub fn turn(turn: &AgentTurn, lane: Lane, trace: Option<&str>) -> Result<Effect, EffectError> {
    let mut message = outgoing(turn.message_id(), turn, lane, trace)?;
    message.expires_at_ms = Some(turn.deadline);
    Ok(Effect { route: Route::Turn(lane), message: message.about(turn.run_id.to_string()) })
}

/// A tool call of an agent run.
pub fn tool(tool: &AgentTool, lane: Lane, trace: Option<&str>) -> Result<Effect, EffectError> {
    let mut message = outgoing(tool.message_id(), tool, lane, trace)?;
    message.expires_at_ms = Some(tool.deadline);
    Ok(Effect { route: Route::Tool(lane), message: message.about(tool.run_id.to_string()) })
}

/// A message of an agent run to a person. It does not expire: whoever takes it too late has to say what became of it.
pub fn deliver(
    deliver: &DeliverMessage,
    lane: Lane,
    trace: Option<&str>,
) -> Result<Effect, EffectError> {
    let message = outgoing(deliver.message_id(), deliver, lane, trace)?;
    Ok(Effect { route: Route::Deliver(lane), message: message.about(deliver.run_id.to_string()) })
}

/// One attempt of a task that a host of the project carries out.
pub fn task(request: &HostRequest, lane: Lane, trace: Option<&str>) -> Result<Effect, EffectError> {
    let mut message = outgoing(request.request_id.to_string(), request, lane, trace)?;
    message.expires_at_ms = Some(request.deadline);
    let answer = match request.run_id.kind() {
        RunKind::Process => Route::Answer(lane),
        RunKind::Agent => Route::AgentAnswer(lane),
    };
    message.reply_to = Some(answer.queue().into_owned());
    let (workspace, project) = (request.workspace.clone(), request.project.clone());
    let message = message.about(request.run_id.to_string());
    Ok(Effect { route: Route::Task { workspace, project }, message })
}

fn raw(json: Option<&str>) -> Result<Option<Box<RawValue>>, EffectError> {
    json.map(|json| RawValue::from_string(json.to_owned())).transpose().map_err(EffectError)
}

fn job_payload(record: &JobRecord) -> Result<Box<RawValue>, EffectError> {
    match &record.origin {
        JobOrigin::Outcome(outcome) => match outcome.run_id.kind() {
            RunKind::Process => process_payload(outcome),
            RunKind::Agent => agent_payload(outcome),
        },
        JobOrigin::Enqueued { payload } => or_null(raw(payload.as_deref())?),
        JobOrigin::Scheduled => or_null(None),
    }
}

fn or_null(json: Option<Box<RawValue>>) -> Result<Box<RawValue>, EffectError> {
    json.map_or_else(|| serde_json::value::to_raw_value(&()).map_err(EffectError), Ok)
}

fn agent_payload(record: &JobOutcome) -> Result<Box<RawValue>, EffectError> {
    let output = AgentOutput::read(record.output.as_deref());
    let error = record
        .error
        .as_ref()
        .map(|error| AgentRunError { code: error.code.clone(), message: error.message.clone() });
    let delivery = record.delivery.as_ref().map(delivery);
    let result = AgentResult {
        payload: raw(record.echo.as_deref())?,
        agent_run: EndedAgentRun::new(record.run_id, record.ended, output, error, delivery),
    };
    serde_json::value::to_raw_value(&result).map_err(EffectError)
}

/// What callers see of the message of a run to a person.
pub fn delivery(delivery: &Delivery) -> AgentDelivery {
    AgentDelivery {
        status: delivery.status.as_str().to_owned(),
        error_code: delivery.error_code.clone(),
        chat_session_id: delivery.conversation.map(ConversationId::session),
        conversation_id: delivery.conversation.map(|id| id.to_string()),
        new_conversation: delivery.new_conversation,
    }
}

fn process_payload(record: &JobOutcome) -> Result<Box<RawValue>, EffectError> {
    let output = record.output.as_deref().filter(|output| output.len() <= PROCESS_OUTPUT_BYTES_MAX);
    let completion = ProcessCompletion {
        payload: raw(record.echo.as_deref())?,
        process: EndedProcess {
            instance_id: record.run_id.to_string(),
            process_id: version_name(&record.target, record.target_version),
            process_info_id: record.target.to_string(),
            state: record.ended.public(record.run_id.kind()).to_owned(),
            output: raw(output)?,
            finished_at: Some(record.run_finished_at_ms),
        },
    };
    serde_json::value::to_raw_value(&completion).map_err(EffectError)
}

/// How callers see one version of a Process: `processId` of the contract.
pub fn version_name(process: &runfleet_domain::Name, version: u32) -> String {
    format!("{process}:{version}")
}

/// Publishes an effect and waits until the broker has it.
pub async fn publish(publisher: &Publisher, effect: Effect) -> Result<(), PublishError> {
    publisher.publish(&effect.route, effect.message).await
}

/// Publishes an effect; the confirm can be awaited later.
pub async fn send(publisher: &Publisher, effect: Effect) -> Result<Confirm, PublishError> {
    publisher.send(&effect.route, effect.message).await
}

#[cfg(test)]
mod tests {
    use runfleet_domain::RunState;
    use serde_json::Value;

    use super::*;

    fn told(output: Option<String>) -> Value {
        let outcome = JobOutcome {
            run_id: "PI1501KC5Q8A9B2C3D4E5F6G7H8J9K".parse().unwrap(),
            echo: Some("{\"order\":7}".to_owned()),
            output,
            error: None,
            ended: RunState::Completed,
            target: "approve-discount".parse().unwrap(),
            target_version: 3,
            run_created_at_ms: 1,
            run_started_at_ms: Some(2),
            run_finished_at_ms: 3,
            delivery: None,
        };
        serde_json::from_str(process_payload(&outcome).unwrap().get()).unwrap()
    }

    /// CG-042, CG-043
    #[test]
    fn the_output_of_a_process_is_there_up_to_48_kib_of_json_and_null_above_or_without_one() {
        let of = |size: usize| {
            let output = format!("{{\"text\":\"{}\"}}", "x".repeat(size - 11));
            assert_eq!(output.len(), size);
            told(Some(output))
        };
        assert!(of(49_152)["process"]["output"]["text"].is_string());
        for payload in [of(49_153), told(None)] {
            assert_eq!(payload["process"]["output"], Value::Null);
            assert_eq!(payload["payload"]["order"], 7);
            assert_eq!(payload["process"]["processId"], "approve-discount:3");
        }
    }
}
