//! A host of a project for tests: takes the tasks of the project and answers them, or misbehaves as hosts do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use runfleet_broker::{
    Broker, Classify, ConsumerConfig, DecodeError, HandlerResult, Inbound, Inbox, LaneConfig,
    Outgoing, Publisher, Route, Verdict,
};
use runfleet_contracts::{HostAnswer, HostOutcome, HostRequest, Message};
use runfleet_domain::{Lane, Name};
use runfleet_runtime::clock::now_ms;
use tokio_util::sync::CancellationToken;

/// Tasks in hand at once.
const PREFETCH: u16 = 16;

/// What a host does with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Doing {
    /// Answers at once.
    Answer(HostOutcome),
    /// Answers at once, and again.
    Twice(HostOutcome, HostOutcome),
    /// Answers after this time.
    Slowly(Duration, HostOutcome),
    /// Takes the request and never answers.
    Silence,
    /// Dies with the request in hand, which goes back to the queue. This host does nothing more.
    Crash,
}

/// A running host. Stopped when it is dropped.
pub struct TestHost {
    requests: Arc<Mutex<Vec<HostRequest>>>,
    stop: CancellationToken,
}

struct Taken(HostRequest);

impl Inbox for Taken {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        if kind != HostRequest::KIND {
            return Err(DecodeError::UnknownKind);
        }
        let request = serde_json::from_slice(body);
        request.map(Self).map_err(|error| DecodeError::Malformed(error.to_string()))
    }
}

impl TestHost {
    /// Takes the tasks of one project; `does` says what to do with each, by its `name` and whatever else it holds.
    pub fn start(
        broker: &Broker,
        workspace: Name,
        project: Name,
        does: impl Fn(&HostRequest) -> Doing + Send + Sync + 'static,
    ) -> Self {
        let (requests, stop) =
            (Arc::<Mutex<Vec<HostRequest>>>::default(), CancellationToken::new());
        let queue = Route::Task { workspace, project }.queue().into_owned();
        let mut config =
            ConsumerConfig::new(vec![LaneConfig::new(queue, Lane::Interactive, PREFETCH)]);
        config.body_bytes_max *= 2;
        let (consumer, publisher) = (broker.consumer(config), broker.publisher());
        let (seen, shutdown, does) = (Arc::clone(&requests), stop.clone(), Arc::new(does));
        tokio::spawn(async move {
            let dying = shutdown.clone();
            let handler = move |message: Inbound<Taken>| {
                let does = Arc::clone(&does);
                let (seen, publisher, dying) =
                    (Arc::clone(&seen), publisher.clone(), dying.clone());
                async move {
                    let doing = does(&message.body.0);
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(message.body.0.clone());
                    handle(message, doing, &publisher, &dying).await
                }
            };
            consumer.run::<Taken, _, _>(handler, shutdown, Duration::ZERO).await
        });
        Self { requests, stop }
    }

    /// What was taken so far, in order; a request that came twice is there twice.
    pub fn requests(&self) -> Vec<HostRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many requests have been taken.
    pub async fn wait(&self, count: usize, bound: Duration) -> Result<Vec<HostRequest>> {
        let began = Instant::now();
        loop {
            let requests = self.requests();
            if requests.len() >= count {
                return Ok(requests);
            }
            if began.elapsed() > bound {
                bail!("{} of {count} requests came within {bound:?}", requests.len());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn handle(
    message: Inbound<Taken>,
    doing: Doing,
    publisher: &Publisher,
    dying: &CancellationToken,
) -> HandlerResult {
    let route = route(&message);
    let request = message.body.0;
    if request.deadline <= now_ms() {
        return Ok(Verdict::Drop("too_late"));
    }
    let outcomes = match doing {
        Doing::Answer(outcome) => vec![outcome],
        Doing::Twice(first, second) => vec![first, second],
        Doing::Slowly(time, outcome) => {
            tokio::time::sleep(time).await;
            vec![outcome]
        }
        Doing::Silence => vec![],
        Doing::Crash => {
            dying.cancel();
            return std::future::pending().await;
        }
    };
    for outcome in outcomes {
        let answer = HostAnswer::to(&request, outcome);
        let id = format!("answer:{}", request.request_id);
        let answer = Outgoing::message(id, &answer).permanent("writing an answer")?;
        let route = route.clone().context("an address for the answer").permanent("answering")?;
        publisher.publish(&route, answer).await.transient("answering")?;
    }
    Ok(Verdict::Done)
}

/// Where the request says that its answer goes.
fn route(message: &Inbound<Taken>) -> Option<Route> {
    let key = message.reply_to.as_deref();
    let routes =
        Lane::ALL.into_iter().flat_map(|lane| [Route::Answer(lane), Route::AgentAnswer(lane)]);
    routes.into_iter().find(|route| Some(&*route.queue()) == key)
}
