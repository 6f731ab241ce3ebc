//! Claims, leases, checkpoints, pauses.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::{RunKind, RunState};
use runfleet_store::{
    Appended, Checkpoint, Claim, Claimed, End, Finished, Paused, Renewed, Saved, StoreError, Wait,
    Waits, Wake,
};

use crate::world::{Request, World, message};

const KEEP: Checkpoint<'static> = Checkpoint::new("p1");
const GIVE_BACK: Checkpoint<'static> = Checkpoint { release: true, ..KEEP };
const LEASE_MS: i64 = 60_000;

fn saved(released: bool) -> Saved {
    Saved::Saved { released, inbox: Vec::new() }
}

#[tokio::test]
async fn a_claim_gives_the_record_and_a_fence() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let claimed = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Claimed { fence: 1, crashes: 0, cut_off: false, record, inbox } = claimed else {
        panic!("{claimed:?}");
    };
    assert!(inbox.is_empty());
    assert_eq!(record.state, RunState::Running);
    assert_eq!(record.input.as_deref(), Some(r#"{"amount":7}"#));
    assert_eq!((record.fence, record.version), (1, 2));
    assert!(record.started_at_ms.is_some());
    assert_eq!(*record, world.load(run).await);
    assert!(world.alarm_is_in(run, world.config.timings.lease).await);
    world.end().await;
}

#[tokio::test]
async fn of_many_claims_at_once_one_wins() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.run(&Request::process()).await;
    let claims = (0..64).map(|_| world.store.claim_run(run, Claim::default()));
    let answers: Vec<_> = join_all(claims).await.into_iter().map(Result::unwrap).collect();
    let won = answers.iter().filter(|answer| matches!(answer, Claimed::Claimed { .. })).count();
    let busy = answers.iter().filter(|answer| matches!(answer, Claimed::Busy { .. })).count();
    assert_eq!((won, busy), (1, 63));
    assert_eq!(world.load(run).await.fence, 1);
    world.end().await;
}

#[tokio::test]
async fn a_run_that_does_not_exist_or_has_ended_is_not_claimed() {
    let world = World::new().await;
    let unknown = world.fresh_run(RunKind::Agent);
    let answer = world.store.claim_run(unknown, Claim::default()).await.unwrap();
    assert_eq!(answer, Claimed::Missing);
    let run = world.ended_run(&Request::process()).await;
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Ended(record) = answer else { panic!("{answer:?}") };
    assert!(record.outcome_wanted());
    assert_eq!(record.state, RunState::Completed);
    world.end().await;
}

#[tokio::test]
async fn when_the_lease_is_over_the_next_claim_knows_that_the_holder_was_cut_off() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let old = world.claim(run).await;
    world.move_clock(LEASE_MS - 1_000).await;
    let busy = world.store.claim_run(run, Claim::default()).await.unwrap();
    assert!(matches!(busy, Claimed::Busy { .. }), "{busy:?}");
    world.move_clock(LEASE_MS + 1_000).await;
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Claimed { fence, cut_off: true, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(fence, old + 1);
    world.end().await;
}

#[tokio::test]
async fn an_old_holder_can_change_nothing() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let old = world.claim(run).await;
    world.move_clock(LEASE_MS + 1_000).await;
    let new = world.claim(run).await;
    let before = world.load(run).await;
    assert_eq!(world.store.renew_lease(run, old).await.unwrap(), Renewed::Lost);
    assert_eq!(world.store.checkpoint_run(run, old, &KEEP).await.unwrap(), Saved::Lost);
    assert_eq!(world.store.checkpoint_run(run, old, &GIVE_BACK).await.unwrap(), Saved::Lost);
    let end = End::plain(RunState::Completed);
    assert_eq!(world.store.finish_run(run, old, &end).await.unwrap(), Finished::Lost);
    assert_eq!(world.load(run).await, before);
    assert_eq!(world.store.checkpoint_run(run, new, &KEEP).await.unwrap(), saved(false));
    world.end().await;
}

#[tokio::test]
async fn a_renewed_lease_lasts_longer_and_tells_of_events() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    world.move_clock(LEASE_MS - 5_000).await;
    let renewed = world.store.renew_lease(run, fence).await.unwrap();
    assert_eq!(renewed, Renewed::Renewed { inbox: false });
    world.store.append_event(run, &message("e"), "{}").await.unwrap();
    let renewed = world.store.renew_lease(run, fence).await.unwrap();
    assert_eq!(renewed, Renewed::Renewed { inbox: true });
    world.move_clock(LEASE_MS + 5_000).await;
    let busy = world.store.claim_run(run, Claim::default()).await.unwrap();
    assert!(matches!(busy, Claimed::Busy { .. }), "{busy:?}");
    let unknown = world.fresh_run(RunKind::Process);
    assert_eq!(world.store.renew_lease(unknown, 1).await.unwrap(), Renewed::Lost);
    world.end().await;
}

