//! Taking messages: one entry point, [`Consumer::run`].
//!
//! The consumer alone decodes, bounds, spawns, catches, settles, retries, parks, counts and drains; a handler only says how
//! it went. Prefetch is the concurrency of a lane and there is no second limit. Delivery is at least once, in no order:
//! between the confirm of a retry and the ack of its predecessor a crash doubles the message.

mod acks;
mod book;
mod failure;
mod gate;
mod inbound;
mod lane;
mod settle;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runfleet_domain::Lane;
use runfleet_domain::limits::BODY_BYTES_MAX;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use failure::{Classify, Failure, HandlerResult, Trouble, Verdict};
pub use gate::Gate;
pub use inbound::{DecodeError, Inbound, Inbox};

use crate::publisher::Publisher;
use crate::session::Shared;

/// How long giving messages back and closing channels may take at the end, beside the grace.
const GIVE_BACK_BOUND: Duration = Duration::from_secs(5);

/// One queue with its share of the process.
#[derive(Debug, Clone)]
pub struct LaneConfig {
    /// The queue.
    pub queue: String,
    /// The lane of messages that do not say theirs.
    pub lane: Lane,
    /// Messages held at a time, which is how many handlers run. At least 1.
    pub prefetch: u16,
    /// Closes the lane for a while. Keep a clone to use it.
    pub gate: Gate,
}

impl LaneConfig {
    /// A lane with an open gate.
    pub fn new(queue: impl Into<String>, lane: Lane, prefetch: u16) -> Self {
        Self { queue: queue.into(), lane, prefetch, gate: Gate::default() }
    }
}

/// What a consumer takes, and the bounds of handling it.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// The queues. Each has a channel of its own, so that none starves another.
    pub lanes: Vec<LaneConfig>,
    /// Bound of one handler. Far below the broker's acknowledgement timeout of half an hour.
    pub handler_timeout: Duration,
    /// Largest body that is decoded, in bytes; larger ones are parked.
    pub body_bytes_max: usize,
}

impl ConsumerConfig {
    /// These lanes with a handler timeout of one minute and the fleet's body limit.
    pub fn new(lanes: Vec<LaneConfig>) -> Self {
        Self { lanes, handler_timeout: Duration::from_mins(1), body_bytes_max: BODY_BYTES_MAX }
    }
}

/// A configuration that can never work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsumerError {
    /// Nothing to consume.
    #[error("a consumer needs at least one lane")]
    NoLanes,
    /// A lane that never takes anything.
    #[error("the prefetch of queue `{0}` is zero, which would be no limit at all")]
    NoPrefetch(String),
    /// A name that AMQP cannot carry.
    #[error("the name of a queue has more than 255 bytes")]
    QueueName,
}

/// What became of the messages that a consumer held when it was asked to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Handlers that ended within the grace.
    pub finished: u64,
    /// Messages given back: those not begun, and those whose handler outlived the grace.
    pub requeued: u64,
}

/// Takes messages from its lanes. Made by [`crate::Broker::consumer`].
pub struct Consumer {
    shared: Arc<Shared>,
    publisher: Publisher,
    config: ConsumerConfig,
}

/// What the lanes of one consumer share.
pub(crate) struct Common<H> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) publisher: Publisher,
    pub(crate) handler: H,
    pub(crate) handler_timeout: Duration,
    pub(crate) body_bytes_max: usize,
    /// The handlers.
    pub(crate) tracker: TaskTracker,
    /// The lanes that may still begin a handler.
    pub(crate) taking: TaskTracker,
    /// Stop taking.
    pub(crate) shutdown: CancellationToken,
    /// Stop handling.
    pub(crate) interrupt: CancellationToken,
    /// The lanes have given back what was not begun; channels stay open for the acks of what runs.
    pub(crate) over: CancellationToken,
    pub(crate) finished: AtomicU64,
    pub(crate) requeued: AtomicU64,
}

impl Consumer {
    pub(crate) fn new(shared: Arc<Shared>, publisher: Publisher, config: ConsumerConfig) -> Self {
        Self { shared, publisher, config }
    }

    /// Runs `handler` on each message until `shutdown`, then drains: what was not begun goes back at once, what runs has
    /// `grace` to end, and what is left then is dropped at its next await and goes back.
    ///
    /// Waits out losses of the broker by itself, and returns at most some ten seconds after the grace. Must be called within a tokio runtime, on which the handlers run.
    pub async fn run<I, F, Fut>(
        self,
        handler: F,
        shutdown: CancellationToken,
        grace: Duration,
    ) -> Result<Drained, ConsumerError>
    where
        I: Inbox,
        F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.check()?;
        let common = Arc::new(Common {
            shared: self.shared,
            publisher: self.publisher,
            handler,
            handler_timeout: self.config.handler_timeout,
            body_bytes_max: self.config.body_bytes_max,
            tracker: TaskTracker::new(),
            taking: TaskTracker::new(),
            shutdown,
            interrupt: CancellationToken::new(),
            over: CancellationToken::new(),
            finished: AtomicU64::new(0),
            requeued: AtomicU64::new(0),
        });
        let lanes = TaskTracker::new();
        for config in self.config.lanes {
            lanes.spawn(lane::run(lane::Lane::new(Arc::clone(&common), config)));
        }
        lanes.close();
        common.shutdown.cancelled().await;
        drain(&common, &lanes, grace).await;
        Ok(Drained {
            finished: common.finished.load(Ordering::Relaxed),
            requeued: common.requeued.load(Ordering::Relaxed),
        })
    }

    fn check(&self) -> Result<(), ConsumerError> {
        if self.config.lanes.is_empty() {
            return Err(ConsumerError::NoLanes);
        }
        for lane in &self.config.lanes {
            if lane.queue.len() > 255 {
                return Err(ConsumerError::QueueName);
            }
            if lane.prefetch == 0 {
                return Err(ConsumerError::NoPrefetch(lane.queue.clone()));
            }
        }
        Ok(())
    }
}

/// Lanes stop taking by themselves; this bounds what runs.
async fn drain<H>(common: &Common<H>, lanes: &TaskTracker, grace: Duration) {
    let deadline = Instant::now() + grace;
    common.taking.close();
    let _ = timeout(GIVE_BACK_BOUND, common.taking.wait()).await;
    common.tracker.close();
    if timeout_at(deadline, common.tracker.wait()).await.is_err() {
        tracing::warn!(
            running = common.tracker.len(),
            "the grace is over, giving back what still runs"
        );
        common.interrupt.cancel();
        // Dropping a handler and giving its message back takes no time, unless a handler blocks its thread.
        let _ = timeout(GIVE_BACK_BOUND, common.tracker.wait()).await;
    }
    common.over.cancel();
    let _ = timeout(GIVE_BACK_BOUND, lanes.wait()).await;
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("config", &self.config).finish_non_exhaustive()
    }
}
