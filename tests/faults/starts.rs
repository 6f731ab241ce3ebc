//! Many starts with few keys, while the processes that answer them die all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use rand::Rng;
use rand::seq::IndexedRandom;
use runfleet_client::Client;
use runfleet_domain::{RunId, RunKind};
use runfleet_tests::{Fleet, Jobs, Options, project};
use serde_json::{Value, json};

use crate::load::all_ended_once;

/// The processes that answer.
const INTAKES: [&str; 3] = ["start-intake", "start-intake.2", "start-intake.3"];

/// Where they die by themselves, between any two steps of a start.
const POINTS: [&str; 8] = [
    "intake.before_commit",
    "intake.committed",
    "intake.published",
    "intake.answered",
    "intake.confirmed",
    "publisher.sent",
    "consumer.before_ack",
    "consumer.after_ack",
];

/// Times that new keys are used, of each kind of run.
const WAVES: usize = 3;

/// Keys of one wave.
const KEYS: usize = 8;

/// Starts of one wave, all at once.
const STARTS: usize = 64;

/// How long a caller keeps trying one start.
const PATIENCE: Duration = Duration::from_secs(90);

/// What one caller was told.
#[derive(Debug)]
struct Answer {
    key: String,
    message: String,
    run: RunId,
    duplicate: bool,
}

/// A start of each kind with a key.
fn request(kind: RunKind, key: &str) -> Result<Vec<u8>> {
    let request = match kind {
        RunKind::Process => json!({"operation": "processes.start", "payload": {
            "processInfoId": "approve-discount", "input": {"amount": 7}, "idempotencyKey": key,
            "onComplete": {"job": "discount_decided"}}}),
        RunKind::Agent => json!({"operation": "agents.start", "payload": {
            "agentId": "deal-coach", "instruction": "Look at the deal.", "idempotencyKey": key}}),
    };
    Ok(serde_json::to_vec(&request)?)
}