#[tokio::test]
async fn a_renewal_after_the_lease_was_given_back_does_not_take_it_again() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    assert_eq!(world.store.checkpoint_run(run, fence, &GIVE_BACK).await.unwrap(), saved(true));
    assert_eq!(world.store.renew_lease(run, fence).await.unwrap(), Renewed::Lost);
    assert_eq!(world.store.checkpoint_run(run, fence, &KEEP).await.unwrap(), Saved::Lost);
    let end = End::plain(RunState::Completed);
    assert_eq!(world.store.finish_run(run, fence, &end).await.unwrap(), Finished::Lost);
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Claimed { cut_off: false, record, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(record.position.as_deref(), Some("p1"));
    world.end().await;
}

#[tokio::test]
async fn a_run_that_is_given_back_is_woken_when_it_wants() {
    let world = World::new().await;
    let deadline = 4_000_000_000_000;
    let cases = [
        (None, Wake::Never, None),
        (None, Wake::At(3_000_000_000_000), Some(3_000_000_000_000)),
        (Some(deadline), Wake::Never, Some(deadline)),
        (Some(deadline), Wake::At(deadline + 1), Some(deadline)),
        (Some(deadline), Wake::At(deadline - 1), Some(deadline - 1)),
        (Some(1_000), Wake::Now, Some(1_000)),
    ];
    for (deadline_ms, wake, alarm) in cases {
        let run = world.run(&Request { deadline_ms, ..Request::process() }).await;
        let fence = world.claim(run).await;
        let checkpoint = Checkpoint { wake, ..GIVE_BACK };
        assert_eq!(world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap(), saved(true));
        assert_eq!(world.alarm(run).await.0, alarm, "{deadline_ms:?} {wake:?}");
    }
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    world.store.checkpoint_run(run, fence, &KEEP).await.unwrap();
    assert!(world.alarm_is_in(run, world.config.timings.lease).await);
    world.store.checkpoint_run(run, fence, &GIVE_BACK).await.unwrap();
    assert!(world.alarm_is_in(run, world.config.timings.alarm_unclaimed).await);
    world.end().await;
}

#[tokio::test]
async fn a_lease_is_not_given_back_while_events_wait() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let (first, second) = (message("e1"), message("e2"));
    world.store.append_event(run, &first, "one").await.unwrap();
    world.store.append_event(run, &second, "two").await.unwrap();
    let consumed = [first.clone(), first];
    let checkpoint = Checkpoint { consumed: &consumed, ..GIVE_BACK };
    let answer = world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    let Saved::Saved { released: false, inbox } = answer else { panic!("{answer:?}") };
    assert_eq!(inbox.len(), 1);
    assert_eq!((&inbox[0].id, inbox[0].body.as_str()), (&second, "two"));
    let busy = world.store.claim_run(run, Claim::default()).await.unwrap();
    assert!(matches!(busy, Claimed::Busy { .. }));
    let consumed = [second];
    let checkpoint = Checkpoint { consumed: &consumed, ..GIVE_BACK };
    assert_eq!(world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap(), saved(true));
    world.end().await;
}

#[tokio::test]
async fn a_holder_learns_that_its_run_was_ended() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let answer = world.store.checkpoint_run(run, fence, &KEEP).await.unwrap();
    assert_eq!(answer, Saved::Ended(RunState::Canceled));
    assert_eq!(world.store.renew_lease(run, fence).await.unwrap(), Renewed::Lost);
    let unknown = world.fresh_run(RunKind::Process);
    let answer = world.store.checkpoint_run(unknown, 1, &KEEP).await.unwrap();
    assert_eq!(answer, Saved::Lost);
    world.end().await;
}

#[tokio::test]
async fn claims_in_quarantine_count_as_crashes_until_the_run_gets_further() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let quarantine = Claim { quarantine: true };
    for round in 1..=3_u32 {
        let answer = world.store.claim_run(run, quarantine).await.unwrap();
        let Claimed::Claimed { crashes, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(crashes, round);
        world.move_clock(i64::from(round) * (LEASE_MS + 1_000)).await;
    }
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Claimed { crashes: 3, fence, .. } = answer else { panic!("{answer:?}") };
    world.store.checkpoint_run(run, fence, &GIVE_BACK).await.unwrap();
    assert_eq!(world.load(run).await.crashes, 0);
    world.end().await;
}

