//! Tasks that hosts of a project carry out: asking them, and taking their answers into the inbox of the run.
//!
//! Decides nothing about a run: an answer is an event, and the engine says what it means. What cannot be asked is told to the
//! run as a failed attempt, so that a project whose queue is missing or full holds up nobody but itself.

use std::time::Duration;

use runfleet_broker::names::ANSWER_EXCHANGE;
use runfleet_broker::{
    Classify, Failure, HandlerResult, Inbound, PublishError, Publisher, Verdict,
};
use runfleet_contracts::{AskId, HostAnswer, HostRequest, HostWork, ProcessCall, RunEvent};
use runfleet_domain::{Lane, RunKind};
use runfleet_flow::Ask as Asked;
use runfleet_identity::AnswerKeys;
use runfleet_store::{Appended, RunRecord, Store};
use runfleet_worker::inbox::RunnerInbox;
use runfleet_worker::{Tokens, effects};

use crate::call::answer::failed;
use crate::call::is_http;

/// How long a request is offered to the queue of a project. Short: a full queue must not hold up the runs of others.
const OFFER_BOUND: Duration = Duration::from_secs(2);

/// Whether a message that is no answer came through the exchange of answers, where hosts publish. It would say "look at this
/// run", which harms nobody, but it is not for hosts to say.
pub(crate) fn is_smuggled(message: &Inbound<()>, body: &RunnerInbox) -> bool {
    match body {
        RunnerInbox::Advance(_) => message.exchange == ANSWER_EXCHANGE,
        RunnerInbox::Answer(_) | RunnerInbox::Progress(_) | RunnerInbox::Note => false,
    }
}

/// What taking answers may touch.
pub(crate) struct Answers {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    /// Without keys, an answer is believed that names workspace and project of its run.
    pub(crate) keys: Option<AnswerKeys>,
    /// What the code of projects calls the fleet with.
    pub(crate) tokens: Tokens,
}

impl Answers {
    /// Asks whoever does that kind of work to carry out one attempt of a task: ourselves for HTTP calls, otherwise the hosts of
    /// the project of the run. Asking twice is asking once.
    pub(crate) async fn ask(&self, record: &RunRecord, asked: &Asked) -> Result<(), Failure> {
        if is_http(&asked.work) {
            self.ask_caller(record, asked).await
        } else {
            self.ask_host(record, asked).await
        }
    }

    async fn ask_caller(&self, record: &RunRecord, asked: &Asked) -> Result<(), Failure> {
        let call = ProcessCall {
            run_id: record.id,
            instance: asked.task,
            attempt: asked.attempt,
            deadline: asked.expires_ms,
        };
        let effect = effects::call(&call, record.lane, record.traceparent.as_deref());
        let effect = effect.permanent("writing the message of a call")?;
        effects::publish(&self.publisher, effect).await.transient("asking for a call")
    }

    async fn ask_host(&self, record: &RunRecord, asked: &Asked) -> Result<(), Failure> {
        let (lane, trace) = (record.lane, record.traceparent.as_deref());
        let request = self.request(record, asked);
        let ask = request.request_id;
        let mut effect =
            effects::task(&request, lane, trace).permanent("writing a request to a host")?;
        effect.message.authorization = self.tokens.for_request(record, &request);
        let offered =
            self.publisher.publish_within(&effect.route, effect.message, OFFER_BOUND).await;
        let (code, retry) = match offered {
            Ok(()) => return Ok(()),
            Err(PublishError::NoSuchQueue) => ("TASK_QUEUE_MISSING", true),
            Err(PublishError::Refused) => ("TASK_QUEUE_FULL", true),
            Err(PublishError::TooLarge) => ("TASK_TOO_LARGE", false),
            Err(error @ (PublishError::NotConfirmed | PublishError::NotConnected)) => {
                return Err(error).transient("asking a host");
            }
        };
        tracing::warn!(%ask, code, "a task could not be asked for");
        self.tell(ask, &failed(ask, code, retry), lane, trace).await.map(drop)
    }

