//! Runs that runs have called.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::{INBOX_EVENTS_MAX, RUN_CHILDREN_MAX};
use runfleet_domain::{Lane, Name, RunId, RunKind, RunState};
use runfleet_store::{
    AlarmSet, Appended, Checkpoint, Child, ChildStarted, Due, End, Finished, HandedOver, Parent,
    Saved, StartChild, Told, Wake, Woken,
};

use crate::world::{Request, World, message, name};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The call of instance `instance` of a run.
pub(crate) fn call<'a>(
    world: &'a World,
    parent: RunId,
    target: &'a Name,
    instance: u64,
) -> StartChild<'a> {
    StartChild {
        parent,
        instance,
        attempt: 1,
        fence: None,
        detached: false,
        kind: RunKind::Process,
        workspace: &world.workspace,
        project: &world.project,
        lane: Lane::Interactive,
        identity: "user:ann",
        target,
        target_version: 2,
        execution: target,
        user: Some(target),
        hops: 8,
        depth: 1,
        chain: 2,
        instance_name: Some("No. 7"),
        input: Some(r#"{"amount":7}"#),
        deadline_ms: Some(9_000_000_000_000),
        asks_in: None,
        traceparent: Some(TRACE),
    }
}

impl World {
    /// Makes a child.
    pub(crate) async fn child(&self, parent: RunId, instance: u64) -> RunId {
        let target = name("sub");
        match self.store.start_child(&call(self, parent, &target, instance)).await.unwrap() {
            ChildStarted::Started { run, duplicate: false } => run,
            other => panic!("not made: {other:?}"),
        }
    }

    async fn children(&self, parent: RunId) -> Vec<RunId> {
        let children = self.store.open_children(parent, 1_000).await.unwrap();
        children.into_iter().map(|child| child.run_id).collect()
    }
}

fn wakes(run_id: RunId) -> Woken {
    Woken { run_id, lane: Lane::Interactive, traceparent: Some(TRACE.to_owned()) }
}

fn ended(outcome_wanted: bool, children: bool, parent: Option<RunId>) -> Finished {
    Finished::Finished {
        outcome_wanted,
        children,
        parent_to_wake: parent.map(wakes),
        next_turn: None,
        said: None,
    }
}

#[tokio::test]
async fn a_call_makes_one_child_however_often_it_is_made() {
    let world = World::with(|config| config.connections = 4).await;
    let parent = world.run(&Request::process()).await;
    let (fence, target) = (world.claim(parent).await, name("sub"));
    let start = StartChild { fence: Some(fence), ..call(&world, parent, &target, 12) };
    let calls = join_all((0..16).map(|_| world.store.start_child(&start))).await;
    let run = start.run_id();
    let made = |duplicate| ChildStarted::Started { run, duplicate };
    let calls: Vec<_> = calls.into_iter().map(Result::unwrap).collect();
    assert_eq!(calls.iter().filter(|answer| **answer == made(false)).count(), 1);
    assert_eq!(calls.iter().filter(|answer| **answer == made(true)).count(), 15);
    assert_eq!(run.shard(), parent.shard());
    let record = world.load(run).await;
    assert_eq!(record.parent, Some(Parent { run_id: parent, instance: 12 }));
    assert_eq!((record.state, record.version, record.hops), (RunState::Queued, 1, 8));
    assert_eq!((record.target_version, record.key), (2, None));
    assert!(world.alarm_is_in(run, world.config.timings.alarm_unclaimed).await);
    let open = world.store.open_children(parent, 10).await.unwrap();
    assert_eq!(open, [Child { run_id: run, instance: 12 }]);
    assert!(world.load(parent).await.has_called);
    assert_eq!(world.store.explain_run(parent).await.unwrap().unwrap().children, 1);
    // Starts of the day are not counted, nor calls of the execution.
    assert_eq!(world.starts_today(RunKind::Process).await, 1);
    // Another instance or attempt is another child.
    let other = StartChild { instance: 13, ..start };
    assert!(
        matches!(world.store.start_child(&other).await.unwrap(), ChildStarted::Started { run: made, duplicate: false } if made != run)
    );
    let again = StartChild { attempt: 2, ..start };
    assert!(
        matches!(world.store.start_child(&again).await.unwrap(), ChildStarted::Started { run: made, duplicate: false } if made != run)
    );
    world.end().await;
}