#[tokio::test]
async fn a_held_run_is_not_claimed_and_shuts_out_its_holder() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    assert_eq!(world.store.pause_run(run).await.unwrap(), Paused::Changed);
    assert_eq!(world.store.pause_run(run).await.unwrap(), Paused::Unchanged(RunState::Paused));
    assert_eq!(world.store.checkpoint_run(run, fence, &KEEP).await.unwrap(), Saved::Lost);
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    assert!(matches!(answer, Claimed::Paused(_)), "{answer:?}");
    assert_eq!(world.alarm(run).await.0, None);
    assert_eq!(world.store.append_event(run, &message("e"), "{}").await.unwrap(), Appended::Added);
    assert_eq!(world.alarm(run).await.0, None);
    assert_eq!(world.store.resume_run(run).await.unwrap(), Paused::Changed);
    assert!(world.alarm_is_in(run, Duration::from_secs(5)).await);
    let answer = world.store.claim_run(run, Claim::default()).await.unwrap();
    let Claimed::Claimed { cut_off: false, inbox, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(inbox.len(), 1);
    world.end().await;
}

#[tokio::test]
async fn only_a_run_that_goes_on_can_be_held_and_only_a_held_one_goes_on() {
    let world = World::new().await;
    let run = world.run(&Request { deadline_ms: Some(9_000), ..Request::process() }).await;
    assert_eq!(world.store.resume_run(run).await.unwrap(), Paused::Unchanged(RunState::Queued));
    assert_eq!(world.store.pause_run(run).await.unwrap(), Paused::Changed);
    assert_eq!(world.alarm(run).await.0, Some(9_000));
    let version = world.load(run).await.version;
    let end = End::plain(RunState::Completed);
    let answer = world.store.claim_and_finish_run(run, version, &end).await.unwrap();
    assert_eq!(answer, Finished::Busy);
    world.store.end_run(run, &End::plain(RunState::TimedOut)).await.unwrap();
    assert_eq!(world.store.pause_run(run).await.unwrap(), Paused::Ended(RunState::TimedOut));
    let unknown = world.fresh_run(RunKind::Process);
    assert_eq!(world.store.pause_run(unknown).await.unwrap(), Paused::Missing);
    world.end().await;
}

#[tokio::test]
async fn a_position_that_is_too_large_is_refused() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let position = "x".repeat(300_000);
    let checkpoint = Checkpoint { position: &position, ..KEEP };
    let error = world.store.checkpoint_run(run, 1, &checkpoint).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)));
    world.end().await;
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_left_alone() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let mut raw = world.raw().await;
    let key = world.key_name(&format!("run:{run}"));
    redis::cmd("HSET").arg(key).arg("v").arg(2).query_async::<()>(&mut raw).await.unwrap();
    let error = world.store.claim_run(run, Claim::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { version: 2, .. }), "{error}");
    assert!(error.is_transient());
    let error = world.store.load_run(run).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    world.end().await;
}

#[tokio::test]
async fn the_golden_files_have_every_field_that_is_stored() {
    let world = World::new().await;
    let golden: BTreeSet<&str> = [
        include_str!("../../golden/run_v1.txt"),
        include_str!("../../golden/run_v1_ended.txt"),
        include_str!("../../golden/run_v1_child.txt"),
        include_str!("../../golden/job_v1.txt"),
        include_str!("../../golden/job_v2.txt"),
    ]
    .into_iter()
    .flat_map(|text| text.lines().filter_map(|line| line.split_once('=')).map(|(field, _)| field))
    .chain(["end_token", "ended_at"])
    .collect();
    let mut raw = world.raw().await;
    let mut stored = BTreeSet::new();
    let mut look = async |rest: String| {
        let key = world.key_name(&rest);
        let fields: Vec<String> = redis::cmd("HKEYS").arg(key).query_async(&mut raw).await.unwrap();
        stored.extend(fields);
    };
    let request =
        Request { deadline_ms: Some(9_000_000_000_000), ..Request::process().with_key("k") };
    let run = world.run(&request).await;
    let fence = world.claim(run).await;
    world.store.append_event(run, &message("e"), "{}").await.unwrap();
    let (workspace, project) = (&world.workspace, &world.project);
    let waits = Waits { workspace, project, list: &[Wait::Signal { name: "stop" }] };
    let checkpoint = Checkpoint { waits: Some(&waits), incidents: 1, ..KEEP };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    look(format!("run:{}", world.child(run, 1).await)).await;
    look(format!("run:{run}")).await;
    let end = End { error: Some(("c", "m")), output: Some("1"), ..End::plain(RunState::Failed) };
    world.store.finish_run(run, fence, &end).await.unwrap();
    look(format!("run:{run}")).await;
    world.store.hand_over(&world.hand_over(run, &request.job)).await.unwrap();
    let job = run.outcome_job();
    look(format!("job:{job}")).await;
    world.store.begin_job(job, 1).await.unwrap();
    look(format!("job:{job}")).await;
    world.store.fail_job(job, 1, "RETRYABLE", Some(Duration::ZERO)).await.unwrap();
    world.store.finish_job(job, 2, true).await.unwrap();
    look(format!("job:{job}")).await;
    look(format!("job:{}", crate::jobs::enqueued_for_later(&world).await)).await;
    let stored: BTreeSet<&str> = stored.iter().map(String::as_str).collect();
    assert_eq!(stored, golden);
    world.end().await;
}
