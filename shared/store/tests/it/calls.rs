//! Calls of one execution: the budget that all kinds share, the limits of each kind, and looking before deciding.

use std::collections::HashMap;

use runfleet_domain::{Name, RunId, RunKind, RunState, Shard};
use runfleet_store::{End, FindStart, GetRun, Got, Started, Verdict};
use ulid::Ulid;

use crate::world::{Request, World, name};

const DAY_MS: i64 = 86_400_000;

/// A `get` of the execution of [`Request::new`].
async fn get(world: &World, calls_budget: Option<u32>, run: Option<RunId>) -> Got {
    get_of(world, &world.project, calls_budget, run).await
}

async fn get_of(
    world: &World,
    project: &Name,
    calls_budget: Option<u32>,
    run: Option<RunId>,
) -> Got {
    let execution = name("exec-1");
    let workspace = &world.workspace;
    let get = GetRun { workspace, project, execution: &execution, calls_budget, run };
    world.store.get_run(&get).await.expect("an answer")
}

/// What is counted for the execution of [`Request::new`].
pub(crate) async fn counts(world: &World) -> HashMap<String, String> {
    let mut raw = world.raw().await;
    let calls = world.key_name("calls:acme:crm:exec-1");
    redis::cmd("HGETALL").arg(calls).query_async(&mut raw).await.expect("counts")
}

async fn total(world: &World) -> u32 {
    counts(world).await.get("total").map_or(0, |total| total.parse().expect("a number"))
}

async fn keys(world: &World) -> Vec<String> {
    let mut raw = world.raw().await;
    let all = format!("{}:*", world.config.namespace);
    redis::cmd("KEYS").arg(all).query_async(&mut raw).await.expect("keys")
}

pub(crate) fn find<'a>(world: &'a World, request: &'a Request) -> FindStart<'a> {
    FindStart {
        workspace: &world.workspace,
        project: &world.project,
        kind: request.kind,
        message_id: &request.message,
        key: request.key.as_ref(),
        identity: &request.identity,
        target: &request.target,
        execution: &request.execution,
        calls_budget: request.calls_budget,
        calls_limit: request.calls_limit,
        batch: request.batch,
    }
}

/// CG-140
#[tokio::test]
async fn starts_of_both_kinds_and_gets_of_one_execution_share_one_budget() {
    let world = World::new().await;
    let process = Request { calls_budget: Some(4), ..Request::process() };
    let run = world.run(&process).await;
    world.run(&Request { kind: RunKind::Agent, ..process.again() }).await;
    assert!(matches!(get(&world, Some(4), Some(run)).await, Got::Found(_)));
    assert_eq!(get(&world, Some(4), None).await, Got::Missing);
    let spent = Started::BudgetExceeded { limit: 4, used: 4 };
    for kind in [RunKind::Process, RunKind::Agent] {
        assert_eq!(world.start(&Request { kind, ..process.again() }).await, spent);
    }
    let spent = Got::BudgetExceeded { limit: 4, used: 4 };
    assert_eq!(get(&world, Some(4), Some(run)).await, spent);
    assert_eq!(get(&world, Some(4), None).await, spent);
    // What was refused has not been counted, and another execution has a budget of its own.
    assert_eq!(total(&world).await, 4);
    world.run(&Request { execution: name("exec-2"), ..process.again() }).await;
    // A message that is counted already passes.
    assert_eq!(world.start(&process).await, Started::Replayed { run, state: RunState::Queued });
    let used = Started::BudgetExceeded { limit: 3, used: 4 };
    assert_eq!(world.start(&Request { calls_budget: Some(3), ..process.again() }).await, used);
    world.end().await;
}

