//! Messages that find the run that waits for them, or are kept for it.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::{INBOX_EVENTS_MAX, MESSAGES_KEPT_OF_KEY_MAX};
use runfleet_domain::{Lane, MessageId, RunId, RunState};
use runfleet_store::{
    Checkpoint, Claim, Claimed, End, Event, PublishMessage, Published, Saved, StoreError, Wait,
    Waits, Wake, Woken,
};
use ulid::Ulid;

use crate::world::{Request, World, message};

pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// A subscription to the message `paid`.
pub(crate) fn paid(key: &str, subscription: u64) -> Wait<'_> {
    Wait::Message { name: "paid", key: Some(key), subscription }
}

impl World {
    /// Gives a run back that waits for all of these, and returns the events that wait instead, if there are any.
    pub(crate) async fn give_back(
        &self,
        run: RunId,
        fence: u64,
        list: &[Wait<'_>],
        consumed: &[MessageId],
    ) -> Vec<Event> {
        let waits = Waits { workspace: &self.workspace, project: &self.project, list };
        let checkpoint = Checkpoint {
            release: true,
            wake: Wake::Never,
            waits: Some(&waits),
            consumed,
            ..Checkpoint::new("p")
        };
        match self.store.checkpoint_run(run, fence, &checkpoint).await.expect("an answer") {
            Saved::Saved { released, inbox } => {
                assert_eq!(released, inbox.is_empty());
                inbox
            }
            other => panic!("not saved: {other:?}"),
        }
    }

    /// A run that waits for all of these and that nobody holds.
    pub(crate) async fn waiting_run(&self, list: &[Wait<'_>]) -> RunId {
        let run = self.run(&Request::process()).await;
        let fence = self.claim(run).await;
        assert!(self.give_back(run, fence, list, &[]).await.is_empty());
        run
    }

    /// Publishes the message `paid`.
    pub(crate) async fn publish(&self, key: &str, id: &str, ttl: Duration) -> Published {
        let variables_json = format!(r#"{{"id":"{id}"}}"#);
        let publish = PublishMessage {
            workspace: &self.workspace,
            project: &self.project,
            name: "paid",
            key: Some(key),
            variables_json: &variables_json,
            id: &message(id),
            ttl,
        };
        self.store.publish_message(&publish).await.expect("an answer")
    }

    /// Claims a run and returns the fence and all events that wait for it.
    pub(crate) async fn claim_events(&self, run: RunId) -> (u64, Vec<Event>) {
        match self.store.claim_run(run, Claim::default()).await.expect("an answer") {
            Claimed::Claimed { fence, inbox, .. } => (fence, inbox),
            other => panic!("not claimed: {other:?}"),
        }
    }

    /// How many keys of the shard begin like this.
    pub(crate) async fn keys_like(&self, rest: &str) -> usize {
        let pattern = self.key_name(rest).replace('{', "\\{");
        let mut raw = self.raw().await;
        let keys: Vec<String> =
            redis::cmd("KEYS").arg(pattern).query_async(&mut raw).await.expect("keys");
        keys.len()
    }
}

/// The run that has got a message.
pub(crate) fn receiver(published: &Published) -> RunId {
    match published {
        Published::Delivered { to, .. } => to.run_id,
        other => panic!("not delivered: {other:?}"),
    }
}

pub(crate) fn body(subscription: u64, id: &str) -> String {
    format!(r#"{{"kind":"message","subscription":{subscription},"variables":{{"id":"{id}"}}}}"#)
}

#[tokio::test]
async fn a_message_goes_to_the_subscription_that_has_waited_longest_and_to_no_other() {
    let world = World::new().await;
    let first = world.waiting_run(&[paid("7", 3), paid("8", 4)]).await;
    let second = world.waiting_run(&[paid("7", 1)]).await;
    let published = world.publish("7", "m1", Duration::ZERO).await;
    let traceparent = world.load(first).await.traceparent;
    let to = Woken { run_id: first, lane: Lane::Interactive, traceparent };
    assert_eq!(published, Published::Delivered { to, again: false });
    assert!(world.alarm_is_in(first, Duration::from_secs(5)).await);
    assert_eq!(receiver(&world.publish("7", "m2", Duration::ZERO).await), second);
    assert_eq!(world.publish("7", "m3", Duration::ZERO).await, Published::Nobody);
    assert_eq!(world.publish("9", "m4", Duration::ZERO).await, Published::Nobody);
    let (_, inbox) = world.claim_events(first).await;
    assert_eq!(inbox.len(), 1);
    assert_eq!(inbox[0].body, body(3, "m1"));
    let explained = world.store.explain_run(first).await.unwrap().unwrap();
    assert_eq!((explained.waits, explained.inbox_events), (2, 1));
    world.end().await;
}

#[tokio::test]
async fn names_keys_and_projects_are_told_apart_whatever_characters_they_have() {
    let world = World::new().await;
    let list = [
        Wait::Message { name: "a:b", key: Some("c"), subscription: 1 },
        Wait::Message { name: "a", key: Some("b:c"), subscription: 2 },
        Wait::Message { name: "a\u{0}{x}", key: None, subscription: 3 },
    ];
    let run = world.waiting_run(&list).await;
    let other = crate::world::name("billing");
    let publish = async |project, name, key, id| {
        let publish = PublishMessage {
            workspace: &world.workspace,
            project,
            name,
            key,
            variables_json: "{}",
            id: &message(id),
            ttl: Duration::ZERO,
        };
        world.store.publish_message(&publish).await.unwrap()
    };
    assert_eq!(publish(&other, "a", Some("b:c"), "m1").await, Published::Nobody);
    assert_eq!(publish(&world.project, "a:b:c", None, "m2").await, Published::Nobody);
    // Nothing is remembered of a message that reached nobody, and an empty key is no key.
    assert_eq!(receiver(&publish(&world.project, "a", Some("b:c"), "m2").await), run);
    assert_eq!(receiver(&publish(&world.project, "a\u{0}{x}", Some(""), "m3").await), run);
    let (_, inbox) = world.claim_events(run).await;
    let bodies: Vec<_> = inbox.iter().map(|event| event.body.as_str()).collect();
    let expected = [2, 3]
        .map(|number| format!(r#"{{"kind":"message","subscription":{number},"variables":{{}}}}"#));
    assert_eq!(bodies, expected);
    world.end().await;
}

#[tokio::test]
async fn the_same_message_again_names_the_same_run_and_adds_nothing() {
    let world = World::new().await;
    let run = world.waiting_run(&[paid("7", 1), paid("7", 2)]).await;
    let publishes = (0..16).map(|_| world.publish("7", "m", HOUR));
    let answers = join_all(publishes).await;
    assert!(answers.iter().all(|answer| receiver(answer) == run));
    let first = |answer: &&Published| matches!(answer, Published::Delivered { again: false, .. });
    assert_eq!(answers.iter().filter(first).count(), 1);
    let (_, inbox) = world.claim_events(run).await;
    assert_eq!(inbox.len(), 1);
    assert_eq!(world.publish("8", "k", HOUR).await, Published::Buffered { again: false });
    assert_eq!(world.publish("8", "k", HOUR).await, Published::Buffered { again: true });
    world.end().await;
}

#[tokio::test]
async fn a_subscription_gets_one_message_also_when_its_run_still_names_it() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let list = [paid("7", 1)];
    assert!(world.give_back(run, fence, &list, &[]).await.is_empty());
    let (fence, _) = world.claim_events(run).await;
    // It comes while the holder computes from what it knew before.
    world.publish("7", "m1", Duration::ZERO).await;
    let inbox = world.give_back(run, fence, &list, &[]).await;
    assert_eq!(inbox.len(), 1);
    assert_eq!(world.publish("7", "m2", Duration::ZERO).await, Published::Nobody);
    // For the next one it subscribes under another number.
    let consumed = [inbox[0].id.clone()];
    assert!(world.give_back(run, fence, &[paid("7", 2)], &consumed).await.is_empty());
    assert_eq!(receiver(&world.publish("7", "m3", Duration::ZERO).await), run);
    world.end().await;
}

#[tokio::test]
async fn a_kept_message_is_in_the_inbox_at_once_when_somebody_subscribes() {
    let world = World::new().await;
    for id in ["m1", "m2", "m3"] {
        assert_eq!(world.publish("7", id, HOUR).await, Published::Buffered { again: false });
    }
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let list = [paid("7", 5), paid("7", 6), paid("8", 7)];
    let inbox = world.give_back(run, fence, &list, &[]).await;
    let bodies: Vec<_> = inbox.iter().map(|event| event.body.clone()).collect();
    assert_eq!(bodies, [body(5, "m1"), body(6, "m2")]);
    // The lease is still there, and the subscriptions that were served wait no longer.
    let consumed: Vec<_> = inbox.into_iter().map(|event| event.id).collect();
    assert!(world.give_back(run, fence, &[paid("8", 7)], &consumed).await.is_empty());
    assert_eq!(world.keys_like("wait:*").await, 1);
    // The third is kept, and a fourth queues behind it.
    assert_eq!(world.publish("7", "m4", HOUR).await, Published::Buffered { again: false });
    let other = world.run(&Request::process()).await;
    let fence = world.claim(other).await;
    let inbox = world.give_back(other, fence, &[paid("7", 1)], &[]).await;
    assert_eq!(inbox[0].body, body(1, "m3"));
    world.end().await;
}

#[tokio::test]
async fn a_message_whose_time_is_over_is_given_to_nobody() {
    let world = World::with_movable_clock().await;
    world.publish("7", "m1", Duration::from_mins(1)).await;
    world.publish("7", "m2", 2 * HOUR).await;
    world.move_clock(61_000).await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let inbox = world.give_back(run, fence, &[paid("7", 1)], &[]).await;
    assert_eq!(inbox[0].body, body(1, "m2"));
    assert_eq!(world.keys_like("kept:*").await, 0);
    assert_eq!(world.keys_like("bodies:*").await, 0);
    assert_eq!(world.keys_like("keptall:*").await, 0);
    // The keys of what nobody fetches have a lifetime of their own, that of the message that lives longest.
    world.publish("8", "m3", 2 * HOUR).await;
    world.publish("8", "m4", HOUR).await;
    let mut raw = world.raw().await;
    let pattern = world.key_name("*").replace('{', "\\{");
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut raw).await.unwrap();
    let two_hours = i64::try_from((2 * HOUR).as_millis()).unwrap();
    for key in keys.iter().filter(|key| key.contains(":kept:") || key.contains(":bodies:")) {
        let lives: i64 = redis::cmd("PTTL").arg(key).query_async(&mut raw).await.unwrap();
        assert!((two_hours - 60_000..=two_hours).contains(&lives), "{key} {lives}");
    }
    world.end().await;
}

#[tokio::test]
async fn no_more_messages_are_kept_than_may_be_and_those_that_are_over_make_room() {
    let world = World::with_movable_clock().await;
    let ids: Vec<_> = (0..MESSAGES_KEPT_OF_KEY_MAX).map(|number| format!("m{number}")).collect();
    let kept = join_all(ids.iter().map(|id| world.publish("7", id, HOUR))).await;
    assert!(kept.iter().all(|answer| *answer == Published::Buffered { again: false }));
    assert_eq!(world.publish("7", "more", HOUR).await, Published::Full);
    assert_eq!(world.publish("8", "other", HOUR).await, Published::Buffered { again: false });
    world.move_clock(3_600_001).await;
    assert_eq!(world.publish("7", "more", HOUR).await, Published::Buffered { again: false });
    let mut raw = world.raw().await;
    let all = world.key_name("keptall:acme:crm");
    let left: u32 = redis::cmd("ZCARD").arg(&all).query_async(&mut raw).await.unwrap();
    // One script removes the leftovers of its own key and a hundred at most of the project: of 101 one is left, and the new.
    assert_eq!(left, 2);
    // The bound of the project: entries of keys that nobody asks for.
    let mut fill = redis::cmd("ZADD");
    fill.arg(&all);
    for number in 0..9_999 {
        fill.arg(9_000_000_000_000_u64).arg(format!("{number:032x}:x"));
    }
    fill.query_async::<()>(&mut raw).await.unwrap();
    assert_eq!(world.publish("9", "late", HOUR).await, Published::Full);
    assert_eq!(world.publish("9", "late", Duration::ZERO).await, Published::Nobody);
    world.end().await;
}

#[tokio::test]
async fn a_full_inbox_takes_nothing_from_the_message_and_nothing_from_the_subscription() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.waiting_run(&[paid("7", 1)]).await;
    let ids: Vec<_> = (0..INBOX_EVENTS_MAX).map(|number| message(&format!("e{number}"))).collect();
    join_all(ids.iter().map(|id| world.store.append_event(run, id, "{}"))).await;
    assert_eq!(world.publish("7", "m", HOUR).await, Published::Full);
    let (fence, inbox) = world.claim_events(run).await;
    let consumed: Vec<_> = inbox.into_iter().map(|event| event.id).collect();
    let checkpoint = Checkpoint { consumed: &consumed, ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    assert_eq!(receiver(&world.publish("7", "m", HOUR).await), run);
    world.end().await;
}

#[tokio::test]
async fn an_ended_run_gets_no_message_and_leaves_no_wait_behind() {
    let world = World::new().await;
    let over = world.waiting_run(&[paid("7", 1), Wait::Signal { name: "stop" }]).await;
    let good = world.waiting_run(&[paid("7", 1)]).await;
    world.store.end_run(over, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(receiver(&world.publish("7", "m1", Duration::ZERO).await), good);
    assert_eq!(world.keys_like("wait:*").await, 0);
    assert_eq!(world.keys_like("signal:*").await, 0);
    // A leftover of a run that vanished or was ended past the index is passed over and removed.
    let damaged = world.waiting_run(&[paid("7", 1)]).await;
    let last = world.waiting_run(&[paid("7", 1)]).await;
    let mut raw = world.raw().await;
    let run_key = world.key_name(&format!("run:{damaged}"));
    redis::cmd("DEL").arg(run_key).query_async::<()>(&mut raw).await.unwrap();
    assert_eq!(receiver(&world.publish("7", "m2", Duration::ZERO).await), last);
    assert_eq!(world.keys_like("wait:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn a_held_run_gets_its_message_and_sees_it_when_it_goes_on() {
    let world = World::new().await;
    let run = world.waiting_run(&[paid("7", 1)]).await;
    world.store.pause_run(run).await.unwrap();
    assert_eq!(receiver(&world.publish("7", "m", Duration::ZERO).await), run);
    assert_eq!(world.alarm(run).await.0, None);
    world.store.resume_run(run).await.unwrap();
    assert!(world.alarm_is_in(run, Duration::from_secs(5)).await);
    let (_, inbox) = world.claim_events(run).await;
    assert_eq!(inbox.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn messages_and_subscriptions_that_meet_in_any_order_are_paired_one_to_one() {
    let world = World::with(|config| config.connections = 4).await;
    let mut runs = Vec::new();
    for _ in 0..30 {
        let run = world.run(&Request::process()).await;
        runs.push((run, world.claim(run).await));
    }
    let ids: Vec<_> = (0..30).map(|_| Ulid::generate().to_string()).collect();
    let subscribes = runs.iter().map(|(run, fence)| async {
        world.give_back(*run, *fence, &[paid("7", 1)], &[]).await.len()
    });
    let publishes = ids.iter().map(|id| world.publish("7", id, HOUR));
    let (at_once, published) = tokio::join!(join_all(subscribes), join_all(publishes));
    let delivered =
        published.iter().filter(|answer| matches!(answer, Published::Delivered { .. })).count();
    assert_eq!(delivered + at_once.iter().sum::<usize>(), 30);
    let mut seen = std::collections::BTreeSet::new();
    for (run, _) in &runs {
        let explained = world.store.explain_run(*run).await.unwrap().unwrap();
        assert_eq!(explained.inbox_events, 1);
        let inbox = format!("events:{run}");
        let mut raw = world.raw().await;
        let bodies: Vec<String> =
            redis::cmd("HVALS").arg(world.key_name(&inbox)).query_async(&mut raw).await.unwrap();
        seen.extend(bodies);
    }
    assert_eq!(seen.len(), 30);
    assert_eq!(world.keys_like("wait:*").await + world.keys_like("kept:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused_before_anything_is_sent() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let long = "x".repeat(257);
    let many: Vec<_> = (0..1_001).map(|number| paid("7", number)).collect();
    let lists: [&[Wait<'_>]; 4] =
        [&[Wait::Signal { name: "" }], &[Wait::Signal { name: &long }], &[paid(&long, 1)], &many];
    for list in lists {
        let waits = Waits { workspace: &world.workspace, project: &world.project, list };
        let checkpoint = Checkpoint { waits: Some(&waits), ..Checkpoint::new("p") };
        let error = world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    let (large, id) = ("x".repeat(65_537), message("m"));
    let good = PublishMessage {
        workspace: &world.workspace,
        project: &world.project,
        name: "paid",
        key: None,
        variables_json: "{}",
        id: &id,
        ttl: Duration::ZERO,
    };
    for bad in [
        PublishMessage { variables_json: &large, ..good },
        PublishMessage { ttl: 170 * HOUR, ..good },
        PublishMessage { key: Some(&long), ..good },
    ] {
        let error = world.store.publish_message(&bad).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_thousand_waits_are_changed_in_one_call_and_cleared_by_the_end() {
    let world = World::new().await;
    let keys: Vec<_> = (0..2_000_u64).map(|number| format!("k{number}")).collect();
    let list = |from: usize| -> Vec<_> {
        (from..from + 1_000).map(|number| paid(&keys[number], number as u64)).collect()
    };
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    assert!(world.give_back(run, fence, &list(0), &[]).await.is_empty());
    let fence = world.claim(run).await;
    assert!(world.give_back(run, fence, &list(500), &[]).await.is_empty());
    assert_eq!(world.keys_like("wait:*").await, 1_000);
    assert_eq!(world.publish("k499", "m1", Duration::ZERO).await, Published::Nobody);
    assert_eq!(receiver(&world.publish("k1499", "m2", Duration::ZERO).await), run);
    assert_eq!(world.load(run).await.waits, 1_000);
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(world.keys_like("wait:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn a_live_run_is_found_behind_thousands_of_leftovers() {
    let world = World::new().await;
    let run = world.waiting_run(&[paid("7", 1)]).await;
    let mut raw = world.raw().await;
    let pattern = world.key_name("wait:*").replace('{', "\\{");
    let names: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut raw).await.unwrap();
    let mut add = redis::cmd("ZADD");
    add.arg(&names[0]);
    for number in 0..2_500 {
        let gone = world.fresh_run(runfleet_domain::RunKind::Process);
        add.arg(number - 10_000).arg(format!("{gone}:{number}"));
    }
    add.query_async::<()>(&mut raw).await.unwrap();
    assert_eq!(receiver(&world.publish("7", "m", Duration::ZERO).await), run);
    assert_eq!(world.keys_like("wait:*").await, 0);
    world.end().await;
}
