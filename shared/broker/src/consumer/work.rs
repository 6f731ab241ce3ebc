//! One message from its delivery to its settlement.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use rand::Rng;
use runfleet_contracts::header;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use super::acks::Acks;
use super::failure::Verdict;
use super::inbound::{Inbox, Origin, attempt, read, timestamp_ms};
use super::lane::Lane;
use super::settle::{Finish, Settlement, settle};
use super::{HandlerResult, Inbound};
use crate::metrics::Settled;
use crate::names;
use crate::outgoing::{now_ms, short, text};
use crate::publisher::PublishError;
use crate::publisher::flight::Parcel;
use crate::route::{Route, Target};
use crate::session::Session;

/// Bound of the publish of a retry, a parked or a moved message.
const HAND_ON_BOUND: Duration = Duration::from_secs(15);

/// Pause before a message whose settlement failed is delivered again.
const UNSETTLED_WAIT: Duration = Duration::from_secs(1);

/// Headers that the broker adds. Kept, they would make a message that circulates look like a cycle, which is dropped.
const BROKERS_OWN: [&str; 10] = [
    "x-death",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    "x-delivery-count",
    "x-acquired-count",
    "x-opt-delivery-count",
];

/// One delivery.
pub(super) struct Job<H> {
    pub(super) lane: Arc<Lane<H>>,
    pub(super) session: Arc<Session>,
    pub(super) acks: Arc<Acks>,
    pub(super) delivery: Delivery,
}