    fn request(&self, record: &RunRecord, asked: &Asked) -> HostRequest {
        let ask = AskId { run_id: record.id, instance: asked.task, attempt: asked.attempt };
        HostRequest {
            request_id: ask,
            kind: HostWork::Task,
            name: asked.work.clone(),
            workspace: record.workspace.clone(),
            project: record.project.clone(),
            run_id: record.id,
            element_id: asked.element.clone(),
            instance: asked.task,
            attempt: asked.attempt,
            headers: asked.headers.iter().cloned().collect(),
            variables: asked.variables.clone(),
            deadline: asked.expires_ms,
            answer_key: self.keys.as_ref().and_then(|keys| keys.word(&ask.to_string())),
            conversation: None,
        }
    }

    /// Takes an answer of a host.
    pub(crate) async fn take(&self, message: &Inbound<()>, answer: HostAnswer) -> HandlerResult {
        let ask = answer.request_id;
        if ask.run_id.kind() != RunKind::Process {
            return Ok(Verdict::Park("wrong_kind", "not a run of a Process".to_owned()));
        }
        if let Some(reason) = self.disbelieved(&answer).await? {
            // Not parked: whoever forges answers must not fill the place where people look for accidents.
            tracing::warn!(%ask, reason, "an answer is not believed");
            return Ok(Verdict::Drop(reason));
        }
        let mut event = answer.into_event();
        if let Err(error) = event.to_body() {
            let too_large =
                error.details.contains_key("limit") && error.details["field"] == "event";
            let code = if too_large { "TASK_ANSWER_TOO_LARGE" } else { "TASK_ANSWER_INVALID" };
            event = failed(ask, code, false);
        }
        self.tell(ask, &event, message.lane, message.traceparent.as_deref()).await
    }

    /// Why an answer is not taken; none if it comes from whoever was asked.
    async fn disbelieved(&self, answer: &HostAnswer) -> Result<Option<&'static str>, Failure> {
        if let Some(keys) = &self.keys {
            let word = answer.answer_key.as_deref().unwrap_or_default();
            let known = keys.knows(&answer.request_id.to_string(), word);
            return Ok((!known).then_some("wrong_answer_key"));
        }
        let record = self.store.load_run(answer.run_id).await.transient("loading the run")?;
        Ok(match record {
            None => Some("no_such_run"),
            Some(record)
                if record.workspace == answer.workspace && record.project == answer.project =>
            {
                None
            }
            Some(_) => Some("answer_of_another_project"),
        })
    }

    /// Puts the end of an attempt into the inbox of its run and wakes it. The second end of an attempt changes nothing.
    pub(crate) async fn tell(
        &self,
        ask: AskId,
        event: &RunEvent,
        lane: Lane,
        trace: Option<&str>,
    ) -> HandlerResult {
        let body = event.to_body().map_err(|_| Failure::permanent("writing an event"))?;
        let id = RunEvent::answer_id(ask.instance, ask.attempt);
        let id = id.ok_or_else(|| Failure::permanent("naming an event"))?;
        let appended = self.store.append_event(ask.run_id, &id, &body).await;
        let verdict = match appended.transient("storing an answer")? {
            Appended::Added => Verdict::Done,
            // Whoever stored it may have died before the run was woken.
            Appended::Known => Verdict::Duplicate,
            Appended::Full => return Err(Failure::transient("storing an answer in a full inbox")),
            Appended::Ended => return Ok(Verdict::Drop("run_ended")),
            Appended::Missing => return Ok(Verdict::Drop("no_such_run")),
        };
        runfleet_faults::point("process.answer_stored");
        let wake = effects::advance(ask.run_id, &id, lane, trace);
        let wake = wake.permanent("writing the message that wakes a run")?;
        effects::publish(&self.publisher, wake).await.transient("waking a run")?;
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests;
