//! The benchmark: a fleet and a bare relay through the same RabbitMQ, in one run.

mod fleet;
mod relay;
mod report;

use std::time::Duration;

use anyhow::{Context, Result};

pub use report::{Measure, Report};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Runs, and chains of the relay, in one round.
    pub count: usize,
    /// Requests that wait for their answer at any time.
    pub in_flight: usize,
    /// Rounds of each kind, taken in turns.
    pub rounds: usize,
}

/// Runs everything and returns what was measured. Progress goes to `tell`.
pub async fn run(plan: Plan, tell: impl Fn(&str)) -> Result<Report> {
    tell("starting a private RabbitMQ and Redis");
    let servers = crate::OwnServers::start()?;
    let addresses = servers.addresses()?;
    tell("starting five workers (release build)");
    let mut bench = fleet::Bench::start(addresses).await?;
    let shape = bench.shape().await?;
    tell(&format!("bodies in bytes: {shape:?}"));
    let url = bench.relay_url();
    bench.round(plan.count / 10, plan.in_flight).await.context("warming up")?;
    relay::run(&url, &shape, plan.count / 10, plan.in_flight)
        .await
        .context("warming up the relay")?;

    let mut report = Report::new(plan);
    for round in 1..=plan.rounds {
        let trips = bench.round_trips().await?;
        let fleet = bench.round(plan.count, plan.in_flight).await?;
        let per_run = (bench.round_trips().await? - trips) / count(plan.count);
        let bare = relay::run(&url, &shape, plan.count, plan.in_flight).await?;
        let echo_shape = relay::Shape { hops: Vec::new(), ..shape.clone() };
        let echo = relay::run(&url, &echo_shape, plan.count, plan.in_flight).await?;
        let alone = bench.starts_alone(plan.count, plan.in_flight).await?;
        tell(&format!(
            "round {round}: {:.0} runs/s, {:.0} relays/s, {:.0} bare requests/s, {per_run:.2} Redis round trips a run",
            rate(plan.count, fleet.wall),
            rate(plan.count, bare.wall),
            rate(plan.count, echo.wall),
        ));
        report.add(&report::Rounds { fleet, relay: bare, alone, echo }, per_run);
    }
    bench.stop().await?;
    Ok(report)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
fn count(n: usize) -> f64 {
    n as f64
}

fn rate(n: usize, wall: Duration) -> f64 {
    count(n) / wall.as_secs_f64()
}