#[tokio::test]
async fn the_end_of_a_child_is_in_the_inbox_of_its_parent() {
    let world = World::new().await;
    let parent = world.run(&Request::process()).await;
    let fence = world.claim(parent).await;
    let (good, bad) = (world.child(parent, 1).await, world.child(parent, 2).await);
    let (large, gone) = (world.child(parent, 3).await, world.child(parent, 4).await);
    let nothing = Checkpoint { release: true, wake: Wake::Never, ..Checkpoint::new("p") };
    world.store.checkpoint_run(parent, fence, &nothing).await.unwrap();
    let target = name("sub");
    let told = Told {
        workspace: &world.workspace,
        target: &target,
        target_version: 2,
        input: Some(r#"{"amount":7}"#),
    };
    let end = End { output: Some(r#"{"a":[1]}"#), ..End::plain(RunState::Completed) };
    let answer = world.store.finish_untouched_run(good, &told, &end).await.unwrap();
    assert_eq!(answer, ended(false, false, Some(parent)));
    assert!(world.alarm_is_in(parent, Duration::from_secs(5)).await);
    assert_eq!(world.load(good).await.output, None);
    let held = world.claim(bad).await;
    let end = End { error: Some(("NO \"ENTRY\"", "text")), ..End::plain(RunState::Failed) };
    let answer = world.store.finish_run(bad, held, &end).await.unwrap();
    assert_eq!(answer, ended(false, false, Some(parent)));
    let held = world.claim(large).await;
    let output = format!("\"{}\"", "x".repeat(49_151));
    let end = End { output: Some(&output), ..End::plain(RunState::Completed) };
    world.store.finish_run(large, held, &end).await.unwrap();
    world.store.end_run(gone, &End::plain(RunState::Canceled)).await.unwrap();
    let (_, inbox) = world.claim_events(parent).await;
    let told: Vec<_> =
        inbox.iter().map(|event| (event.id.to_string(), event.body.clone())).collect();
    let expected = [
        (1, good, "COMPLETED", r#"{"a":[1]}"#, "null"),
        (2, bad, "FAILED", "null", r#""NO \"ENTRY\"""#),
        (3, large, "COMPLETED", "null", "null"),
        (4, gone, "CANCELED", "null", "null"),
    ]
    .map(|(task, run, state, output, code)| {
        let body = format!(
            r#"{{"kind":"childEnded","task":{task},"run":"{run}","state":"{state}","output":{output},"code":{code}}}"#
        );
        (format!("child:{run}"), body)
    });
    assert_eq!(told, expected);
    assert!(world.children(parent).await.is_empty());
    // Whoever comes to an ended child finds in its record whom to wake.
    let Finished::Ended(record) = world.store.finish_run(bad, held, &end).await.unwrap() else {
        panic!("it has ended");
    };
    assert_eq!(record.parent, Some(Parent { run_id: parent, instance: 2 }));
    world.end().await;
}

#[tokio::test]
async fn a_call_whose_child_has_ended_makes_no_other_also_when_its_record_is_gone() {
    let world = World::new().await;
    let parent = world.run(&Request::process()).await;
    world.claim(parent).await;
    let child = world.child(parent, 1).await;
    world.store.end_run(child, &End::plain(RunState::Canceled)).await.unwrap();
    let target = name("sub");
    let start = call(&world, parent, &target, 1);
    let duplicate = ChildStarted::Started { run: child, duplicate: true };
    assert_eq!(world.store.start_child(&start).await.unwrap(), duplicate);
    let mut raw = world.raw().await;
    let run_key = world.key_name(&format!("run:{child}"));
    redis::cmd("DEL").arg(run_key).query_async::<()>(&mut raw).await.unwrap();
    assert_eq!(world.store.start_child(&start).await.unwrap(), duplicate);
    assert!(world.children(parent).await.is_empty());
    world.end().await;
}

#[tokio::test]
async fn an_old_holder_calls_nobody_and_neither_does_an_ended_run() {
    let world = World::new().await;
    let (parent, target) = (world.run(&Request::process()).await, name("sub"));
    let fence = world.claim(parent).await;
    world.store.pause_run(parent).await.unwrap();
    let start = StartChild { fence: Some(fence), ..call(&world, parent, &target, 1) };
    assert_eq!(world.store.start_child(&start).await.unwrap(), ChildStarted::Lost);
    world.store.end_run(parent, &End::plain(RunState::Canceled)).await.unwrap();
    let start = call(&world, parent, &target, 1);
    assert_eq!(world.store.start_child(&start).await.unwrap(), ChildStarted::ParentEnded);
    let start = call(&world, world.fresh_run(RunKind::Process), &target, 1);
    assert_eq!(world.store.start_child(&start).await.unwrap(), ChildStarted::ParentEnded);
    assert_eq!(world.keys_like("run:*").await, 1);
    world.end().await;
}

#[tokio::test]
async fn a_parent_that_ends_first_keeps_an_alarm_until_its_children_have_ended() {
    let world = World::with_movable_clock().await;
    let request = Request { outcome: false, ..Request::process() };
    let parent = world.run(&request).await;
    let fence = world.claim(parent).await;
    let children = [world.child(parent, 1).await, world.child(parent, 2).await];
    let end = End::plain(RunState::Completed);
    let answer = world.store.finish_run(parent, fence, &end).await.unwrap();
    assert_eq!(answer, ended(false, true, None));
    assert!(world.alarm_is_in(parent, world.config.timings.alarm_handover).await);
    for _ in 0..3 {
        let (at, now) = world.alarm(parent).await;
        let ahead = i64::try_from(at.unwrap()).unwrap() - i64::try_from(now).unwrap();
        let record = world.load(parent).await;
        let skew = i64::try_from(now).unwrap() - i64::try_from(record.created_at_ms).unwrap();
        world.move_clock(skew + ahead + 1_000).await;
        let due = world.store.due_alarms(world.shard, AlarmSet::Process, 100).await.unwrap();
        let told = due.iter().any(|due| {
            matches!(due, Due::Advance { run_id, cut_off: false, paused: false, .. } if *run_id == parent)
        });
        assert!(told, "{due:?}");
    }
    assert_eq!(world.children(parent).await, children);
    let canceled = End::plain(RunState::Canceled);
    for child in children {
        let answer = world.store.end_run(child, &canceled).await.unwrap();
        assert_eq!(answer, ended(false, false, None));
    }
    let explained = world.store.explain_run(parent).await.unwrap().unwrap();
    assert_eq!((explained.alarm_at_ms, explained.children), (None, 0));
    assert_eq!(explained.inbox_events, 0);
    assert_eq!(world.alarms(AlarmSet::Process).await, 0);
    assert_eq!(world.keys_like("kids:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn children_that_nobody_ends_are_forgotten_with_their_parent() {
    let world = World::new().await;
    for outcome in [false, true] {
        let request = Request { outcome, ..Request::process() };
        let parent = world.run(&request).await;
        world.claim(parent).await;
        world.child(parent, 1).await;
        let answer = world.store.end_run(parent, &End::plain(RunState::Canceled)).await.unwrap();
        assert_eq!(answer, ended(outcome, true, None));
        if outcome {
            let handed = world.store.hand_over(&world.hand_over(parent, &request.job)).await;
            assert!(matches!(handed.unwrap(), HandedOver::Delivered(_)));
        }
        let mut raw = world.raw().await;
        let kids = world.key_name(&format!("kids:{parent}"));
        let lives: i64 = redis::cmd("PTTL").arg(kids).query_async(&mut raw).await.unwrap();
        assert!(lives > 0, "{lives}");
    }
    world.end().await;
}

#[tokio::test]
async fn children_that_end_at_once_while_the_parent_goes_on_are_all_seen() {
    let world = World::with(|config| config.connections = 4).await;
    let parent = world.run(&Request::process()).await;
    let mut children = Vec::new();
    let fence = world.claim(parent).await;
    for instance in 0..20 {
        children.push(world.child(parent, instance).await);
    }
    let nothing = Checkpoint { release: true, wake: Wake::Never, ..Checkpoint::new("p") };
    let end = End::plain(RunState::Canceled);
    let ends = children.iter().map(|child| world.store.end_run(*child, &end));
    let saves = world.store.checkpoint_run(parent, fence, &nothing);
    let (ends, saved) = tokio::join!(join_all(ends), saves);
    for answer in ends {
        assert_eq!(answer.unwrap(), ended(false, false, Some(parent)));
    }
    let fence = match saved.unwrap() {
        // None had ended when the lease was given back, so the parent is woken.
        Saved::Saved { released: true, .. } => {
            assert!(world.alarm_is_in(parent, Duration::from_secs(5)).await);
            world.claim_events(parent).await.0
        }
        Saved::Saved { released: false, .. } => fence,
        other => panic!("{other:?}"),
    };
    let Saved::Saved { inbox, .. } =
        world.store.checkpoint_run(parent, fence, &nothing).await.unwrap()
    else {
        panic!("the parent is held");
    };
    assert_eq!(inbox.len(), 20);
    world.end().await;
}

#[tokio::test]
async fn a_full_inbox_of_the_parent_does_not_keep_a_child_from_ending() {
    let world = World::with(|config| config.connections = 4).await;
    let (parent, target) = (world.run(&Request::process()).await, name("sub"));
    world.claim(parent).await;
    let calls = (0..u64::from(RUN_CHILDREN_MAX)).map(|instance| world.child(parent, instance));
    let children = join_all(calls).await;
    let more = call(&world, parent, &target, 5_000);
    assert_eq!(world.store.start_child(&more).await.unwrap(), ChildStarted::Full);
    let ids: Vec<_> = (0..INBOX_EVENTS_MAX).map(|number| message(&format!("e{number}"))).collect();
    for answer in join_all(ids.iter().map(|id| world.store.append_event(parent, id, "{}"))).await {
        assert_eq!(answer.unwrap(), Appended::Added);
    }
    let end = End::plain(RunState::Canceled);
    for answer in join_all(children.iter().map(|child| world.store.end_run(*child, &end))).await {
        assert_eq!(answer.unwrap(), ended(false, false, Some(parent)));
    }
    let explained = world.store.explain_run(parent).await.unwrap().unwrap();
    assert_eq!(explained.inbox_events, u64::from(INBOX_EVENTS_MAX + RUN_CHILDREN_MAX));
    // Until it has dealt with some of them it calls nobody, since there would be no room for the end.
    assert_eq!(world.store.start_child(&more).await.unwrap(), ChildStarted::Full);
    world.end().await;
}

#[tokio::test]
async fn a_child_calls_and_is_called_at_once() {
    let world = World::new().await;
    let parent = world.run(&Request::process()).await;
    world.claim(parent).await;
    let child = world.child(parent, 1).await;
    world.claim(child).await;
    let grandchild = world.child(child, 1).await;
    let end = End::plain(RunState::Failed);
    let answer = world.store.end_run(child, &end).await.unwrap();
    assert_eq!(answer, ended(false, true, Some(parent)));
    assert_eq!(world.children(child).await, [grandchild]);
    // The parent that was to be woken by it has ended meanwhile; that of the grandchild too.
    world.store.end_run(parent, &end).await.unwrap();
    let answer = world.store.end_run(grandchild, &end).await.unwrap();
    assert_eq!(answer, ended(false, false, None));
    assert_eq!(world.keys_like("kids:*").await, 0);
    world.end().await;
}

#[tokio::test]
async fn a_held_parent_is_told_of_its_child_and_rings_only_at_its_deadline() {
    let world = World::new().await;
    let deadline = 9_000_000_000_000;
    let parent = world.run(&Request { deadline_ms: Some(deadline), ..Request::process() }).await;
    world.claim(parent).await;
    let child = world.child(parent, 1).await;
    world.store.pause_run(parent).await.unwrap();
    let answer = world.store.end_run(child, &End::plain(RunState::Failed)).await.unwrap();
    assert_eq!(answer, ended(false, false, Some(parent)));
    assert_eq!(world.alarm(parent).await.0, Some(deadline));
    world.store.resume_run(parent).await.unwrap();
    assert!(world.alarm_is_in(parent, Duration::from_secs(5)).await);
    assert_eq!(world.claim_events(parent).await.1.len(), 1);
    world.end().await;
}
