//! Idempotency keys under the eyes and hands of operators.

use runfleet_domain::{RunKind, RunState};
use runfleet_store::{End, HeldKey, Started};

use crate::world::{Request, World, finished, key, name};

const WEEK_MS: u64 = 7 * 86_400_000;

async fn show(world: &World, text: &str) -> Option<HeldKey> {
    world.store.show_key(&world.workspace, &world.project, &key(text)).await.expect("an answer")
}

async fn release(world: &World, text: &str) -> Option<runfleet_domain::RunId> {
    world.store.release_key(&world.workspace, &world.project, &key(text)).await.expect("an answer")
}

/// Milliseconds that a key has to live; -1 without end, -2 when it is not there.
async fn pttl(world: &World, text: &str) -> i64 {
    let mut raw = world.raw().await;
    let name = world.key_name(&format!("key:acme:crm:{text}"));
    redis::cmd("PTTL").arg(name).query_async(&mut raw).await.expect("a time to live")
}

async fn remove(world: &World, rest: &str) {
    let mut raw = world.raw().await;
    redis::cmd("DEL").arg(world.key_name(rest)).query_async::<()>(&mut raw).await.expect("gone");
}

/// CG-122
#[tokio::test]
async fn a_key_is_shown_with_its_run_and_how_long_it_is_held() {
    let world = World::with_movable_clock().await;
    assert_eq!(show(&world, "k").await, None);
    let run = world.run(&Request::new(RunKind::Agent).with_key("k")).await;
    let mut expected = HeldKey {
        run,
        target: name("invoice"),
        state: RunState::Queued,
        identity: "user:ann".to_owned(),
        created_at_ms: world.load(run).await.created_at_ms,
        finished_at_ms: None,
        held_until_ms: None,
    };
    assert_eq!(show(&world, "k").await, Some(expected.clone()));
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let ended = world.load(run).await.finished_at_ms.unwrap();
    expected.state = RunState::Canceled;
    expected.finished_at_ms = Some(ended);
    expected.held_until_ms = Some(ended + WEEK_MS);
    assert_eq!(show(&world, "k").await, Some(expected));
    let after = i64::try_from(WEEK_MS).unwrap() + 1_000;
    world.move_clock(after).await;
    assert_eq!(show(&world, "k").await, None);
    let elsewhere = world.store.show_key(&world.workspace, &name("hr"), &key("k")).await.unwrap();
    assert_eq!(elsewhere, None);
    world.end().await;
}

#[tokio::test]
async fn a_released_key_is_free_at_once_and_its_run_goes_on() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let old = world.run(&request).await;
    assert_eq!(release(&world, "k").await, Some(old));
    assert_eq!(release(&world, "k").await, None);
    assert_eq!(world.load(old).await.state, RunState::Queued);
    // The message of the old run still names it; the key is anybody's.
    assert!(matches!(world.start(&request).await, Started::Replayed { run, .. } if run == old));
    let bob = Request { identity: "user:bob".to_owned(), ..request.again() };
    let new = world.run(&bob).await;
    assert_ne!(new, old);
    assert_eq!(show(&world, "k").await.unwrap().run, new);
    world.end().await;
}

#[tokio::test]
async fn a_release_that_is_sent_again_does_not_take_the_key_from_its_next_holder() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let old = world.run(&request).await;
    release(&world, "k").await;
    let new = world.run(&request.again()).await;
    let script = include_str!("../../src/lua/key_release.lua").replace("#!lua", "");
    let mut raw = world.raw().await;
    let mut again = redis::cmd("EVAL");
    again.arg(script).arg(1).arg(world.key_name("key:acme:crm:k")).arg(old.to_string());
    let answer: Vec<String> = again.query_async(&mut raw).await.unwrap();
    assert_eq!(answer, ["released"]);
    assert_eq!(show(&world, "k").await.unwrap().run, new);
    world.end().await;
}

#[tokio::test]
async fn neither_the_end_nor_the_hand_over_of_a_run_touches_the_key_that_was_taken_from_it() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let old = world.run(&request).await;
    release(&world, "k").await;
    let new = world.run(&request.again()).await;
    let fence = world.claim(old).await;
    let end = End::plain(RunState::Completed);
    let answer = world.store.finish_run(old, fence, &end).await.unwrap();
    assert_eq!(answer, finished(true));
    world.store.hand_over(&world.hand_over(old, &request.job)).await.unwrap();
    assert_eq!((pttl(&world, "k").await, show(&world, "k").await.unwrap().run), (-1, new));
    // The same for a run without an outcome, and for a key that nobody has taken since.
    let silent = Request { outcome: false, ..Request::process().with_key("s") };
    let run = world.run(&silent).await;
    release(&world, "s").await;
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(pttl(&world, "s").await, -2);
    world.end().await;
}

#[tokio::test]
async fn a_key_of_a_vanished_run_is_shown_as_free_and_repairs_itself_at_the_next_start() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let lost = world.run(&request).await;
    remove(&world, &format!("run:{lost}")).await;
    assert_eq!(show(&world, "k").await, None);
    assert_eq!(release(&world, "k").await, None);
    // Also for somebody else, and also when the message is the old one.
    let bob = Request { identity: "user:bob".to_owned(), ..request.clone() };
    let new = world.run(&bob).await;
    assert_eq!(show(&world, "k").await.unwrap().run, new);
    assert_eq!(world.start(&request.again()).await, Started::Conflict);
    world.end().await;
}
