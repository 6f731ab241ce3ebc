//! Messages that no client of ours sends: parked or dropped with a reason and a metric, and never in the way of others.

use anyhow::{Context, Result};
use runfleet_client::Error;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, Wire, project};
use serde_json::json;

use crate::load::{all_ended_once, start_many};

/// Waits for one parked message and checks its reason.
async fn parked(wire: &Wire, queue: &str, reason: &str) -> Result<()> {
    let dead = format!("dead.{queue}");
    let (found, _) =
        wait_until(&format!("{queue} parks {reason}"), BOUND, || wire.take(&dead)).await?;
    assert_eq!(found, reason, "{queue}");
    Ok(())
}

/// A caller is told about a request that is too large before it is sent, and gets an answer to the largest one.
async fn larger_than_a_message_may_be(fleet: &Fleet) -> Result<()> {
    let client = fleet.client()?;
    let sent = client.send("large".into(), vec![b' '; 262_145]).await;
    let error = sent.err().context("it was sent")?;
    let body = error.body().context("an error of the contract")?;
    assert!(matches!(error, Error::Validation(_)), "{error}");
    assert_eq!((&body.details["limit"], &body.details["size"]), (&json!(262_144), &json!(262_145)));
    assert!(
        error.to_string().ends_with("(is too large: 262145 bytes, at most 262144 are allowed)")
    );
    let answer = client.send("largest".into(), vec![b' '; 262_144]).await?;
    let answer: serde_json::Value = serde_json::from_slice(&answer)?;
    assert_eq!(answer["error"]["details"]["problem"], "is not valid JSON");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_messages_are_parked_with_a_reason_and_block_nobody() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let wire = fleet.wire().await?;
    let too_large = vec![b' '; 262_145];
    let advance = Some("run.advance.v1");
    for (exchange, queue, kind, ours) in [
        ("x.process", "process-runner.interactive", advance, "run.advance.v1"),
        ("x.done", "completion-dispatcher.interactive", Some("run.outcome.v1"), "run.outcome.v1"),
        ("x.agent", "agent-runner.interactive", advance, "run.advance.v1"),
        ("x.deliver", "delivery.interactive", Some("deliver.message.v1"), "deliver.message.v1"),
    ] {
        wire.publish(exchange, queue, kind, b"not json").await?;
        parked(&wire, queue, "malformed").await?;
        wire.publish(exchange, queue, Some("nobody.knows.v1"), b"{}").await?;
        parked(&wire, queue, "unknown_kind").await?;
        wire.publish(exchange, queue, None, b"{}").await?;
        parked(&wire, queue, "no_kind").await?;
        wire.publish(exchange, queue, Some(ours), &too_large).await?;
        parked(&wire, queue, "too_large").await?;
    }
    // start-intake answers bad requests; without a caller they are parked.
    let queue = "start-intake.interactive";
    wire.publish("x.start", queue, Some("request.v1"), b"not json").await?;
    parked(&wire, queue, "refused").await?;
    wire.publish("x.start", queue, Some("request.v1"), &too_large).await?;
    parked(&wire, queue, "too_large").await?;
    larger_than_a_message_may_be(&fleet).await?;
    let runs = start_many(fleet.client()?, 20, "good").await?;
    all_ended_once(&fleet, &jobs, &runs).await?;
    for worker in ["process-runner", "completion-dispatcher", "agent-runner", "delivery"] {
        let metrics = fleet.metrics(worker).await?;
        let counted = metrics
            .lines()
            .filter(|line| {
                line.starts_with("runfleet_consumer_messages_total{") && line.contains("parked")
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
        assert!((counted - 4.0).abs() < 0.1, "{worker} counted {counted} parked messages");
    }
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_run_that_does_not_exist_is_dropped_and_counted() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let wire = fleet.wire().await?;
    let id = "PI2200000000000000000000000000";
    let advance = json!({"runId": id}).to_string();
    let outcome = json!({"runId": id, "workspace": "demo", "project": "shop", "job": "j", "hops": 1, "chain": 0});
    wire.publish(
        "x.process",
        "process-runner.interactive",
        Some("run.advance.v1"),
        advance.as_bytes(),
    )
    .await?;
    wire.publish(
        "x.done",
        "completion-dispatcher.interactive",
        Some("run.outcome.v1"),
        outcome.to_string().as_bytes(),
    )
    .await?;
    for worker in ["process-runner", "completion-dispatcher"] {
        let series = format!(
            "runfleet_consumer_messages_total{{queue=\"{worker}.interactive\",result=\"dropped\"}}"
        );
        wait_until("the drop is counted", BOUND, || async {
            Ok((fleet.metric(worker, &series).await? > 0.5).then_some(()))
        })
        .await?;
        assert_eq!(wire.depth(&format!("dead.{worker}.interactive")).await?, 0);
    }
    fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_kills_its_runner_again_and_again_is_given_up_and_its_neighbours_end()
-> Result<()> {
    let mut fleet =
        Fleet::start(Options { without: vec!["process-runner"], ..Options::default() }).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let mut poison = runfleet_tests::start(&json!({"amount": 1}));
    poison.instance_name = Some("poison".into());
    let started = fleet.client()?.processes().start_with(&poison).await?;
    let run: runfleet_domain::RunId = started.instance_id.parse()?;
    let job = loop {
        // Each life of the runner ends where the run is taken up, first in the open, then in quarantine.
        fleet.spawn("process-runner", Some("process.before_commit"))?;
        tokio::select! {
            job = jobs.wait(run.outcome_job(), BOUND) => break job?,
            ended = fleet.ended("process-runner") => { ended?; }
        }
    };
    let payload: serde_json::Value = serde_json::from_str(job.payload.get())?;
    assert_eq!(payload["process"]["state"], "FAILED");
    let record = fleet.store.load_run(run).await?.context("no run")?;
    assert_eq!(record.error.context("no error")?.code, "INTERNAL_ERROR");
    let _ = fleet.kill("process-runner");
    fleet.spawn("process-runner", None)?;
    let runs = start_many(fleet.client()?, 10, "neighbours").await?;
    for run in &runs {
        jobs.wait(run.outcome_job(), BOUND).await?;
    }
    fleet.remove().await
}
