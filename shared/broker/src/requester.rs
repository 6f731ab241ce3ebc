//! Asking and waiting for the answer, over the broker's direct reply-to: no reply queue exists, and an answer that nobody
//! waits for any more is dropped.
//!
//! A request that was under way when its connection was lost is sent again with the same message id while its time lasts,
//! so whoever answers must do a message id once. The answers of both are the same, and the first one counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::BasicConsumeOptions;
use lapin::types::FieldTable;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::metrics::Published;
use crate::outgoing::Outgoing;
use crate::publisher::flight::{Flight, Sent};
use crate::publisher::slot::Slot;
use crate::publisher::{PublishError, Publisher, REFUSED_WAIT, refused_wait};
use crate::route::Route;
use crate::session::{LinkError, Session, Shared};

/// The broker's name for "back to the channel that asked".
const DIRECT_REPLY: &str = "amq.rabbitmq.reply-to";

/// Pause before another channel is opened on a session that still stands.
const REOPEN_WAIT: Duration = Duration::from_millis(500);

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It was sent, and no answer came in time. It may have been done.
    #[error("no answer in time")]
    TimedOut,
    /// It was not sent: no session before the deadline, or too much in flight. It was not done.
    #[error("not connected to the broker, or too many messages are in flight")]
    NotConnected,
    /// The broker refused it until the deadline: the queue is full. It was not done.
    #[error("the broker refused the request: the queue is full")]
    Refused,
    /// The body or a property is larger than what may be published.
    #[error("the request is too large")]
    TooLarge,
}

/// Asks. Clones share one subscription.
#[derive(Clone)]
pub struct Requester {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    publisher: Publisher,
    lines: watch::Receiver<Option<Line>>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
    _stop: DropGuard,
}

/// The channel that asks and is answered.
#[derive(Clone)]
struct Line {
    session: Arc<Session>,
    slot: Arc<Slot>,
    lost: CancellationToken,
}

/// Who waits for which answer.
#[derive(Default)]
struct Waiting(Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>);

impl Waiting {
    fn insert(&self, id: u64) -> oneshot::Receiver<Vec<u8>> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        receiver
    }

    fn take(&self, id: u64) -> Option<oneshot::Sender<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }
}

/// Forgets a request however it ends.
struct Forget<'a>(&'a Waiting, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.take(self.1);
    }
}

