//! The end of a consumer: what it holds goes back or is finished.

use std::time::Duration;

use runfleet_broker::{Drained, Route, Verdict};
use runfleet_domain::Lane;
use tokio_util::sync::CancellationToken;

use crate::fixture::{BOUND, Fixture, Seen, consume, lane, publish, wait_until};

const QUEUE: &str = "delivery.backfill";
const ROUTE: Route = Route::Deliver(Lane::Backfill);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_finished_and_what_was_not_begun_goes_back() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let release = CancellationToken::new();
    let seen = Seen::default();
    let config = lane(QUEUE, 4);
    let gate = config.lanes[0].gate.clone();
    let running = consume(&broker, config, BOUND, {
        let (seen, release) = (seen.clone(), release.clone());
        move |message| {
            seen.add(&message);
            let release = release.clone();
            async move {
                release.cancelled().await;
                Ok(Verdict::Done)
            }
        }
    });
    publish(&broker.publisher(), &ROUTE, "0").await;
    publish(&broker.publisher(), &ROUTE, "1").await;
    seen.wait_for(2).await;
    gate.close_for(BOUND);
    for number in 2..6 {
        publish(&broker.publisher(), &ROUTE, &number.to_string()).await;
    }
    // The process holds four, two of which were not begun.
    wait_until("two messages wait", async || fixture.ready(QUEUE).await == 2).await;
    running.shutdown.cancel();
    let stopping = tokio::spawn(running.stop());
    // They are back while the handlers still run.
    wait_until("four messages wait", async || fixture.ready(QUEUE).await == 4).await;
    assert!(!stopping.is_finished());
    release.cancel();
    let drained = stopping.await.unwrap();
    assert_eq!(drained, Drained { finished: 2, requeued: 2 });
    assert!((fixture.settled(QUEUE, "completed") - 2.0).abs() < f64::EPSILON);
    assert_eq!(fixture.purge(QUEUE).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_outlives_the_grace_gives_its_message_back() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    publish(&broker.publisher(), &ROUTE, "m").await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 3), Duration::from_millis(200), {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            std::future::pending()
        }
    });
    seen.wait_for(1).await;
    assert_eq!(running.stop().await, Drained { finished: 0, requeued: 1 });
    let again = Seen::default();
    let running = consume(&broker, lane(QUEUE, 3), BOUND, {
        let again = again.clone();
        move |message| {
            again.add(&message);
            assert!(message.redelivered);
            async { Ok(Verdict::Done) }
        }
    });
    again.wait_for(1).await;
    assert_eq!(again.all(), [("m".to_owned(), 1)]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_of_a_lost_session_end_and_their_messages_come_again() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    publish(&broker.publisher(), &ROUTE, "m").await;
    let release = CancellationToken::new();
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 2), BOUND, {
        let (seen, release) = (seen.clone(), release.clone());
        move |message| {
            seen.add(&message);
            let release = release.clone();
            async move {
                release.cancelled().await;
                Ok(Verdict::Done)
            }
        }
    });
    seen.wait_for(1).await;
    wait_until("the connections in the management API", async || {
        fixture.kill_connections().await >= 2
    })
    .await;
    seen.wait_for(2).await;
    release.cancel();
    wait_until("both handlers", async || fixture.settled(QUEUE, "completed") > 1.5).await;
    running.stop().await;
    assert_eq!(fixture.purge(QUEUE).await, 0);
}
