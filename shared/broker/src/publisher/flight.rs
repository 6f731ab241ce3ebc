//! One publish on its way: what it holds while it waits, and what is known about it when its time is up.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lapin::types::ShortString;
use lapin::{BasicProperties, Confirmation, PublisherConfirm};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::PublishError;
use super::slot::{self, Publishing, Slot};
use crate::route::Target;
use crate::session::Session;

/// How long a publish whose caller has gone is still waited for.
const ABANDONED_BOUND: Duration = Duration::from_mins(1);

/// A message in the words of the client library.
#[derive(Clone)]
pub(crate) struct Parcel {
    pub(crate) exchange: ShortString,
    pub(crate) key: ShortString,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) target: Target,
}

/// A parcel with its deadline.
pub(crate) struct Flight {
    pub(crate) parcel: Parcel,
    pub(crate) began: Instant,
    pub(crate) deadline: Instant,
    /// Frames that were written and of which nobody knows what became.
    unknown: u32,
    refused: bool,
    pub(crate) tries: u32,
}

impl Flight {
    pub(crate) fn new(parcel: Parcel, bound: Duration) -> Self {
        let began = Instant::now();
        Self { parcel, began, deadline: began + bound, unknown: 0, refused: false, tries: 0 }
    }

    pub(crate) fn written(&mut self) {
        self.tries += 1;
        self.unknown += 1;
    }

    /// The last try did not even reach the queue of frames.
    pub(crate) fn not_written(&mut self) {
        self.unknown = self.unknown.saturating_sub(1);
    }

    /// The broker said no to the last try, so that one is not unknown.
    pub(crate) fn nacked(&mut self) {
        self.unknown = self.unknown.saturating_sub(1);
        self.refused = true;
    }

    /// What to say when the deadline has come.
    pub(crate) fn at_deadline(&self) -> PublishError {
        match (self.unknown, self.refused) {
            (1.., _) => PublishError::NotConfirmed,
            (0, true) => PublishError::Refused,
            (0, false) => PublishError::NotConnected,
        }
    }
}

/// The share of the bounds of what is in flight.
pub(crate) struct Permits {
    pub(crate) _count: OwnedSemaphorePermit,
    pub(crate) _bytes: OwnedSemaphorePermit,
}

enum Stage {
    /// Nothing happened yet: dropping it has no effect.
    New(Publishing),
    /// The frames are on their way to the socket.
    Writing(Publishing),
    /// The frames are written, the broker has not answered.
    Written(PublisherConfirm),
    Answered,
}

/// One try of a publish. Dropping it early takes nothing back: the permits stay taken until the broker has answered, so
/// that what the client library holds has a bound, also while nobody waits for it any more.
pub(crate) struct Sent {
    stage: Stage,
    permits: Option<Arc<Permits>>,
    session: Arc<Session>,
    slot: Arc<Slot>,
    /// Its place among the channels of the session, if it is one of them.
    index: Option<usize>,
    queued: bool,
}

impl Sent {
    /// On the next channel of the session.
    pub(crate) fn new(parcel: &Parcel, permits: Arc<Permits>, session: Arc<Session>) -> Self {
        let (index, slot) = session.slots.next();
        let mut sent = Self::on(slot, parcel, permits, session);
        sent.index = Some(index);
        sent
    }

    /// On a channel of the caller.
    pub(crate) fn on(
        slot: Arc<Slot>,
        parcel: &Parcel,
        permits: Arc<Permits>,
        session: Arc<Session>,
    ) -> Self {
        let stage = Stage::New(slot.publishing(parcel));
        Self { stage, permits: Some(permits), session, slot, index: None, queued: false }
    }

    /// False when writing failed before the frames were queued, so that nothing can have reached the broker.
    pub(crate) fn was_queued(&self) -> bool {
        self.queued
    }

    /// Waits until the frames are written.
    pub(crate) async fn write(&mut self) -> lapin::Result<()> {
        poll_fn(|context| self.poll_write(context)).await
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<lapin::Result<()>> {
        let polled = match std::mem::replace(&mut self.stage, Stage::Answered) {
            Stage::New(mut publishing) => {
                let polled = self.slot.begin(&mut publishing, context);
                // An error at once means that nothing was queued.
                self.queued = !matches!(polled, Poll::Ready(Err(_)));
                self.stage = Stage::Writing(publishing);
                polled
            }
            Stage::Writing(mut publishing) => {
                let polled = publishing.as_mut().poll(context);
                self.stage = Stage::Writing(publishing);
                polled
            }
            stage => {
                self.stage = stage;
                return Poll::Ready(Ok(()));
            }
        };
        match ready!(polled) {
            Ok(confirm) => {
                self.stage = Stage::Written(confirm);
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                self.answered(false);
                Poll::Ready(Err(error))
            }
        }
    }

    /// Waits for the broker's answer. True if it has the message.
    pub(crate) async fn confirmed(mut self) -> lapin::Result<bool> {
        let Stage::Written(confirm) = &mut self.stage else { return Ok(false) };
        let answer = confirm.await;
        let is_ack = matches!(answer, Ok(Confirmation::Ack(_)));
        self.answered(is_ack);
        answer.map(|_| is_ack)
    }

    fn failed(&self) {
        if let Some(index) = self.index {
            slot::failed(&self.session, index, &self.slot);
        }
    }

    fn answered(&mut self, is_ack: bool) {
        self.stage = Stage::Answered;
        self.permits = None;
        if is_ack {
            self.slot.succeeded();
        } else {
            self.failed();
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let publishing = match std::mem::replace(&mut self.stage, Stage::Answered) {
            Stage::New(_) | Stage::Answered => return,
            Stage::Writing(publishing) => publishing,
            Stage::Written(confirm) => Box::pin(async move { Ok(confirm) }),
        };
        self.failed();
        let permits = self.permits.take();
        let slot = Arc::clone(&self.slot);
        self.session.handle().spawn(async move {
            let answer = timeout(ABANDONED_BOUND, async { publishing.await?.await }).await;
            if let Ok(Ok(Confirmation::Ack(_))) = answer {
                slot.succeeded();
            }
            drop(permits);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight() -> Flight {
        let parcel = Parcel {
            exchange: "x".into(),
            key: "k".into(),
            properties: BasicProperties::default(),
            body: Arc::default(),
            target: Target::Start,
        };
        Flight::new(parcel, Duration::from_secs(1))
    }

    #[test]
    fn what_was_never_written_is_not_connected() {
        assert!(matches!(flight().at_deadline(), PublishError::NotConnected));
    }

    #[test]
    fn what_was_only_refused_is_refused() {
        let mut flight = flight();
        for _ in 0..3 {
            flight.written();
            flight.nacked();
        }
        assert!(matches!(flight.at_deadline(), PublishError::Refused));
    }

    #[test]
    fn one_try_without_an_answer_leaves_the_whole_unknown() {
        let mut flight = flight();
        flight.written();
        flight.written();
        flight.nacked();
        assert!(matches!(flight.at_deadline(), PublishError::NotConfirmed));
    }
}
