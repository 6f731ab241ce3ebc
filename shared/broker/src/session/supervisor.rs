//! Keeps a session standing: connects, watches, tears down, waits, connects again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::Event;
use rand::Rng;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{LinkError, Session, Shared};

/// A session that stood this long was a good one: its loss is followed by an attempt at once.
const GOOD_AFTER: Duration = Duration::from_secs(10);

/// How often the state of the connections is looked at, beside their events.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Bound of saying goodbye.
const CLOSE_BOUND: Duration = Duration::from_secs(2);

/// Runs until the broker is closed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut failures = 0_u32;
    let mut endpoint = 0;
    while !shared.stop.is_cancelled() {
        if failures > 0 {
            tokio::select! {
                () = sleep(backoff(&shared, failures)) => {}
                () = shared.stop.cancelled() => break,
            }
        }
        let opened = tokio::select! {
            opened = open(&shared, endpoint) => opened,
            () = shared.stop.cancelled() => break,
        };
        match opened {
            Ok(session) => {
                let began = Instant::now();
                serve(&shared, session).await;
                failures =
                    if began.elapsed() >= GOOD_AFTER { 0 } else { failures.saturating_add(1) };
            }
            Err(error) => {
                tracing::warn!(%error, failures, "could not connect to the broker");
                failures = failures.saturating_add(1);
                endpoint += 1;
            }
        }
    }
}

/// Full jitter: anything from nothing to a bound that doubles with each failure.
fn backoff(shared: &Shared, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let bound =
        shared.config.backoff_min.saturating_mul(1 << doublings).min(shared.config.backoff_max);
    bound.mul_f64(rand::rng().random::<f64>())
}

#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error("{0}")]
    Link(#[from] LinkError),
    #[error("missing in the broker: {0}; run `runfleet topology apply`")]
    Missing(String),
}

async fn open(shared: &Shared, endpoint: usize) -> Result<Arc<Session>, OpenError> {
    let session = Session::open(shared, endpoint).await?;
    let mut missing = Vec::new();
    for object in &shared.config.required {
        if !session.exists(object).await? {
            missing.push(object.to_string());
        }
    }
    if missing.is_empty() {
        return Ok(Arc::new(session));
    }
    Arc::new(session).close(CLOSE_BOUND).await;
    Err(OpenError::Missing(missing.join(", ")))
}

async fn serve(shared: &Shared, session: Arc<Session>) {
    shared.up(&session);
    tokio::select! {
        () = watch(shared, &session) => {}
        () = session.failed() => {}
        () = shared.stop.cancelled() => {}
    }
    // Whoever waits on this session learns it here, also when the end was asked for.
    let reason = session.reason().to_owned();
    session.fail("closed");
    shared.down();
    if !shared.stop.is_cancelled() {
        tracing::warn!(reason, "the session with the broker ended, building a new one");
    }
    session.close(CLOSE_BOUND).await;
}

/// Returns when a connection is gone or has been blocked for too long.
async fn watch(shared: &Shared, session: &Session) {
    let mut publish = session.publish.connection().events_listener();
    let mut consume = session.consume.connection().events_listener();
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut blocked_since = None;
    loop {
        tokio::select! {
            Some(event) = publish.next() => note(session, &event),
            Some(event) = consume.next() => note(session, &event),
            _ = look.tick() => {}
        }
        if !session.publish.is_up() || !session.consume.is_up() {
            session.fail("a connection was lost");
            return;
        }
        let blocked = session.publish.connection().status().blocked();
        session.blocked.send_if_modified(|was| std::mem::replace(was, blocked) != blocked);
        blocked_since = if blocked { blocked_since.or_else(|| Some(Instant::now())) } else { None };
        if blocked_since
            .is_some_and(|since: Instant| since.elapsed() >= shared.config.blocked_after)
        {
            session.fail("the broker refused to read for too long");
            return;
        }
    }
}

/// An error event is not judged by itself: errors of single channels come this way too, and are handled where they occur.
fn note(session: &Session, event: &Event) {
    match event {
        Event::ConnectionBlocked(reason) => {
            tracing::warn!(reason, "the broker does not take messages");
        }
        Event::ConnectionUnblocked => tracing::warn!("the broker takes messages again"),
        Event::Error(error) => {
            tracing::debug!(%error, up = session.publish.is_up(), "error on a connection");
        }
        _ => {}
    }
}
