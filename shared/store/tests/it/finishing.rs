//! Ending runs.

use futures_util::future::join_all;
use runfleet_domain::{Name, RunKind, RunState};
use runfleet_store::{
    AlarmSet, Claim, Claimed, End, Finished, OutcomeState, RunError, StoreError, Told,
};

use crate::world::{Request, World, finished, message};

const DONE: End<'static> =
    End { state: RunState::Completed, output: Some("[7]"), error: None, history: &[] };

async fn ttl_hours(world: &World, rest: &str) -> i64 {
    let mut raw = world.raw().await;
    let ttl: i64 = redis::cmd("TTL").arg(world.key_name(rest)).query_async(&mut raw).await.unwrap();
    if ttl < 0 { ttl } else { (ttl + 1_800) / 3_600 }
}

#[tokio::test]
async fn the_holder_ends_its_run_and_the_outcome_waits_with_an_alarm() {
    let world = World::new().await;
    let run = world.run(&Request::process().with_key("k")).await;
    let fence = world.claim(run).await;
    world.store.append_event(run, &message("late"), "{}").await.unwrap();
    let answer = world.store.finish_run(run, fence, &DONE).await.unwrap();
    assert_eq!(answer, finished(true));
    let record = world.load(run).await;
    assert_eq!(record.state, RunState::Completed);
    assert_eq!(record.output.as_deref(), Some("[7]"));
    assert_eq!((record.input, record.position), (None, None));
    assert_eq!(record.echo.as_deref(), Some("[1]"));
    assert!(record.finished_at_ms.is_some());
    assert!(world.alarm_is_in(run, world.config.timings.alarm_handover).await);
    assert_eq!(world.alarms(AlarmSet::Process).await, 0);
    assert_eq!(world.alarms(AlarmSet::Done).await, 1);
    // What waits for its end has no lifetime.
    assert_eq!(ttl_hours(&world, &format!("run:{run}")).await, -1);
    assert_eq!(ttl_hours(&world, "key:acme:crm:k").await, -1);
    assert_eq!(ttl_hours(&world, &format!("inbox:{run}")).await, -2);
    assert_eq!(ttl_hours(&world, &format!("events:{run}")).await, -2);
    // Whoever has told it something may come again.
    assert_eq!(ttl_hours(&world, &format!("seen:{run}")).await, 192);
    world.end().await;
}

/// CG-122
#[tokio::test]
async fn without_a_wanted_outcome_the_run_and_its_key_live_on_for_eight_days() {
    let world = World::new().await;
    let request = Request { outcome: false, ..Request::process().with_key("k") };
    let run = world.run(&request).await;
    let fence = world.claim(run).await;
    let answer = world.store.finish_run(run, fence, &DONE).await.unwrap();
    assert_eq!(answer, finished(false));
    let record = world.load(run).await;
    assert_eq!((record.outcome, record.output), (OutcomeState::None, None));
    assert_eq!(world.alarms(AlarmSet::Process).await + world.alarms(AlarmSet::Done).await, 0);
    assert_eq!(ttl_hours(&world, &format!("run:{run}")).await, 192);
    assert_eq!(ttl_hours(&world, "key:acme:crm:k").await, 192);
    assert_eq!(ttl_hours(&world, &format!("msg:acme:crm:{}", request.message)).await, 192);
    // Callers can ask for the output of an agent run.
    let agent = Request { outcome: false, ..Request::new(RunKind::Agent) };
    let run = world.ended_run(&agent).await;
    assert!(world.load(run).await.output.is_some());
    world.end().await;
}

/// CG-092
#[tokio::test]
async fn the_error_of_a_run_is_kept() {
    let world = World::new().await;
    let run = world.run(&Request::new(RunKind::Agent)).await;
    let fence = world.claim(run).await;
    let end = End { error: Some(("MAX_TURNS", "too long")), ..End::plain(RunState::Failed) };
    world.store.finish_run(run, fence, &end).await.unwrap();
    let expected = RunError { code: "MAX_TURNS".to_owned(), message: "too long".to_owned() };
    assert_eq!(world.load(run).await.error, Some(expected));
    world.end().await;
}

#[tokio::test]
async fn the_first_end_wins() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let cancel = End::plain(RunState::Canceled);
    let answer = world.store.end_run(run, &cancel).await.unwrap();
    assert_eq!(answer, finished(true));
    let before = world.load(run).await;
    for answer in [
        world.store.finish_run(run, fence, &DONE).await.unwrap(),
        world.store.end_run(run, &End::plain(RunState::Deleted)).await.unwrap(),
        world.store.claim_and_finish_run(run, before.version, &DONE).await.unwrap(),
    ] {
        assert_eq!(answer, Finished::Ended(Box::new(before.clone())));
    }
    assert_eq!(world.load(run).await, before);
    world.end().await;
}

#[tokio::test]
async fn of_many_ends_at_once_one_wins() {
    let world = World::with(|config| config.connections = 4).await;
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let cancel = End::plain(RunState::Canceled);
    let ends = (0..64).map(|number| {
        let (store, cancel) = (&world.store, &cancel);
        async move {
            if number % 2 == 0 {
                store.finish_run(run, fence, &DONE).await.unwrap()
            } else {
                store.end_run(run, cancel).await.unwrap()
            }
        }
    });
    let answers = join_all(ends).await;
    let won = answers.iter().filter(|answer| matches!(answer, Finished::Finished { .. })).count();
    let ended = answers.iter().filter(|answer| matches!(answer, Finished::Ended(_))).count();
    assert_eq!((won, ended), (1, 63));
    assert_eq!(world.alarms(AlarmSet::Done).await, 1);
    world.end().await;
}

