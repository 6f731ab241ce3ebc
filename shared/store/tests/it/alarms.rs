//! What is overdue.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::ALARM_MAX;
use runfleet_domain::{JobKey, Lane, RunKind, RunState};
use runfleet_store::{AlarmSet, Checkpoint, Due, End, HandedOver, JobRecord, Wake};

use crate::world::{Request, World, name};

const UNCLAIMED_MS: i64 = 300_000;

async fn due(world: &World, set: AlarmSet) -> Vec<Due> {
    world.store.due_alarms(world.shard, set, 100).await.unwrap()
}

#[tokio::test]
async fn a_start_that_nobody_claims_is_told_again_and_again_ever_later() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let mut now = UNCLAIMED_MS - 2_000;
    world.move_clock(now).await;
    assert_eq!(due(&world, AlarmSet::Process).await, []);
    now = UNCLAIMED_MS + 2_000;
    world.move_clock(now).await;
    let expected = Due::Advance {
        run_id: run,
        lane: Lane::Interactive,
        traceparent: world.load(run).await.traceparent,
        cut_off: false,
        paused: false,
    };
    for round in 1..=10_u32 {
        assert_eq!(due(&world, AlarmSet::Agent).await, []);
        assert_eq!(due(&world, AlarmSet::Process).await, std::slice::from_ref(&expected));
        assert_eq!(due(&world, AlarmSet::Process).await, []);
        let doubled = world.config.timings.alarm_unclaimed * 2_u32.pow(round);
        let distance = doubled.min(ALARM_MAX);
        assert!(world.alarm_is_in(run, distance).await, "{round}");
        now += i64::try_from(distance.as_millis()).unwrap() + 2_000;
        world.move_clock(now).await;
    }
    assert_eq!(world.load(run).await.alarm_tries, 10);
    world.claim(run).await;
    assert_eq!(world.load(run).await.alarm_tries, 0);
    world.end().await;
}

#[tokio::test]
async fn a_run_whose_holder_is_gone_is_told_as_cut_off() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::new(RunKind::Agent)).await;
    world.claim(run).await;
    world.move_clock(61_000).await;
    let told = due(&world, AlarmSet::Agent).await;
    assert!(matches!(told[..], [Due::Advance { run_id, cut_off: true, .. }] if run_id == run));
    world.end().await;
}

#[tokio::test]
async fn a_timer_goes_off_when_it_is_due() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let at = world.alarm(run).await.1 + 3_600_000;
    let checkpoint = Checkpoint { release: true, wake: Wake::At(at), ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
    world.move_clock(3_590_000).await;
    assert_eq!(due(&world, AlarmSet::Process).await, []);
    let count = world.store.count_alarms(world.shard, AlarmSet::Process).await.unwrap();
    assert_eq!((count.all, count.overdue, count.next_at_ms), (1, 0, Some(at)));
    world.move_clock(3_601_000).await;
    let count = world.store.count_alarms(world.shard, AlarmSet::Process).await.unwrap();
    assert_eq!((count.all, count.overdue), (1, 1));
    let told = due(&world, AlarmSet::Process).await;
    assert!(matches!(told[..], [Due::Advance { cut_off: false, paused: false, .. }]));
    let count = world.store.count_alarms(world.shard, AlarmSet::Agent).await.unwrap();
    assert_eq!((count.all, count.overdue, count.next_at_ms), (0, 0, None));
    world.end().await;
}

#[tokio::test]
async fn the_deadline_of_a_held_run_goes_off_too() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request { deadline_ms: Some(1_000), ..Request::process() }).await;
    world.store.pause_run(run).await.unwrap();
    let told = due(&world, AlarmSet::Process).await;
    assert!(matches!(told[..], [Due::Advance { paused: true, .. }]), "{told:?}");
    world.end().await;
}