impl Requester {
    pub(crate) fn new(shared: &Arc<Shared>, publisher: Publisher, handle: &Handle) -> Self {
        let (line, lines) = watch::channel(None);
        let waiting = Arc::new(Waiting::default());
        let stop = CancellationToken::new();
        handle.spawn(listen(Arc::clone(shared), Arc::clone(&waiting), line, stop.clone()));
        let inner = Inner {
            shared: Arc::clone(shared),
            publisher,
            lines,
            waiting,
            next: AtomicU64::new(1),
            _stop: stop.drop_guard(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request and returns the body of its answer, or says after `bound` at the latest why there is none.
    ///
    /// `reply_to` and `correlation_id` of the message are set here.
    pub async fn request(
        &self,
        route: &Route,
        mut outgoing: Outgoing,
        bound: Duration,
    ) -> Result<Vec<u8>, RequestError> {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        outgoing.reply_to = Some(DIRECT_REPLY.to_owned());
        outgoing.correlation_id = Some(format!("{id:x}"));
        let parcel =
            self.inner.publisher.parcel(route, outgoing).map_err(|_| RequestError::TooLarge)?;
        let mut answer = self.inner.waiting.insert(id);
        let _forget = Forget(&self.inner.waiting, id);
        let mut flight = Flight::new(parcel, bound);
        let deadline = flight.deadline;
        let asked = timeout_at(deadline, self.ask(&mut flight, &mut answer)).await;
        let (answer, label) = match asked.unwrap_or_else(|_| Err(flight.at_deadline())) {
            Ok(body) => (Ok(body), Published::Confirmed),
            Err(error) => (Err(error.into()), error.label()),
        };
        self.inner.shared.metrics.published(route.target(), label);
        answer
    }

    async fn ask(
        &self,
        flight: &mut Flight,
        answer: &mut oneshot::Receiver<Vec<u8>>,
    ) -> Result<Vec<u8>, PublishError> {
        let permits = self.inner.publisher.admit(flight.parcel.body.len()).await?;
        loop {
            let line = self.line().await;
            line.session.unblocked().await;
            let mut sent = Sent::on(
                Arc::clone(&line.slot),
                &flight.parcel,
                Arc::clone(&permits),
                line.session,
            );
            flight.written();
            let sending = async {
                match sent.write().await {
                    Ok(()) => sent.confirmed().await,
                    Err(error) => {
                        if !sent.was_queued() {
                            flight.not_written();
                        }
                        Err(error)
                    }
                }
            };
            // An answer may overtake the confirm.
            let confirmed = tokio::select! {
                biased;
                Ok(body) = &mut *answer => return Ok(body),
                confirmed = sending => confirmed,
            };
            match confirmed {
                Ok(true) => tokio::select! {
                    biased;
                    Ok(body) = &mut *answer => return Ok(body),
                    () = line.lost.cancelled() => {}
                },
                Ok(false) => {
                    flight.nacked();
                    sleep(refused_wait(flight.tries)).await;
                }
                Err(_) => sleep(REFUSED_WAIT).await,
            }
        }
    }

    async fn line(&self) -> Line {
        let mut lines = self.inner.lines.clone();
        loop {
            let found =
                lines.wait_for(|line| line.as_ref().is_some_and(|line| !line.lost.is_cancelled()));
            match found.await.map(|line| line.clone()) {
                Ok(Some(line)) => return line,
                Ok(None) => {}
                // The broker is gone; the caller's deadline ends this.
                Err(_) => std::future::pending().await,
            }
        }
    }
}

impl From<PublishError> for RequestError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::NotConfirmed => Self::TimedOut,
            PublishError::Refused => Self::Refused,
            PublishError::NotConnected | PublishError::NoSuchQueue => Self::NotConnected,
            PublishError::TooLarge => Self::TooLarge,
        }
    }
}

impl std::fmt::Debug for Requester {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requester").finish_non_exhaustive()
    }
}

/// Keeps a line open until the last requester is dropped.
async fn listen(
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    lines: watch::Sender<Option<Line>>,
    stop: CancellationToken,
) {
    let mut sessions = shared.sessions();
    let listening = async {
        loop {
            let found = sessions
                .wait_for(|session| session.as_ref().is_some_and(|session| !session.has_failed()));
            let Ok(Some(session)) = found.await.map(|session| session.clone()) else { return };
            if let Err(error) = converse(&session, &waiting, &lines).await {
                tracing::warn!(%error, "the channel for answers was lost");
            }
            lines.send_replace(None);
            sleep(REOPEN_WAIT).await;
        }
    };
    stop.run_until_cancelled(listening).await;
}

async fn converse(
    session: &Arc<Session>,
    waiting: &Waiting,
    lines: &watch::Sender<Option<Line>>,
) -> Result<(), LinkError> {
    let channel = session.publish.confirm_channel().await?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let consuming =
        channel.basic_consume(DIRECT_REPLY.into(), "".into(), options, FieldTable::default());
    let mut answers = session.publish.bounded(consuming).await?;
    let lost = CancellationToken::new();
    let _lost = lost.clone().drop_guard();
    lines.send_replace(Some(Line { session: Arc::clone(session), slot: Slot::new(channel), lost }));
    loop {
        tokio::select! {
            answer = answers.next() => match answer {
                Some(Ok(answer)) => dispatch(waiting, answer),
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            () = session.failed() => return Ok(()),
        }
    }
}

/// An answer without anybody who waits for it is too late, or the second one of a request that was sent twice.
fn dispatch(waiting: &Waiting, answer: Delivery) {
    let id = answer.properties.correlation_id().as_ref();
    let id = id.and_then(|id| u64::from_str_radix(id.as_str(), 16).ok());
    if let Some(waiting) = id.and_then(|id| waiting.take(id)) {
        let _ = waiting.send(answer.data);
    } else {
        tracing::debug!("an answer that nobody waits for");
    }
}
