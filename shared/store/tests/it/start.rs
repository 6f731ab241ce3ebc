//! Starting runs.

use std::collections::HashSet;

use futures_util::future::join_all;
use runfleet_domain::{RunKind, RunState};
use runfleet_store::{
    AlarmSet, End, OutcomeState, RunRecord, StartRun, Started, StoreError, Verdict,
};

use crate::world::{Request, World, key, message, name};

#[tokio::test]
async fn a_start_stores_everything_that_it_was_given() {
    let world = World::new().await;
    let request = Request { deadline_ms: Some(4_000_000_000_000), ..Request::process() };
    let run = world.run(&request.clone().with_key("order:7")).await;
    let record = world.load(run).await;
    let expected = RunRecord {
        id: run,
        workspace: name("acme"),
        project: name("crm"),
        lane: runfleet_domain::Lane::Interactive,
        message_id: request.message,
        key: Some(key("order:7")),
        identity: "user:ann".to_owned(),
        target: name("invoice"),
        target_version: 3,
        execution: name("exec-1"),
        user: Some(name("ann")),
        hops: 9,
        depth: 1,
        chain: 2,
        instance_name: Some("No. 7".to_owned()),
        input: Some(r#"{"amount":7}"#.to_owned()),
        deadline_ms: Some(4_000_000_000_000),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        state: RunState::Queued,
        version: 1,
        fence: 0,
        lease_until_ms: 0,
        crashes: 0,
        position: None,
        output: None,
        error: None,
        outcome: OutcomeState::Pending,
        job: Some("onDone".parse().unwrap()),
        echo: Some("[1]".to_owned()),
        created_at_ms: record.created_at_ms,
        started_at_ms: None,
        finished_at_ms: None,
        alarm_tries: 0,
        parent: None,
        has_called: false,
        waits: 0,
        incidents: 0,
        recipient: None,
        delivery: None,
        conversation: None,
        asks_in: None,
        cost: 0,
    };
    assert_eq!(record, expected);
    assert!(world.alarm_is_in(run, world.config.timings.alarm_unclaimed).await);
    world.end().await;
}

#[tokio::test]
async fn the_same_message_makes_one_run() {
    let world = World::new().await;
    let request = Request::process();
    let run = world.run(&request).await;
    assert_eq!(world.start(&request).await, Started::Replayed { run, state: RunState::Queued });
    // A refusal for other reasons comes later than the look at the message.
    let refused = Request { verdict: Verdict::Refuse, ..request };
    assert_eq!(world.start(&refused).await, Started::Replayed { run, state: RunState::Queued });
    assert_eq!(world.starts_today(RunKind::Process).await, 1);
    world.end().await;
}

/// CG-126
#[tokio::test]
async fn a_call_that_is_sent_again_finds_what_it_did() {
    let world = World::new().await;
    let request = Request { calls_limit: Some(1), day_limit: 1, ..Request::process() };
    let start = request.start(&world);
    let run = start.run_id;
    for _ in 0..2 {
        assert_eq!(world.store.start_run(&start).await.unwrap(), Started::Created { run });
    }
    world.end().await;
}

/// CG-121, CG-125
#[tokio::test]
async fn the_same_key_names_one_run_whatever_the_other_options() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let run = world.run(&request).await;
    let other = Request { day_limit: 0, outcome: false, ..request.again() };
    assert_eq!(world.start(&other).await, Started::Duplicate { run, state: RunState::Queued });
    let refused = Request { verdict: Verdict::Refuse, ..request.again() };
    assert_eq!(world.start(&refused).await, Started::Duplicate { run, state: RunState::Queued });
    world.end().await;
}

/// CG-124
#[tokio::test]
async fn a_key_of_another_identity_is_a_conflict_before_anything_else_is_told() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    world.run(&request).await;
    let stranger = Request {
        identity: "user:bob".to_owned(),
        target: name("refund"),
        verdict: Verdict::Refuse,
        ..request.again()
    };
    assert_eq!(world.start(&stranger).await, Started::Conflict);
    let same_message = Request { identity: "system".to_owned(), ..request };
    assert_eq!(world.start(&same_message).await, Started::Conflict);
    world.end().await;
}

