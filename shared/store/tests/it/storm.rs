//! Very many runs: that wake at once, that only wait, and what one of them costs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use runfleet_domain::RunId;
use runfleet_store::{
    AlarmSet, BroadcastSignal, Checkpoint, Claim, Claimed, DUE_AT_ONCE_MAX, Due,
    SIGNAL_RUNS_AT_ONCE_MAX, StartRun, Wait, Wake,
};

use crate::messages::paid;
use crate::world::{Request, World, message};

const RUNS: usize = 10_000;

/// Makes runs that all wait for the same moment.
async fn sleepers(world: &World) -> HashSet<RunId> {
    let requests: Vec<_> = (0..RUNS)
        .map(|_| Request {
            calls_budget: None,
            calls_limit: None,
            day_limit: u32::MAX,
            ..Request::process()
        })
        .collect();
    let mut runs = HashSet::new();
    for part in requests.chunks(500) {
        runs.extend(join_all(part.iter().map(|request| world.run(request))).await);
    }
    runs
}

/// Takes what is due until nothing is, as a sweeper does; with the longest time of a call.
async fn sweep(world: &World) -> (Vec<RunId>, Duration) {
    let (mut told, mut longest) = (Vec::new(), Duration::ZERO);
    loop {
        let begun = Instant::now();
        let due = world.store.due_alarms(world.shard, AlarmSet::Process, 1_000).await.unwrap();
        longest = longest.max(begun.elapsed());
        assert!(due.len() <= DUE_AT_ONCE_MAX as usize);
        if due.is_empty() {
            return (told, longest);
        }
        told.extend(due.into_iter().map(|due| match due {
            Due::Advance { run_id, .. } => run_id,
            other => panic!("{other:?}"),
        }));
    }
}

#[tokio::test]
async fn ten_thousand_runs_that_wake_at_once_are_each_told_once_in_calls_of_bounded_size() {
    let world = World::with(|config| {
        config.connections = 4;
        config.skew = true;
    })
    .await;
    let runs = sleepers(&world).await;
    let unclaimed = i64::try_from(world.config.timings.alarm_unclaimed.as_millis()).unwrap();
    world.move_clock(unclaimed + 60_000).await;
    let begun = Instant::now();
    let sweeps = join_all((0..3).map(|_| sweep(&world))).await;
    let elapsed = begun.elapsed();
    let longest = sweeps.iter().map(|(_, longest)| *longest).max().unwrap();
    println!("{RUNS} alarms in {elapsed:?}, the longest of the calls {longest:?}");
    let told: Vec<_> = sweeps.into_iter().flat_map(|(told, _)| told).collect();
    assert_eq!(told.len(), RUNS);
    assert_eq!(told.into_iter().collect::<HashSet<_>>(), runs);
    assert_eq!(world.alarms(AlarmSet::Process).await, RUNS as u64);
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    world.end().await;
}

