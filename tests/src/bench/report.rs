//! What was measured, as JSON for programs and a table for people.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::relay::Round;
use super::{Plan, rate};

/// One figure, and the relay's beside it.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What it is.
    pub name: &'static str,
    /// The fleet's figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The same of the bare relay, where it has one.
    pub relay: Option<f64>,
}

/// All rounds of one benchmark.
pub struct Report {
    plan: Plan,
    rounds: Vec<Vec<Measure>>,
}

/// What one turn has measured.
pub(crate) struct Rounds {
    /// Whole runs.
    pub(crate) fleet: Round,
    /// The same hops without work.
    pub(crate) relay: Round,
    /// Starts while the runner stands still.
    pub(crate) alone: Round,
    /// Bare requests and replies.
    pub(crate) echo: Round,
}

/// The value below which `share` of all lie, in milliseconds.
fn percentile(values: &[Duration], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let index = ((sorted.len() as f64 - 1.0) * share).round() as usize;
    sorted.get(index).map_or(0.0, Duration::as_secs_f64) * 1_000.0
}

impl Report {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, rounds: Vec::new() }
    }

    pub(crate) fn add(&mut self, rounds: &Rounds, round_trips: f64) {
        let Rounds { fleet, relay, alone, echo } = rounds;
        let n = self.plan.count;
        let (runs, relays) = (rate(n, fleet.wall), rate(n, relay.wall));
        let p50 = |values: &[Duration]| percentile(values, 0.5);
        let p99 = |values: &[Duration]| percentile(values, 0.99);
        let measure = |name, value, unit, relay| Measure { name, value, unit, relay };
        self.rounds.push(vec![
            measure("throughput", runs, "runs/s", Some(relays)),
            measure("start p50", p50(&fleet.replies), "ms", Some(p50(&relay.replies))),
            measure("start p99", p99(&fleet.replies), "ms", Some(p99(&relay.replies))),
            measure("start to outcome p50", p50(&fleet.ends), "ms", Some(p50(&relay.ends))),
            measure("start to outcome p99", p99(&fleet.ends), "ms", Some(p99(&relay.ends))),
            measure("starts alone", rate(n, alone.wall), "starts/s", Some(rate(n, echo.wall))),
            measure("start alone p50", p50(&alone.replies), "ms", Some(p50(&echo.replies))),
            measure("start alone p99", p99(&alone.replies), "ms", Some(p99(&echo.replies))),
            measure(
                "start p50 over the relay's",
                p50(&fleet.replies) / p50(&relay.replies),
                "times",
                None,
            ),
            measure(
                "start alone p50 over bare",
                p50(&alone.replies) / p50(&echo.replies),
                "times",
                None,
            ),
            measure("redis round trips a run", round_trips, "trips", None),
            measure("ratio", runs / relays, "runs per relay", None),
        ]);
    }

    /// The median of each measure over the rounds.
    pub fn medians(&self) -> Vec<Measure> {
        let Some(first) = self.rounds.first() else { return Vec::new() };
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        (0..first.len())
            .map(|index| {
                let all: Vec<&Measure> = self.rounds.iter().map(|round| &round[index]).collect();
                Measure {
                    value: median(all.iter().map(|measure| measure.value).collect()),
                    relay: first[index]
                        .relay
                        .map(|_| median(all.iter().filter_map(|measure| measure.relay).collect())),
                    ..first[index].clone()
                }
            })
            .collect()
    }

    /// One object per measurement.
    pub fn json(&self) -> Value {
        let measures = self.medians();
        let object = |m: &Measure| json!({"name": m.name, "value": m.value, "unit": m.unit, "relay": m.relay});
        Value::Array(measures.iter().map(object).collect())
    }

    /// A table, the ratio last.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} runs a round, {} requests in flight, median of {} rounds\n\n{:<34}{:>12}{:>12}\n",
            self.plan.count, self.plan.in_flight, self.plan.rounds, "", "fleet", "relay"
        );
        for measure in self.medians() {
            let relay = measure.relay.map_or_else(String::new, |value| format!("{value:.2}"));
            let _ = writeln!(
                text,
                "{:<34}{:>12.2}{relay:>12}  {}",
                measure.name, measure.value, measure.unit
            );
        }
        text
    }
}