/// CG-123
#[tokio::test]
async fn a_key_of_another_process_or_agent_is_refused() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    world.run(&request).await;
    let other = Request { target: name("refund"), ..request.again() };
    assert_eq!(world.start(&other).await, Started::OtherTarget);
    // Keys of Processes and agents are one name space.
    let agent = Request { kind: RunKind::Agent, ..request.again() };
    assert_eq!(world.start(&agent).await, Started::OtherTarget);
    world.end().await;
}

#[tokio::test]
async fn keys_of_two_projects_and_of_two_workspaces_are_apart() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let run = world.run(&request).await;
    let other_project = name("hr");
    // In the same shard as `acme`, so only the name keeps them apart.
    let other_workspace = (0..10_000)
        .map(|number| name(&format!("w{number}")))
        .find(|name| runfleet_domain::Shard::of_workspace(name.as_str()) == world.shard)
        .unwrap();
    for start in [
        StartRun { project: &other_project, ..request.start(&world) },
        StartRun { workspace: &other_workspace, ..request.start(&world) },
    ] {
        let answer = world.store.start_run(&start).await.unwrap();
        assert_eq!(answer, Started::Created { run: start.run_id });
        assert_ne!(start.run_id, run);
    }
    world.end().await;
}

/// CG-140, CG-141
#[tokio::test]
async fn the_calls_of_an_execution_are_counted_once_per_message_and_kind() {
    let world = World::new().await;
    let first = Request { calls_limit: Some(2), ..Request::process() };
    world.run(&first).await;
    // A refused call counts too, but only once.
    let refused = Request { verdict: Verdict::Refuse, ..first.again() };
    for _ in 0..3 {
        assert_eq!(world.start(&refused).await, Started::Refused);
    }
    assert_eq!(world.start(&first.again()).await, Started::CallsExceeded);
    assert!(matches!(world.start(&first).await, Started::Replayed { .. }));
    world.run(&Request { execution: name("exec-2"), ..first.again() }).await;
    world.run(&Request { kind: RunKind::Agent, ..first.again() }).await;
    world.run(&Request { calls_limit: None, ..first.again() }).await;
    world.end().await;
}

/// CG-143
#[tokio::test]
async fn the_starts_of_a_day_are_counted_and_bounded() {
    let world = World::new().await;
    let request = Request { day_limit: 2, ..Request::process() };
    world.run(&request).await;
    world.run(&request.again()).await;
    let answer = world.start(&request.again()).await;
    let Started::DayExceeded { limit: 2, resets_at_ms } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(resets_at_ms % 86_400_000, 0);
    world.run(&Request { kind: RunKind::Agent, ..request.again() }).await;
    world.run(&Request { day_limit: 3, ..request.again() }).await;
    assert_eq!(world.starts_today(RunKind::Process).await, 3);
    world.end().await;
}

/// CG-128, CG-144
#[tokio::test]
async fn a_refusal_writes_nothing_but_the_call() {
    let world = World::new().await;
    let refused = Request { verdict: Verdict::Refuse, ..Request::process().with_key("k") };
    assert_eq!(world.start(&refused).await, Started::Refused);
    let too_many = Request { day_limit: 0, ..refused.again() };
    assert_eq!(world.start(&too_many).await, Started::Refused);
    let too_many = Request { verdict: Verdict::Accept, ..too_many };
    assert!(matches!(world.start(&too_many).await, Started::DayExceeded { .. }));
    let mut raw = world.raw().await;
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg(format!("{}:*", world.config.namespace))
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(keys, [world.key_name("calls:acme:crm:exec-1")]);
    // The key is free for a start that is admitted.
    world.run(&Request { verdict: Verdict::Accept, ..refused.again() }).await;
    world.end().await;
}

/// CG-122
#[tokio::test]
async fn a_key_whose_run_has_vanished_is_free() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let lost = world.run(&request).await;
    let mut raw = world.raw().await;
    let key_of_run = world.key_name(&format!("run:{lost}"));
    redis::cmd("DEL").arg(key_of_run).query_async::<()>(&mut raw).await.unwrap();
    let next = request.again();
    let run = world.run(&next).await;
    assert_ne!(run, lost);
    assert_eq!(
        world.start(&next.again()).await,
        Started::Duplicate { run, state: RunState::Queued }
    );
    world.run(&Request { key: None, ..request }).await;
    world.end().await;
}

