//! What becomes of messages that do not go as they should: the retry ladder, parking, moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lapin::BasicProperties;
use lapin::message::BasicGetMessage;
use lapin::types::AMQPValue;
use runfleet_broker::{
    Classify, ConsumerConfig, Failure, HandlerResult, Inbound, Line, Outgoing, Route, Verdict,
};
use runfleet_contracts::header;

use crate::fixture::{BOUND, Fixture, Note, Seen, consume, lane, note, publish, wait_until};

const QUEUE: &str = "agent-runner.interactive";
const ROUTE: Route = Route::Agent(Line::Interactive);
const DEAD: &str = "dead.agent-runner.interactive";

fn text(message: &BasicGetMessage, name: &str) -> String {
    match message.properties.headers().as_ref().and_then(|headers| headers.inner().get(name)) {
        Some(AMQPValue::LongString(text)) => text.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

fn kind(kind: &str) -> BasicProperties {
    BasicProperties::default().with_type(kind.into()).with_message_id(kind.into())
}

/// Runs `handler` for one message `m` and returns what it saw, after `result` was counted once.
async fn after_one(
    fixture: &Fixture,
    result: &str,
    config: ConsumerConfig,
    handler: impl Fn(&Inbound<Note>) -> HandlerResult + Send + Sync + 'static,
) -> Vec<(String, u32)> {
    let broker = fixture.broker().await;
    let seen = Seen::default();
    let running = consume(&broker, config, BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            let returned = handler(&message);
            async { returned }
        }
    });
    publish(&broker.publisher(), &ROUTE, "m").await;
    wait_until(result, async || fixture.settled(QUEUE, result) > 0.5).await;
    running.stop().await;
    broker.close().await;
    seen.all()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passing_failure_is_tried_again_with_the_same_id_and_a_higher_attempt() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let seen = after_one(&fixture, "completed", lane(QUEUE, 4), |message| match message.attempt {
        1 => Err(std::io::Error::other("away")).transient("asking"),
        2 => Err(Failure::transient("losing a race")),
        _ => Ok(Verdict::Done),
    })
    .await;
    assert_eq!(seen, [1, 2, 3].map(|attempt| ("m".to_owned(), attempt)));
    assert!((fixture.settled(QUEUE, "retried") - 2.0).abs() < f64::EPSILON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_attempts_are_used_up_is_parked_with_its_reason() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let failing =
        |_: &Inbound<Note>| Err(std::io::Error::other("s3cret")).transient("asking the model");
    let seen = after_one(&fixture, "parked_exhausted", lane(QUEUE, 4), failing).await;
    assert_eq!(seen.len(), 8);
    let parked = fixture.take(DEAD).await;
    assert_eq!(text(&parked, header::PARK_REASON), "attempts_exhausted");
    assert_eq!(text(&parked, header::PARK_DETAIL), "asking the model");
    assert_eq!(text(&parked, header::PARK_QUEUE), QUEUE);
    assert_eq!(parked.properties.message_id().as_ref().unwrap().as_str(), "m");
    assert_eq!(parked.data, b"{\"text\":\"hello\"}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lasting_failure_is_parked_at_once() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let failing = |_: &Inbound<Note>| Err(Failure::permanent("applying the event"));
    assert_eq!(after_one(&fixture, "parked_rejected", lane(QUEUE, 4), failing).await.len(), 1);
    assert_eq!(text(&fixture.take(DEAD).await, header::PARK_REASON), "rejected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_can_park_with_its_own_words() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let parking = |_: &Inbound<Note>| Ok(Verdict::Park("run_unknown", "no such run".to_owned()));
    after_one(&fixture, "parked_rejected", lane(QUEUE, 4), parking).await;
    let parked = fixture.take(DEAD).await;
    assert_eq!(
        (text(&parked, header::PARK_REASON), text(&parked, header::PARK_DETAIL)).0,
        "run_unknown"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snooze_comes_back_with_the_same_attempt() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let calls = AtomicU32::new(0);
    let snoozing = move |_: &Inbound<Note>| match calls.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Ok(Verdict::Snooze(Duration::from_secs(1))),
        _ => Ok(Verdict::Duplicate),
    };
    let seen = after_one(&fixture, "duplicate", lane(QUEUE, 4), snoozing).await;
    assert_eq!(seen, [1, 1, 1].map(|attempt| ("m".to_owned(), attempt)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_and_a_timeout_are_tried_again() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let mut config = lane(QUEUE, 4);
    config.handler_timeout = Duration::from_millis(50);
    let seen = Seen::default();
    let running = consume(&broker, config, BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            assert!(message.attempt != 1, "before there is a future");
            async move {
                assert!(message.attempt != 2, "within the future");
                if message.attempt == 3 {
                    std::future::pending::<()>().await;
                }
                Ok(Verdict::Done)
            }
        }
    });
    publish(&broker.publisher(), &ROUTE, "m").await;
    wait_until("the fourth attempt", async || fixture.settled(QUEUE, "completed") > 0.5).await;
    assert_eq!(seen.count(), 4);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_parked_without_its_handler_and_blocks_nobody() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let mut config = lane(QUEUE, 1);
    config.body_bytes_max = 1_000;
    fixture.publish_raw(QUEUE, BasicProperties::default(), b"{}").await;
    fixture.publish_raw(QUEUE, kind("note.v1"), b"{\"secret\": tru").await;
    fixture.publish_raw(QUEUE, kind("note.v1"), &[b' '; 1_001]).await;
    fixture.publish_raw(QUEUE, kind("note.v1"), b"").await;
    fixture.publish_raw(QUEUE, kind("other.v1"), b"{}").await;
    publish(&broker.publisher(), &ROUTE, "good").await;
    let seen = Seen::default();
    let running = consume(&broker, config, BOUND, {
        let seen = seen.clone();
        move |message| {
            seen.add(&message);
            async { Ok(Verdict::Done) }
        }
    });
    seen.wait_for(1).await;
    running.stop().await;
    assert_eq!(seen.ids(), ["good"]);
    let mut reasons = Vec::new();
    for _ in 0..5 {
        let parked = fixture.take(DEAD).await;
        reasons.push(text(&parked, header::PARK_REASON));
        assert!(!text(&parked, header::PARK_DETAIL).contains("secret"));
    }
    assert_eq!(reasons, ["no_kind", "malformed", "too_large", "malformed", "unknown_kind"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_waits_on_the_ladder_before_it_is_parked() {
    let fixture = Fixture::new(&[QUEUE]).await;
    let broker = fixture.broker().await;
    let running = consume(&broker, lane(QUEUE, 4), BOUND, |_| async { Ok(Verdict::Done) });
    broker
        .publisher()
        .publish(&ROUTE, Outgoing::new("note.v2", "m", b"{}".to_vec()))
        .await
        .unwrap();
    let parked = fixture.take(DEAD).await;
    assert_eq!(text(&parked, header::PARK_REASON), "attempts_exhausted");
    assert!((fixture.settled(QUEUE, "retried") - 7.0).abs() < f64::EPSILON);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_message_arrives_unchanged_in_the_other_queue() {
    let fixture = Fixture::new(&[QUEUE, "agent-runner.quarantine"]).await;
    let broker = fixture.broker().await;
    let running = consume(&broker, lane(QUEUE, 4), BOUND, |message| async move {
        if message.attempt == 1 {
            return Err(Failure::transient("failing once"));
        }
        Ok(Verdict::Move(Route::Agent(Line::Quarantine)))
    });
    let mut outgoing = note("m").about("run-1");
    outgoing.headers.push(("x-own", "kept".to_owned()));
    broker.publisher().publish(&ROUTE, outgoing).await.unwrap();
    let moved = fixture.take("agent-runner.quarantine").await;
    assert_eq!(text(&moved, "x-own"), "kept");
    assert_eq!(moved.properties.correlation_id().as_ref().unwrap().as_str(), "run-1");
    assert_eq!(moved.properties.kind().as_ref().unwrap().as_str(), "note.v1");
    let headers = moved.properties.headers().as_ref().unwrap();
    assert_eq!(headers.inner().get(header::ATTEMPT), Some(&AMQPValue::LongLongInt(2)));
    assert!(!headers.contains_key("x-death"), "{headers:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_parked_stays_and_is_parked_when_there_is_room() {
    let full = |topology: &mut runfleet_broker::Topology| {
        let policy = topology.policy_mut("runfleet-dead").unwrap();
        policy.definition.insert("max-length".to_owned(), 1.into());
        policy.definition.insert("overflow".to_owned(), "reject-publish".into());
    };
    let fixture = Fixture::with(&[QUEUE], full).await;
    for _ in 0..8 {
        fixture.publish_raw(DEAD, kind("note.v1"), b"{}").await;
    }
    let broker = fixture.broker().await;
    let calls = Arc::new(AtomicU32::new(0));
    let running = consume(&broker, lane(QUEUE, 4), BOUND, {
        let calls = Arc::clone(&calls);
        move |message| {
            let rejected = message.message_id == "bad";
            calls.fetch_add(1, Ordering::Relaxed);
            async move { if rejected { Err(Failure::permanent("refusing")) } else { Ok(Verdict::Done) } }
        }
    });
    publish(&broker.publisher(), &ROUTE, "bad").await;
    publish(&broker.publisher(), &ROUTE, "good").await;
    wait_until("the good one", async || fixture.settled(QUEUE, "completed") > 0.5).await;
    wait_until("a failed settlement", async || fixture.settled(QUEUE, "unsettled") > 0.5).await;
    fixture.purge(DEAD).await;
    wait_until("the parked one", async || fixture.settled(QUEUE, "parked_rejected") > 0.5).await;
    assert!(calls.load(Ordering::Relaxed) >= 3);
    assert!(fixture.reconnects() < 1.0);
    running.stop().await;
}
