//! Publishing: confirms, refusals, losses, replies.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use runfleet_broker::{BrokerConfig, Outgoing, PublishError, ReplyError, Route, Topology, Verdict};
use runfleet_domain::{Lane, Name};
use serde_json::json;

use crate::fixture::{BOUND, Fixture, Seen, consume, lane, note, publish, wait_until};
use crate::proxy::Proxy;

const QUEUE: &str = "start-intake.backfill";
const ROUTE: Route = Route::Start(Lane::Backfill);

fn job(project: &str) -> Route {
    Route::Job { workspace: name("acme"), project: name(project) }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn with_length_max(policy: &str, length_max: u32) -> impl FnOnce(&mut Topology) {
    move |topology| {
        let policy = topology.policy_mut(policy).unwrap();
        policy.definition.insert("max-length".to_owned(), json!(length_max));
    }
}

fn published(fixture: &Fixture, target: &str, result: &str) -> f64 {
    fixture.metric(&format!(
        "runfleet_publisher_messages_total{{result=\"{result}\",target=\"{target}\"}}"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmed_message_is_in_the_queue_and_persistent() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    publish(&broker.publisher(), &ROUTE, "m1").await;
    let message = fixture.take(QUEUE).await;
    assert_eq!(message.properties.message_id().as_ref().unwrap().as_str(), "m1");
    assert_eq!(*message.properties.delivery_mode(), Some(2));
    assert!((published(&fixture, "start", "confirmed") - 1.0).abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_confirm_of_a_sent_message_can_be_awaited_later() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let confirm = broker.publisher().send(&ROUTE, note("m1")).await.unwrap();
    confirm.wait().await.unwrap();
    assert_eq!(fixture.purge(QUEUE).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_and_takes_messages_again_when_it_has_room() {
    let fixture = Fixture::with(&[QUEUE], with_length_max("runfleet-work", 2)).await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    let within = Duration::from_millis(400);
    let mut refused = 0;
    for number in 0..10 {
        let done = publisher.publish_within(&ROUTE, note(&number.to_string()), within).await;
        refused += u32::from(done == Err(PublishError::Refused));
    }
    // A quorum queue takes a few more than its length before it refuses.
    assert!((5..=8).contains(&refused), "{refused}");
    let patient = tokio::spawn({
        let publisher = publisher.clone();
        async move { publisher.publish_within(&ROUTE, note("late"), BOUND).await }
    });
    // Within this time the others were refused.
    tokio::time::sleep(within).await;
    assert!(!patient.is_finished());
    fixture.purge(QUEUE).await;
    assert_eq!(patient.await.unwrap(), Ok(()));
    assert!(published(&fixture, "start", "refused") >= 5.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_jobs_at_once_exactly_those_without_a_queue_are_reported() {
    let fixture = Fixture::new(&[]).await;
    let admin = fixture.admin();
    for project in ["p0", "p2", "p4"] {
        admin.apply_job_queue(&name("acme"), &name(project)).await.unwrap();
    }
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    let publishing = (0..300).map(|number| {
        let publisher = publisher.clone();
        async move {
            let project = number % 6;
            let done =
                publisher.publish(&job(&format!("p{project}")), note(&number.to_string())).await;
            let wanted = if project % 2 == 0 { Ok(()) } else { Err(PublishError::NoSuchQueue) };
            assert_eq!(done, wanted, "p{project}");
        }
    });
    join_all(publishing).await;
    assert!(fixture.reconnects() < 1.0);
    for project in ["p0", "p2", "p4"] {
        assert_eq!(fixture.purge(&format!("jobs.acme.{project}")).await, 50);
    }
    admin.apply_job_queue(&name("acme"), &name("p1")).await.unwrap();
    publish(&publisher, &job("p1"), "now").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_published_only_while_a_host_of_the_version_is_there() {
    const VERSION: &str = "1.4.0+3f";
    let fixture = Fixture::new(&[QUEUE]).await;
    let (workspace, project) = (name("acme"), name("shop"));
    let version = VERSION.to_owned();
    let route = Route::HostCall { workspace: workspace.clone(), project: project.clone(), version };
    let queue = route.queue().into_owned();
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    assert_eq!(publisher.publish(&route, note("early")).await, Err(PublishError::NoSuchQueue));
    fixture.admin().declare_call_queue(&workspace, &project, VERSION).await.unwrap();
    assert_eq!(publisher.publish(&route, note("unheard")).await, Err(PublishError::NoSuchQueue));
    let seen = Seen::default();
    let taken = seen.clone();
    let running = consume(&broker, lane(&queue, 1), BOUND, move |message| {
        taken.add(&message);
        async { Ok(Verdict::Done) }
    });
    wait_until("a consumer", async || fixture.consumers(&queue).await == 1).await;
    publish(&publisher, &route, "call").await;
    wait_until("the call", async || seen.ids() == ["call"]).await;
    running.stop().await;
    // The queue goes with its last consumer.
    let late = async || publisher.publish(&route, note("late")).await;
    wait_until("no host", async || late().await == Err(PublishError::NoSuchQueue)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_not_even_tried() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker_with(|config| config.body_bytes_max = 100).await;
    let publisher = broker.publisher();
    let body = |size| Outgoing::new("note.v1", "m", vec![b' '; size]);
    assert_eq!(publisher.publish(&ROUTE, body(101)).await, Err(PublishError::TooLarge));
    assert_eq!(
        publisher.publish(&ROUTE, note(&"m".repeat(256))).await,
        Err(PublishError::TooLarge)
    );
    assert_eq!(publisher.publish(&ROUTE, body(100)).await, Ok(()));
    assert!((published(&fixture, "start", "too_large") - 2.0).abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_waits_for_the_session_and_no_longer_than_its_deadline() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let broker = fixture.broker_with(|config| config.urls = fixture.url_at(proxy.address)).await;
    let publisher = broker.publisher();
    proxy.set(|mode| mode.refuse = true);
    proxy.cut();
    wait_until("the end of the session", async || !*broker.connected().borrow()).await;
    let began = Instant::now();
    let done = publisher.publish_within(&ROUTE, note("never"), Duration::from_millis(300)).await;
    assert_eq!(done, Err(PublishError::NotConnected));
    assert!(began.elapsed() < Duration::from_secs(2));
    let patient = tokio::spawn({
        let publisher = publisher.clone();
        async move { publisher.publish_within(&ROUTE, note("patient"), BOUND).await }
    });
    proxy.set(|mode| mode.refuse = false);
    assert_eq!(patient.await.unwrap(), Ok(()));
    let message = fixture.take(QUEUE).await;
    assert_eq!(message.properties.message_id().as_ref().unwrap().as_str(), "patient");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_does_not_answer_leaves_publishes_unconfirmed_and_they_arrive_later() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let change = |config: &mut BrokerConfig| {
        config.urls = fixture.url_at(proxy.address);
        config.in_flight_max = 4;
    };
    let broker = fixture.broker_with(change).await;
    let publisher = broker.publisher();
    proxy.set(|mode| mode.stall_up = true);
    let within = Duration::from_millis(300);
    for number in 0..4 {
        let done = publisher.publish_within(&ROUTE, note(&number.to_string()), within).await;
        assert_eq!(done, Err(PublishError::NotConfirmed));
    }
    // Frames that were written count until the broker has answered, so the fifth is not even written.
    let fifth = publisher.publish_within(&ROUTE, note("4"), within).await;
    assert_eq!(fifth, Err(PublishError::NotConnected));
    proxy.set(|mode| mode.stall_up = false);
    assert_eq!(publisher.publish(&ROUTE, note("5")).await, Ok(()));
    assert_eq!(fixture.purge(QUEUE).await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_again_and_again_lose_no_confirmed_message() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let proxy = Proxy::new(fixture.address()).await;
    let change = |config: &mut BrokerConfig| {
        config.urls = fixture.url_at(proxy.address);
        config.backoff_min = Duration::from_millis(20);
        config.backoff_max = Duration::from_millis(50);
    };
    let broker = fixture.broker_with(change).await;
    let seen = Seen::default();
    let running = consume(&broker, lane(QUEUE, 16), BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    let publisher = broker.publisher();
    let publishing = tokio::spawn(join_all((0..8).map(|task| {
        let publisher = publisher.clone();
        async move {
            for number in 0..100 {
                let done = publisher
                    .publish_within(&ROUTE, note(&format!("{task}-{number}")), BOUND)
                    .await;
                assert_eq!(done, Ok(()));
            }
        }
    })));
    for round in 1..=4 {
        // In the middle of the work, not before it has begun again.
        tokio::time::sleep(Duration::from_millis(150)).await;
        proxy.cut();
        wait_until("a rebuilt session", async || fixture.reconnects() >= f64::from(round)).await;
    }
    publishing.await.unwrap();
    let distinct = || seen.ids().into_iter().collect::<HashSet<_>>().len();
    wait_until("800 messages", async || distinct() == 800).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_whose_caller_has_gone_still_counts_until_it_is_answered() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker_with(|config| config.in_flight_max = 1).await;
    let publisher = broker.publisher();
    for number in 0..50 {
        let confirm = publisher.send(&ROUTE, note(&number.to_string())).await.unwrap();
        drop(confirm);
    }
    publish(&publisher, &ROUTE, "last").await;
    assert_eq!(fixture.purge(QUEUE).await, 51);
    assert!(fixture.reconnects() < 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_somebody_who_has_gone_is_harmless_and_a_work_queue_is_no_reply_address() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    for address in [
        "amq.rabbitmq.reply-to.g1h2AA5yZXBseUAyMTYwNzk2",
        "amq.rabbitmq.reply-to.!",
        "amq.gen-gone",
        "reply.x",
    ] {
        assert_eq!(publisher.reply("reply.v1", address, "1", b"{}").await, Ok(()), "{address}");
    }
    for address in [QUEUE, "", "amq.rabbitmq.reply-to"] {
        assert_eq!(
            publisher.reply("reply.v1", address, "1", b"{}").await,
            Err(ReplyError::BadAddress),
            "{address}"
        );
    }
    let long = format!("reply.{}", "x".repeat(255));
    assert_eq!(publisher.reply("reply.v1", &long, "1", b"{}").await, Err(ReplyError::TooLarge));
    publish(&publisher, &ROUTE, "still").await;
    assert!(fixture.reconnects() < 1.0);
}
