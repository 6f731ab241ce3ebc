//! How many starts and how many whole runs a second one process gets out of one Redis.
//!
//! `RUNFLEET_REDIS_URL=… cargo run --release -p runfleet-store --example throughput [starts]`

#![expect(clippy::print_stdout, clippy::expect_used, reason = "a program for a terminal")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use prometheus::Registry;
use runfleet_domain::{JobKey, Lane, MessageId, Name, RunId, RunKind, RunState, Shard};
use runfleet_store::{
    End, Finished, HandOver, HandOverVerdict, HandedOver, JobFinished, OutcomeJob, StartRun,
    Started, Store, StoreConfig, Verdict,
};
use ulid::Ulid;

const WORKSPACES: usize = 8;

/// Names that every start needs.
struct Names {
    workspaces: Vec<Name>,
    project: Name,
    target: Name,
    job: JobKey,
}

impl Names {
    fn new() -> Self {
        let name = |text: &str| text.parse().expect("a name");
        Self {
            workspaces: (0..WORKSPACES).map(|number| name(&format!("w{number}"))).collect(),
            project: name("crm"),
            target: name("invoice"),
            job: "onDone".parse().expect("a job key"),
        }
    }
}

async fn start(store: &Store, names: &Names, number: usize) -> RunId {
    let workspace = &names.workspaces[number % WORKSPACES];
    let message: MessageId = Ulid::generate().to_string().parse().expect("a message id");
    let execution: Name = format!("e{}", number / 10).parse().expect("a name");
    let input = format!(r#"{{"order":{number},"text":"{}"}}"#, "x".repeat(200));
    let start = StartRun {
        run_id: RunId::new(
            RunKind::Process,
            Shard::of_workspace(workspace.as_str()),
            Ulid::generate(),
        ),
        workspace,
        project: &names.project,
        lane: Lane::Interactive,
        message_id: &message,
        key: None,
        identity: "user:ann",
        target: &names.target,
        target_version: 1,
        execution: &execution,
        calls_budget: None,
        calls_limit: Some(20),
        batch: false,
        day_limit: u32::MAX,
        verdict: Verdict::Accept,
        user: None,
        recipient: None,
        hops: 9,
        depth: 0,
        chain: 0,
        instance_name: None,
        input: Some(&input),
        outcome: Some(OutcomeJob { job: &names.job, echo: Some("{}") }),
        deadline_ms: None,
        traceparent: None,
    };
    match store.start_run(&start).await.expect("an answer") {
        Started::Created { run } => run,
        other => unreachable!("a fresh start was answered by {other:?}"),
    }
}

/// From the start to the end of the job.
async fn whole_run(store: &Store, names: &Names, number: usize) {
    let run_id = start(store, names, number).await;
    let record = store.load_run(run_id).await.expect("an answer").expect("a run");
    let end = End { output: Some(r#"{"total":7}"#), ..End::plain(RunState::Completed) };
    let finished =
        store.claim_and_finish_run(run_id, record.version, &end).await.expect("an answer");
    assert!(matches!(finished, Finished::Finished { outcome_wanted: true, .. }));
    let outcome = HandOver {
        run_id,
        workspace: &record.workspace,
        project: &record.project,
        job: &names.job,
        hops: 9,
        chain: 0,
        verdict: HandOverVerdict::Deliver { job_hops: 8 },
        jobs_waiting_max: 10_000,
        max_attempts: 5,
        timeout_ms: 30_000,
    };
    let handed_over = store.hand_over(&outcome).await.expect("an answer");
    assert!(matches!(handed_over, HandedOver::Delivered(_)));
    let ended = store.finish_job(run_id.outcome_job(), 1, true).await.expect("an answer");
    assert_eq!(ended, JobFinished::Ended);
}

async fn measure(store: &Store, names: &Names, in_flight: usize, total: usize, whole: bool) {
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let workers = (0..in_flight).map(|_| async {
        let mut times = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= total {
                return times;
            }
            let begun = Instant::now();
            if whole {
                whole_run(store, names, number).await;
            } else {
                start(store, names, number).await;
            }
            times.push(begun.elapsed());
        }
    });
    let mut times: Vec<Duration> = join_all(workers).await.into_iter().flatten().collect();
    let elapsed = begun.elapsed();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!(
        "{:<10} in flight {in_flight:>3}: {:>7} per second, median {:?}, 99th percentile {:?}",
        if whole { "whole runs" } else { "starts" },
        total * 1_000 / usize::try_from(elapsed.as_millis()).unwrap_or(usize::MAX).max(1),
        at(50),
        at(99),
    );
}

#[tokio::main]
async fn main() {
    let url = std::env::var_os("RUNFLEET_REDIS_URL").and_then(|url| url.into_string().ok());
    let url = url.expect("RUNFLEET_REDIS_URL names a Redis to be measured");
    let total = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let namespace = format!("bench-{}", Ulid::generate().to_string().to_lowercase());
    let config = StoreConfig::new(url, namespace);
    let store = Store::open(&config, &Registry::new()).expect("settings that work");
    store.ping().await.expect("a Redis that answers");
    let names = Names::new();
    for in_flight in [64, 256] {
        measure(&store, &names, in_flight, total, false).await;
        measure(&store, &names, in_flight, total / 4, true).await;
    }
    store.delete_namespace().await.expect("a clean end");
}
