//! Starts a Process and an agent with keys, asks where they stand, and shows what a refusal looks like.
//!
//! Takes the broker from `RUNFLEET_AMQP_URL` and an execution token from `RUNFLEET_TOKEN` (`runfleet token mint`).

#![expect(clippy::print_stdout, reason = "an example speaks to whoever runs it")]
#![expect(
    clippy::disallowed_methods,
    reason = "a program of somebody else, not a worker with settings"
)]

use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_client::{
    AgentStartOptions, Broker, BrokerConfig, Client, Error, ProcessStartOptions, Registry,
    SecretString,
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let variable = |name| std::env::var(name).with_context(|| format!("{name} is not set"));
    let url = SecretString::from(variable("RUNFLEET_AMQP_URL")?);
    let broker = Broker::start(BrokerConfig::new(url, "start-and-ask"), &Registry::new())?;
    let client = Client::new(&broker, variable("RUNFLEET_TOKEN")?.into());

    let options = || -> Result<ProcessStartOptions, Error> {
        // The key comes from what causes the start, so that a repetition finds the same run.
        Ok(ProcessStartOptions::default()
            .input(&json!({"amount": 120}))?
            .idempotency_key("example:order:7"))
    };
    let started =
        patiently(async || client.processes().start("approve-discount", options()?).await).await?;
    println!("process {}", started.instance_id);
    println!("state {}", client.processes().get(&started.instance_id).await?.state);

    let options = AgentStartOptions::new("Look at the deal.").idempotency_key("example:deal:7");
    let run = client.agents().start("deal-coach", options).await?;
    println!("agent {}", run.run_id);
    println!("status {}", client.agents().get(&run.run_id).await?.status);

    let refused =
        client.processes().start("approve-discount", ProcessStartOptions::default()).await;
    match refused {
        Err(error @ Error::Validation(_)) => println!("refused {}", error.field().unwrap_or("")),
        other => anyhow::bail!("not refused: {other:?}"),
    }
    broker.close().await;
    Ok(())
}

/// Repeats a call that met a passing fault. With an idempotency key that is safe, whether the run exists already or not.
async fn patiently<T>(call: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let mut wait = Duration::from_millis(200);
    loop {
        match call().await {
            Err(Error::Retryable(_)) if wait < Duration::from_secs(5) => {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            answer => return answer,
        }
    }
}
