//! Signals that reach every run that waits for them.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::INBOX_EVENTS_MAX;
use runfleet_domain::{RunId, RunState};
use runfleet_store::{Broadcast, BroadcastSignal, Checkpoint, End, Wait};

use crate::world::{Request, World, message};

const STOP: Wait<'static> = Wait::Signal { name: "stop \"now\"" };
const BODY: &str = r#"{"kind":"signal","name":"stop \"now\"","variables":{"why":1}}"#;

async fn page(world: &World, id: &str, limit: u32, after: Option<RunId>) -> Broadcast {
    let signal = BroadcastSignal {
        workspace: &world.workspace,
        project: &world.project,
        name: "stop \"now\"",
        variables_json: r#"{"why":1}"#,
        id: &message(id),
    };
    world.store.broadcast_signal(&signal, limit, after).await.expect("an answer")
}

/// All pages: the runs that were reached, and how many were full.
async fn broadcast(world: &World, id: &str, limit: u32) -> (Vec<RunId>, u32) {
    let (mut reached, mut full, mut after) = (Vec::new(), 0, None);
    loop {
        let page = page(world, id, limit, after).await;
        assert!(page.woken.len() <= limit as usize);
        reached.extend(page.woken.into_iter().map(|woken| woken.run_id));
        full += page.full;
        after = page.next;
        if after.is_none() {
            return (reached, full);
        }
    }
}

#[tokio::test]
async fn a_signal_reaches_every_run_that_waits_once_however_often_it_is_sent() {
    let world = World::with(|config| config.connections = 4).await;
    let mut waiting = join_all((0..25).map(|_| world.waiting_run(&[STOP]))).await;
    waiting.sort();
    let other = world.waiting_run(&[Wait::Signal { name: "go" }]).await;
    assert_eq!(broadcast(&world, "s1", 10).await, (waiting.clone(), 0));
    // The wake-ups may not have been published: whoever repeats it is told of all again.
    assert_eq!(broadcast(&world, "s1", 500).await, (waiting.clone(), 0));
    for run in &waiting {
        assert!(world.alarm_is_in(*run, Duration::from_secs(5)).await);
        let (fence, inbox) = world.claim_events(*run).await;
        assert_eq!(inbox.len(), 1);
        assert_eq!(inbox[0].body, BODY);
        // It has dealt with it, and goes on waiting.
        let consumed = [inbox[0].id.clone()];
        assert!(world.give_back(*run, fence, &[STOP], &consumed).await.is_empty());
    }
    assert_eq!(broadcast(&world, "s1", 500).await, (waiting.clone(), 0));
    for run in &waiting {
        assert_eq!(world.store.explain_run(*run).await.unwrap().unwrap().inbox_events, 0);
    }
    assert!(world.claim_events(other).await.1.is_empty());
    // Another signal reaches them too while they wait.
    assert_eq!(broadcast(&world, "s2", 500).await.0, waiting);
    world.end().await;
}

#[tokio::test]
async fn a_signal_passes_over_ended_runs_and_a_run_that_begins_to_wait_later() {
    let world = World::new().await;
    assert_eq!(broadcast(&world, "s1", 10).await, (Vec::new(), 0));
    let run = world.waiting_run(&[STOP]).await;
    let (over, damaged) = (world.waiting_run(&[STOP]).await, world.waiting_run(&[STOP]).await);
    world.store.end_run(over, &End::plain(RunState::Deleted)).await.unwrap();
    let mut raw = world.raw().await;
    let run_key = world.key_name(&format!("run:{damaged}"));
    redis::cmd("DEL").arg(run_key).query_async::<()>(&mut raw).await.unwrap();
    assert_eq!(broadcast(&world, "s2", 10).await, (vec![run], 0));
    let (fence, inbox) = world.claim_events(run).await;
    assert_eq!(inbox.len(), 1);
    // It has dealt with it and waits no longer.
    let consumed = [inbox[0].id.clone()];
    assert!(world.give_back(run, fence, &[], &consumed).await.is_empty());
    assert_eq!(broadcast(&world, "s3", 10).await, (Vec::new(), 0));
    assert_eq!(world.keys_like("signal:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn a_full_inbox_is_told_and_reached_by_the_same_signal_later() {
    let world = World::with(|config| config.connections = 4).await;
    let (run, good) = (world.waiting_run(&[STOP]).await, world.waiting_run(&[STOP]).await);
    let ids: Vec<_> = (0..INBOX_EVENTS_MAX).map(|number| message(&format!("e{number}"))).collect();
    join_all(ids.iter().map(|id| world.store.append_event(run, id, "{}"))).await;
    assert_eq!(broadcast(&world, "s", 10).await, (vec![good], 1));
    let (fence, inbox) = world.claim_events(run).await;
    let consumed: Vec<_> = inbox.into_iter().map(|event| event.id).collect();
    let checkpoint = Checkpoint { consumed: &consumed, ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    let (mut reached, full) = broadcast(&world, "s", 10).await;
    reached.sort();
    let mut both = vec![run, good];
    both.sort();
    assert_eq!((reached, full), (both, 0));
    assert_eq!(world.claim_events(good).await.1.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_held_run_gets_a_signal_and_is_not_woken_by_it() {
    let world = World::new().await;
    let run = world.waiting_run(&[STOP]).await;
    world.store.pause_run(run).await.unwrap();
    assert_eq!(broadcast(&world, "s", 10).await, (vec![run], 0));
    assert_eq!(world.alarm(run).await.0, None);
    world.store.resume_run(run).await.unwrap();
    assert_eq!(world.claim_events(run).await.1.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_run_that_asks_for_one_signal_twice_gets_it_once() {
    let world = World::new().await;
    let run = world.waiting_run(&[STOP, STOP]).await;
    assert_eq!(world.load(run).await.waits, 1);
    assert_eq!(broadcast(&world, "s", 10).await, (vec![run], 0));
    assert_eq!(world.claim_events(run).await.1.len(), 1);
    let unheard = world.run(&Request::process()).await;
    assert!(world.claim_events(unheard).await.1.is_empty());
    world.end().await;
}
