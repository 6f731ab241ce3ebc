//! HTTP tasks: makes one call and puts its answer into the inbox of the run.
//!
//! The message says only which attempt of which task; what is called is read from the stored run, and only while that attempt is
//! still asked for. A call is made at least once: when a runner dies in the middle, it is made again with the same
//! `Idempotency-Key`, unless its answer is stored already.

pub(crate) mod answer;
mod config;
mod request;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use runfleet_broker::{Classify, Failure, HandlerResult, Inbound, Verdict};
use runfleet_contracts::{AskId, RunEvent};
use runfleet_domain::{Name, RunState};
use runfleet_flow::{Ask as Asked, HTTP_WORK};
use runfleet_http::{Client, Config, Service};
use runfleet_runtime::clock::now_ms;
use runfleet_secrets::{Missing, Secrets};
use runfleet_store::RunRecord;
use runfleet_worker::inbox::CallInbox;
use runfleet_worker::{Fleet, Tokens};

use crate::answers::Answers;

pub(crate) use self::config::CallConfig;
pub(crate) use self::request::CALL_MAX;

/// Less time than this is not worth a call.
const LEFT_MIN: Duration = Duration::from_millis(50);

/// The variables in which secrets are looked for.
const PLACES: [&str; 5] = ["url", "headers", "queryParameters", "authentication", "body"];

/// Bound of one handler: the longest call, and reading and storing around it.
pub(crate) const HANDLER_BOUND: Duration = CALL_MAX.saturating_add(Duration::from_secs(30));

/// Whether a kind of work is an HTTP call, and so nothing for hosts.
pub(crate) fn is_http(work: &str) -> bool {
    HTTP_WORK.contains(&work)
}

/// Finds in a stored run what it asks for.
pub(crate) trait Asks: Send + Sync + 'static {
    /// The attempt of `task` that the run asks for now, if it does.
    fn asked(
        &self,
        record: &RunRecord,
        task: u64,
    ) -> impl Future<Output = Result<Option<Asked>, Failure>> + Send;
}

/// What making calls may touch.
pub(crate) struct Caller<A> {
    pub(crate) answers: Arc<Answers>,
    pub(crate) service: Service,
    pub(crate) secrets: Secrets,
    pub(crate) asks: A,
    /// Attempts that are being called from here: their message may come twice.
    pub(crate) calling: Mutex<HashSet<AskId>>,
}

/// Takes one message and makes its call.
pub(crate) async fn handle<A: Asks>(
    caller: Arc<Caller<A>>,
    message: Inbound<CallInbox>,
) -> HandlerResult {
    let ask = message.body.0.ask();
    let Some(_turn) = Turn::take(&caller.calling, ask) else { return Ok(Verdict::Duplicate) };
    let (record, asked) = match caller.find(ask).await? {
        Found::Asked(found) => *found,
        Found::Over(verdict) => return Ok(verdict),
    };
    let event = caller.call(ask, &record.workspace, asked).await;
    let Some(event) = event else { return Ok(Verdict::Drop("too_late")) };
    runfleet_faults::point("process.called");
    caller.answers.tell(ask, &event, record.lane, record.traceparent.as_deref()).await
}

/// What the ledger says about an attempt.
enum Found {
    /// It is asked for, and nobody has answered it.
    Asked(Box<(RunRecord, Asked)>),
    /// There is nothing to do.
    Over(Verdict),
}

impl<A: Asks> Caller<A> {
    /// Makes the client. One for each process.
    pub(crate) fn new(fleet: &Fleet, config: CallConfig, asks: A) -> anyhow::Result<Self> {
        let http = Config { allow: config.allow, ..Config::default() };
        let client = Client::new(http, &fleet.process.registry).context("preparing HTTP calls")?;
        let (store, publisher) = (fleet.store.clone(), fleet.publisher.clone());
        let tokens = Tokens::open(&config.tokens)?;
        Ok(Self {
            answers: Arc::new(Answers { store, publisher, keys: config.keys, tokens }),
            // Without a breaker: the calls go to many places, and one that fails says nothing about the others.
            service: client.service("connector", None),
            secrets: Secrets::new(config.secrets),
            asks,
            calling: Mutex::default(),
        })
    }

    async fn find(&self, ask: AskId) -> Result<Found, Failure> {
        let over = |reason| Ok(Found::Over(Verdict::Drop(reason)));
        let store = &self.answers.store;
        let record = store.load_run(ask.run_id).await.transient("loading the run")?;
        let Some(record) = record else { return over("no_such_run") };
        if record.state.is_final() {
            return over("run_ended");
        }
        if record.state == RunState::Paused {
            // The call is asked for again when somebody lets the run go on.
            return over("paused");
        }
        let asked = self.asks.asked(&record, ask.instance).await?;
        let Some(asked) = asked.filter(|asked| asked.attempt == ask.attempt) else {
            return Ok(Found::Over(Verdict::Duplicate));
        };
        let id = RunEvent::answer_id(ask.instance, ask.attempt);
        let id = id.ok_or_else(|| Failure::permanent("naming an event"))?;
        if store.knows_event(ask.run_id, &id).await.transient("looking for an answer")? {
            return Ok(Found::Over(Verdict::Duplicate));
        }
        Ok(Found::Asked(Box::new((record, asked))))
    }

    /// Makes the call; none if there is no time left.
    async fn call(&self, ask: AskId, workspace: &Name, asked: Asked) -> Option<RunEvent> {
        let variables = match self.secrets.put_in(workspace, &PLACES, asked.variables).await {
            Ok(variables) => variables,
            Err(Missing) => {
                return Some(answer::failed(ask, Missing::CODE, false));
            }
        };
        let request = match request::Request::read(&variables, &ask.task()) {
            Ok(request) => request,
            Err(invalid) => return Some(answer::failed(ask, invalid.code(), false)),
        };
        let left = Duration::from_millis(asked.expires_ms.saturating_sub(now_ms()));
        if left < LEFT_MIN {
            return None;
        }
        let end = self.service.exchange(request.into_call(left)).await;
        Some(answer::event(ask, &end, SystemTime::now()))
    }
}

/// One attempt is called once at a time.
struct Turn<'a> {
    calling: &'a Mutex<HashSet<AskId>>,
    ask: AskId,
}

impl<'a> Turn<'a> {
    fn take(calling: &'a Mutex<HashSet<AskId>>, ask: AskId) -> Option<Self> {
        let is_new = calling.lock().unwrap_or_else(PoisonError::into_inner).insert(ask);
        is_new.then_some(Self { calling, ask })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.calling.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.ask);
    }
}

#[cfg(test)]
mod tests;