/// CG-141
#[tokio::test]
async fn the_budget_is_asked_before_the_limit_of_a_kind_and_a_call_beyond_the_limit_uses_it() {
    let world = World::new().await;
    let first = Request { calls_budget: Some(3), calls_limit: Some(1), ..Request::process() };
    let run = world.run(&first).await;
    let beyond = first.again();
    for _ in 0..3 {
        assert_eq!(world.start(&beyond).await, Started::CallsExceeded);
    }
    assert_eq!(total(&world).await, 2);
    // The limit of agents is their own.
    world.run(&Request { kind: RunKind::Agent, ..first.again() }).await;
    let spent = Started::BudgetExceeded { limit: 3, used: 3 };
    assert_eq!(world.start(&first.again()).await, spent);
    // A larger limit lets the message in that is already counted in the budget.
    let larger = Request { calls_limit: Some(2), ..beyond };
    world.run(&larger).await;
    assert_eq!(total(&world).await, 3);
    assert_eq!(counts(&world).await["process"], "2");
    assert_eq!(world.start(&first).await, Started::Replayed { run, state: RunState::Queued });
    world.end().await;
}

#[tokio::test]
async fn without_a_budget_calls_beyond_the_limit_of_a_kind_are_not_remembered() {
    let world = World::new().await;
    let first = Request { calls_budget: None, calls_limit: Some(1), ..Request::process() };
    world.run(&first).await;
    for _ in 0..5 {
        assert_eq!(world.start(&first.again()).await, Started::CallsExceeded);
    }
    // The total, the starts of Processes and the one message.
    assert_eq!(counts(&world).await.len(), 3);
    world.end().await;
}

