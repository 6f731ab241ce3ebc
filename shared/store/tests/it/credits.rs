//! What answers of models cost, and who makes a call.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use runfleet_domain::admission::CreditsUsed;
use runfleet_domain::{Name, RunKind, RunState};
use runfleet_store::{Appended, ChildStarted, End, Held, ModelAnswer, StartChild};

use crate::children::call;
use crate::world::{Request, World, message, name};

fn answer<'a>(world: &'a World, agent: &'a Name, cost: u64) -> ModelAnswer<'a> {
    ModelAnswer {
        workspace: &world.workspace,
        agent,
        body: "{}",
        cost,
        input_tokens: 11,
        output_tokens: 3,
        counts: true,
    }
}

async fn used(world: &World, agent: &Name) -> (u64, u64) {
    let CreditsUsed { workspace, agent } =
        world.store.credits_used(&world.workspace, agent).await.unwrap();
    (workspace, agent)
}

/// CG-161
#[tokio::test]
async fn an_answer_is_charged_once_to_run_agent_and_workspace_however_often_it_comes() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.run(&Request::new(RunKind::Agent)).await;
    let (coach, other) = (name("coach"), name("other"));
    assert_eq!(used(&world, &coach).await, (0, 0));
    let (first, second) = (message("turn:1:1"), message("turn:2:1"));
    let same = answer(&world, &coach, 70);
    let appends = (0..16).map(|_| world.store.append_answer(run, &first, &same));
    let added = join_all(appends).await.into_iter().map(Result::unwrap);
    assert_eq!(added.filter(|answer| *answer == Appended::Added).count(), 1);
    assert_eq!(used(&world, &coach).await, (70, 70));
    world.store.append_answer(run, &second, &answer(&world, &other, 5)).await.unwrap();
    assert_eq!(used(&world, &coach).await, (75, 70));
    assert_eq!(used(&world, &other).await, (75, 5));
    assert_eq!(world.load(run).await.cost, 75);
    world.end().await;
}

/// CG-161
#[tokio::test]
async fn an_answer_that_nobody_takes_is_not_charged() {
    let world = World::new().await;
    let coach = name("coach");
    let missing = world.fresh_run(RunKind::Agent);
    let told = |run| {
        let (id, answer) = (message("turn:1:1"), answer(&world, &coach, 70));
        let store = world.store.clone();
        async move { store.append_answer(run, &id, &answer).await.unwrap() }
    };
    assert_eq!(told(missing).await, Appended::Missing);
    let run = world.ended_run(&Request::new(RunKind::Agent)).await;
    assert_eq!(told(run).await, Appended::Ended);
    assert_eq!(used(&world, &coach).await, (0, 0));
    world.end().await;
}

#[tokio::test]
async fn sums_stay_at_the_largest_that_can_be_counted() {
    let world = World::new().await;
    let run = world.run(&Request::new(RunKind::Agent)).await;
    let coach = name("coach");
    for number in 1..=3 {
        let most = ModelAnswer { input_tokens: u64::MAX, ..answer(&world, &coach, u64::MAX) };
        let id = message(&format!("turn:{number}:1"));
        assert_eq!(world.store.append_answer(run, &id, &most).await.unwrap(), Appended::Added);
    }
    assert_eq!(used(&world, &coach).await, (9_000_000_000_000_000, 9_000_000_000_000_000));
    world.end().await;
}

/// CG-104
#[tokio::test]
async fn an_agent_run_that_is_ended_from_outside_keeps_what_it_has_used() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::new(RunKind::Agent)).await;
    world.claim(run).await;
    let coach = name("coach");
    for (turn, counts) in [("turn:1:1", false), ("turn:2:1", true)] {
        let answer = ModelAnswer { counts, ..answer(&world, &coach, 1) };
        world.store.append_answer(run, &message(turn), &answer).await.unwrap();
    }
    world.move_clock(2_000).await;
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let output = world.load(run).await.output.unwrap();
    let expected = r#"{"usage":{"inputTokens":22,"outputTokens":6,"iterations":1,"durationMs":"#;
    let duration = output.strip_prefix(expected).and_then(|rest| rest.strip_suffix("}}"));
    assert!((2_000..9_000).contains(&duration.unwrap().parse::<u64>().unwrap()), "{output}");
    // What an end says itself stays; a Process and a run that nobody has begun have used nothing.
    let told = world.run(&Request::new(RunKind::Agent)).await;
    world.claim(told).await;
    let end = End { output: Some(r#"{"text":"x"}"#), ..End::plain(RunState::Failed) };
    world.store.end_run(told, &end).await.unwrap();
    assert_eq!(world.load(told).await.output.as_deref(), Some(r#"{"text":"x"}"#));
    for request in [Request::new(RunKind::Agent), Request::process()] {
        let run = world.run(&request).await;
        world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
        assert_eq!(world.load(run).await.output, None);
    }
    world.end().await;
}

#[tokio::test]
async fn a_call_has_one_holder_until_its_lease_is_over() {
    let world = World::new().await;
    let run = world.fresh_run(RunKind::Agent);
    let id = message("turn:1:1");
    let hold = async |holder: &str, ms| {
        world.store.hold_call(run, &id, holder, Duration::from_millis(ms)).await.unwrap()
    };
    assert_eq!(hold("one", 60_000).await, Held::Held);
    assert!(matches!(hold("two", 10).await, Held::Busy { left } if left > Duration::from_secs(50)));
    // The holder may also make it shorter.
    assert_eq!(hold("one", 50).await, Held::Held);
    let until = Instant::now() + Duration::from_secs(5);
    while hold("two", 60_000).await != Held::Held {
        assert!(Instant::now() < until, "a lease that never ends");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(hold("one", 10).await, Held::Busy { .. }));
    world.end().await;
}

#[tokio::test]
async fn a_run_that_is_not_waited_for_is_made_once_and_outlives_who_started_it() {
    let world = World::new().await;
    let parent = world.run(&Request::new(RunKind::Agent)).await;
    let target = name("sub");
    let start = StartChild { detached: true, ..call(&world, parent, &target, 1_001) };
    let run = start.run_id();
    for duplicate in [false, true] {
        let started = world.store.start_child(&start).await.unwrap();
        assert_eq!(started, ChildStarted::Started { run, duplicate });
    }
    let record = world.load(run).await;
    assert_eq!((record.parent, world.load(parent).await.has_called), (None, false));
    assert!(world.store.open_children(parent, 10).await.unwrap().is_empty());
    world.store.end_run(parent, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(world.load(run).await.state, RunState::Queued);
    assert_eq!(world.store.start_child(&start).await.unwrap(), ChildStarted::ParentEnded);
    world.end().await;
}