/// Handles and settles one message. Logs it once and counts it once.
pub(super) async fn handle<I, F, Fut>(job: Job<F>)
where
    I: Inbox,
    F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let attempt = attempt(&job.delivery.properties);
    let span = span(&job, attempt);
    async {
        let began = Instant::now();
        let finish = finish(&job).await;
        runfleet_faults::point("consumer.handled");
        note(&finish);
        let (settlement, mut result) = settle(finish, attempt, rand::rng().random());
        if !apply(&job, settlement, attempt).await {
            result = Settled::Unsettled;
        }
        job.lane.metrics.settled(result);
        let common = &job.lane.common;
        if common.shutdown.is_cancelled() {
            let counter = match result {
                Settled::Requeued | Settled::Unsettled => &common.requeued,
                _ => &common.finished,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(result = result.label(), duration_ms, "message settled");
    }
    .instrument(span)
    .await;
}

fn span<H>(job: &Job<H>, attempt: u32) -> tracing::Span {
    let properties = &job.delivery.properties;
    tracing::info_span!(
        "message",
        messaging.system = "rabbitmq",
        messaging.destination.name = &*job.lane.queue,
        messaging.message.id = properties.message_id().as_ref().map(ShortString::as_str),
        messaging.message.conversation_id =
            properties.correlation_id().as_ref().map(ShortString::as_str),
        attempt,
    )
}

/// Everything but what went as it should is worth a line.
fn note(finish: &Finish) {
    match finish {
        Finish::Returned(Ok(
            Verdict::Done | Verdict::Duplicate | Verdict::Snooze(_) | Verdict::Move(_),
        )) => {}
        Finish::Returned(Ok(Verdict::Drop(reason))) => tracing::info!(reason, "message dropped"),
        Finish::Returned(Ok(Verdict::Park(reason, detail))) => {
            tracing::warn!(reason, detail, "message parked");
        }
        Finish::Returned(Err(failure)) => {
            tracing::warn!(error = %failure.trouble(), "message failed");
        }
        Finish::Panicked => tracing::error!("the handler panicked"),
        Finish::TimedOut => tracing::warn!("the handler took too long"),
        Finish::Interrupted => tracing::warn!("the handler was interrupted"),
        Finish::Unreadable(reason, detail) => {
            tracing::warn!(reason, detail, "message could not be read");
        }
        Finish::Newer => tracing::warn!("message of a newer version"),
    }
}

async fn finish<I, F, Fut>(job: &Job<F>) -> Finish
where
    I: Inbox,
    F: Fn(Inbound<I>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let lane = &job.lane;
    let common = &lane.common;
    let origin = Origin {
        queue: &lane.queue,
        lane: lane.config.lane,
        body_bytes_max: common.body_bytes_max,
    };
    // Decoding is foreign code too.
    let inbound =
        match std::panic::catch_unwind(AssertUnwindSafe(|| read::<I>(&job.delivery, &origin))) {
            Ok(Ok(inbound)) => inbound,
            Ok(Err(finish)) => return finish,
            Err(_) => return Finish::Panicked,
        };
    let first_ms = timestamp_ms(&job.delivery.properties);
    if first_ms > 0 {
        lane.metrics
            .age
            .observe(Duration::from_millis(now_ms().saturating_sub(first_ms)).as_secs_f64());
    }
    lane.metrics.in_flight.inc();
    let began = Instant::now();
    // In a box, because it is large, and the task around it is moved several times.
    let handling = Box::pin(async { (common.handler)(inbound).await });
    let handling = AssertUnwindSafe(handling).catch_unwind();
    let bounded = timeout(common.handler_timeout, handling);
    let finish = match common.interrupt.run_until_cancelled(bounded).await {
        None => Finish::Interrupted,
        Some(Err(_)) => Finish::TimedOut,
        Some(Ok(Err(_))) => Finish::Panicked,
        Some(Ok(Ok(returned))) => Finish::Returned(returned),
    };
    lane.metrics.in_flight.dec();
    lane.metrics.duration.observe(began.elapsed().as_secs_f64());
    finish
}

/// Performs a settlement. False if it could not, and the broker will deliver the message again.
async fn apply<H>(job: &Job<H>, settlement: Settlement, attempt: u32) -> bool {
    let parcel = match settlement {
        Settlement::Ack => return acked(job),
        Settlement::Requeue => return given_back(job).await,
        Settlement::Retry { rung, attempt } => {
            let exchange = names::retry_exchange(rung);
            let headers =
                headers(job, [(header::ATTEMPT, AMQPValue::LongLongInt(i64::from(attempt)))]);
            parcel(job, exchange, &job.lane.queue, headers, Target::Retry)
        }
        Settlement::Park { reason, detail } => {
            let marks = [
                (header::PARK_REASON, text(reason)),
                (header::PARK_DETAIL, text(&detail)),
                (header::PARK_QUEUE, text(&job.lane.queue)),
            ];
            parcel(
                job,
                names::DEAD_EXCHANGE,
                job.lane.park_key(),
                headers(job, marks),
                Target::Dead,
            )
        }
        Settlement::Move(route) => moved(job, &route, attempt),
    };
    // When the session ends, the broker delivers the message again; handing it on as well would double it.
    let handed_on = tokio::select! {
        biased;
        () = job.session.failed() => return false,
        handed_on = Box::pin(hand_on(job, parcel)) => handed_on,
    };
    match handed_on {
        Ok(()) => acked(job),
        Err(error) => {
            unsettled(job, error).await;
            false
        }
    }
}

async fn hand_on<H>(
    job: &Job<H>,
    parcel: Result<Parcel, PublishError>,
) -> Result<(), PublishError> {
    job.lane.common.publisher.carry(parcel?, HAND_ON_BOUND).await
}

/// The message stays with the broker. What it means for the session depends on why.
async fn unsettled<H>(job: &Job<H>, error: PublishError) {
    tracing::error!(%error, "a message could not be handed on, the broker will deliver it again");
    sleep(UNSETTLED_WAIT).await;
    match error {
        // A new session would find the same full queue, and cost the neighbours their acks.
        PublishError::Refused | PublishError::NoSuchQueue | PublishError::TooLarge => {
            given_back(job).await;
        }
        PublishError::NotConfirmed | PublishError::NotConnected => {
            job.session.fail("a message could not be handed on");
        }
    }
}

/// The ack follows with its group. One that does not get through means that the message comes again, which handlers expect.
fn acked<H>(job: &Job<H>) -> bool {
    runfleet_faults::point("consumer.before_ack");
    job.acks.settle(job.delivery.delivery_tag);
    runfleet_faults::point("consumer.settled");
    true
}

async fn given_back<H>(job: &Job<H>) -> bool {
    job.acks.give_back(job.delivery.delivery_tag, &job.session).await;
    true
}

fn moved<H>(job: &Job<H>, route: &Route, attempt: u32) -> Result<Parcel, PublishError> {
    let headers = headers(job, [(header::ATTEMPT, AMQPValue::LongLongInt(i64::from(attempt)))]);
    parcel(job, route.exchange(), &route.queue(), headers, route.target())
}

fn headers<H, const N: usize>(job: &Job<H>, added: [(&'static str, AMQPValue); N]) -> FieldTable {
    let mut headers = FieldTable::default();
    if let Some(old) = job.delivery.properties.headers() {
        for (name, value) in
            old.into_iter().filter(|(name, _)| !BROKERS_OWN.contains(&name.as_str()))
        {
            headers.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in added {
        headers.insert(name.into(), value);
    }
    headers
}

/// The message as it came, with other headers and another address. It is persistent whatever its sender said.
fn parcel<H>(
    job: &Job<H>,
    exchange: &str,
    key: &str,
    headers: FieldTable,
    target: Target,
) -> Result<Parcel, PublishError> {
    let old = &job.delivery.properties;
    let mut properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
    if let Some(value) = old.content_type() {
        properties = properties.with_content_type(value.clone());
    }
    if let Some(value) = old.kind() {
        properties = properties.with_type(value.clone());
    }
    if let Some(value) = old.message_id() {
        properties = properties.with_message_id(value.clone());
    }
    if let Some(value) = old.correlation_id() {
        properties = properties.with_correlation_id(value.clone());
    }
    if let Some(value) = old.reply_to() {
        properties = properties.with_reply_to(value.clone());
    }
    if let Some(value) = old.timestamp() {
        properties = properties.with_timestamp(*value);
    }
    if let Some(value) = old.app_id() {
        properties = properties.with_app_id(value.clone());
    }
    let body = Arc::new(job.delivery.data.clone());
    Ok(Parcel { exchange: short(exchange)?, key: short(key)?, properties, body, target })
}
