//! Retention and days, with a clock that the test moves.

use runfleet_domain::{RunKind, RunState};
use runfleet_store::{End, Started, StoreError};

use crate::world::{Request, World};

const DAY_MS: i64 = 86_400_000;

/// CG-122
#[tokio::test]
async fn a_key_is_held_for_seven_days_after_the_end_and_then_free() {
    let world = World::with_movable_clock().await;
    let request = Request::process().with_key("k");
    let old = world.run(&request).await;
    world.store.end_run(old, &End::plain(RunState::Canceled)).await.unwrap();
    world.move_clock(7 * DAY_MS - 1_000).await;
    let held = Started::Duplicate { run: old, state: RunState::Canceled };
    assert_eq!(world.start(&request.again()).await, held);
    world.move_clock(7 * DAY_MS + 1_000).await;
    let next = request.again();
    let new = world.run(&next).await;
    assert_ne!(new, old);
    let held = Started::Duplicate { run: new, state: RunState::Queued };
    assert_eq!(world.start(&request.again()).await, held);
    // The message of the old start still names the old run.
    let replayed = Started::Replayed { run: old, state: RunState::Canceled };
    assert_eq!(world.start(&request).await, replayed);
    // A clock that steps back does not bring the old run back.
    world.move_clock(0).await;
    assert_eq!(world.start(&request.again()).await, held);
    world.end().await;
}

#[tokio::test]
async fn the_late_hand_over_of_an_old_run_does_not_shorten_the_life_of_its_successors_key() {
    let world = World::with_movable_clock().await;
    let request = Request::process().with_key("k");
    let old = world.ended_run(&request).await;
    world.move_clock(7 * DAY_MS + 1_000).await;
    world.run(&request.again()).await;
    world.store.hand_over(&world.hand_over(old, &request.job)).await.unwrap();
    let mut raw = world.raw().await;
    let ttl: i64 = redis::cmd("TTL")
        .arg(world.key_name("key:acme:crm:k"))
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(ttl, -1);
    world.end().await;
}

/// CG-122
#[tokio::test]
async fn a_key_never_expires_while_its_run_goes_on() {
    let world = World::with_movable_clock().await;
    let request = Request::process().with_key("k");
    let run = world.run(&request).await;
    world.move_clock(400 * DAY_MS).await;
    let held = Started::Duplicate { run, state: RunState::Queued };
    assert_eq!(world.start(&request.again()).await, held);
    world.end().await;
}

/// CG-143
#[tokio::test]
async fn starts_are_counted_by_the_utc_day_of_the_ledger() {
    let world = World::with_movable_clock().await;
    let request = Request { day_limit: 1, ..Request::new(RunKind::Agent) };
    let first = world.run(&request).await;
    let now = world.alarm(first).await.1;
    let now = i64::try_from(now).unwrap();
    let midnight = (now / DAY_MS + 3) * DAY_MS;
    let to = |at: i64| world.move_clock(at - now);
    to(midnight - 5_000).await;
    world.run(&request.again()).await;
    let answer = world.start(&request.again()).await;
    let resets_at_ms = u64::try_from(midnight).unwrap();
    assert_eq!(answer, Started::DayExceeded { limit: 1, resets_at_ms });
    to(midnight + 5_000).await;
    world.run(&request.again()).await;
    assert!(matches!(world.start(&request.again()).await, Started::DayExceeded { .. }));
    // Back over midnight: the new day has begun and stays.
    to(midnight - 5_000).await;
    let answer = world.start(&request.again()).await;
    let resets_at_ms = resets_at_ms + DAY_MS.unsigned_abs();
    assert_eq!(answer, Started::DayExceeded { limit: 1, resets_at_ms });
    world.end().await;
}

/// Midnights after an ordinary day, the day before a leap day, a leap day, and the last day of a year.
const MIDNIGHTS_MS: [i64; 4] =
    [1_835_308_800_000, 1_835_395_200_000, 1_835_481_600_000, 1_861_920_000_000];

/// CG-143
#[tokio::test]
async fn a_day_ends_at_midnight_utc_also_on_a_leap_day_and_at_the_end_of_a_year() {
    let world = World::with_movable_clock().await;
    let probe = world.run(&Request::new(RunKind::Agent)).await;
    let now = i64::try_from(world.load(probe).await.created_at_ms).unwrap();
    let request = Request { day_limit: 2, ..Request::process() };
    for midnight in MIDNIGHTS_MS {
        let to = |at: i64| world.move_clock(at - now);
        let full = |resets_at: i64| Started::DayExceeded {
            limit: 2,
            resets_at_ms: u64::try_from(resets_at).unwrap(),
        };
        to(midnight - DAY_MS + 5_000).await;
        // The last midnight is months later; from the others on the day before has been filled below.
        if matches!(world.start(&request.again()).await, Started::Created { .. }) {
            world.run(&request.again()).await;
        }
        to(midnight - 5_000).await;
        assert_eq!(world.start(&request.again()).await, full(midnight));
        to(midnight + 5_000).await;
        world.run(&request.again()).await;
        // One more fits into the new day, although the clock says the old one again.
        to(midnight - 3_600_000).await;
        world.run(&request.again()).await;
        for back in [0, 3_600_000, DAY_MS, 40 * DAY_MS, 800 * DAY_MS] {
            to(midnight + 5_000 - back).await;
            assert_eq!(world.start(&request.again()).await, full(midnight + DAY_MS));
        }
        assert_eq!(world.starts_today(RunKind::Process).await, 2);
    }
    world.end().await;
}

#[tokio::test]
async fn counters_of_several_days_that_an_older_program_has_stored_are_read() {
    let world = World::new().await;
    let probe = world.run(&Request::new(RunKind::Agent)).await;
    let today = world.load(probe).await.created_at_ms / 86_400_000;
    let mut raw = world.raw().await;
    let days = world.key_name("day:acme:crm:process");
    let mut stored = redis::cmd("HSET");
    stored.arg(&days).arg(today - 1).arg(7).arg(today).arg(1);
    stored.query_async::<()>(&mut raw).await.unwrap();
    let request = Request { day_limit: 2, ..Request::process() };
    world.run(&request).await;
    assert!(matches!(world.start(&request.again()).await, Started::DayExceeded { .. }));
    world.end().await;
}

#[tokio::test]
async fn counters_of_old_days_are_cleared_away() {
    let world = World::with_movable_clock().await;
    for day in 0..12 {
        world.move_clock(day * DAY_MS).await;
        world.run(&Request::process()).await;
    }
    let mut raw = world.raw().await;
    let days = world.key_name("day:acme:crm:process");
    let fields: usize = redis::cmd("HLEN").arg(days).query_async(&mut raw).await.unwrap();
    assert!(fields == 1, "{fields}");
    world.end().await;
}

#[tokio::test]
async fn the_clock_of_a_production_store_cannot_be_moved() {
    let world = World::new().await;
    let error = world.store.set_skew(world.shard, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Config(_)));
    world.end().await;
}
