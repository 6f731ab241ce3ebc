//! Starts that come at once, are cut off at any point and come again through another worker; and starts under a clock that
//! wanders.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::task::Poll;

use futures_util::future::join_all;
use prometheus::Registry;
use proptest::prelude::*;
use runfleet_domain::{RunId, RunKind};
use runfleet_store::{AlarmSet, BatchProgress, Started, Store};

use crate::calls::counts;
use crate::world::{Request, World, name};

const STARTS: usize = 64;
const WORKERS: usize = 4;

/// One start: how it is made, and how its first deliveries end.
#[derive(Debug, Clone)]
struct Delivered {
    /// One of eight keys, or none.
    key: Option<u8>,
    stranger: bool,
    other_target: bool,
    agent: bool,
    /// The worker that gets it first; each redelivery goes to the next one.
    worker: usize,
    /// Turns that it waits for before it begins.
    late: u8,
    /// How often the future of each cut-off delivery is polled before it is dropped.
    cut_after: Vec<u8>,
}

/// What all starts of one case have in common.
#[derive(Debug, Clone)]
struct Bounds {
    day_limit: u32,
    budget: u32,
    batch: bool,
}

fn deliveries() -> impl Strategy<Value = Vec<Delivered>> {
    let key = prop::option::weighted(0.9, 0..8_u8);
    let seldom = || prop::bool::weighted(0.15);
    let cuts = prop::collection::vec(0..5_u8, 0..3);
    let one = (key, seldom(), seldom(), seldom(), 0..WORKERS, 0..6_u8, cuts).prop_map(
        |(key, stranger, other_target, agent, worker, late, cut_after)| Delivered {
            key,
            stranger,
            other_target,
            agent,
            worker,
            late,
            cut_after,
        },
    );
    prop::collection::vec(one, STARTS)
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let day_limit = prop_oneof![2 => Just(1_000), 1 => 0..12_u32];
    let budget = prop_oneof![2 => Just(1_000), 1 => 10..60_u32];
    (day_limit, budget, any::<bool>()).prop_map(|(day_limit, budget, batch)| Bounds {
        day_limit,
        budget,
        batch,
    })
}

impl Delivered {
    fn request(&self, bounds: &Bounds) -> Request {
        let kind = if self.agent { RunKind::Agent } else { RunKind::Process };
        let mut request = Request::new(kind);
        if let Some(key) = self.key {
            request = request.with_key(&format!("k{key}"));
        }
        if self.stranger {
            "user:bob".clone_into(&mut request.identity);
        }
        if self.other_target {
            request.target = name("refund");
        }
        request.day_limit = bounds.day_limit;
        request.calls_budget = Some(bounds.budget);
        request.batch = bounds.batch;
        request
    }

    /// Delivers the start until one delivery is not cut off. Each has a run id of its own, as a worker would give it.
    async fn deliver(&self, world: &World, stores: &[Store], request: &Request) -> Started {
        for _ in 0..self.late {
            tokio::task::yield_now().await;
        }
        for (turn, polls) in self.cut_after.iter().enumerate() {
            let start = request.start(world);
            polled(*polls, stores[(self.worker + turn) % WORKERS].start_run(&start)).await;
        }
        let last = &stores[(self.worker + self.cut_after.len()) % WORKERS];
        last.start_run(&request.start(world)).await.expect("an answer")
    }
}

