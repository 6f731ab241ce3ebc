//! Very many runs that wait, while servers or runners are away, or that all wake at once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::{join_all, try_join_all};
use runfleet_client::{Client, Message};
use runfleet_domain::{JobKey, Lane, Name, RunId, RunKind, Shard};
use runfleet_flow::{Definition, Slice, advance};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{
    Checkpoint, Claim, Claimed, OutcomeJob, Saved, StartRun, Started, Store, Verdict, Wake,
};
use runfleet_testkit::{Doing, wait_until};
use runfleet_tests::drawn::{bpmn, task, variables};
use runfleet_tests::processes::started;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, OwnServers, project};
use serde_json::{Map, json};
use ulid::Ulid;

use crate::load::all_ended_once;
use crate::processes::{ENDS, MESSAGES, RUNNER, done, fleet, host, restart, take};

/// A timer.
fn sleeper(time: &str) -> String {
    let elements = format!(
        r#"{ENDS}<intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>{time}</timeDuration>
        </timerEventDefinition></intermediateCatchEvent>"#
    );
    bpmn("sleeper", &variables(&["order"]), &elements, "s -> t, t -> e", "")
}

/// Starts so many runs of a process, fifty at a time, each with an order of its own.
async fn start_all(client: &Client, process: &str, count: usize) -> Result<Vec<RunId>> {
    let mut runs = Vec::with_capacity(count);
    let orders: Vec<_> = (0..count).map(|order| json!({"order": format!("o{order}")})).collect();
    for part in orders.chunks(50) {
        runs.extend(try_join_all(part.iter().map(|input| started(client, process, input))).await?);
    }
    Ok(runs)
}

