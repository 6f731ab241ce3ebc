//! What has happened in a run, and its incidents.

use runfleet_domain::limits::{RETENTION, RUN_HISTORY_MAX};
use runfleet_domain::{RunKind, RunState};
use runfleet_store::{Checkpoint, End, HandedOver, StoreError};

use crate::world::{Request, World, finished};

fn entries(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!(r#"["Task_1",{number},"e",1,1764500000000]"#)).collect()
}

fn texts(entries: &[String]) -> Vec<&str> {
    entries.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn checkpoints_and_the_end_write_one_history() {
    let world = World::new().await;
    let request = Request::process();
    let run = world.run(&request).await;
    let fence = world.claim(run).await;
    let all = entries(0..5);
    let checkpoint = Checkpoint { history: &texts(&all[..2]), ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    world.store.checkpoint_run(run, fence, &Checkpoint::new("q")).await.unwrap();
    let checkpoint = Checkpoint { history: &texts(&all[2..3]), ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    let end = End { history: &texts(&all[3..]), ..End::plain(RunState::Completed) };
    assert_eq!(world.store.finish_run(run, fence, &end).await.unwrap(), finished(true));
    assert_eq!(world.store.history(run, 0, 100).await.unwrap(), all);
    assert_eq!(world.store.history(run, 1, 2).await.unwrap(), all[1..3]);
    assert!(world.store.history(run, 5, 2).await.unwrap().is_empty());
    let unknown = world.fresh_run(RunKind::Process);
    assert!(world.store.history(unknown, 0, 2).await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn history_lives_as_long_as_the_record() {
    let world = World::new().await;
    let lives = async |run| {
        let mut raw = world.raw().await;
        let key = world.key_name(&format!("hist:{run}"));
        redis::cmd("PTTL").arg(key).query_async::<i64>(&mut raw).await.unwrap()
    };
    let list = entries(0..1);
    for outcome in [true, false] {
        let request = Request { outcome, ..Request::process() };
        let run = world.run(&request).await;
        let fence = world.claim(run).await;
        let checkpoint = Checkpoint { history: &texts(&list), ..Checkpoint::new("p") };
        world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
        assert_eq!(lives(run).await, -1);
        world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
        if outcome {
            assert_eq!(lives(run).await, -1);
            let handed = world.store.hand_over(&world.hand_over(run, &request.job)).await;
            assert!(matches!(handed.unwrap(), HandedOver::Delivered(_)));
        }
        assert!(lives(run).await > i64::try_from(RETENTION.as_millis()).unwrap());
    }
    world.end().await;
}

#[tokio::test]
async fn only_the_newest_entries_are_kept() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let all = entries(0..2_600);
    for part in [&all[..600], &all[600..1_200], &all[1_200..]] {
        let checkpoint = Checkpoint { history: &texts(part), ..Checkpoint::new("p") };
        world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    }
    let kept = world.store.history(run, 0, 5_000).await.unwrap();
    assert_eq!(kept, all[2_600 - RUN_HISTORY_MAX..]);
    let long = "x".repeat(513);
    let checkpoint = Checkpoint { history: &[&long], ..Checkpoint::new("p") };
    let error = world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)));
    world.end().await;
}

#[tokio::test]
async fn runs_with_an_open_incident_are_counted_until_it_is_closed_or_they_end() {
    let world = World::new().await;
    let count = async || world.store.count_incidents(world.shard).await.unwrap();
    let (first, second) =
        (world.run(&Request::process()).await, world.run(&Request::process()).await);
    let (held, other) = (world.claim(first).await, world.claim(second).await);
    assert_eq!(count().await, 0);
    let with = |incidents| Checkpoint { incidents, ..Checkpoint::new("p") };
    world.store.checkpoint_run(first, held, &with(2)).await.unwrap();
    world.store.checkpoint_run(first, held, &with(1)).await.unwrap();
    world.store.checkpoint_run(second, other, &with(1)).await.unwrap();
    assert_eq!(count().await, 2);
    assert_eq!(world.load(first).await.incidents, 1);
    assert_eq!(world.store.explain_run(first).await.unwrap().unwrap().incidents, 1);
    world.store.checkpoint_run(first, held, &with(0)).await.unwrap();
    assert_eq!((count().await, world.load(first).await.incidents), (1, 0));
    world.store.end_run(second, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!((count().await, world.load(second).await.incidents), (0, 0));
    world.end().await;
}