#[tokio::test]
async fn a_run_that_nobody_holds_is_claimed_and_finished_at_once() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let version = world.load(run).await.version;
    let answer = world.store.claim_and_finish_run(run, version, &DONE).await.unwrap();
    assert_eq!(answer, finished(true));
    let record = world.load(run).await;
    assert_eq!(record.state, RunState::Completed);
    assert_eq!(record.started_at_ms, record.finished_at_ms);
    assert_eq!(record.fence, 1);
    world.end().await;
}

#[tokio::test]
async fn a_run_that_was_claimed_or_has_changed_or_has_events_is_not_finished_without_a_claim() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let seen = world.load(run).await.version;
    world.claim(run).await;
    let claimed = world.load(run).await.version;
    for version in [seen, claimed] {
        let answer = world.store.claim_and_finish_run(run, version, &DONE).await.unwrap();
        assert_eq!(answer, Finished::Busy);
    }
    let run = world.run(&Request::process()).await;
    world.store.append_event(run, &message("e"), "{}").await.unwrap();
    let version = world.load(run).await.version;
    let answer = world.store.claim_and_finish_run(run, version, &DONE).await.unwrap();
    assert_eq!(answer, Finished::Busy);
    world.end().await;
}

#[tokio::test]
async fn an_untouched_run_is_finished_unread_only_when_the_record_says_what_was_told() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let record = world.load(run).await;
    let told = Told {
        workspace: &record.workspace,
        target: &record.target,
        target_version: record.target_version,
        input: record.input.as_deref(),
    };
    let other: Name = "another".parse().unwrap();
    let lies = [
        Told { workspace: &other, ..told },
        Told { target: &other, ..told },
        Told { target_version: told.target_version + 1, ..told },
        Told { input: Some("{\"another\":1}"), ..told },
    ];
    for lie in lies {
        let answer = world.store.finish_untouched_run(run, &lie, &DONE).await.unwrap();
        assert_eq!(answer, Finished::Busy, "{lie:?}");
    }
    assert_eq!(world.load(run).await, record, "nothing has changed");
    let answer = world.store.finish_untouched_run(run, &told, &DONE).await.unwrap();
    assert_eq!(answer, finished(true));
    assert!(matches!(
        world.store.finish_untouched_run(run, &told, &DONE).await.unwrap(),
        Finished::Ended(_)
    ));
    world.end().await;
}

#[tokio::test]
async fn a_run_that_is_late_or_that_somebody_has_touched_is_not_finished_unread() {
    let world = World::new().await;
    let run = world.run(&Request { deadline_ms: Some(1_000), ..Request::process() }).await;
    let late = world.load(run).await;
    let told = Told {
        workspace: &late.workspace,
        target: &late.target,
        target_version: late.target_version,
        input: late.input.as_deref(),
    };
    let answer = world.store.finish_untouched_run(run, &told, &DONE).await.unwrap();
    assert_eq!(answer, Finished::Busy, "its deadline has passed");
    let run = world.run(&Request::process()).await;
    let record = world.load(run).await;
    world.claim(run).await;
    let told = Told {
        workspace: &record.workspace,
        target: &record.target,
        target_version: record.target_version,
        input: record.input.as_deref(),
    };
    assert_eq!(world.store.finish_untouched_run(run, &told, &DONE).await.unwrap(), Finished::Busy);
    world.end().await;
}

#[tokio::test]
async fn a_claim_and_many_unclaimed_finishes_at_once_have_one_winner() {
    let world = World::with(|config| config.connections = 4).await;
    for _ in 0..10 {
        let run = world.run(&Request::process()).await;
        let version = world.load(run).await.version;
        let finish = || world.store.claim_and_finish_run(run, version, &DONE);
        let before = join_all((0..8).map(|_| finish()));
        let claim = world.store.claim_run(run, Claim::default());
        let after = join_all((0..8).map(|_| finish()));
        let (before, claim, after) = tokio::join!(before, claim, after);
        let finished = before.into_iter().chain(after).map(Result::unwrap);
        let finished = finished.filter(|end| matches!(end, Finished::Finished { .. })).count();
        let claimed = usize::from(matches!(claim.unwrap(), Claimed::Claimed { .. }));
        assert_eq!(finished + claimed, 1);
    }
    world.end().await;
}

#[tokio::test]
async fn a_run_that_does_not_exist_cannot_be_ended() {
    let world = World::new().await;
    let run = world.fresh_run(RunKind::Process);
    assert_eq!(world.store.finish_run(run, 1, &DONE).await.unwrap(), Finished::Missing);
    assert_eq!(world.store.claim_and_finish_run(run, 1, &DONE).await.unwrap(), Finished::Missing);
    let cancel = End::plain(RunState::Canceled);
    assert_eq!(world.store.end_run(run, &cancel).await.unwrap(), Finished::Missing);
    world.end().await;
}

#[tokio::test]
async fn an_end_that_is_none_is_refused_before_it_is_sent() {
    let world = World::new().await;
    let run = world.fresh_run(RunKind::Process);
    let running = End::plain(RunState::Running);
    let large = "x".repeat(300_000);
    let too_large = End { output: Some(&large), ..DONE };
    for error in [
        world.store.finish_run(run, 1, &running).await.unwrap_err(),
        world.store.finish_run(run, 1, &too_large).await.unwrap_err(),
        world.store.end_run(run, &DONE).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    world.end().await;
}
