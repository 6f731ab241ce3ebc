//! How many messages an agent sends a person.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::RunId;
use runfleet_store::{DeliveryStatus, MarkHow, MessageCaps, Refused, Reserve, Reserved};

use crate::chat_world::{Chat, NO_CAPS, rate_limited};
use crate::world::{World, name};

const DAY_MS: i64 = 86_400_000;

fn is_reserved(answer: &Reserved) -> bool {
    matches!(answer, Reserved::Reserved(_))
}

/// Whether one more message of a fresh run may be sent.
async fn one_more(chat: &Chat, caps: MessageCaps) -> bool {
    let run = chat.run().await;
    let message = Reserve { caps, ..chat.message(run, "c1") };
    match chat.reserve(&message).await {
        Reserved::Reserved(_) => true,
        Reserved::Known { delivery, first: true } => {
            assert_eq!(delivery, rate_limited());
            assert_eq!(chat.delivery(run).await, Some(rate_limited()));
            false
        }
        other => panic!("{other:?}"),
    }
}

async fn clock(chat: &Chat, run: RunId) -> i64 {
    i64::try_from(chat.world.load(run).await.created_at_ms).unwrap()
}

/// CG-078, CG-148
#[tokio::test]
async fn caps_of_runs_and_days_are_exact_also_when_many_are_reserved_at_once() {
    let chat = Chat::of(World::with(|config| config.connections = 8).await);
    let caps = MessageCaps { per_run: 3, per_day: 20, ..NO_CAPS };
    let runs = join_all((0..16).map(|_| chat.run())).await;
    // Each of 16 runs tries four, all of them at once.
    let answers = join_all(runs.iter().flat_map(|run| {
        let chat = &chat;
        ["c1", "c2", "c3", "c4"].map(|call| async move {
            let message = Reserve { caps, ..chat.message(*run, call) };
            (*run, chat.reserve(&message).await)
        })
    }))
    .await;
    assert_eq!(answers.iter().filter(|(_, answer)| is_reserved(answer)).count(), 20);
    for run in &runs {
        let of_run = answers.iter().filter(|(of, answer)| of == run && is_reserved(answer));
        assert!(of_run.count() <= 3);
    }
    let blocked = answers
        .iter()
        .filter(|(_, answer)| *answer == Reserved::Known { delivery: rate_limited(), first: true });
    assert_eq!(blocked.count(), 44);
    // Another person is not concerned, nor is another agent.
    let ben = Chat { person: name("ben"), ..chat };
    assert!(one_more(&ben, caps).await);
    let writer = Chat { person: name("ada"), agent: name("writer"), ..ben };
    assert!(one_more(&writer, caps).await);
    writer.world.end().await;
}

/// CG-078
#[tokio::test]
async fn a_run_sends_no_more_than_its_cap_and_the_same_call_again_counts_once() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let caps = MessageCaps { per_run: 2, ..NO_CAPS };
    let message = Reserve { caps, ..chat.message(run, "c1") };
    let conversation = chat.send(&message).await;
    for _ in 0..3 {
        assert!(matches!(chat.reserve(&message).await, Reserved::Known { first: false, .. }));
    }
    chat.send(&Reserve { call_id: "c2", ..message }).await;
    let over = Reserve { call_id: "c3", ..message };
    let known = |first| Reserved::Known { delivery: rate_limited(), first };
    assert_eq!(chat.reserve(&over).await, known(true));
    assert_eq!(chat.reserve(&over).await, known(false));
    assert_eq!(chat.texts(conversation).await.len(), 2);
    chat.world.end().await;
}

/// CG-078
#[tokio::test]
async fn the_cap_of_a_day_begins_anew_at_midnight_utc_and_never_runs_backwards() {
    let chat = Chat::of(World::with_movable_clock().await);
    let caps = MessageCaps { per_day: 2, ..NO_CAPS };
    let now = clock(&chat, chat.run().await).await;
    let midnight = (now / DAY_MS + 3) * DAY_MS;
    chat.world.move_clock(midnight - 5_000 - now).await;
    // One is on its way over midnight.
    let run = chat.run().await;
    let message = Reserve { caps, ..chat.message(run, "c1") };
    let in_flight = chat.sending(&message).await;
    assert!(one_more(&chat, caps).await);
    assert!(!one_more(&chat, caps).await);
    chat.world.move_clock(midnight + 5_000 - now).await;
    // It counts on the day on which it was reserved, also when it is given back on the next.
    assert!(one_more(&chat, caps).await);
    let refused = Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };
    chat.mark(&message, in_flight.fence, MarkHow::NotSent(refused)).await;
    assert!(one_more(&chat, caps).await);
    assert!(!one_more(&chat, caps).await);
    for back in [5_001, 3_600_000, DAY_MS, 40 * DAY_MS] {
        chat.world.move_clock(midnight - back - now).await;
        assert!(!one_more(&chat, caps).await, "{back}");
    }
    chat.world.move_clock(midnight + DAY_MS + 5_000 - now).await;
    assert!(one_more(&chat, caps).await);
    chat.world.end().await;
}

/// CG-078
#[tokio::test]
async fn messages_in_a_row_are_spaced_out_and_a_step_back_of_the_clock_blocks_nobody() {
    let chat = Chat::of(World::with_movable_clock().await);
    let caps = MessageCaps { burst: 3, period: Duration::from_mins(10), ..NO_CAPS };
    let minutes = |minutes: i64| chat.world.move_clock(minutes * 60_000);
    for expected in [true, true, true, false] {
        assert_eq!(one_more(&chat, caps).await, expected);
    }
    minutes(9).await;
    assert!(!one_more(&chat, caps).await);
    minutes(11).await;
    assert!(one_more(&chat, caps).await);
    assert!(!one_more(&chat, caps).await);
    // All of the burst is there again later, and no more than it.
    minutes(300).await;
    for expected in [true, true, true, false] {
        assert_eq!(one_more(&chat, caps).await, expected);
    }
    minutes(-5_000).await;
    assert!(!one_more(&chat, caps).await);
    minutes(-5_000 + 31).await;
    assert!(one_more(&chat, caps).await);
    chat.world.end().await;
}

#[tokio::test]
async fn what_surely_was_not_sent_does_not_count_and_what_perhaps_was_does() {
    let chat = Chat::new().await;
    let day = MessageCaps { per_day: 1, ..NO_CAPS };
    let row = MessageCaps { burst: 1, period: Duration::from_hours(1), ..NO_CAPS };
    let of_run = MessageCaps { per_run: 1, ..NO_CAPS };
    let refused = Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };
    for (place, caps) in [day, row, of_run].into_iter().enumerate() {
        let chat = Chat {
            world: World::new().await,
            agent: chat.agent.clone(),
            person: name(&format!("p{place}")),
        };
        let run = chat.run().await;
        let message = Reserve { caps, ..chat.message(run, "c1") };
        chat.sending(&message).await;
        chat.mark(&message, 1, MarkHow::NotSent(refused)).await;
        let next = Reserve { call_id: "c2", ..message };
        chat.sending(&next).await;
        chat.mark(&next, 1, MarkHow::Failed(refused)).await;
        let third = Reserve { call_id: "c3", ..message };
        let blocked = Reserved::Known { delivery: rate_limited(), first: true };
        assert_eq!(chat.reserve(&third).await, blocked, "{place}");
        chat.world.end().await;
    }
    chat.world.end().await;
}
