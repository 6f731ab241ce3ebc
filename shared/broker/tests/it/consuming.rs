//! Lanes beside each other: shares, concurrency, gates, metadata.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use runfleet_broker::{ConsumerConfig, ConsumerError, LaneConfig, Route, Verdict};
use runfleet_domain::Lane;
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::fixture::{BOUND, Fixture, Note, Seen, consume, lane, note, publish, wait_until};

const FAST: &str = "completion-dispatcher.interactive";
const SLOW: &str = "completion-dispatcher.backfill";
const QUEUES: [&str; 2] = [FAST, SLOW];

fn both(fast: u16, slow: u16) -> ConsumerConfig {
    ConsumerConfig::new(vec![
        LaneConfig::new(FAST, Lane::Interactive, fast),
        LaneConfig::new(SLOW, Lane::Backfill, slow),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_gets_the_metadata_of_its_message() {
    let fixture = Fixture::new(&[FAST]).await;
    let broker = fixture.broker().await;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let running = consume(&broker, lane(FAST, 1), BOUND, move |message| {
        sender.send(message).unwrap();
        async { Ok(Verdict::Done) }
    });
    let mut outgoing = note("m").in_lane(Lane::Backfill).about("run-1");
    outgoing.expires_at_ms = Some(12_345);
    outgoing.authorization = Some("token".into());
    broker.publisher().publish(&Route::Done(Lane::Interactive), outgoing).await.unwrap();
    let message = receiver.recv().await.unwrap();
    let Note { text } = message.body;
    assert_eq!((text.as_str(), message.message_id.as_str(), &*message.queue), ("hello", "m", FAST));
    assert_eq!((message.lane, message.attempt, message.redelivered), (Lane::Backfill, 1, false));
    assert_eq!(message.correlation_id.as_deref(), Some("run-1"));
    assert_eq!(message.expires_at_ms, Some(12_345));
    assert_eq!(message.authorization.unwrap().expose_secret(), "token");
    running.stop().await;
    assert!(
        (fixture
            .metric(&format!("runfleet_consumer_message_age_seconds_count{{queue=\"{FAST}\"}}"))
            - 1.0)
            .abs()
            < 0.1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_full_of_slow_work_does_not_hold_up_the_other() {
    let fixture = Fixture::new(&QUEUES).await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    for number in 0..20 {
        publish(&publisher, &Route::Done(Lane::Backfill), &format!("slow-{number}")).await;
    }
    let release = CancellationToken::new();
    let seen = Seen::default();
    let running = consume(&broker, both(2, 4), BOUND, {
        let (seen, release) = (seen.clone(), release.clone());
        move |message| {
            let release = release.clone();
            seen.add(&message);
            async move {
                if message.lane == Lane::Backfill {
                    release.cancelled().await;
                }
                Ok(Verdict::Done)
            }
        }
    });
    let slow = || seen.ids().iter().filter(|id| id.starts_with("slow")).count();
    wait_until("the slow lane is full", async || slow() == 4).await;
    for number in 0..20 {
        publish(&publisher, &Route::Done(Lane::Interactive), &format!("fast-{number}")).await;
    }
    seen.wait_for(24).await;
    assert_eq!(slow(), 4);
    release.cancel();
    seen.wait_for(40).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_handlers_run_as_the_prefetch_says_also_across_a_lost_session() {
    let fixture = Fixture::new(&[FAST]).await;
    let broker = fixture.broker().await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Seen::default();
    let running = consume(&broker, lane(FAST, 3), BOUND, {
        let (now, most, seen) = (Arc::clone(&now), Arc::clone(&most), seen.clone());
        move |message| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            seen.add(&message);
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Long enough for others to begin meanwhile.
                tokio::time::sleep(Duration::from_millis(100)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(Verdict::Done)
            }
        }
    });
    for number in 0..30 {
        publish(&broker.publisher(), &Route::Done(Lane::Interactive), &number.to_string()).await;
    }
    wait_until("the connections in the management API", async || {
        fixture.kill_connections().await >= 2
    })
    .await;
    let distinct = || seen.ids().into_iter().collect::<std::collections::HashSet<_>>().len();
    wait_until("every message", async || distinct() == 30).await;
    running.stop().await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_gate_stops_its_lane_and_no_other() {
    let fixture = Fixture::new(&QUEUES).await;
    let broker = fixture.broker().await;
    let config = both(4, 4);
    let gate = config.lanes[1].gate.clone();
    gate.close_for(Duration::from_mins(10));
    let seen = Seen::default();
    let running = consume(&broker, config, BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    publish(&broker.publisher(), &Route::Done(Lane::Backfill), "slow").await;
    publish(&broker.publisher(), &Route::Done(Lane::Interactive), "fast").await;
    seen.wait_for(1).await;
    // Time in which a message that should stay could come.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(seen.ids(), ["fast"]);
    gate.open();
    seen.wait_for(2).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_could_never_work_says_so() {
    let fixture = Fixture::new(&[]).await;
    let broker = fixture.broker().await;
    let run = async |lanes| {
        let consumer = broker.consumer(ConsumerConfig::new(lanes));
        let handler = |_: runfleet_broker::Inbound<Note>| async { Ok(Verdict::Done) };
        consumer.run(handler, CancellationToken::new(), BOUND).await
    };
    assert_eq!(run(vec![]).await, Err(ConsumerError::NoLanes));
    let lane = LaneConfig::new("q", Lane::Interactive, 0);
    assert_eq!(run(vec![lane]).await, Err(ConsumerError::NoPrefetch("q".to_owned())));
    let lane = LaneConfig::new("q".repeat(256), Lane::Interactive, 1);
    assert_eq!(run(vec![lane]).await, Err(ConsumerError::QueueName));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_has_no_session_stops_at_once() {
    let fixture = Fixture::new(&[]).await;
    let mut config = fixture.config();
    config.urls = "amqp://127.0.0.1:1/".into();
    let broker = runfleet_broker::Broker::start(config, &fixture.registry).unwrap();
    let running = consume(&broker, lane(FAST, 1), BOUND, |_| async { Ok(Verdict::Done) });
    let began = Instant::now();
    running.stop().await;
    assert!(began.elapsed() < Duration::from_secs(1));
}
