//! Job runs: how they are made, and what becomes of their attempts.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::{IdempotencyKey, JobId, JobKey, Lane, MessageId, Name};
use runfleet_store::{
    AlarmSet, Due, EnqueueJob, Enqueued, JobBegun, JobDue, JobFailed, JobFinished, JobOrigin,
    JobRecord, JobState, JobTime, NewJobOrigin, Verdict,
};
use ulid::Ulid;

use crate::world::{World, key, message, name};

const AT_ONCE: JobTime = JobTime::After(Duration::ZERO);

/// A wish to enqueue, with everything in it that a test may want to change.
#[derive(Clone)]
struct Wish {
    job: JobKey,
    message: MessageId,
    key: Option<IdempotencyKey>,
    execution: Name,
    time: JobTime,
    budget: Option<u32>,
    limit: Option<u32>,
    waiting_max: u32,
    attempts: u32,
    verdict: Verdict,
    batch: bool,
}

impl Wish {
    fn new() -> Self {
        Self {
            job: "remind".parse().unwrap(),
            message: message(&Ulid::generate().to_string()),
            key: None,
            execution: name("exec-1"),
            time: AT_ONCE,
            budget: Some(1_000),
            limit: Some(50),
            waiting_max: 100,
            attempts: 3,
            verdict: Verdict::Accept,
            batch: false,
        }
    }

    fn again(&self) -> Self {
        Self { message: message(&Ulid::generate().to_string()), ..self.clone() }
    }

    async fn enqueue(&self, world: &World) -> Enqueued {
        let new = EnqueueJob {
            id: JobId::new(world.shard, Ulid::generate()),
            workspace: &world.workspace,
            project: &world.project,
            job: &self.job,
            origin: NewJobOrigin::Enqueued(Some("[7]")),
            enqueued_by: "job:nightly",
            message_id: &self.message,
            key: self.key.as_ref(),
            time: self.time,
            execution: &self.execution,
            batch: self.batch,
            calls_budget: self.budget,
            calls_limit: self.limit,
            verdict: self.verdict,
            jobs_waiting_max: self.waiting_max,
            max_attempts: self.attempts,
            timeout_ms: 1_000,
            lane: Lane::Interactive,
            user: None,
            identity: "system",
            hops: 8,
            depth: 1,
            chain: 3,
            traceparent: None,
        };
        world.store.enqueue_job(&new).await.unwrap()
    }