/// Waits until every run has been given back by its runner.
async fn all_wait(fleet: &Fleet, runs: &[RunId]) -> Result<()> {
    for run in runs {
        wait_until("the run waits", BOUND, || async {
            let record = fleet.store.load_run(*run).await?.context("no such run")?;
            Ok((record.position.is_some() && record.lease_until_ms == 0).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Publishes a message until somebody says that it has arrived.
async fn tell(client: &Client, name: &str, order: String) -> Result<()> {
    let began = Instant::now();
    loop {
        let message = Message::new(name).correlation_key(&order).message_id(&order);
        match client.processes().message(message).await {
            Ok(told) if told.delivered => return Ok(()),
            Ok(told) => bail!("nobody has waited for {order}: {told:?}"),
            Err(error) if began.elapsed() > BOUND => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// A timer, a message and a task of a host at once.
fn patient() -> String {
    let elements = format!(
        r#"{ENDS}<parallelGateway id="p"/><parallelGateway id="j"/><receiveTask id="m" messageRef="ready"/>{}
        <intermediateCatchEvent id="t"><timerEventDefinition><timeDuration>PT8S</timeDuration></timerEventDefinition>
        </intermediateCatchEvent>"#,
        task("k", "pack", 1, ""),
    );
    let flows = "s -> p, p -> m, p -> k, p -> t, m -> j, k -> j, t -> j, j -> e";
    bpmn("patient", &variables(&["order"]), &elements, flows, MESSAGES)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_servers_restarted_while_200_runs_wait_lose_none_and_double_none() -> Result<()> {
    const RUNS: usize = 200;
    let servers = OwnServers::start()?;
    let without = vec!["agent-runner", "delivery"];
    let servers_of = Some(servers.addresses()?);
    let fleet =
        Fleet::start(Options { servers: servers_of, without, ..Options::default() }).await?;
    let jobs = take(&fleet);
    fleet.apply_process("patient", &patient()).await?;
    let client = fleet.client()?;
    let runs = start_all(&client, "patient", RUNS).await?;
    all_wait(&fleet, &runs).await?;
    tokio::task::block_in_place(|| servers.restart_rabbitmq())?;
    tokio::task::block_in_place(|| servers.restart_redis())?;
    let host = host(&fleet, || Doing::Answer(done(&json!({}))));
    let short = client.deadline(Duration::from_secs(5));
    for part in (0..RUNS).map(|order| format!("o{order}")).collect::<Vec<_>>().chunks(50) {
        let told = part.iter().map(|order| tell(&short, "ready", order.clone()));
        join_all(told).await.into_iter().collect::<Result<()>>()?;
    }
    all_ended_once(&fleet, &jobs, &runs).await?;
    let requests = host.requests();
    ensure!(requests.len() == RUNS, "{} requests", requests.len());
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_that_come_due_while_the_runner_is_away_ring_once_when_it_is_back() -> Result<()> {
    let (mut fleet, jobs) = fleet(Vec::new()).await?;
    fleet.apply_process("sleeper", &sleeper("PT2S")).await?;
    let runs = start_all(&fleet.client()?, "sleeper", 50).await?;
    fleet.kill(RUNNER)?;
    // The last of them has been started by now, and what is not due yet is so soon.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    restart(&mut fleet, None)?;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}

/// What runs that wait for one moment have in common.
struct Moment<'a> {
    store: &'a Store,
    workspace: Name,
    project: Name,
    position: String,
    due_ms: u64,
}

impl Moment<'_> {
    /// A run that waits, made without a runner.
    async fn run(&self) -> Result<RunId> {
        let id = Ulid::generate();
        let shard = Shard::of_workspace(self.workspace.as_str());
        let run_id = RunId::new(RunKind::Process, shard, id);
        let (job, name): (JobKey, Name) = ("discount_decided".parse()?, "sleeper".parse()?);
        let start = StartRun {
            run_id,
            workspace: &self.workspace,
            project: &self.project,
            lane: Lane::Interactive,
            message_id: &id.to_string().parse()?,
            key: None,
            identity: "demo:shop",
            target: &name,
            target_version: 1,
            execution: &"storm".parse()?,
            calls_budget: None,
            calls_limit: None,
            batch: false,
            day_limit: u32::MAX,
            verdict: Verdict::Accept,
            user: None,
            recipient: None,
            hops: 9,
            depth: 0,
            chain: 0,
            instance_name: None,
            input: None,
            outcome: Some(OutcomeJob { job: &job, echo: None }),
            deadline_ms: None,
            traceparent: None,
        };
        let answer = self.store.start_run(&start).await?;
        ensure!(matches!(answer, Started::Created { .. }), "{answer:?}");
        let claimed = self.store.claim_run(run_id, Claim::default()).await?;
        let Claimed::Claimed { fence, .. } = claimed else { bail!("{claimed:?}") };
        let wake = Wake::At(self.due_ms);
        let checkpoint = Checkpoint { release: true, wake, ..Checkpoint::new(&self.position) };
        let saved = self.store.checkpoint_run(run_id, fence, &checkpoint).await?;
        ensure!(matches!(saved, Saved::Saved { released: true, .. }), "{saved:?}");
        Ok(run_id)
    }
}

async fn all_come(jobs: &Jobs, count: usize) -> Result<()> {
    wait_until("all outcomes have come", BOUND, || async {
        Ok((jobs.count() >= count).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_all_wake_at_one_moment_end_once_each_and_nobody_is_overrun() -> Result<()> {
    const RUNS: usize = 800;
    let without = vec!["agent-runner", "delivery"];
    let starts_per_day = Some(10_000);
    let fleet = Fleet::start(Options { without, starts_per_day, ..Options::default() }).await?;
    let (jobs, (workspace, project)) = (take(&fleet), project());
    let drawing = sleeper("PT8S");
    fleet.apply_process("sleeper", &drawing).await?;
    let problems = |problems| anyhow::anyhow!("{problems:?}");
    let definition = Definition::parse(&drawing).map_err(problems)?;
    let state = definition.start(Map::new())?;
    let begun = now_ms();
    let state = advance(&definition, state, Vec::new(), begun, Slice { max_steps: 10 }).state;
    let (position, due_ms) = (serde_json::to_string(&state)?, begun + 8_000);
    let moment = Moment { store: &fleet.store, workspace, project, position, due_ms };
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS / 100 {
        runs.extend(try_join_all((0..100).map(|_| moment.run())).await?);
    }
    ensure!(jobs.count() == 0 || now_ms() >= due_ms, "one of them did not wait");
    let from = due_ms.max(now_ms());
    all_come(&jobs, RUNS).await?;
    let took = Duration::from_millis(now_ms().saturating_sub(from));
    println!("{RUNS} runs ended within {took:?} of their moment");
    all_ended_once(&fleet, &jobs, &runs).await?;
    let logs = fleet.logs();
    ensure!(!logs.contains("ERROR") && !logs.contains("alarm will ring again"), "{logs}");
    fleet.remove().await
}
