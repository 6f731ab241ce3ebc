//! Acks go out in groups: nothing stalls behind a slow neighbour, nothing is acknowledged that was not settled.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use runfleet_broker::{Line, Route, Verdict};
use tokio_util::sync::CancellationToken;

use crate::fixture::{BOUND, Fixture, Running, Seen, consume, lane, note, publish, wait_until};

const QUEUE: &str = "process-runner.interactive";
const ROUTE: Route = Route::Process(Line::Interactive);

/// Publishes messages with these numbers as ids.
async fn fill(broker: &runfleet_broker::Broker, numbers: std::ops::Range<u32>) {
    let publisher = broker.publisher();
    let publishing = numbers.map(|number| {
        let publisher = publisher.clone();
        async move { publisher.publish(&ROUTE, note(&number.to_string())).await.unwrap() }
    });
    futures_util::future::join_all(publishing).await;
}

/// Ends at once, but the messages of `slow` when `release` says so.
fn consume_with_slow(
    broker: &runfleet_broker::Broker,
    prefetch: u16,
    seen: &Seen,
    slow: &'static [&'static str],
    release: &CancellationToken,
) -> Running {
    consume(broker, lane(QUEUE, prefetch), BOUND, {
        let (seen, release) = (seen.clone(), release.clone());
        move |message| {
            seen.add(&message);
            let release = release.clone();
            async move {
                if slow.contains(&message.message_id.as_str()) {
                    release.cancelled().await;
                }
                Ok(Verdict::Done)
            }
        }
    })
}

/// Ready and unacknowledged messages as the broker counts them: what is left when its consumers are cut off.
async fn left_after_cutting_off(fixture: &Fixture, broker: &runfleet_broker::Broker) -> u32 {
    broker.close().await;
    wait_until("no consumer", async || fixture.consumers(QUEUE).await == 0).await;
    fixture.purge(QUEUE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_message_among_a_thousand_fast_ones_delays_none_and_only_it_is_left_unacknowledged()
{
    // At once: each waits for what the broker counts only every five seconds.
    let among = async |prefetch: u16| {
        let fixture = Fixture::new(&[QUEUE]).await;
        let broker = fixture.broker().await;
        let (seen, release) = (Seen::default(), CancellationToken::new());
        fill(&broker, 0..1_000).await;
        let began = Instant::now();
        let _running = consume_with_slow(&broker, prefetch, &seen, &["0"], &release);
        // With a window of two, each of the others needs the ack of the one before it.
        seen.wait_for(1_000).await;
        assert!(began.elapsed() < Duration::from_secs(15), "{prefetch}: {:?}", began.elapsed());
        wait_until("the fast ones", async || fixture.settled(QUEUE, "completed") > 998.5).await;
        wait_until("their acks", async || fixture.unacked(QUEUE).await == 1).await;
        assert_eq!(left_after_cutting_off(&fixture, &broker).await, 1, "{prefetch}");
    };
    tokio::join!(among(2), among(8), among(192));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_settled_is_acknowledged_while_slow_neighbours_all_over_the_window_still_run() {
    const SLOW: &[&str] = &["0", "3", "50", "51", "120", "399"];
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let (seen, release) = (Seen::default(), CancellationToken::new());
    fill(&broker, 0..400).await;
    let running = consume_with_slow(&broker, 192, &seen, SLOW, &release);
    seen.wait_for(400).await;
    wait_until("six unacknowledged", async || fixture.unacked(QUEUE).await == 6).await;
    release.cancel();
    wait_until("none unacknowledged", async || fixture.unacked(QUEUE).await == 0).await;
    running.stop().await;
    assert_eq!(left_after_cutting_off(&fixture, &broker).await, 0);
    assert_eq!(seen.count(), 400, "each came once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_leaves_nothing_unacknowledged_and_nothing_twice() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let seen = Seen::default();
    let mut total = 0;
    let publishing = fixture.broker().await;
    fill(&publishing, 0..2_000).await;
    // Again and again in the middle of the work, so that a drain meets groups in every state.
    for round in 1..=8 {
        let running = consume(&publishing, lane(QUEUE, 192), BOUND, {
            let seen = seen.clone();
            move |message| {
                seen.add(&message);
                async { Ok(Verdict::Done) }
            }
        });
        seen.wait_for((round * 100).min(1_900)).await;
        let drained = running.stop().await;
        total = seen.count();
        assert!(drained.requeued <= 192);
    }
    let left = left_after_cutting_off(&fixture, &publishing).await;
    let ids: HashSet<String> = seen.ids().into_iter().collect();
    assert_eq!(ids.len(), total, "a message came twice");
    assert_eq!(total + usize::try_from(left).unwrap(), 2_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_around_messages_that_go_back_take_none_of_them_along() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    fill(&broker, 0..300).await;
    let seen = Seen::default();
    // Every tenth outlives the grace and goes back, in the middle of groups that are acknowledged.
    let running = consume(&broker, lane(QUEUE, 192), Duration::from_millis(300), {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async move {
                if message.message_id.ends_with('0') {
                    std::future::pending::<()>().await;
                }
                Ok(Verdict::Done)
            }
        }
    });
    seen.wait_for(300).await;
    let drained = running.stop().await;
    assert_eq!(drained.requeued, 30);
    assert_eq!(left_after_cutting_off(&fixture, &broker).await, 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_with_a_window_of_one_goes_on_after_each_message() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let (seen, release) = (Seen::default(), CancellationToken::new());
    fill(&broker, 0..200).await;
    let running = consume_with_slow(&broker, 1, &seen, &[], &release);
    seen.wait_for(200).await;
    running.stop().await;
    assert_eq!(left_after_cutting_off(&fixture, &broker).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_on_a_lost_session_comes_again_and_is_acknowledged_on_the_next_one() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let (seen, release) = (Seen::default(), CancellationToken::new());
    for number in 0..4 {
        publish(&broker.publisher(), &ROUTE, &number.to_string()).await;
    }
    let running = consume_with_slow(&broker, 8, &seen, &["0", "1", "2", "3"], &release);
    seen.wait_for(4).await;
    wait_until("the connections in the management API", async || {
        fixture.kill_connections().await >= 2
    })
    .await;
    seen.wait_for(8).await;
    // Handlers of both sessions end now; tags of the first one mean nothing on the channel of the second.
    release.cancel();
    wait_until("all handlers", async || fixture.settled(QUEUE, "completed") > 7.5).await;
    fill(&broker, 4..104).await;
    seen.wait_for(108).await;
    running.stop().await;
    assert!((fixture.reconnects() - 1.0).abs() < f64::EPSILON, "a wrong ack costs the channel");
    assert_eq!(left_after_cutting_off(&fixture, &broker).await, 0);
}