    async fn made(&self, world: &World) -> JobId {
        match self.enqueue(world).await {
            Enqueued::Created { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }
}

/// A job with everything that it may have.
pub(crate) async fn enqueued_for_later(world: &World) -> JobId {
    let time = JobTime::After(Duration::from_mins(1));
    Wish { time, key: Some(key("k")), ..Wish::new() }.made(world).await
}

async fn load(world: &World, job: JobId) -> JobRecord {
    world.store.load_job(job).await.unwrap().unwrap()
}

async fn due(world: &World, job: JobId) -> JobDue {
    world.store.job_due(job, Some((3, 1_000))).await.unwrap()
}

async fn rings(world: &World) -> usize {
    let due = world.store.due_alarms(world.shard, AlarmSet::Done, 100).await.unwrap();
    assert!(due.iter().all(|due| matches!(due, Due::Job { .. })), "{due:?}");
    due.len()
}

#[tokio::test]
async fn a_job_that_is_enqueued_carries_everything_and_is_due() {
    let world = World::new().await;
    let made = Wish::new().enqueue(&world).await;
    let Enqueued::Created { job, due: true } = made else { panic!("{made:?}") };
    let record = load(&world, job).await;
    assert_eq!(record.origin, JobOrigin::Enqueued { payload: Some("[7]".to_owned()) });
    assert_eq!((record.state, record.attempt, record.max_attempts), (JobState::Pending, 1, 3));
    assert_eq!((record.hops, record.depth, record.chain), (8, 1, 3));
    assert_eq!((record.enqueued_by.as_str(), record.source()), ("job:nightly", "enqueue"));
    assert_eq!((record.run_at_ms, record.due_at_ms), (None, record.enqueued_at_ms));
    let first = due(&world, job).await;
    assert!(matches!(first, JobDue::Publish { again: false, .. }), "{first:?}");
    let second = due(&world, job).await;
    assert!(matches!(second, JobDue::Publish { again: true, .. }), "{second:?}");
    world.store.withdraw_job(job).await.unwrap();
    let third = due(&world, job).await;
    assert!(matches!(third, JobDue::Publish { again: false, .. }), "{third:?}");
    world.end().await;
}

#[tokio::test]
async fn one_message_and_one_key_of_a_job_make_one_job_run_for_as_long_as_it_is_stored() {
    let world = World::new().await;
    let wish = Wish { key: Some(key("order:7")), ..Wish::new() };
    let job = wish.made(&world).await;
    assert_eq!(wish.enqueue(&world).await, Enqueued::Replayed { job });
    let duplicate = Enqueued::Duplicate { job };
    assert_eq!(wish.again().enqueue(&world).await, duplicate);
    // Also what would be refused now finds it.
    let refused = Wish { verdict: Verdict::Refuse, ..wish.again() };
    assert_eq!(refused.enqueue(&world).await, duplicate);
    let other = Wish { job: "other".parse().unwrap(), ..wish.again() };
    assert_ne!(other.made(&world).await, job);
    assert_eq!(world.store.finish_job(job, 1, true).await.unwrap(), JobFinished::Ended);
    assert_eq!(wish.again().enqueue(&world).await, duplicate);
    let mut raw = world.raw().await;
    let days = Duration::from_hours(8 * 24).as_millis().try_into().unwrap();
    for rest in ["jobkey:acme:crm:remind:order:7".to_owned(), format!("job:{job}")] {
        let name = world.key_name(&rest);
        let left: i64 = redis::cmd("PTTL").arg(name).query_async(&mut raw).await.unwrap();
        assert!((days - 10_000..=days).contains(&left), "{rest}: {left}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_execution_enqueues_so_many_jobs_and_its_other_calls_count_too() {
    let world = World::new().await;
    let wish = Wish { limit: Some(2), budget: Some(3), ..Wish::new() };
    let first = wish.made(&world).await;
    assert_eq!(wish.enqueue(&world).await, Enqueued::Replayed { job: first });
    wish.again().made(&world).await;
    let over = wish.again();
    for _ in 0..2 {
        assert_eq!(over.enqueue(&world).await, Enqueued::CallsExceeded { limit: 2, used: 2 });
    }
    // The refused call has used the last of the budget, once.
    let spent = Enqueued::BudgetExceeded { limit: 3, used: 3 };
    assert_eq!(wish.again().enqueue(&world).await, spent);
    let other = Wish { execution: name("exec-2"), ..wish.again() };
    other.made(&world).await;
    let refused = Wish { verdict: Verdict::Refuse, budget: None, limit: None, ..wish.again() };
    assert_eq!(refused.enqueue(&world).await, Enqueued::Refused);
    world.end().await;
}

#[tokio::test]
async fn a_revoked_batch_enqueues_no_more_and_is_told_what_it_has_made() {
    let world = World::new().await;
    let (workspace, project) = (&world.workspace, &world.project);
    let key = Some(key("k"));
    let wish = Wish { batch: true, budget: None, limit: None, key, ..Wish::new() };
    let job = wish.made(&world).await;
    let hour = Duration::from_hours(1);
    world.store.revoke_batch(workspace, project, &wish.execution, hour).await.unwrap();
    assert_eq!(wish.enqueue(&world).await, Enqueued::Replayed { job });
    assert_eq!(wish.again().enqueue(&world).await, Enqueued::Revoked);
    let without_key = Wish { key: None, ..wish.again() };
    assert_eq!(without_key.enqueue(&world).await, Enqueued::Revoked);
    let other = Wish { execution: name("other"), ..without_key };
    other.made(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_limit_of_waiting_jobs_is_met_exactly_by_many_at_once_and_room_comes_back() {
    let world = World::with(|config| config.connections = 4).await;
    let wish = Wish { budget: None, limit: None, waiting_max: 20, ..Wish::new() };
    let wishes: Vec<_> = (0..100).map(|_| wish.again()).collect();
    let made = join_all(wishes.iter().map(|wish| wish.enqueue(&world))).await;
    let jobs: Vec<_> = made
        .iter()
        .filter_map(|made| match made {
            Enqueued::Created { job, .. } => Some(*job),
            Enqueued::Full { limit: 20, used: 20 } => None,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(jobs.len(), 20);
    assert_eq!(world.store.jobs_waiting(&world.workspace, &world.project).await.unwrap(), 20);
    world.store.finish_job(jobs[0], 1, false).await.unwrap();
    wish.again().made(&world).await;
    let full = Enqueued::Full { limit: 20, used: 20 };
    assert_eq!(wish.again().enqueue(&world).await, full);
    world.end().await;
}

#[tokio::test]
async fn a_job_for_later_is_due_at_its_time_and_not_before() {
    let world = World::with_movable_clock().await;
    let later = Wish { time: JobTime::After(Duration::from_mins(1)), ..Wish::new() };
    let made = later.enqueue(&world).await;
    let Enqueued::Created { job, due: false } = made else { panic!("{made:?}") };
    let record = load(&world, job).await;
    assert_eq!(record.run_at_ms, Some(record.enqueued_at_ms + 60_000));
    assert_eq!(due(&world, job).await, JobDue::Early);
    assert_eq!(rings(&world).await, 0);
    world.move_clock(61_000).await;
    assert_eq!(rings(&world).await, 1);
    let now = due(&world, job).await;
    assert!(matches!(now, JobDue::Publish { again: false, .. }), "{now:?}");
    let at = JobTime::At(record.enqueued_at_ms + 90_000);
    let made = Wish { time: at, ..Wish::new() }.enqueue(&world).await;
    assert!(matches!(made, Enqueued::Created { due: false, .. }), "{made:?}");
    let past = JobTime::At(record.enqueued_at_ms - 90_000);
    let made = Wish { time: past, ..Wish::new() }.enqueue(&world).await;
    assert!(matches!(made, Enqueued::Created { due: true, .. }), "{made:?}");
    world.end().await;
}

#[tokio::test]
async fn a_failed_attempt_is_followed_by_the_next_one_after_its_wait_until_none_is_left() {
    let world = World::with_movable_clock().await;
    let (store, job) = (&world.store, Wish::new().made(&world).await);
    let wait = Some(Duration::from_secs(20));
    let fail = |attempt| store.fail_job(job, attempt, "RETRYABLE", wait);
    assert_eq!(fail(1).await.unwrap(), JobFailed::Retried(2));
    // The same report once more, and one of an attempt that is not under way.
    assert_eq!(fail(1).await.unwrap(), JobFailed::OtherAttempt(2));
    assert_eq!(fail(3).await.unwrap(), JobFailed::OtherAttempt(2));
    let record = load(&world, job).await;
    assert_eq!((record.state, record.attempt), (JobState::Pending, 2));
    assert_eq!(record.last_error.as_deref(), Some("RETRYABLE"));
    assert_eq!(due(&world, job).await, JobDue::Early);
    world.move_clock(21_000).await;
    assert_eq!(rings(&world).await, 1);
    let now = due(&world, job).await;
    assert!(matches!(now, JobDue::Publish { again: false, .. }), "{now:?}");
    assert_eq!(fail(2).await.unwrap(), JobFailed::Retried(3));
    assert_eq!(fail(3).await.unwrap(), JobFailed::Ended);
    assert_eq!(fail(3).await.unwrap(), JobFailed::Known(JobState::Failed));
    assert_eq!(load(&world, job).await.origin, JobOrigin::Enqueued { payload: None });
    assert_eq!(due(&world, job).await, JobDue::Ended);
    assert_eq!(world.alarms(AlarmSet::Done).await, 0);
    // What cannot be helped by another attempt ends at once.
    let job = Wish::new().made(&world).await;
    assert_eq!(store.fail_job(job, 1, "SCRIPT_ERROR", None).await.unwrap(), JobFailed::Ended);
    world.end().await;
}

#[tokio::test]
async fn the_time_of_an_attempt_counts_from_its_beginning_and_anew_when_it_is_begun_again() {
    let world = World::with_movable_clock().await;
    let (store, job) = (&world.store, Wish::new().made(&world).await);
    assert!(matches!(due(&world, job).await, JobDue::Publish { .. }));
    assert_eq!(store.begin_job(job, 2).await.unwrap(), JobBegun::OtherAttempt(1));
    assert_eq!(store.begin_job(job, 1).await.unwrap(), JobBegun::Begun { again: false });
    assert_eq!(load(&world, job).await.state, JobState::Running);
    assert_eq!(due(&world, job).await, JobDue::Running);
    world.move_clock(9_000).await;
    assert_eq!(store.begin_job(job, 1).await.unwrap(), JobBegun::Begun { again: true });
    world.move_clock(12_000).await;
    assert_eq!((due(&world, job).await, rings(&world).await), (JobDue::Running, 0));
    world.move_clock(21_000).await;
    assert_eq!((rings(&world).await, due(&world, job).await), (1, JobDue::Overtime(1)));
    let wait = Some(Duration::from_secs(5));
    let failed = store.fail_job(job, 1, "JOB_TIMEOUT", wait).await.unwrap();
    assert_eq!(failed, JobFailed::Retried(2));
    // The result of the attempt that was given up comes too late.
    assert_eq!(store.finish_job(job, 1, true).await.unwrap(), JobFinished::OtherAttempt(2));
    assert_eq!(store.begin_job(job, 1).await.unwrap(), JobBegun::OtherAttempt(2));
    assert_eq!(store.finish_job(job, 2, true).await.unwrap(), JobFinished::Ended);
    assert_eq!(store.begin_job(job, 2).await.unwrap(), JobBegun::Known(JobState::Succeeded));
    let unknown = JobId::new(world.shard, Ulid::generate());
    assert_eq!(store.begin_job(unknown, 1).await.unwrap(), JobBegun::Missing);
    assert_eq!(due(&world, unknown).await, JobDue::Missing);
    assert_eq!(store.fail_job(unknown, 1, "X", None).await.unwrap(), JobFailed::Missing);
    world.end().await;
}

#[tokio::test]
async fn the_list_shows_what_waits_and_what_has_ended_in_seven_days_and_no_payload() {
    let world = World::with_movable_clock().await;
    let store = &world.store;
    let wish = Wish { budget: None, limit: None, ..Wish::new() };
    let ended = wish.again().made(&world).await;
    store.finish_job(ended, 1, true).await.unwrap();
    // Ids of one millisecond have no order.
    tokio::time::sleep(Duration::from_millis(3)).await;
    let older = wish.again().made(&world).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    let newer = wish.again().made(&world).await;
    let list =
        async |count| store.list_jobs(&world.workspace, &world.project, count).await.unwrap();
    let page = list(50).await;
    let ids: Vec<_> = page.jobs.iter().map(|job| job.id).collect();
    assert_eq!((page.waiting, ids), (2, vec![newer, older, ended]));
    let entry = &page.jobs[0];
    assert_eq!((entry.payload_bytes, entry.enqueued_by.as_str()), (Some(3), "job:nightly"));
    assert_eq!(page.jobs[2].state, JobState::Succeeded);
    assert!(page.jobs[2].ended_at_ms.is_some());
    assert_eq!(list(1).await.jobs.len(), 1);
    assert_eq!(list(3).await.jobs.len(), 3);
    world.move_clock(7 * 86_400_000 + 1_000).await;
    assert_eq!(list(50).await.jobs.len(), 2);
    store.finish_job(older, 1, false).await.unwrap();
    let page = list(50).await;
    assert_eq!(page.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [newer, older]);
    assert_eq!(page.jobs[1].last_error.as_deref(), Some("SCRIPT_ERROR"));
    world.end().await;
}
