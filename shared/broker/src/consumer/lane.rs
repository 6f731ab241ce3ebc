//! One lane: subscribes, hands deliveries to handlers, subscribes again when the session was lost, gives back at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicNackOptions};
use lapin::types::FieldTable;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, interval, sleep, timeout};

use super::acks::Acks;
use super::gate::Doors;
use super::inbound::Inbox;
use super::work::{Job, handle};
use super::{Common, GIVE_BACK_BOUND, HandlerResult, Inbound, LaneConfig};
use crate::metrics::{LaneMetrics, Settled};
use crate::names;
use crate::outgoing::now_ms;
use crate::session::Session;

/// Pause after a session that could not be used, beside the pauses of connecting.
const RESUBSCRIBE_WAIT: Duration = Duration::from_millis(500);

/// A queue that is not empty while nothing comes is looked at a second time, after a part of the silence.
const SECOND_LOOK: u32 = 4;

/// One lane of one consumer.
pub(crate) struct Lane<H> {
    pub(crate) common: Arc<Common<H>>,
    pub(crate) config: LaneConfig,
    pub(crate) queue: Arc<str>,
    pub(crate) metrics: LaneMetrics,
    /// One permit for each handler, over all sessions: handlers of a lost one still run while the next one delivers.
    slots: Arc<Semaphore>,
    received: AtomicU64,
    running: AtomicU16,
}

impl<H> Lane<H> {
    pub(crate) fn new(common: Arc<Common<H>>, config: LaneConfig) -> Arc<Self> {
        let metrics = common.shared.metrics.lane(&config.queue);
        let slots = Arc::new(Semaphore::new(usize::from(config.prefetch)));
        let queue = Arc::from(config.queue.as_str());
        Arc::new(Self {
            common,
            config,
            queue,
            metrics,
            slots,
            received: AtomicU64::new(0),
            running: AtomicU16::new(0),
        })
    }

    /// The routing key under which messages of this lane come back or are parked.
    pub(crate) fn park_key(&self) -> &str {
        names::park_key(&self.queue)
    }
}

/// Runs until the shutdown, over as many sessions as it takes.
pub(super) async fn run<I, F, Fut>(lane: Arc<Lane<F>>)
where
    I: Inbox,
    F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let taking = lane.common.taking.token();
    let mut sessions = lane.common.shared.sessions();
    loop {
        let session = tokio::select! {
            () = lane.common.shutdown.cancelled() => return,
            found = sessions.wait_for(|session| session.as_ref().is_some_and(|session| !session.has_failed())) => {
                match found.map(|session| session.clone()) {
                    Ok(Some(session)) => session,
                    Ok(None) => continue,
                    Err(_) => return,
                }
            }
        };
        match subscribe(&lane, &session).await {
            Ok(subscription) => {
                let acks = Arc::clone(&subscription.acks);
                let over = lane.common.over.clone();
                let acking = tokio::spawn(acks.run(Arc::clone(&session), over));
                let Some(subscription) = serve(&lane, &session, subscription).await else {
                    continue;
                };
                let channel = give_back(&lane, &session, subscription).await;
                drop(taking);
                // The channel carries the acks of what still runs.
                lane.common.over.cancelled().await;
                let _ = timeout(GIVE_BACK_BOUND, acking).await;
                let _ = timeout(GIVE_BACK_BOUND, channel.close(200, "OK".into())).await;
                return;
            }
            Err(error) => {
                session.fail(format_args!("subscribing to `{}`: {error}", lane.queue));
                sleep(RESUBSCRIBE_WAIT).await;
            }
        }
    }
}

struct Subscription {
    channel: Channel,
    deliveries: lapin::Consumer,
    acks: Arc<Acks>,
}

async fn subscribe<H>(
    lane: &Lane<H>,
    session: &Session,
) -> Result<Subscription, crate::session::LinkError> {
    let channel = session.consume.consume_channel(lane.config.prefetch).await?;
    let options = BasicConsumeOptions::default();
    let queue = lane.config.queue.as_str().into();
    let consuming = channel.basic_consume(queue, "".into(), options, FieldTable::default());
    let deliveries = session.consume.bounded(consuming).await?;
    tracing::debug!(queue = &*lane.queue, "subscribed");
    let acks = Acks::new(channel.clone(), lane.config.prefetch);
    Ok(Subscription { channel, deliveries, acks })
}