/// CG-121
#[tokio::test]
async fn many_starts_with_one_key_at_once_make_one_run() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let requests: Vec<_> = (0..64).map(|_| request.again()).collect();
    let answers = join_all(requests.iter().map(|request| world.start(request))).await;
    let created: Vec<_> =
        answers.iter().filter(|answer| matches!(answer, Started::Created { .. })).collect();
    assert_eq!(created.len(), 1);
    let Started::Created { run } = *created[0] else { unreachable!() };
    let same = Started::Duplicate { run, state: RunState::Queued };
    assert_eq!(answers.iter().filter(|answer| **answer == same).count(), 63);
    assert_eq!(world.starts_today(RunKind::Process).await, 1);
    assert_eq!(world.alarms(AlarmSet::Process).await, 1);
    world.end().await;
}

/// CG-121, CG-143
#[tokio::test]
async fn many_starts_with_eight_keys_at_once_make_eight_runs_and_count_eight() {
    let world = World::with(|config| config.connections = 4).await;
    let requests: Vec<_> =
        (0..64).map(|number| Request::process().with_key(&format!("k{}", number % 8))).collect();
    let answers = join_all(requests.iter().map(|request| world.start(request))).await;
    let mut runs = HashSet::new();
    let mut created = 0;
    for answer in answers {
        match answer {
            Started::Created { run } => {
                created += 1;
                runs.insert(run);
            }
            Started::Duplicate { run, .. } => {
                runs.insert(run);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((created, runs.len()), (8, 8));
    assert_eq!(world.starts_today(RunKind::Process).await, 8);
    world.end().await;
}

#[tokio::test]
async fn a_limited_day_is_never_overrun_by_starts_at_once() {
    let world = World::new().await;
    let requests: Vec<_> =
        (0..64).map(|_| Request { day_limit: 10, ..Request::process() }).collect();
    let answers = join_all(requests.iter().map(|request| world.start(request))).await;
    let created = answers.iter().filter(|answer| matches!(answer, Started::Created { .. })).count();
    assert_eq!(created, 10);
    assert_eq!(world.starts_today(RunKind::Process).await, 10);
    world.end().await;
}

#[tokio::test]
async fn what_is_too_large_or_in_the_wrong_shard_is_refused_before_it_is_sent() {
    let world = World::new().await;
    let request = Request::process();
    let large = "x".repeat(200_000);
    let elsewhere = name("demo");
    let echo = runfleet_store::OutcomeJob { job: &request.job, echo: Some(&large) };
    for start in [
        StartRun { input: Some(&large), ..request.start(&world) },
        StartRun { outcome: Some(echo), ..request.start(&world) },
        StartRun { instance_name: Some(&large), ..request.start(&world) },
        StartRun { traceparent: Some(&large), ..request.start(&world) },
        StartRun { identity: &large, ..request.start(&world) },
        StartRun { workspace: &elsewhere, ..request.start(&world) },
    ] {
        let error = world.store.start_run(&start).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
        assert!(!error.maybe_written() && !error.is_transient());
    }
    world.end().await;
}

#[tokio::test]
async fn names_with_braces_and_colons_stay_apart() {
    let world = World::new().await;
    for text in ["{}", "a}b{c:d", ":", "{s15}:run:x", "a:b", "a"] {
        world.run(&Request { message: message(text), ..Request::process() }).await;
    }
    for text in ["a:b:c", "a:b", "a.b", "a"] {
        let run = world.run(&Request::process().with_key(text)).await;
        assert_eq!(world.load(run).await.key, Some(key(text)));
    }
    world.end().await;
}

/// CG-126
#[tokio::test]
async fn a_replayed_start_tells_where_the_run_is_now() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let run = world.run(&request).await;
    world.claim(run).await;
    assert_eq!(world.start(&request).await, Started::Replayed { run, state: RunState::Running });
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let state = RunState::Canceled;
    assert_eq!(world.start(&request).await, Started::Replayed { run, state });
    assert_eq!(world.start(&request.again()).await, Started::Duplicate { run, state });
    world.end().await;
}
