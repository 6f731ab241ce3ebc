//! Events that wait for a run.

use futures_util::future::join_all;
use runfleet_domain::limits::INBOX_EVENTS_MAX;
use runfleet_domain::{MessageId, RunKind, RunState};
use runfleet_store::{
    Appended, Checkpoint, Claim, Claimed, EVENTS_AT_ONCE, End, Event, Saved, StoreError, Wake,
};

use crate::world::{Request, World, message};

const GIVE_BACK: Checkpoint<'static> =
    Checkpoint { release: true, wake: Wake::Never, ..Checkpoint::new("p") };

async fn claim_events(world: &World, run: runfleet_domain::RunId) -> (u64, Vec<Event>) {
    match world.store.claim_run(run, Claim::default()).await.unwrap() {
        Claimed::Claimed { fence, inbox, .. } => (fence, inbox),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn events_are_given_to_the_holder_in_the_order_in_which_they_came() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let ids: Vec<_> = (0..20).rev().map(|number| message(&format!("e{number}"))).collect();
    for id in &ids {
        let body = format!("body of {id}");
        assert_eq!(world.store.append_event(run, id, &body).await.unwrap(), Appended::Added);
    }
    let (_, inbox) = claim_events(&world, run).await;
    let expected: Vec<_> =
        ids.iter().map(|id| Event { id: id.clone(), body: format!("body of {id}") }).collect();
    assert_eq!(inbox, expected);
    world.end().await;
}

#[tokio::test]
async fn an_event_that_comes_twice_waits_once_and_never_again() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let id = message("e");
    let appends = (0..16).map(|_| world.store.append_event(run, &id, "{}"));
    let answers: Vec<_> = join_all(appends).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| **answer == Appended::Added).count(), 1);
    let (fence, inbox) = claim_events(&world, run).await;
    assert_eq!(inbox.len(), 1);
    let consumed = [id.clone()];
    let checkpoint = Checkpoint { consumed: &consumed, ..GIVE_BACK };
    let answer = world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    assert_eq!(answer, Saved::Saved { released: true, inbox: Vec::new() });
    assert_eq!(world.store.append_event(run, &id, "{}").await.unwrap(), Appended::Known);
    let (_, inbox) = claim_events(&world, run).await;
    assert!(inbox.is_empty());
    world.end().await;
}

#[tokio::test]
async fn an_event_wakes_a_run_that_waits_for_nothing_else() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let (fence, _) = claim_events(&world, run).await;
    let checkpoint = GIVE_BACK;
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    assert_eq!(world.alarm(run).await.0, None);
    world.store.append_event(run, &message("e"), "{}").await.unwrap();
    assert!(world.alarm_is_in(run, std::time::Duration::from_secs(5)).await);
    // Under a lease the holder looks by itself.
    claim_events(&world, run).await;
    world.store.append_event(run, &message("f"), "{}").await.unwrap();
    assert!(world.alarm_is_in(run, world.config.timings.lease).await);
    world.end().await;
}

#[tokio::test]
async fn a_full_inbox_takes_no_more_and_is_given_out_in_parts() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.run(&Request::process()).await;
    let ids: Vec<_> = (0..INBOX_EVENTS_MAX).map(|number| message(&format!("e{number}"))).collect();
    let appends = ids.iter().map(|id| world.store.append_event(run, id, "{}"));
    for answer in join_all(appends).await {
        assert_eq!(answer.unwrap(), Appended::Added);
    }
    let more = message("more");
    assert_eq!(world.store.append_event(run, &more, "{}").await.unwrap(), Appended::Full);
    let (fence, mut inbox) = claim_events(&world, run).await;
    let mut taken = 0;
    while !inbox.is_empty() {
        assert!(inbox.len() <= EVENTS_AT_ONCE as usize);
        taken += inbox.len();
        let consumed: Vec<MessageId> = inbox.iter().map(|event| event.id.clone()).collect();
        let checkpoint = Checkpoint { consumed: &consumed, ..GIVE_BACK };
        let answer = world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
        let Saved::Saved { released, inbox: rest } = answer else { panic!("{answer:?}") };
        assert_eq!(released, rest.is_empty());
        inbox = rest;
    }
    assert_eq!(taken, INBOX_EVENTS_MAX as usize);
    world.end().await;
}

#[tokio::test]
async fn large_events_are_given_out_a_few_at_a_time() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let body = "x".repeat(65_536);
    for number in 0..20 {
        world.store.append_event(run, &message(&format!("e{number}")), &body).await.unwrap();
    }
    let (_, inbox) = claim_events(&world, run).await;
    assert_eq!(inbox.len(), 16);
    let too_large = "x".repeat(66_561);
    let error = world.store.append_event(run, &message("big"), &too_large).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)));
    world.end().await;
}

#[tokio::test]
async fn nothing_is_put_into_the_inbox_of_a_run_that_is_over_or_unknown() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let id = message("e");
    assert_eq!(world.store.append_event(run, &id, "{}").await.unwrap(), Appended::Ended);
    let unknown = world.fresh_run(RunKind::Agent);
    assert_eq!(world.store.append_event(unknown, &id, "{}").await.unwrap(), Appended::Missing);
    world.end().await;
}

/// CG-204
#[tokio::test]
async fn an_event_that_has_come_before_the_end_is_still_known_after_it() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let (before, after) = (message("before"), message("after"));
    assert_eq!(world.store.append_event(run, &before, "{}").await.unwrap(), Appended::Added);
    let (fence, _) = claim_events(&world, run).await;
    let end = End::plain(RunState::Completed);
    world.store.finish_run(run, fence, &end).await.unwrap();
    assert_eq!(world.store.append_event(run, &before, "{}").await.unwrap(), Appended::Known);
    assert_eq!(world.store.append_event(run, &after, "{}").await.unwrap(), Appended::Ended);
    // A refusal is not remembered as something that has come.
    assert_eq!(world.store.append_event(run, &after, "{}").await.unwrap(), Appended::Ended);
    world.end().await;
}

#[tokio::test]
async fn whether_an_event_has_come_is_known() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let (id, other) = (message("e"), message("other"));
    assert!(!world.store.knows_event(run, &id).await.unwrap());
    assert_eq!(world.store.append_event(run, &id, "{}").await.unwrap(), Appended::Added);
    assert!(world.store.knows_event(run, &id).await.unwrap());
    assert!(!world.store.knows_event(run, &other).await.unwrap());
    world.end().await;
}