/// Hands deliveries to handlers. Returns the subscription at the shutdown, and nothing when the session was lost.
async fn serve<I, F, Fut>(
    lane: &Arc<Lane<F>>,
    session: &Arc<Session>,
    mut subscription: Subscription,
) -> Option<Subscription>
where
    I: Inbox,
    F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let silence = lane.common.shared.config.silence_after;
    let mut look = interval((silence / SECOND_LOOK).max(Duration::from_millis(10)));
    let mut heard = Instant::now();
    let mut doors = Doors::new(&lane.config.gate, session.blocked.subscribe());
    loop {
        tokio::select! {
            biased;
            () = lane.common.shutdown.cancelled() => return Some(subscription),
            () = session.failed() => return None,
            taken = take(lane, &mut doors, &mut subscription.deliveries) => match taken {
                Some(Ok((delivery, permit))) => {
                    heard = Instant::now();
                    begin(lane, session, &subscription.acks, delivery, permit);
                }
                Some(Err(error)) => {
                    session.fail(format_args!("consuming `{}`: {error}", lane.queue));
                    return None;
                }
                None => {
                    session.fail(format_args!("the broker cancelled the subscription to `{}`", lane.queue));
                    return None;
                }
            },
            _ = look.tick() => {
                if heard.elapsed() >= silence {
                    heard = Instant::now();
                    let (lane, session) = (Arc::clone(lane), Arc::clone(session));
                    tokio::spawn(async move { suspect(&lane, &session).await });
                }
            }
        }
    }
}

/// The next delivery with a place for its handler; waits while the doors are closed.
///
/// Nothing is lost when this is dropped: a delivery is taken last.
async fn take<H>(
    lane: &Lane<H>,
    doors: &mut Doors,
    deliveries: &mut lapin::Consumer,
) -> Option<lapin::Result<(Delivery, OwnedSemaphorePermit)>> {
    loop {
        doors.opened().await;
        let permit = Arc::clone(&lane.slots).acquire_owned().await.ok()?;
        tokio::select! {
            biased;
            () = doors.closed() => {}
            next = deliveries.next() => return next.map(|next| next.map(|delivery| (delivery, permit))),
        }
    }
}

fn begin<I, F, Fut>(
    lane: &Arc<Lane<F>>,
    session: &Arc<Session>,
    acks: &Arc<Acks>,
    delivery: Delivery,
    permit: OwnedSemaphorePermit,
) where
    I: Inbox,
    F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    lane.received.fetch_add(1, Ordering::Relaxed);
    lane.running.fetch_add(1, Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit into 52 bits")]
    lane.metrics.last_receive.set(now_ms() as f64 / 1_000.0);
    acks.begin(delivery.delivery_tag);
    let job = Job {
        lane: Arc::clone(lane),
        session: Arc::clone(session),
        acks: Arc::clone(acks),
        delivery,
    };
    let lane = Arc::clone(lane);
    lane.common.tracker.clone().spawn(async move {
        handle::<I, F, Fut>(job).await;
        lane.running.fetch_sub(1, Ordering::Relaxed);
        drop(permit);
    });
}

/// Nothing came for a long time. If the queue is not empty and nothing came meanwhile either, the subscription is dead.
async fn suspect<H>(lane: &Lane<H>, session: &Session) {
    let doors = Doors::new(&lane.config.gate, session.blocked.subscribe());
    let before = lane.received.load(Ordering::Relaxed);
    for _ in 0..2 {
        let idle = doors.are_open() && lane.running.load(Ordering::Relaxed) < lane.config.prefetch;
        let waiting = session.depth(&lane.queue).await;
        if !idle
            || matches!(waiting, Ok(Some(0)))
            || lane.received.load(Ordering::Relaxed) != before
        {
            return;
        }
        sleep(lane.common.shared.config.silence_after / SECOND_LOOK).await;
    }
    if lane.received.load(Ordering::Relaxed) == before {
        session.fail(format_args!("nothing came from `{}`, which is not empty", lane.queue));
    }
}

/// Stops taking and gives back what was not begun.
async fn give_back<H>(lane: &Lane<H>, session: &Session, subscription: Subscription) -> Channel {
    let Subscription { channel, mut deliveries, acks } = subscription;
    let tag = deliveries.tag();
    if let Err(error) =
        session.consume.bounded(channel.basic_cancel(tag, BasicCancelOptions::default())).await
    {
        tracing::debug!(%error, "could not cancel a subscription");
    }
    // Before what goes back: while more than 32 commands of a channel to a quorum queue are under way, RabbitMQ 3.10 keeps further ones
    // for later, and forgets them when the channel closes.
    acks.flush(session).await;
    let giving = async {
        while let Some(Ok(delivery)) = deliveries.next().await {
            let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
            if matches!(delivery.nack(options).await, Ok(true)) {
                lane.common.requeued.fetch_add(1, Ordering::Relaxed);
                lane.metrics.settled(Settled::Requeued);
            }
        }
    };
    let _ = timeout(GIVE_BACK_BOUND, giving).await;
    channel
}
