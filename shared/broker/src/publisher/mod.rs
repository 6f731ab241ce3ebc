//! Publishing with confirms. A publish that was confirmed is in the broker; one that was not may be there all the same.
//!
//! Publishes to work queues are pipelined and not mandatory: the session has seen their queues. Queues of projects come and go, so
//! each is looked at before it is used. Everything is retried until the deadline with the same message id; receivers drop
//! what they have seen.

pub(crate) mod facts;
pub(crate) mod flight;
pub(crate) mod slot;

use std::sync::Arc;
use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use rand::Rng;
use runfleet_contracts::Fact;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout, timeout_at};

use crate::metrics::Published;
use crate::outgoing::{Outgoing, reply_properties, short};
use crate::route::{Route, Target};
use crate::session::{Session, Shared};
use flight::{Flight, Parcel, Permits, Sent};

/// First wait after a refusal; doubles up to [`REFUSED_WAIT_MAX`].
pub(crate) const REFUSED_WAIT: Duration = Duration::from_millis(20);

const REFUSED_WAIT_MAX: Duration = Duration::from_millis(500);

/// Names of queues that an answer may go to: the broker's own direct replies and queues that it named itself. An address
/// comes from whoever asks, and must not reach a work queue.
const REPLY_PREFIXES: [&str; 3] = ["amq.rabbitmq.reply-to.", "amq.gen-", "reply."];

/// Why a message was not published, or may not have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// It was written but not confirmed in time. It may be delivered, also later.
    #[error("the broker did not confirm the message in time")]
    NotConfirmed,
    /// The broker refused it until the deadline: the queue is full. It will not be delivered.
    #[error("the broker refused the message: the queue is full")]
    Refused,
    /// It was not written before the deadline: no session, a broker that takes no messages, or too much in flight. It will
    /// not be delivered.
    #[error("not connected to the broker, or it takes no messages, or too many are in flight")]
    NotConnected,
    /// There is no such queue of a project.
    #[error("the queue does not exist")]
    NoSuchQueue,
    /// The body or a property is larger than what may be published.
    #[error("the message is too large")]
    TooLarge,
}

impl PublishError {
    pub(crate) fn label(self) -> Published {
        match self {
            Self::NotConfirmed => Published::Unconfirmed,
            Self::Refused => Published::Refused,
            Self::NotConnected => Published::NotConnected,
            Self::NoSuchQueue => Published::NoSuchQueue,
            Self::TooLarge => Published::TooLarge,
        }
    }
}

/// Why an answer was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The address names no reply queue.
    #[error("the reply address is not one of a reply queue")]
    BadAddress,
    /// The body or a property is larger than what may be published.
    #[error("the reply is too large")]
    TooLarge,
    /// No session, or it did not take the frames in time. Only in the second case it may arrive, late.
    #[error("not connected to the broker, or it takes no messages")]
    NotConnected,
}

/// Publishes messages. Clones share the bounds of what is in flight.
#[derive(Clone)]
pub struct Publisher {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    sessions: watch::Receiver<Option<Arc<Session>>>,
    app_id: ShortString,
    count: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    facts: mpsc::Sender<facts::Told>,
}

/// A message that was written to the socket. Await [`Confirm::wait`] to know that the broker has it.
#[must_use = "without its confirm nobody knows whether the broker has the message"]
pub struct Confirm {
    publisher: Publisher,
    flight: Flight,
    permits: Arc<Permits>,
    sent: Sent,
}

impl std::fmt::Debug for Confirm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confirm").finish_non_exhaustive()
    }
}

impl Confirm {
    /// Waits for the confirm, for as long as the deadline of the publish allows. Refusals are retried meanwhile.
    pub async fn wait(self) -> Result<(), PublishError> {
        let Self { publisher, mut flight, permits, sent } = self;
        let deadline = flight.deadline;
        let settling = async {
            if publisher.settled(&mut flight, sent).await {
                return Ok(());
            }
            publisher.drive(&mut flight, &permits).await
        };
        let done = timeout_at(deadline, settling).await;
        publisher.finish(&flight, done)
    }
}

