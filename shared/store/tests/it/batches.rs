//! Batches: revoking them, and what they have got done.

use std::time::Duration;

use runfleet_domain::{RunKind, RunState};
use runfleet_store::{BATCH_REVOKED_MAX, BatchProgress, Started, StoreError, Verdict};

use crate::calls::find;
use crate::world::{Request, World, name};

const HOUR: Duration = Duration::from_hours(1);

/// A start of the batch `exec-1`, whose calls are not counted.
fn of_batch() -> Request {
    Request { batch: true, calls_budget: None, calls_limit: None, ..Request::process() }
}

async fn show(world: &World) -> Option<BatchProgress> {
    let answer = world.store.show_batch(&world.workspace, &world.project, &name("exec-1")).await;
    answer.expect("an answer")
}

async fn accepted_and_refused(world: &World) -> (u64, u64) {
    let progress = show(world).await.expect("a batch that is known");
    (progress.accepted, progress.refused)
}

async fn revoke(world: &World, keep: Duration) -> Result<(), StoreError> {
    world.store.revoke_batch(&world.workspace, &world.project, &name("exec-1"), keep).await
}

#[tokio::test]
async fn a_revoked_batch_starts_nothing_but_what_it_has_made_is_still_told() {
    let world = World::new().await;
    let (workspace, project, execution) = (&world.workspace, &world.project, &name("exec-1"));
    let made = of_batch().with_key("k");
    let run = world.run(&made).await;
    assert!(!world.store.batch_revoked(workspace, project, execution).await.unwrap());
    revoke(&world, HOUR).await.unwrap();
    assert!(world.store.batch_revoked(workspace, project, execution).await.unwrap());
    let replayed = Started::Replayed { run, state: RunState::Queued };
    assert_eq!(world.start(&made).await, replayed);
    // Neither a new message nor one whose key names a run, whatever the verdict.
    for request in [of_batch(), made.again(), Request { verdict: Verdict::Refuse, ..of_batch() }] {
        assert_eq!(world.start(&request).await, Started::Revoked);
        let found = world.store.find_start(&find(&world, &request)).await.unwrap();
        assert_eq!(found, Some(Started::Revoked));
    }
    let stranger = Request { identity: "user:bob".to_owned(), ..made.clone() };
    assert_eq!(world.start(&stranger).await, Started::Conflict);
    // Another batch, another project, and an execution of the same name that is not a batch go on.
    world.run(&Request { execution: name("exec-2"), ..of_batch() }).await;
    world.run(&Request { batch: false, ..of_batch() }).await;
    world.store.unrevoke_batch(workspace, project, execution).await.unwrap();
    world.run(&of_batch()).await;
    world.end().await;
}