#[tokio::test]
async fn an_alarm_goes_further_ahead_only_while_its_run_gets_no_further() {
    let world = World::with_movable_clock().await;
    let run = world.run(&Request::process()).await;
    let first = world.config.timings.alarm_unclaimed;
    let mut clock = 0;
    for _ in 0..2 {
        let fence = world.claim(run).await;
        let (_, now) = world.alarm(run).await;
        let checkpoint =
            Checkpoint { release: true, wake: Wake::At(now + 60_000), ..Checkpoint::new("p") };
        world.store.checkpoint_run(run, fence, &checkpoint).await.unwrap();
        assert_eq!(world.load(run).await.alarm_tries, 0);
        for ring in 1..=3_u32 {
            let (at, now) = world.alarm(run).await;
            clock += i64::try_from(at.unwrap() - now).unwrap() + 1_000;
            world.move_clock(clock).await;
            let due = world.store.due_alarms(world.shard, AlarmSet::Process, 10).await.unwrap();
            assert!(matches!(due[..], [Due::Advance { .. }]), "{due:?}");
            assert_eq!(world.load(run).await.alarm_tries, ring);
            assert!(world.alarm_is_in(run, first * 2_u32.pow(ring)).await);
        }
        // Whoever takes it up is told once how often it has rung.
        for told in [3, 0] {
            let claimed = world.store.claim_run(run, Claim::default()).await.unwrap();
            let Claimed::Claimed { fence, record, .. } = claimed else { panic!("{claimed:?}") };
            assert_eq!((record.alarm_tries, world.load(run).await.alarm_tries), (told, 0));
            let given_back = Checkpoint { release: true, wake: Wake::Now, ..Checkpoint::new("p") };
            world.store.checkpoint_run(run, fence, &given_back).await.unwrap();
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_signal_reaches_a_thousand_runs_in_two_pages() {
    let world = World::with(|config| config.connections = 4).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let list = [Wait::Signal { name: "stop" }];
        waiting.extend(join_all((0..250).map(|_| world.waiting_run(&list))).await);
    }
    let signal = BroadcastSignal {
        workspace: &world.workspace,
        project: &world.project,
        name: "stop",
        variables_json: "{}",
        id: &message("s"),
    };
    let (mut reached, mut after, mut pages) = (HashSet::new(), None, 0);
    loop {
        let begun = Instant::now();
        let page = world.store.broadcast_signal(&signal, 1_000, after).await.unwrap();
        println!("{} runs in {:?}", page.woken.len(), begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert!(page.woken.len() <= SIGNAL_RUNS_AT_ONCE_MAX as usize);
        reached.extend(page.woken.into_iter().map(|woken| woken.run_id));
        after = page.next;
        if after.is_none() {
            break;
        }
        pages += 1;
    }
    assert_eq!((reached, pages), (waiting.into_iter().collect(), 2));
    world.end().await;
}

/// What the README says of the memory of a run that waits.
#[tokio::test]
async fn a_run_that_waits_for_a_timer_takes_about_four_kilobytes() {
    const WAITING: u64 = 200;
    let world = World::with(|config| config.connections = 4).await;
    let input = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_013));
    let position = format!(r#"{{"at":"{}"}}"#, "x".repeat(591));
    assert_eq!((input.len(), position.len()), (1_024, 600));
    let waits = (0..WAITING).map(|_| async {
        let request = Request { calls_budget: None, calls_limit: None, ..Request::process() };
        let start = StartRun { input: Some(&input), ..request.start(&world) };
        world.store.start_run(&start).await.unwrap();
        let fence = world.claim(start.run_id).await;
        let wake = Wake::At(9_000_000_000_000);
        let checkpoint = Checkpoint { release: true, wake, ..Checkpoint::new(&position) };
        world.store.checkpoint_run(start.run_id, fence, &checkpoint).await.unwrap();
        (start.run_id, request.message)
    });
    let waiting = join_all(waits).await;
    let mut raw = world.raw().await;
    let mut memory = async |rest: String| -> u64 {
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg(world.key_name(&rest)).arg("SAMPLES").arg(0);
        usage.query_async(&mut raw).await.unwrap()
    };
    let (run, message) = &waiting[0];
    let record = memory(format!("run:{run}")).await;
    let alarm = memory("alarms:process".to_owned()).await / WAITING;
    let sent = memory(format!("msg:acme:crm:{message}")).await;
    world.waiting_run(&[paid("order 7", 1)]).await;
    let waits: Vec<String> = redis::cmd("KEYS")
        .arg(world.key_name("wait:*").replace('{', "\\{"))
        .query_async(&mut world.raw().await)
        .await
        .unwrap();
    let subscription = memory(waits[0].rsplit_once("}:").unwrap().1.to_owned()).await;
    println!(
        "record {record}, alarm {alarm}, message id {sent}, subscription {subscription} bytes"
    );
    assert!((100..250).contains(&subscription));
    assert!((3_500..4_500).contains(&(record + alarm + sent)));
    world.end().await;
}