/// Starts until there is an answer. Every other caller sends the same message again, the rest a new one with the same key.
async fn start(client: Client, kind: RunKind, key: String, caller: String) -> Result<Answer> {
    let (began, body) = (Instant::now(), request(kind, &key)?);
    for attempt in 0_u32.. {
        let message = match attempt {
            _ if caller.ends_with(['0', '2', '4', '6', '8']) => caller.clone(),
            _ => format!("{caller}-{attempt}"),
        };
        if let Ok(answer) = client.send(message.clone(), body.clone()).await {
            let answer: Value = serde_json::from_slice(&answer)?;
            let data = &answer["data"];
            if let Some(run) = data["instanceId"].as_str().or(data["runId"].as_str()) {
                let duplicate = data["duplicate"] == true;
                return Ok(Answer { key, message, run: run.parse()?, duplicate });
            }
            ensure!(answer["error"]["code"] == "RETRYABLE", "refused: {answer}");
        }
        ensure!(began.elapsed() < PATIENCE, "no answer for {message}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("patience ends before the numbers do")
}

/// A point at which an intake dies by itself, soon.
fn somewhere() -> String {
    let mut random = rand::rng();
    let point = POINTS.choose(&mut random).unwrap_or(&POINTS[0]);
    format!("{point}@{}", random.random_range(1..=4))
}

/// Starts an intake, after killing it if it lives.
fn restart(fleet: &mut Fleet, worker: &'static str, fail_at: Option<&str>) -> Result<()> {
    if fleet.has_ended(worker).is_ok_and(|ended| !ended) {
        fleet.kill(worker)?;
    }
    fleet.spawn(worker, fail_at)
}

/// Kills intakes at random moments, first in quick succession, and starts them again. Goes on until it is dropped.
async fn kill_again_and_again(fleet: &mut Fleet, deaths: &mut usize) -> Result<()> {
    for life in 1_u64.. {
        let (worker, pause) = {
            let mut random = rand::rng();
            (random.random_range(0..INTAKES.len()), random.random_range(5..50 * life.min(10)))
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let worker = INTAKES[worker];
        *deaths += 1;
        // Later lives may be long ones, so that there is an end to it.
        let point = (life < 6).then(somewhere);
        restart(fleet, worker, point.as_deref())?;
    }
    unreachable!("there are more lives than time")
}

/// Many starts at once with new keys, while the intakes die.
async fn wave(
    fleet: &mut Fleet,
    kind: RunKind,
    wave: usize,
    deaths: &mut usize,
) -> Result<Vec<Answer>> {
    for worker in INTAKES {
        restart(fleet, worker, Some(&somewhere()))?;
    }
    for worker in INTAKES {
        let ready = fleet.ready(worker).await;
        // What the last wave has left in the queue may have brought it to its end already.
        ensure!(ready.is_ok() || fleet.has_ended(worker)?, "{ready:?}");
    }
    let client = fleet.client()?.deadline(Duration::from_secs(1));
    let starts = try_join_all((0..STARTS).map(|number| {
        let key = format!("{kind}:{wave}:{}", number % KEYS);
        tokio::spawn(start(client.clone(), kind, key, format!("{kind}-{wave}-{number}")))
    }));
    tokio::select! {
        answers = starts => answers?.into_iter().collect(),
        Err(error) = kill_again_and_again(fleet, deaths) => Err(error),
    }
}

/// Checks what callers were told: all answers of a key name one run, and one message at most has made it. Returns the runs.
fn one_run_a_key(answers: &[Answer]) -> Result<Vec<RunId>> {
    let mut runs: BTreeMap<&str, BTreeSet<RunId>> = BTreeMap::new();
    let mut first: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for answer in answers {
        runs.entry(&answer.key).or_default().insert(answer.run);
        if !answer.duplicate {
            first.entry(&answer.key).or_default().insert(&answer.message);
        }
    }
    for (key, runs) in &runs {
        ensure!(runs.len() == 1, "{key} names {runs:?}");
    }
    for (key, messages) in &first {
        ensure!(messages.len() == 1, "{key} was made by {messages:?}");
    }
    ensure!(runs.len() == WAVES * KEYS, "answers for {} keys", runs.len());
    let all: BTreeSet<RunId> = runs.into_values().flatten().collect();
    ensure!(all.len() == WAVES * KEYS, "{} runs", all.len());
    Ok(all.into_iter().collect())
}

/// Starts of one kind, wave after wave; returns their runs.
async fn storm(fleet: &mut Fleet, kind: RunKind) -> Result<Vec<RunId>> {
    let (mut answers, mut deaths) = (Vec::new(), 0);
    for number in 0..WAVES {
        answers.extend(wave(fleet, kind, number, &mut deaths).await?);
    }
    ensure!(deaths >= WAVES, "only {deaths} deaths");
    let (workspace, name) = project();
    let runs = one_run_a_key(&answers)?;
    let counted = fleet.store.starts_of_day(&workspace, &name, kind).await?;
    let counted = counted.map_or(0, |day| day.starts);
    ensure!(counted == runs.len() as u64, "{counted} counted for {} runs", runs.len());
    for run in &runs {
        let explained = fleet.store.explain_run(*run).await?;
        ensure!(
            explained.is_some_and(|run| run.alarm_at_ms.is_some() || run.record.state.is_final()),
            "{run} would be forgotten"
        );
    }
    Ok(runs)
}

/// CG-121
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_with_eight_keys_through_intakes_that_are_killed_make_one_run_for_each_key()
-> Result<()> {
    let without = vec!["start-intake", "agent-runner", "delivery"];
    let options = Options { without, ..Options::default() };
    let mut fleet = Fleet::start(options).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let runs = storm(&mut fleet, RunKind::Process).await?;
    all_ended_once(&fleet, &jobs, &runs).await?;
    storm(&mut fleet, RunKind::Agent).await?;
    fleet.remove().await
}
