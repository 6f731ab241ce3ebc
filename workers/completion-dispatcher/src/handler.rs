//! One message: an outcome becomes a job, a job is due, or a host says something about one.

use std::sync::Arc;

use runfleet_broker::names::ANSWER_EXCHANGE;
use runfleet_broker::{Broker, DecodeError, Failure, Inbound, Inbox, Publisher, Verdict};
use runfleet_contracts::{JobAccepted, JobDue, JobResult, JobRun, Message, OutcomeReady};
use runfleet_store::Store;
use runfleet_worker::inbox::{decode, unknown_kind};
use runfleet_worker::{CatalogCache, Fleet, Tokens};

use crate::metrics::Metrics;
use crate::{attempts, outcomes};

/// What completion-dispatcher takes.
#[derive(Debug)]
pub(crate) enum Done {
    /// A run has ended and wants its job.
    Outcome(OutcomeReady),
    /// The time of a job has come, or nothing was heard of it.
    Due(JobDue),
    /// An attempt of a job has begun.
    Accepted(JobAccepted),
    /// An attempt of a job has ended.
    Job(JobResult),
}

const KINDS: [&str; 4] = [OutcomeReady::KIND, JobDue::KIND, JobAccepted::KIND, JobResult::KIND];

impl Inbox for Done {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            OutcomeReady::KIND => decode(body).map(Self::Outcome),
            JobDue::KIND => decode(body).map(Self::Due),
            JobAccepted::KIND => decode(body).map(Self::Accepted),
            JobResult::KIND => decode(body).map(Self::Job),
            _ => Err(unknown_kind(kind, &KINDS)),
        }
    }
}

/// What comes from the parking queue of jobs.
#[derive(Debug)]
pub(crate) struct GivenUp(pub(crate) JobRun);

impl Inbox for GivenUp {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            JobRun::KIND => decode(body).map(Self),
            _ => Err(unknown_kind(kind, &[JobRun::KIND])),
        }
    }
}

/// What the handler may touch.
pub(crate) struct Deps {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    pub(crate) broker: Broker,
    pub(crate) catalog: CatalogCache,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
}

impl Deps {
    pub(crate) fn new(fleet: &Fleet, tokens: Tokens) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            broker: fleet.broker().clone(),
            catalog: fleet.catalog.clone(),
            tokens,
            metrics: Metrics::new(&fleet.process.registry)?,
        })
    }
}

pub(crate) async fn handle(deps: Arc<Deps>, message: Inbound<Done>) -> Result<Verdict, Failure> {
    let of_the_fleet = matches!(message.body, Done::Outcome(_) | Done::Due(_));
    if of_the_fleet && message.exchange == ANSWER_EXCHANGE {
        tracing::warn!(message_id = %message.message_id, "a host has said what is not for hosts to say");
        return Ok(Verdict::Drop("not_an_answer"));
    }
    match &message.body {
        Done::Outcome(ready) => outcomes::hand_over(&deps, ready).await,
        Done::Due(due) => attempts::due(&deps, due, message.redelivered).await,
        Done::Accepted(accepted) => attempts::begun(&deps, accepted).await,
        Done::Job(result) => attempts::ended(&deps, result).await,
    }
}

pub(crate) async fn given_up(
    deps: Arc<Deps>,
    message: Inbound<GivenUp>,
) -> Result<Verdict, Failure> {
    attempts::given_up(&deps, &message.body.0).await
}
