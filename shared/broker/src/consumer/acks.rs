//! Acknowledges in groups what the handlers of one channel have settled. What may be acknowledged, [`Book`] decides.
//!
//! Groups are sent one after the other: one must not overtake a tag of an earlier one.
//! If the process dies first, the messages come again, as after an ack that was lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::book::{Book, Due};
use crate::session::{LinkError, Session};

/// Shortest time between two groups, unless a quarter of the window is due. The first one after a pause goes at once.
const EVERY: Duration = Duration::from_millis(10);

/// The acknowledgements of one subscription. It ends with its channel: tags of another one mean other messages.
pub(super) struct Acks {
    channel: Channel,
    book: Mutex<Book>,
    /// Held from the making of a group until it is written.
    turn: tokio::sync::Mutex<()>,
    /// Something waits.
    waiting: Notify,
    /// So much waits that the broker would soon deliver nothing.
    urgent: Notify,
}

impl Acks {
    pub(super) fn new(channel: Channel, prefetch: u16) -> Arc<Self> {
        Arc::new(Self {
            channel,
            book: Mutex::new(Book::new(prefetch)),
            turn: tokio::sync::Mutex::default(),
            waiting: Notify::new(),
            urgent: Notify::new(),
        })
    }

    /// In the order of the deliveries, before anybody can settle them.
    pub(super) fn begin(&self, tag: u64) {
        self.book().begin(tag);
    }

    /// The message is done with; its ack follows soon.
    pub(super) fn settle(&self, tag: u64) {
        let (is_first, is_urgent) = {
            let mut book = self.book();
            (!book.has_settled(), book.settle(tag))
        };
        if is_urgent {
            self.urgent.notify_one();
        }
        if is_first {
            self.waiting.notify_one();
        }
    }

    /// Gives a message back. Until that is written no group reaches it; if it fails, none ever does.
    pub(super) async fn give_back(&self, tag: u64, session: &Session) {
        let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        match session.consume.bounded(self.channel.basic_nack(tag, options)).await {
            Ok(()) => self.book().forget(tag),
            Err(error) => tracing::debug!(%error, "could not give a message back"),
        }
    }

    /// Acknowledges until `over`, and then what is left; or until the session ends.
    pub(super) async fn run(self: Arc<Self>, session: Arc<Session>, over: CancellationToken) {
        let grouping = async {
            let mut next = Instant::now();
            while !over.is_cancelled() {
                tokio::select! {
                    biased;
                    () = over.cancelled() => {}
                    () = self.due(next) => self.send(&session, false).await,
                }
                next = Instant::now() + EVERY;
            }
            self.send(&session, true).await;
        };
        tokio::select! {
            () = grouping => {}
            () = session.failed() => {}
        }
    }

    /// Acknowledges now all that may be acknowledged.
    pub(super) async fn flush(&self, session: &Session) {
        self.send(session, true).await;
    }

    /// Resolves when something waits, and it is time or urgent.
    async fn due(&self, next: Instant) {
        while !self.book().has_settled() {
            self.waiting.notified().await;
        }
        tokio::select! {
            biased;
            () = self.urgent.notified() => {}
            () = sleep_until(next) => {}
        }
    }

    async fn send(&self, session: &Session, all: bool) {
        let _turn = self.turn.lock().await;
        let due = self.book().take(std::time::Instant::now(), all);
        let count = due.count;
        if count == 0 {
            return;
        }
        match session.consume.bounded(self.write(due)).await {
            Ok(()) => {}
            // The frames are queued all the same.
            Err(LinkError::TimedOut) => tracing::debug!("acks are written slowly"),
            // Never acknowledged on a channel that stays, they would fill the window for ever.
            Err(error) => session.fail(format_args!("acknowledging: {error}")),
        }
        for _ in 0..count {
            runfleet_faults::point("consumer.after_ack");
        }
    }

    async fn write(&self, due: Due) -> lapin::Result<()> {
        let through = due.through.map(|tag| (tag, BasicAckOptions { multiple: true }));
        let each = due.each.into_iter().map(|tag| (tag, BasicAckOptions::default()));
        // Polled in this order, so queued in this order.
        let writing = through.into_iter().chain(each);
        let written =
            join_all(writing.map(|(tag, options)| self.channel.basic_ack(tag, options))).await;
        written.into_iter().collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
