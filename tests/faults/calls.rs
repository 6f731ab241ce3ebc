//! Calls of code of a project, while start-intake dies between any two steps of one.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use runfleet_broker::{Management, Topology, TopologyAdmin};
use runfleet_client::{CallKind, Client};
use runfleet_contracts::claims::Source;
use runfleet_contracts::host_call::CallOutcome;
use runfleet_testkit::{CallHost, Called, Handling, wait_until};
use runfleet_tests::{BOUND, Fleet, Options, project};
use serde_json::{Value, json};

/// Longer than a script may take.
const PATIENCE: Duration = Duration::from_secs(40);

fn client(fleet: &Fleet, source: Source) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = source;
    Ok(Client::new(&fleet.broker, fleet.token(&claims)?).deadline(PATIENCE))
}

fn answer(called: &Called) -> Handling {
    let value = format!("{{\"got\":{}}}", called.call.input.get());
    match serde_json::value::RawValue::from_string(value) {
        Ok(value) => Handling::Answer(CallOutcome::Ok(value)),
        Err(_) => Handling::Silence,
    }
}

/// A call that is made while start-intake dies at `point`: its answer, and how often the host got it.
async fn called(point: &str) -> Result<(Value, usize)> {
    let fail_at = Some(("start-intake", point.to_owned()));
    let mut fleet = Fleet::start(Options { fail_at, ..Options::default() }).await?;
    let key = client(&fleet, Source::Host)?;
    let declared = json!({"version": "1.0", "scripts": ["import"]});
    key.projects().register(&serde_json::from_value(declared)?).await?;
    key.projects().activate("1.0").await?;
    let management = Management::new(fleet.namespace.management())?;
    let admin = TopologyAdmin::new(fleet.namespace.amqp.clone(), management, Topology::standard())?;
    let (workspace, name) = project();
    let host = CallHost::start(&fleet.broker, &admin, (workspace, name, "1.0"), answer).await?;
    let wire = fleet.wire().await?;
    wait_until("the host takes calls", BOUND, || async {
        Ok((wire.consumers("calls.demo.shop.1.0").await? > 0).then_some(()))
    })
    .await?;
    let script = client(&fleet, Source::Script)?;
    let calling = tokio::spawn(async move {
        script.projects().invoke(CallKind::Script, "import", &json!(7), None).await
    });
    fleet.ended("start-intake").await?;
    fleet.spawn("start-intake", None)?;
    fleet.ready("start-intake").await?;
    let answer = calling.await?.context("no answer")?;
    let calls = host.calls();
    let mut attempts: Vec<_> = calls.iter().map(|called| called.call.attempt).collect();
    attempts.dedup();
    ensure!(attempts == [1], "{attempts:?}");
    let count = calls.len();
    fleet.remove().await?;
    Ok((answer, count))
}

#[tokio::test]
async fn intake_killed_before_a_call_is_published_publishes_the_same_call() -> Result<()> {
    assert_eq!(called("intake.call_begun").await?, (json!({"got": 7}), 1));
    Ok(())
}

#[tokio::test]
async fn intake_killed_between_the_end_of_a_call_and_its_answer_answers_when_it_comes_back()
-> Result<()> {
    assert_eq!(called("intake.call_ended").await?, (json!({"got": 7}), 1));
    Ok(())
}