#[tokio::test]
async fn calls_are_forgotten_some_time_after_the_first_of_them() {
    let world = World::new().await;
    let ttl = async |execution: &str| -> i64 {
        let mut raw = world.raw().await;
        let calls = world.key_name(&format!("calls:acme:crm:{execution}"));
        redis::cmd("PTTL").arg(calls).query_async(&mut raw).await.unwrap()
    };
    get(&world, Some(9), None).await;
    world.run(&Request { execution: name("exec-2"), ..Request::process() }).await;
    for execution in ["exec-1", "exec-2"] {
        let left = ttl(execution).await;
        assert!((DAY_MS..=2 * DAY_MS).contains(&left), "{left}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_get_without_a_budget_writes_nothing() {
    let world = World::new().await;
    let run = world.run(&Request { execution: name("other"), ..Request::process() }).await;
    let before = keys(&world).await.len();
    let Got::Found(record) = get(&world, None, Some(run)).await else { panic!("not found") };
    assert_eq!(*record, world.load(run).await);
    let unknown = world.fresh_run(RunKind::Process);
    assert_eq!(get(&world, None, Some(unknown)).await, Got::Missing);
    assert_eq!(get(&world, None, None).await, Got::Missing);
    assert_eq!(keys(&world).await.len(), before);
    world.end().await;
}

/// CG-032, CG-095
#[tokio::test]
async fn a_run_of_another_project_shard_or_workspace_is_missing_and_the_call_counts() {
    let world = World::new().await;
    let run = world.run(&Request { execution: name("other"), ..Request::process() }).await;
    let other_project = name("hr");
    assert_eq!(get_of(&world, &other_project, Some(9), Some(run)).await, Got::Missing);
    let elsewhere = Shard::of_workspace("demo");
    assert_ne!(elsewhere, world.shard);
    let elsewhere = RunId::new(RunKind::Process, elsewhere, Ulid::generate());
    assert_eq!(get(&world, Some(9), Some(elsewhere)).await, Got::Missing);
    assert_eq!(get(&world, Some(9), Some(world.fresh_run(RunKind::Agent))).await, Got::Missing);
    assert_eq!(total(&world).await, 2);
    world.end().await;
}

/// CG-006
#[tokio::test]
async fn a_run_can_be_asked_for_until_seven_days_after_its_end() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    world.move_clock(100 * DAY_MS).await;
    assert!(matches!(get(&world, None, Some(run)).await, Got::Found(_)));
    world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    world.move_clock(107 * DAY_MS - 1_000).await;
    assert!(matches!(get(&world, None, Some(run)).await, Got::Found(_)));
    world.move_clock(107 * DAY_MS + 1_000).await;
    assert_eq!(get(&world, Some(9), Some(run)).await, Got::Missing);
    world.end().await;
}

/// CG-121, CG-123, CG-124
#[tokio::test]
async fn looking_finds_what_a_start_would_find_and_writes_nothing() {
    let world = World::new().await;
    let request = Request::process().with_key("k");
    let look = async |request: &Request| {
        world.store.find_start(&find(&world, request)).await.expect("an answer")
    };
    assert_eq!(look(&request).await, None);
    assert!(keys(&world).await.is_empty());
    let run = world.run(&request).await;
    let (before, counted) = (keys(&world).await.len(), total(&world).await);
    let again = request.again();
    let limited = Request { calls_limit: Some(1), ..again.clone() };
    let spent = Request { calls_budget: Some(1), ..request.again() };
    let stranger = Request { identity: "user:bob".to_owned(), ..again.clone() };
    let other_target = Request { target: name("refund"), ..again.clone() };
    let other_kind = Request { kind: RunKind::Agent, ..again.clone() };
    let state = RunState::Queued;
    for (request, expected) in [
        (&request, Some(Started::Replayed { run, state })),
        (&again, Some(Started::Duplicate { run, state })),
        (&stranger, Some(Started::Conflict)),
        (&other_target, Some(Started::OtherTarget)),
        (&other_kind, Some(Started::OtherTarget)),
        (&limited, Some(Started::CallsExceeded)),
        (&spent, Some(Started::BudgetExceeded { limit: 1, used: 1 })),
        (&Request { key: None, ..request.again() }, None),
    ] {
        assert_eq!(look(request).await, expected);
    }
    assert_eq!((keys(&world).await.len(), total(&world).await), (before, counted));
    // The start itself answers the same.
    assert_eq!(world.start(&stranger).await, Started::Conflict);
    assert_eq!(world.start(&spent).await, Started::BudgetExceeded { limit: 1, used: 2 });
    world.end().await;
}

/// CG-142, CG-143
#[tokio::test]
async fn the_days_and_calls_of_processes_and_agents_do_not_mix() {
    let world = World::new().await;
    let process = Request { calls_limit: Some(2), day_limit: 2, ..Request::process() };
    let agent =
        Request { kind: RunKind::Agent, calls_limit: Some(3), day_limit: 3, ..process.again() };
    for _ in 0..2 {
        world.run(&process.again()).await;
    }
    for _ in 0..3 {
        world.run(&agent.again()).await;
    }
    for request in [&process, &agent] {
        assert_eq!(world.start(&request.again()).await, Started::CallsExceeded);
        let elsewhere = Request { execution: name("exec-2"), ..request.again() };
        assert!(matches!(world.start(&elsewhere).await, Started::DayExceeded { .. }));
    }
    assert_eq!(world.starts_today(RunKind::Process).await, 2);
    assert_eq!(world.starts_today(RunKind::Agent).await, 3);
    let counts = counts(&world).await;
    assert_eq!((counts["process"].as_str(), counts["agent"].as_str()), ("2", "3"));
    // Two and three that were within the limits, and one of each kind beyond.
    assert_eq!(counts["total"], "7");
    world.end().await;
}

/// CG-128, CG-144
#[tokio::test]
async fn a_call_beyond_the_budget_leaves_nothing_behind() {
    let world = World::new().await;
    let none = Request { calls_budget: Some(0), ..Request::process().with_key("k") };
    for verdict in [Verdict::Accept, Verdict::Refuse] {
        let answer = world.start(&Request { verdict, ..none.again() }).await;
        assert_eq!(answer, Started::BudgetExceeded { limit: 0, used: 0 });
    }
    assert_eq!(get(&world, Some(0), None).await, Got::BudgetExceeded { limit: 0, used: 0 });
    assert!(keys(&world).await.is_empty());
    world.end().await;
}