/// Polls a future at most so many times and drops it wherever it is then.
async fn polled<F: Future>(polls: u8, future: F) {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 || future.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn run_of(answer: &Started) -> Option<RunId> {
    match answer {
        Started::Created { run }
        | Started::Replayed { run, .. }
        | Started::Duplicate { run, .. } => Some(*run),
        _ => None,
    }
}

/// Every run that the ledger holds.
async fn stored_runs(world: &World) -> HashSet<RunId> {
    let mut raw = world.raw().await;
    let pattern = world.key_name("run:*").replace('{', "\\{");
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(pattern).query_async(&mut raw).await.expect("keys");
    keys.iter().map(|key| key.rsplit(':').next().expect("an id").parse().expect("an id")).collect()
}

/// Each key has one run, and only its owner is told of it.
async fn check_keys(world: &World, requests: &[Request], answers: &[Started]) {
    let mut named: HashMap<&str, RunId> = HashMap::new();
    for (request, answer) in requests.iter().zip(answers) {
        let (Some(key), Some(run)) = (&request.key, run_of(answer)) else { continue };
        assert_eq!(*named.entry(key.as_str()).or_insert(run), run, "two runs of {key}");
    }
    for (request, answer) in requests.iter().zip(answers) {
        let Some(run) = request.key.as_ref().and_then(|key| named.get(key.as_str())) else {
            assert_ne!(answer, &Started::Conflict);
            continue;
        };
        let owner = world.load(*run).await;
        match answer {
            Started::Conflict => assert_ne!(owner.identity, request.identity),
            Started::OtherTarget => {
                assert_eq!(owner.identity, request.identity);
                assert!(owner.target != request.target || run.kind() != request.kind);
            }
            told if run_of(told).is_some() => {
                assert_eq!(owner.identity, request.identity);
                assert_eq!((&owner.target, run.kind()), (&request.target, request.kind));
            }
            // Before the key was taken.
            Started::BudgetExceeded { .. } | Started::DayExceeded { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Days, calls, alarms and the progress of the batch say what has happened, once.
async fn check_counts(world: &World, bounds: &Bounds, answers: &[Started]) {
    let runs = stored_runs(world).await;
    let told: HashSet<RunId> = answers.iter().filter_map(run_of).collect();
    assert_eq!(runs, told);
    let kinds = [(RunKind::Process, AlarmSet::Process), (RunKind::Agent, AlarmSet::Agent)];
    for (kind, alarms) in kinds {
        let made = runs.iter().filter(|run| run.kind() == kind).count() as u64;
        assert!(made <= u64::from(bounds.day_limit));
        assert_eq!(world.starts_today(kind).await, made);
        assert_eq!(world.alarms(alarms).await, made);
    }
    let beyond = |answer: &&Started| matches!(answer, Started::BudgetExceeded { .. });
    let counted = STARTS - answers.iter().filter(beyond).count();
    let counts = counts(world).await;
    assert_eq!(counts["total"], counted.to_string());
    assert_eq!(counted, STARTS.min(bounds.budget as usize));
    let kind = |kind: &str| counts.get(kind).map_or(0, |count| count.parse().expect("a number"));
    assert_eq!(kind("process") + kind("agent"), counted);
    let progress =
        world.store.show_batch(&world.workspace, &world.project, &name("exec-1")).await.unwrap();
    let progress = progress.map(|BatchProgress { accepted, refused, .. }| (accepted, refused));
    let accepted = answers.iter().filter(|answer| run_of(answer).is_some()).count();
    let both = (accepted as u64, (STARTS - accepted) as u64);
    assert_eq!(progress, bounds.batch.then_some(both));
}

async fn starts_at_once(bounds: &Bounds, deliveries: &[Delivered]) {
    let world = World::with(|config| config.connections = 1).await;
    let mut stores = vec![world.store.clone()];
    stores.extend(
        (1..WORKERS)
            .map(|_| Store::open(&world.config, &Registry::new()).expect("settings that work")),
    );
    let requests: Vec<_> = deliveries.iter().map(|one| one.request(bounds)).collect();
    let answers = join_all(
        deliveries
            .iter()
            .zip(&requests)
            .map(|(one, request)| one.deliver(&world, &stores, request)),
    )
    .await;
    // What a dropped delivery has sent comes before this on the one connection of its worker.
    for store in &stores {
        store.ping().await.expect("an answer");
    }
    check_keys(&world, &requests, &answers).await;
    check_counts(&world, bounds, &answers).await;
    world.end().await;
}

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// 28 February 2028, the day before the leap day, and 31 December 2028.
const EVES_MS: [i64; 2] = [1_835_308_800_000, 1_861_833_600_000];

/// One step of the clock, and how many starts follow it.
#[derive(Debug, Clone)]
struct Walk {
    /// Days from the eve, and the minute of the day: never within a minute of midnight, so that the time of the test itself
    /// does not matter.
    day: i64,
    minute: i64,
    starts: u8,
    limit: u32,
}

fn walk() -> impl Strategy<Value = (usize, Vec<Walk>)> {
    let day = prop_oneof![6 => 0..4_i64, 1 => -400..400_i64];
    let minute = prop_oneof![1 => Just(1), 1 => Just(1_438), 2 => 1..1_439_i64];
    let step = (day, minute, 0..4_u8, 1..5_u32).prop_map(|(day, minute, starts, limit)| Walk {
        day,
        minute,
        starts,
        limit,
    });
    (0..EVES_MS.len(), prop::collection::vec(step, 1..16))
}

/// CG-143
async fn wander(eve_ms: i64, steps: &[Walk]) {
    let world = World::with_movable_clock().await;
    let now = world.run(&Request::new(RunKind::Agent)).await;
    let now = i64::try_from(world.load(now).await.created_at_ms).expect("a time");
    let mut counted: HashMap<i64, u32> = HashMap::new();
    let mut newest = i64::MIN;
    for step in steps {
        let at = eve_ms + step.day * DAY_MS + step.minute * MINUTE_MS;
        world.move_clock(at - now).await;
        for _ in 0..step.starts {
            let day = newest.max(at.div_euclid(DAY_MS));
            let used = counted.entry(day).or_default();
            let request = Request { day_limit: step.limit, ..Request::process() };
            let answer = world.start(&request).await;
            if *used < step.limit {
                assert!(matches!(answer, Started::Created { .. }), "{answer:?}");
                *used += 1;
                newest = day;
            } else {
                let resets_at_ms = u64::try_from((day + 1) * DAY_MS).expect("a time");
                assert_eq!(answer, Started::DayExceeded { limit: step.limit, resets_at_ms });
            }
        }
    }
    world.end().await;
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..ProptestConfig::default()
    })]

    /// CG-121, CG-124, CG-126, CG-140, CG-143
    #[test]
    fn starts_that_are_cut_off_anywhere_and_come_again_make_one_run_a_key_and_count_once(
        bounds in bounds(),
        deliveries in deliveries(),
    ) {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(starts_at_once(&bounds, &deliveries));
    }

    /// CG-143
    #[test]
    fn no_day_is_overrun_however_the_clock_wanders((eve, steps) in walk()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(wander(EVES_MS[eve], &steps));
    }
}
