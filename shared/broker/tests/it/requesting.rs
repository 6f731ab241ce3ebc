//! Requests and their answers.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use runfleet_broker::{Broker, PublishError, RequestError, Route, Topology, Verdict};
use runfleet_domain::Lane;

use crate::fixture::{BOUND, Fixture, Running, Seen, consume, lane, note, wait_until};
use crate::proxy::Proxy;

const QUEUE: &str = "start-intake.interactive";
const ROUTE: Route = Route::Start(Lane::Interactive);

/// Answers each request with its message id, after `wait`.
fn answering(broker: &Broker, seen: &Seen, wait: Duration) -> Running {
    let (publisher, seen) = (broker.publisher(), seen.clone());
    consume(broker, lane(QUEUE, 64), BOUND, move |message| {
        let publisher = publisher.clone();
        seen.add(&message);
        async move {
            tokio::time::sleep(wait).await;
            let (Some(reply_to), Some(id)) = (message.reply_to, message.correlation_id) else {
                return Ok(Verdict::Drop("nobody waits"));
            };
            let _ =
                publisher.reply("reply.v1", &reply_to, &id, message.message_id.as_bytes()).await;
            Ok(Verdict::Done)
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_requests_gets_its_own_answer() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let running = answering(&broker, &Seen::default(), Duration::ZERO);
    let requester = broker.requester();
    let asking = (0..300).map(|number| {
        let requester = requester.clone();
        async move {
            let id = number.to_string();
            let answer = requester.request(&ROUTE, note(&id), BOUND).await.unwrap();
            assert_eq!(answer, id.as_bytes());
        }
    });
    join_all(asking).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_answer_times_out_and_its_late_answer_confuses_nobody() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let seen = Seen::default();
    let running = answering(&broker, &seen, Duration::from_millis(300));
    let requester = broker.requester();
    let began = Instant::now();
    let late = requester.request(&ROUTE, note("late"), Duration::from_millis(200)).await;
    assert_eq!(late, Err(RequestError::TimedOut));
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(requester.request(&ROUTE, note("next"), BOUND).await.unwrap(), b"next");
    assert_eq!(seen.ids(), ["late", "next"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_survives_the_loss_of_its_connection_with_the_same_message_id() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let worker = fixture.broker().await;
    let seen = Seen::default();
    let running = answering(&worker, &seen, Duration::from_millis(300));
    let client = {
        let mut config = fixture.config();
        config.urls = fixture.url_at(proxy.address);
        Broker::start(config, &prometheus::Registry::new()).unwrap()
    };
    let requester = client.requester();
    assert_eq!(requester.request(&ROUTE, note("first"), BOUND).await.unwrap(), b"first");
    let asking: Vec<_> = (0..50)
        .map(|number| {
            let requester = requester.clone();
            tokio::spawn(async move {
                requester.request(&ROUTE, note(&format!("r{number}")), BOUND).await
            })
        })
        .collect();
    seen.wait_for(11).await;
    proxy.cut();
    for (number, asking) in asking.into_iter().enumerate() {
        assert_eq!(asking.await.unwrap().unwrap(), format!("r{number}").as_bytes());
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_never_sent_says_so() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let broker = fixture.broker_with(|config| config.urls = fixture.url_at(proxy.address)).await;
    let requester = broker.requester();
    proxy.set(|mode| mode.refuse = true);
    proxy.cut();
    wait_until("the end of the session", async || !*broker.connected().borrow()).await;
    let asked = requester.request(&ROUTE, note("m"), Duration::from_millis(200)).await;
    assert_eq!(asked, Err(RequestError::NotConnected));
    assert_eq!(fixture.purge(QUEUE).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_a_full_queue_is_refused_and_not_left_to_time_out() {
    let full = |topology: &mut Topology| {
        let policy = topology.policy_mut("runfleet-work").unwrap();
        policy.definition.insert("max-length".to_owned(), 1.into());
    };
    let fixture = Fixture::with(&[QUEUE], full).await;
    let broker = fixture.broker().await;
    let mut number = 0;
    let publish = async |number: u32| {
        let within = Duration::from_millis(500);
        broker.publisher().publish_within(&ROUTE, note(&number.to_string()), within).await
    };
    while publish(number).await != Err(PublishError::Refused) {
        number += 1;
        assert!(number < 100, "it is never full");
    }
    let asked = broker.requester().request(&ROUTE, note("m"), Duration::from_secs(2)).await;
    assert_eq!(asked, Err(RequestError::Refused));
}