impl Publisher {
    pub(crate) fn new(
        shared: Arc<Shared>,
        app_id: ShortString,
        facts: mpsc::Sender<facts::Told>,
    ) -> Self {
        let config = &shared.config;
        let inner = Inner {
            sessions: shared.sessions(),
            app_id,
            count: Arc::new(Semaphore::new(config.in_flight_max)),
            bytes: Arc::new(Semaphore::new(config.in_flight_bytes_max)),
            facts,
            shared,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Publishes and waits for the confirm, for at most the configured time.
    pub async fn publish(&self, route: &Route, outgoing: Outgoing) -> Result<(), PublishError> {
        self.publish_within(route, outgoing, self.inner.shared.config.confirm_timeout).await
    }

    /// The same with a bound of its own.
    pub async fn publish_within(
        &self,
        route: &Route,
        outgoing: Outgoing,
        bound: Duration,
    ) -> Result<(), PublishError> {
        let parcel = self.parcel(route, outgoing)?;
        self.carry(parcel, bound).await
    }

    /// Returns when the message is written to the socket. Its confirm is awaited separately, within the same time.
    pub async fn send(&self, route: &Route, outgoing: Outgoing) -> Result<Confirm, PublishError> {
        let parcel = self.parcel(route, outgoing)?;
        let mut flight = Flight::new(parcel, self.inner.shared.config.confirm_timeout);
        let deadline = flight.deadline;
        let writing = async {
            let permits = self.admit(flight.parcel.body.len()).await?;
            let sent = self.written(&mut flight, &permits).await?;
            Ok((permits, sent))
        };
        match timeout_at(deadline, writing).await {
            Ok(Ok((permits, sent))) => {
                Ok(Confirm { publisher: self.clone(), flight, permits, sent })
            }
            Ok(Err(error)) => Err(self.count(&flight, error)),
            Err(_) => Err(self.count(&flight, flight.at_deadline())),
        }
    }

    /// Sends an answer: at most once, unconfirmed, and nobody may be there any more.
    ///
    /// `kind` is the AMQP `type` of the answer.
    pub async fn reply(
        &self,
        kind: &str,
        reply_to: &str,
        correlation_id: &str,
        body: &[u8],
    ) -> Result<(), ReplyError> {
        if !REPLY_PREFIXES.iter().any(|prefix| reply_to.starts_with(prefix)) {
            return Err(ReplyError::BadAddress);
        }
        if body.len() > self.inner.shared.config.body_bytes_max {
            return Err(ReplyError::TooLarge);
        }
        let address = short(reply_to).map_err(|_| ReplyError::TooLarge)?;
        let properties =
            reply_properties(kind, correlation_id).map_err(|_| ReplyError::TooLarge)?;
        let sending = async {
            let session = self.session().await;
            session.unblocked().await;
            let options = BasicPublishOptions::default();
            let sent =
                session.replies.basic_publish("".into(), address, options, body, properties).await;
            if let Err(error) = &sent {
                session.fail(format_args!("sending a reply: {error}"));
            }
            sent.map_err(|_| ReplyError::NotConnected)
        };
        let bound = self.inner.shared.config.rpc_timeout;
        timeout(bound, sending).await.map_err(|_| ReplyError::NotConnected)?.map(|_| ())
    }

    /// Tells a fact to whoever listens. Returns at once and never fails: without a session, or while too many wait to be
    /// written, or when it has more than [`FACT_BYTES_MAX`](runfleet_contracts::facts::FACT_BYTES_MAX) bytes, the fact is gone.
    pub fn publish_fact<F: Fact>(&self, fact: &F) {
        let told = if self.inner.sessions.borrow().is_some() {
            facts::Told::new(fact).ok().and_then(|told| self.inner.facts.try_send(told).ok())
        } else {
            None
        };
        if told.is_none() {
            self.inner.shared.metrics.fact(false);
        }
    }

    /// Publishes a parcel that is put together already: retries, parking, moves.
    pub(crate) async fn carry(&self, parcel: Parcel, bound: Duration) -> Result<(), PublishError> {
        let mut flight = Flight::new(parcel, bound);
        let deadline = flight.deadline;
        let carrying = async {
            let permits = self.admit(flight.parcel.body.len()).await?;
            self.drive(&mut flight, &permits).await
        };
        let done = timeout_at(deadline, carrying).await;
        self.finish(&flight, done)
    }

    pub(crate) fn parcel(&self, route: &Route, outgoing: Outgoing) -> Result<Parcel, PublishError> {
        let target = route.target();
        let parcel = self.put_together(route, outgoing);
        parcel.inspect_err(|error| self.inner.shared.metrics.published(target, error.label()))
    }

    fn put_together(&self, route: &Route, outgoing: Outgoing) -> Result<Parcel, PublishError> {
        if outgoing.body.len() > self.inner.shared.config.body_bytes_max {
            return Err(PublishError::TooLarge);
        }
        let key = short(route.queue())?;
        let (properties, body) = outgoing.into_parts(&self.inner.app_id)?;
        let exchange = route.exchange().into();
        Ok(Parcel { exchange, key, properties, body: Arc::new(body), target: route.target() })
    }

    /// Waits for a share of what may be in flight.
    pub(crate) async fn admit(&self, bytes: usize) -> Result<Arc<Permits>, PublishError> {
        let bytes = bytes.min(self.inner.shared.config.in_flight_bytes_max);
        let bytes = u32::try_from(bytes).map_err(|_| PublishError::TooLarge)?;
        let count = Arc::clone(&self.inner.count).acquire_owned().await;
        let bytes = Arc::clone(&self.inner.bytes).acquire_many_owned(bytes).await;
        match (count, bytes) {
            (Ok(count), Ok(bytes)) => Ok(Arc::new(Permits { _count: count, _bytes: bytes })),
            // The semaphores are never closed.
            _ => Err(PublishError::NotConnected),
        }
    }

    /// Tries until the broker has the message; the caller bounds it.
    async fn drive(&self, flight: &mut Flight, permits: &Arc<Permits>) -> Result<(), PublishError> {
        loop {
            let sent = self.written(flight, permits).await?;
            if self.settled(flight, sent).await {
                return Ok(());
            }
        }
    }

    /// Tries until the frames are written to the socket of a session that stands.
    async fn written(
        &self,
        flight: &mut Flight,
        permits: &Arc<Permits>,
    ) -> Result<Sent, PublishError> {
        loop {
            let session = self.session().await;
            session.unblocked().await;
            let key = flight.parcel.key.as_str();
            let look = match flight.parcel.target {
                Target::Job | Target::Task => Some(session.has_job_queue(key).await),
                Target::HostCall => Some(session.is_consumed(key).await),
                _ => None,
            };
            if let Some(found) = look {
                match found {
                    Ok(true) => {}
                    Ok(false) => return Err(PublishError::NoSuchQueue),
                    Err(error) => {
                        tracing::debug!(%error, "could not look for a queue of a project");
                        sleep(REFUSED_WAIT).await;
                        continue;
                    }
                }
            }
            let mut sent = Sent::new(&flight.parcel, Arc::clone(permits), session);
            flight.written();
            match sent.write().await {
                Ok(()) => {
                    runfleet_faults::point("publisher.sent");
                    return Ok(sent);
                }
                Err(error) => {
                    if !sent.was_queued() {
                        flight.not_written();
                    }
                    tracing::debug!(%error, "could not write a message");
                    sleep(REFUSED_WAIT).await;
                }
            }
        }
    }

    /// Waits for the broker's answer; after a refusal it pauses, so that the caller can simply try again.
    async fn settled(&self, flight: &mut Flight, sent: Sent) -> bool {
        match sent.confirmed().await {
            Ok(true) => {
                runfleet_faults::point("publisher.confirmed");
                true
            }
            Ok(false) => {
                flight.nacked();
                sleep(refused_wait(flight.tries)).await;
                false
            }
            Err(error) => {
                tracing::debug!(%error, "a message was cut off before its confirm");
                sleep(REFUSED_WAIT).await;
                false
            }
        }
    }

    async fn session(&self) -> Arc<Session> {
        if let Some(session) = self.inner.sessions.borrow().as_ref() {
            return Arc::clone(session);
        }
        let mut sessions = self.inner.sessions.clone();
        loop {
            let found = sessions.wait_for(Option::is_some).await.map(|session| session.clone());
            match found {
                Ok(Some(session)) => return session,
                Ok(None) => {}
                // Only when the broker is gone; the caller's deadline ends this.
                Err(_) => std::future::pending().await,
            }
        }
    }

    fn finish(
        &self,
        flight: &Flight,
        done: Result<Result<(), PublishError>, Elapsed>,
    ) -> Result<(), PublishError> {
        match done.unwrap_or_else(|_| Err(flight.at_deadline())) {
            Ok(()) => {
                let metrics = &self.inner.shared.metrics;
                metrics.published(flight.parcel.target, Published::Confirmed);
                metrics.confirm_duration.observe(flight.began.elapsed().as_secs_f64());
                Ok(())
            }
            Err(error) => Err(self.count(flight, error)),
        }
    }

    fn count(&self, flight: &Flight, error: PublishError) -> PublishError {
        self.inner.shared.metrics.published(flight.parcel.target, error.label());
        error
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

/// Doubles with each try, with jitter, so that many publishers do not come back together.
pub(crate) fn refused_wait(tries: u32) -> Duration {
    let wait =
        REFUSED_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(8)).min(REFUSED_WAIT_MAX);
    wait.mul_f64(0.5 + 0.5 * rand::rng().random::<f64>())
}