#[tokio::test]
async fn a_batch_is_revoked_for_a_time_within_bounds() {
    let world = World::new().await;
    for keep in [Duration::ZERO, BATCH_REVOKED_MAX + HOUR] {
        let error = revoke(&world, keep).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    assert_eq!(show(&world).await, None);
    revoke(&world, BATCH_REVOKED_MAX).await.unwrap();
    revoke(&world, HOUR).await.unwrap();
    let left = show(&world).await.unwrap().revoked_for.unwrap();
    assert!(left <= HOUR && left > HOUR / 2, "{left:?}");
    world.end().await;
}

#[tokio::test]
async fn the_progress_of_a_batch_counts_each_message_once() {
    let world = World::new().await;
    let made = of_batch().with_key("k");
    let duplicate = made.again();
    let refused = Request { verdict: Verdict::Refuse, ..of_batch() };
    let full = Request { day_limit: 0, ..of_batch() };
    for _ in 0..3 {
        world.start(&made).await;
        assert!(matches!(world.start(&duplicate).await, Started::Duplicate { .. }));
        assert_eq!(world.start(&refused).await, Started::Refused);
        assert!(matches!(world.start(&full).await, Started::DayExceeded { .. }));
    }
    assert_eq!(accepted_and_refused(&world).await, (2, 2));
    // The one that waited for the next day is accepted in the end.
    let full = Request { day_limit: 9, ..full };
    for _ in 0..2 {
        world.start(&full).await;
    }
    assert_eq!(accepted_and_refused(&world).await, (3, 1));
    revoke(&world, HOUR).await.unwrap();
    let late = of_batch();
    for _ in 0..2 {
        assert_eq!(world.start(&late).await, Started::Revoked);
    }
    assert_eq!(accepted_and_refused(&world).await, (3, 2));
    assert_eq!(world.starts_today(RunKind::Process).await, 2);
    world.end().await;
}

#[tokio::test]
async fn the_progress_of_a_batch_is_kept_anew_once_an_hour_and_with_everything_it_remembers() {
    let world = World::with_movable_clock().await;
    let refused = Request { verdict: Verdict::Refuse, ..of_batch() };
    let mut raw = world.raw().await;
    let keys = ["batch", "batchids"].map(|it| world.key_name(&format!("{it}:acme:crm:exec-1")));
    let shorten = async |raw: &mut redis::aio::MultiplexedConnection| {
        for key in &keys {
            let _: i64 = redis::cmd("EXPIRE").arg(key).arg(100).query_async(raw).await.unwrap();
        }
    };
    let renewed = async |raw: &mut redis::aio::MultiplexedConnection| {
        let mut left = Vec::new();
        for key in &keys {
            let ttl: i64 = redis::cmd("TTL").arg(key).query_async(raw).await.unwrap();
            left.push(ttl > 100);
        }
        left
    };
    world.start(&refused).await;
    shorten(&mut raw).await;
    world.run(&of_batch()).await;
    assert_eq!(renewed(&mut raw).await, [false, false], "within the hour");
    world.move_clock(3_600_001).await;
    world.run(&of_batch()).await;
    assert_eq!(renewed(&mut raw).await, [true, true], "after an hour");
    shorten(&mut raw).await;
    world.start(&refused).await;
    assert_eq!(renewed(&mut raw).await, [true, true], "with what is remembered");
    assert_eq!(accepted_and_refused(&world).await, (2, 1));
    // Redis was short of memory, say: what was counted is gone, what was refused is still known.
    let _: i64 = redis::cmd("DEL").arg(&keys[0]).query_async(&mut raw).await.unwrap();
    assert_eq!(world.start(&refused).await, Started::Refused);
    assert_eq!(accepted_and_refused(&world).await, (0, 0));
    world.end().await;
}

#[tokio::test]
async fn the_progress_of_a_batch_has_times_and_an_end() {
    let world = World::with_movable_clock().await;
    world.run(&of_batch()).await;
    let first = show(&world).await.unwrap();
    assert_eq!(first.first_at_ms, first.last_at_ms);
    world.move_clock(60_000).await;
    world.start(&Request { verdict: Verdict::Refuse, ..of_batch() }).await;
    let last = show(&world).await.unwrap();
    assert_eq!(last.first_at_ms, first.first_at_ms);
    assert!(last.last_at_ms.unwrap() >= first.last_at_ms.unwrap() + 60_000);
    let mut raw = world.raw().await;
    for kind in ["batch", "batchids"] {
        let key = world.key_name(&format!("{kind}:acme:crm:exec-1"));
        let ttl: u64 = redis::cmd("TTL").arg(key).query_async(&mut raw).await.unwrap();
        assert!((30 * 86_400..=30 * 86_400 + 3_600).contains(&ttl), "{kind}: {ttl}");
    }
    world.end().await;
}

#[tokio::test]
async fn starts_that_are_not_of_a_batch_leave_no_progress() {
    let world = World::new().await;
    world.run(&Request::process()).await;
    assert_eq!(show(&world).await, None);
    world.end().await;
}
