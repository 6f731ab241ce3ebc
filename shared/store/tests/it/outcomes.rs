//! Outcomes that become jobs, and the jobs.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::outcome::DropReason;
use runfleet_domain::{JobKey, RunKind, RunState};
use runfleet_store::{
    AlarmSet, End, HandOver, HandOverVerdict, HandedOver, JobFinished, JobOrigin, JobOutcome,
    JobRecord, JobState, OutcomeState,
};

use crate::world::{Request, World, name};

fn job_key() -> JobKey {
    "onDone".parse().unwrap()
}

async fn delivered(world: &World) -> JobRecord {
    let run = world.ended_run(&Request::process()).await;
    let job = job_key();
    match world.store.hand_over(&world.hand_over(run, &job)).await.unwrap() {
        HandedOver::Delivered(job) => *job,
        other => panic!("{other:?}"),
    }
}

/// CG-110, CG-111, CG-112
#[tokio::test]
async fn an_outcome_becomes_a_job_that_carries_everything() {
    let world = World::new().await;
    let run = world.ended_run(&Request::process().with_key("k")).await;
    let before = world.load(run).await;
    let job = job_key();
    let answer = world.store.hand_over(&world.hand_over(run, &job)).await.unwrap();
    let HandedOver::Delivered(record) = answer else { panic!("{answer:?}") };
    let expected = JobRecord {
        id: run.outcome_job(),
        origin: JobOrigin::Outcome(Box::new(JobOutcome {
            run_id: run,
            echo: Some("[1]".to_owned()),
            output: Some(r#"{"total":7}"#.to_owned()),
            error: None,
            ended: RunState::Completed,
            target: name("invoice"),
            target_version: 3,
            run_created_at_ms: before.created_at_ms,
            run_started_at_ms: before.started_at_ms,
            run_finished_at_ms: before.finished_at_ms.unwrap(),
            delivery: None,
        })),
        enqueued_by: format!("process:{run}"),
        state: JobState::Pending,
        attempt: 1,
        max_attempts: 5,
        timeout_ms: 30_000,
        workspace: name("acme"),
        project: name("crm"),
        job: job.clone(),
        lane: before.lane,
        user: Some(name("ann")),
        identity: "user:ann".to_owned(),
        hops: 8,
        depth: 1,
        chain: 3,
        enqueued_at_ms: record.enqueued_at_ms,
        run_at_ms: None,
        due_at_ms: record.enqueued_at_ms,
        last_error: None,
        traceparent: before.traceparent,
        alarm_tries: 0,
    };
    assert_eq!(*record, expected);
    assert_eq!(world.store.load_job(record.id).await.unwrap(), Some(*record));
    let after = world.store.explain_run(run).await.unwrap().unwrap();
    assert_eq!(after.record.outcome, OutcomeState::Job);
    assert_eq!((after.record.output, after.record.echo), (None, None));
    assert_eq!(after.alarm_at_ms, None);
    assert!(after.expires_in.unwrap() > Duration::from_hours(191));
    assert_eq!(world.alarms(AlarmSet::Done).await, 1);
    world.end().await;
}

#[tokio::test]
async fn an_agent_run_keeps_the_output_that_callers_ask_for() {
    let world = World::new().await;
    let run = world.ended_run(&Request::new(RunKind::Agent)).await;
    let job = job_key();
    let answer = world.store.hand_over(&world.hand_over(run, &job)).await.unwrap();
    let HandedOver::Delivered(record) = answer else { panic!("{answer:?}") };
    assert_eq!(record.enqueued_by, format!("agent:{run}"));
    assert_eq!(record.outcome().unwrap().output, world.load(run).await.output);
    world.end().await;
}

/// CG-040, CG-100
#[tokio::test]
async fn many_hand_overs_at_once_make_one_job() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.ended_run(&Request::process()).await;
    let job = job_key();
    let outcome = world.hand_over(run, &job);
    let answers = join_all((0..32).map(|_| world.store.hand_over(&outcome))).await;
    let (mut first, mut again) = (0, 0);
    for answer in answers {
        match answer.unwrap() {
            HandedOver::Delivered(_) => first += 1,
            HandedOver::Again(_) => again += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((first, again), (1, 31));
    world.end().await;
}

#[tokio::test]
async fn only_the_outcome_of_an_ended_run_that_names_a_job_is_handed_over() {
    let world = World::new().await;
    let job = job_key();
    let unknown = world.fresh_run(RunKind::Process);
    let hand_over = |run| world.hand_over(run, &job);
    assert_eq!(world.store.hand_over(&hand_over(unknown)).await.unwrap(), HandedOver::Missing);
    let run = world.run(&Request::process()).await;
    assert_eq!(world.store.hand_over(&hand_over(run)).await.unwrap(), HandedOver::NotEnded);
    let run = world.ended_run(&Request { outcome: false, ..Request::process() }).await;
    assert_eq!(world.store.hand_over(&hand_over(run)).await.unwrap(), HandedOver::NotWanted);
    world.end().await;
}

#[tokio::test]
async fn a_hand_over_that_tells_another_story_than_the_record_is_refused() {
    let world = World::new().await;
    let run = world.ended_run(&Request::process()).await;
    let (job, other_job, other) = (job_key(), "other".parse().unwrap(), name("hr"));
    let good = world.hand_over(run, &job);
    for bad in [
        HandOver { project: &other, ..good },
        HandOver { job: &other_job, ..good },
        HandOver { hops: 10, ..good },
        HandOver { chain: 1, ..good },
    ] {
        assert_eq!(world.store.hand_over(&bad).await.unwrap(), HandedOver::Mismatch);
    }
    assert_eq!(world.load(run).await.outcome, OutcomeState::Pending);
    world.end().await;
}

/// CG-115, CG-117
#[tokio::test]
async fn an_outcome_that_is_dropped_keeps_its_reason() {
    let world = World::new().await;
    let job = job_key();
    for reason in DropReason::ALL {
        let run = world.ended_run(&Request::process()).await;
        let verdict = HandOverVerdict::Drop(reason);
        let outcome = HandOver { verdict, ..world.hand_over(run, &job) };
        for first in [true, false] {
            let answer = world.store.hand_over(&outcome).await.unwrap();
            assert_eq!(answer, HandedOver::Dropped { reason, first });
        }
        // The first decision stands.
        let answer = world.store.hand_over(&world.hand_over(run, &job)).await.unwrap();
        assert_eq!(answer, HandedOver::Dropped { reason, first: false });
        assert_eq!(world.load(run).await.outcome, OutcomeState::Dropped(reason));
        assert_eq!(world.store.load_job(run.outcome_job()).await.unwrap(), None);
    }
    assert_eq!(world.alarms(AlarmSet::Done).await, 0);
    world.end().await;
}

/// CG-117
#[tokio::test]
async fn a_project_with_too_many_jobs_gets_no_more_until_one_ends() {
    let world = World::new().await;
    let job = job_key();
    let first = delivered(&world).await;
    let run = world.ended_run(&Request::process()).await;
    let outcome = HandOver { jobs_waiting_max: 1, ..world.hand_over(run, &job) };
    let reason = DropReason::TooManyJobsWaiting;
    let answer = world.store.hand_over(&outcome).await.unwrap();
    assert_eq!(answer, HandedOver::Dropped { reason, first: true });
    assert_eq!(world.store.finish_job(first.id, 1, true).await.unwrap(), JobFinished::Ended);
    let run = world.ended_run(&Request::process()).await;
    let outcome = HandOver { jobs_waiting_max: 1, ..world.hand_over(run, &job) };
    let answer = world.store.hand_over(&outcome).await.unwrap();
    assert!(matches!(answer, HandedOver::Delivered(_)), "{answer:?}");
    world.end().await;
}

#[tokio::test]
async fn a_job_ends_once_and_only_by_the_attempt_that_is_under_way() {
    let world = World::new().await;
    let record = delivered(&world).await;
    let (store, id) = (&world.store, record.id);
    assert_eq!(store.finish_job(id, 2, true).await.unwrap(), JobFinished::OtherAttempt(1));
    assert_eq!(store.finish_job(id, 1, false).await.unwrap(), JobFinished::Ended);
    let known = JobFinished::Known(JobState::Failed);
    assert_eq!(store.finish_job(id, 1, true).await.unwrap(), known);
    let record = store.load_job(id).await.unwrap().unwrap();
    assert_eq!(
        (record.state, record.last_error.as_deref()),
        (JobState::Failed, Some("SCRIPT_ERROR"))
    );
    let outcome = record.outcome().unwrap();
    assert_eq!((&outcome.output, &outcome.echo), (&None, &None));
    assert_eq!(world.alarms(AlarmSet::Done).await, 0);
    let job = job_key();
    let answer = store.hand_over(&world.hand_over(outcome.run_id, &job)).await.unwrap();
    assert_eq!(answer, HandedOver::JobBegun);
    let unknown = world.fresh_run(RunKind::Agent).outcome_job();
    assert_eq!(store.finish_job(unknown, 1, true).await.unwrap(), JobFinished::Missing);
    assert_eq!(store.load_job(unknown).await.unwrap(), None);
    world.end().await;
}

#[tokio::test]
async fn the_outcome_of_a_cancelled_run_is_handed_over_too() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let job = job_key();
    let answer = world.store.hand_over(&world.hand_over(run, &job)).await.unwrap();
    let HandedOver::Delivered(record) = answer else { panic!("{answer:?}") };
    let outcome = record.outcome().unwrap();
    assert_eq!((outcome.ended, outcome.run_started_at_ms), (RunState::Canceled, None));
    world.end().await;
}