#[tokio::test]
async fn an_outcome_and_then_its_job_are_told_until_they_are_dealt_with() {
    let world = World::with_movable_clock().await;
    let run = world.ended_run(&Request::process()).await;
    let job: JobKey = "onDone".parse().unwrap();
    world.move_clock(301_000).await;
    let expected = Due::Outcome {
        run_id: run,
        workspace: name("acme"),
        project: name("crm"),
        job: job.clone(),
        hops: 9,
        chain: 2,
        lane: Lane::Interactive,
        traceparent: world.load(run).await.traceparent,
    };
    assert_eq!(due(&world, AlarmSet::Done).await, [expected]);
    let answer = world.store.hand_over(&world.hand_over(run, &job)).await.unwrap();
    let HandedOver::Delivered(record) = answer else { panic!("{answer:?}") };
    assert_eq!(due(&world, AlarmSet::Done).await, []);
    world.move_clock(603_000).await;
    assert_eq!(due(&world, AlarmSet::Done).await, [of_job(&record)]);
    assert_eq!(due(&world, AlarmSet::Done).await, []);
    world.move_clock(604_000 + 600_000).await;
    let told = due(&world, AlarmSet::Done).await;
    assert_eq!(told, [of_job(&record)]);
    assert_eq!(world.store.load_job(record.id).await.unwrap().unwrap().alarm_tries, 2);
    world.store.finish_job(record.id, 1, true).await.unwrap();
    world.move_clock(40_000_000).await;
    assert_eq!(due(&world, AlarmSet::Done).await, []);
    world.end().await;
}

fn of_job(record: &JobRecord) -> Due {
    Due::Job {
        job_id: record.id,
        workspace: record.workspace.clone(),
        project: record.project.clone(),
        job: record.job.clone(),
        lane: record.lane,
        traceparent: record.traceparent.clone(),
    }
}

#[tokio::test]
async fn two_sweepers_never_get_the_same() {
    let world = World::with(|config| {
        config.skew = true;
        config.connections = 4;
    })
    .await;
    let requests: Vec<_> = (0..150).map(|_| Request::process()).collect();
    let runs: HashSet<_> =
        join_all(requests.iter().map(|request| world.run(request))).await.into_iter().collect();
    world.move_clock(UNCLAIMED_MS + 1_000).await;
    let sweeps = (0..12).map(|_| world.store.due_alarms(world.shard, AlarmSet::Process, 20));
    let mut told = Vec::new();
    for answer in join_all(sweeps).await {
        let answer = answer.unwrap();
        assert!(answer.len() <= 20);
        told.extend(answer.into_iter().map(|due| match due {
            Due::Advance { run_id, .. } => run_id,
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(told.len(), 150);
    assert_eq!(told.into_iter().collect::<HashSet<_>>(), runs);
    world.end().await;
}

#[tokio::test]
async fn what_is_gone_or_over_is_taken_out_of_the_alarms() {
    let world = World::with_movable_clock().await;
    let gone = world.run(&Request::process()).await;
    let over = world.run(&Request { outcome: false, ..Request::process() }).await;
    let good = world.run(&Request::process()).await;
    let mut raw = world.raw().await;
    let run_key = world.key_name(&format!("run:{gone}"));
    redis::cmd("DEL").arg(run_key).query_async::<()>(&mut raw).await.unwrap();
    world.store.end_run(over, &End::plain(RunState::Canceled)).await.unwrap();
    let alarms = world.key_name("alarms:process");
    redis::cmd("ZADD")
        .arg(&alarms)
        .arg(1)
        .arg(over.to_string())
        .query_async::<()>(&mut raw)
        .await
        .unwrap();
    world.move_clock(UNCLAIMED_MS + 1_000).await;
    let told = due(&world, AlarmSet::Process).await;
    assert!(matches!(told[..], [Due::Advance { run_id, .. }] if run_id == good));
    assert_eq!(world.alarms(AlarmSet::Process).await, 1);
    world.end().await;
}

#[tokio::test]
async fn one_unreadable_record_does_not_keep_the_others_asleep() {
    let world = World::with_movable_clock().await;
    let bad = world.run(&Request::process()).await;
    let good = world.run(&Request::process()).await;
    let mut raw = world.raw().await;
    let run_key = world.key_name(&format!("run:{bad}"));
    redis::cmd("HSET").arg(run_key).arg("lane").arg("?").query_async::<()>(&mut raw).await.unwrap();
    world.move_clock(UNCLAIMED_MS + 1_000).await;
    let told = due(&world, AlarmSet::Process).await;
    assert!(matches!(told[..], [Due::Advance { run_id, .. }] if run_id == good));
    world.end().await;
}

#[tokio::test]
async fn an_alarm_of_a_short_lease_goes_off_by_the_clock_of_redis() {
    let world = World::with(|config| config.timings = crate::world::short_timings()).await;
    let run = world.run(&Request::process()).await;
    world.claim(run).await;
    let mut told = Vec::new();
    let waited = tokio::time::timeout(Duration::from_secs(5), async {
        while told.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            told = due(&world, AlarmSet::Process).await;
        }
    });
    waited.await.expect("the alarm goes off");
    assert!(matches!(told[..], [Due::Advance { cut_off: true, .. }]));
    world.end().await;
}
