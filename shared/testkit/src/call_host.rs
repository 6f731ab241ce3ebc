//! A host of a project for tests that answers calls of its scripts, routes, triggers and actions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use runfleet_broker::{
    Broker, Classify, ConsumerConfig, DecodeError, HandlerResult, Inbound, Inbox, LaneConfig,
    Outgoing, Publisher, Route, TopologyAdmin, Verdict,
};
use runfleet_contracts::{CallAnswer, CallOutcome, HostCall, Message};
use runfleet_domain::{Lane, Name};
use runfleet_runtime::clock::now_ms;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

/// Calls in hand at once.
const PREFETCH: u16 = 16;

/// A call with the execution token that came with it.
#[derive(Debug, Clone)]
pub struct Called {
    /// The call.
    pub call: HostCall,
    /// For what the handler does.
    pub token: Option<SecretString>,
}

/// What a host does with a call.
#[derive(Debug, Clone)]
pub enum Handling {
    /// Answers at once.
    Answer(CallOutcome),
    /// Answers after this time.
    Slowly(Duration, CallOutcome),
    /// Answers as if it were asked by somebody else: with another key.
    Forged(CallOutcome),
    /// Takes the call and never answers.
    Silence,
}

/// A running host of one version. Stopped when it is dropped; its queue goes with it.
pub struct CallHost {
    calls: Arc<Mutex<Vec<Called>>>,
    stop: CancellationToken,
}

struct Taken(HostCall);

impl Inbox for Taken {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        if kind != HostCall::KIND {
            return Err(DecodeError::UnknownKind);
        }
        let call = serde_json::from_slice(body);
        call.map(Self).map_err(|error| DecodeError::Malformed(error.to_string()))
    }
}

impl CallHost {
    /// Takes the calls of one version; `does` says what to do with each. `admin` declares the queue, as hosts do.
    pub async fn start(
        broker: &Broker,
        admin: &TopologyAdmin,
        (workspace, project, version): (Name, Name, &str),
        does: impl Fn(&Called) -> Handling + Send + Sync + 'static,
    ) -> Result<Self> {
        admin.declare_call_queue(&workspace, &project, version).await?;
        let route = Route::HostCall { workspace, project, version: version.to_owned() };
        let lane = LaneConfig::new(route.queue().into_owned(), Lane::Interactive, PREFETCH);
        let mut config = ConsumerConfig::new(vec![lane]);
        config.body_bytes_max *= 2;
        let (consumer, publisher) = (broker.consumer(config), broker.publisher());
        let (calls, stop) = (Arc::<Mutex<Vec<Called>>>::default(), CancellationToken::new());
        let (seen, shutdown, does) = (Arc::clone(&calls), stop.clone(), Arc::new(does));
        tokio::spawn(async move {
            let handler = move |message: Inbound<Taken>| {
                let called =
                    Called { call: message.body.0.clone(), token: message.authorization.clone() };
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(called.clone());
                let (doing, publisher) = (does(&called), publisher.clone());
                async move { handle(message, doing, &publisher).await }
            };
            consumer.run::<Taken, _, _>(handler, shutdown, Duration::ZERO).await
        });
        Ok(Self { calls, stop })
    }

    /// What was taken so far, in order; a call that came twice is there twice.
    pub fn calls(&self) -> Vec<Called> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for CallHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn handle(message: Inbound<Taken>, doing: Handling, publisher: &Publisher) -> HandlerResult {
    let call = message.body.0;
    if call.deadline <= now_ms() {
        return Ok(Verdict::Drop("too_late"));
    }
    let mut forged = false;
    let outcome = match doing {
        Handling::Answer(outcome) => outcome,
        Handling::Slowly(time, outcome) => {
            tokio::time::sleep(time).await;
            outcome
        }
        Handling::Forged(outcome) => {
            forged = true;
            outcome
        }
        Handling::Silence => return Ok(Verdict::Done),
    };
    let mut answer = CallAnswer::to(&call, outcome);
    if forged {
        answer.answer_key = "0".repeat(32);
    }
    let id = format!("answer:{}.{}", call.call_id, call.attempt);
    let answer = Outgoing::message(id, &answer).permanent("writing an answer")?;
    let key = message.reply_to.as_deref();
    let routes = Lane::ALL.map(Route::StartAnswer);
    let Some(route) = routes.into_iter().find(|route| Some(&*route.queue()) == key) else {
        return Ok(Verdict::Drop("no_address"));
    };
    publisher.publish(&route, answer).await.transient("answering")?;
    Ok(Verdict::Done)
}
