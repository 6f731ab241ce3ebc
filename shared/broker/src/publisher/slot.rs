//! Confirm channels that publishes are spread over.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use lapin::options::BasicPublishOptions;
use lapin::{Channel, PublisherConfirm};

use super::flight::Parcel;
use crate::session::Session;

/// Failures in a row after which a channel is replaced. After the leader of a queue was lost, RabbitMQ 3.10 can leave a
/// channel in a state in which it refuses everything for ever.
const FAILURES_MAX: u32 = 5;

/// A channel is not replaced more often than this: a queue that is really full refuses on every channel.
const REPLACE_EVERY: Duration = Duration::from_secs(1);

/// Resolves when the frames are written to the socket.
pub(crate) type Publishing = Pin<Box<dyn Future<Output = lapin::Result<PublisherConfirm>> + Send>>;

/// One confirm channel. It closes when the last publish on it has ended.
pub(crate) struct Slot {
    channel: Channel,
    // The library numbers a publish and queues its frames in two steps. Two threads on one channel could swap them, and
    // each would then get the confirm of the other.
    order: Mutex<()>,
    failures: AtomicU32,
    opened: Instant,
    // Set once: by whoever opens its successor.
    replaced: AtomicBool,
}

impl Slot {
    pub(crate) fn new(channel: Channel) -> Arc<Self> {
        Arc::new(Self {
            channel,
            order: Mutex::new(()),
            failures: AtomicU32::new(0),
            opened: Instant::now(),
            replaced: AtomicBool::new(false),
        })
    }

    /// A publish that owns all it needs, so that it can outlive whoever started it.
    pub(crate) fn publishing(&self, parcel: &Parcel) -> Publishing {
        let channel = self.channel.clone();
        let Parcel { exchange, key, properties, body, .. } = parcel.clone();
        Box::pin(async move {
            channel
                .basic_publish(exchange, key, BasicPublishOptions::default(), &body, properties)
                .await
        })
    }

    /// The first poll numbers the publish and queues its frames.
    pub(crate) fn begin(
        &self,
        publishing: &mut Publishing,
        context: &mut Context<'_>,
    ) -> Poll<lapin::Result<PublisherConfirm>> {
        let _turn = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        publishing.as_mut().poll(context)
    }

    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    fn is_worn_out(&self) -> bool {
        !self.channel.status().connected() || self.failures.load(Ordering::Relaxed) >= FAILURES_MAX
    }
}

/// The channels of a session, taken in turn.
pub(crate) struct Slots {
    slots: Box<[RwLock<Arc<Slot>>]>,
    next: AtomicUsize,
}

impl Slots {
    pub(crate) fn new(slots: Vec<Arc<Slot>>) -> Self {
        Self { slots: slots.into_iter().map(RwLock::new).collect(), next: AtomicUsize::new(0) }
    }

    pub(crate) fn next(&self) -> (usize, Arc<Slot>) {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        (index, Arc::clone(&self.slots[index].read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Counts a failure on a channel and replaces it in the background when it was one too many.
pub(crate) fn failed(session: &Arc<Session>, index: usize, slot: &Arc<Slot>) {
    slot.failures.fetch_add(1, Ordering::Relaxed);
    if !slot.is_worn_out() || slot.opened.elapsed() < REPLACE_EVERY || session.has_failed() {
        return;
    }
    if slot.replaced.swap(true, Ordering::Relaxed) {
        return;
    }
    let session = Arc::clone(session);
    session.handle().clone().spawn(async move {
        match session.publish.confirm_channel().await {
            Ok(channel) => {
                let mut held =
                    session.slots.slots[index].write().unwrap_or_else(PoisonError::into_inner);
                *held = Slot::new(channel);
            }
            Err(error) => session.fail(format_args!("opening a channel: {error}")),
        }
    });
}
