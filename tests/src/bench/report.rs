//! What was measured, as JSON for programs and a table for people.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::agents::{InFlight, Taken};
use super::exact::Exact;
use super::hosts::{ByHost, Handled};
use super::messages::Sent;
use super::relay::Round;
use super::usage::{Counts, Processor};
use super::waiting::Waiting;
use super::{Part, Plan, count, rate};

/// The name of the measure that is printed last.
const RATIO: &str = "ratio";

/// One figure, and the relay's beside it.
#[derive(Debug, Clone)]
pub struct Measure {
    /// What it is.
    pub name: String,
    /// The fleet's figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The same of the bare relay, where it has one.
    pub relay: Option<f64>,
}

/// All rounds of one benchmark, and what was measured once.
pub struct Report {
    plan: Plan,
    parts: Vec<(Part, Vec<Vec<Measure>>)>,
    once: Vec<(Part, Vec<Measure>)>,
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
    /// What the machine has worked for a whole run, and for a relay.
    pub(crate) processor: [Processor; 2],
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

fn p50(values: &[Duration]) -> f64 {
    percentile(values, 0.5)
}

fn p99(values: &[Duration]) -> f64 {
    percentile(values, 0.99)
}

fn measure(name: &str, value: f64, unit: &'static str) -> Measure {
    Measure { name: name.to_owned(), value, unit, relay: None }
}

fn beside(name: &str, value: f64, unit: &'static str, relay: f64) -> Measure {
    Measure { relay: Some(relay), ..measure(name, value, unit) }
}

/// One round of the example beside the relay.
pub(crate) fn straight(n: usize, rounds: &Rounds, used: &Counts) -> Vec<Measure> {
    let Rounds { fleet, relay, alone, echo, processor: [of_run, of_relay] } = rounds;
    let (runs, relays) = (rate(n, fleet.wall), rate(n, relay.wall));
    let (whole, bare) = (p50(&fleet.replies) / p50(&relay.replies), p50(&echo.replies));
    let mut measures = vec![
        beside("throughput", runs, "runs/s", relays),
        beside("start p50", p50(&fleet.replies), "ms", p50(&relay.replies)),
        beside("start p99", p99(&fleet.replies), "ms", p99(&relay.replies)),
        beside("start to job handled p50", p50(&fleet.ends), "ms", p50(&relay.ends)),
        beside("start to job handled p99", p99(&fleet.ends), "ms", p99(&relay.ends)),
        beside("starts alone", rate(n, alone.wall), "starts/s", rate(n, echo.wall)),
        beside("start alone p50", p50(&alone.replies), "ms", bare),
        beside("start alone p99", p99(&alone.replies), "ms", p99(&echo.replies)),
        measure("start p50 over the relay's", whole, "times"),
        measure("start alone p50 over bare", p50(&alone.replies) / bare, "times"),
        measure("redis round trips a run", used.all_trips(), "trips"),
        measure("messages a run", used.all_messages(), "messages"),
        measure(RATIO, runs / relays, "runs per relay"),
    ];
    measures.extend(processor("processor time a run", used));
    measures.push(beside("whole machine a run", of_run.all(), "µs", of_relay.all()));
    for (name, of_run, of_relay) in [
        ("  rabbitmq", of_run.rabbitmq, of_relay.rabbitmq),
        ("  redis", of_run.redis, of_relay.redis),
        ("  workers", of_run.workers, of_relay.workers),
        ("  this program", of_run.own, of_relay.own),
    ] {
        measures.push(beside(name, of_run, "µs", of_relay));
    }
    measures.push(measure(
        "processor time of a relay over a run's",
        of_relay.all() / of_run.all(),
        "times",
    ));
    measures
}

/// Processor time of each worker.
fn processor(name: &str, used: &Counts) -> Vec<Measure> {
    let mut measures = vec![measure(name, used.processor.values().sum(), "µs")];
    measures.extend(used.processor.iter().map(|(name, value)| inner(name, *value, "µs")));
    measures
}

/// A part of the measure before it.
fn inner(name: &str, value: f64, unit: &'static str) -> Measure {
    measure(&format!("  {name}"), value, unit)
}

/// One round of runs that need nobody else.
pub(crate) fn shape(n: usize, round: &Round, used: &Counts) -> Vec<Measure> {
    let mut measures = vec![
        measure("throughput", rate(n, round.wall), "runs/s"),
        measure("start to job handled p50", p50(&round.ends), "ms"),
        measure("start to job handled p99", p99(&round.ends), "ms"),
        measure("redis round trips a run", used.all_trips(), "trips"),
        measure("messages a run", used.all_messages(), "messages"),
    ];
    measures.extend(processor("processor time a run", used));
    measures
}

/// Runs that waited, with what each round trip and message was for.
pub(crate) fn waiting(waiting: &Waiting) -> Vec<Measure> {
    let Waiting { runs, before, during, keys, to_wait, to_end, late, .. } = waiting;
    let each = |now: f64, then: f64| (now - then) / count(*runs);
    let mut measures = vec![
        measure("start until waiting", rate(*runs, waiting.began), "runs/s"),
        measure("redis memory a waiting run", each(during.redis, before.redis), "bytes"),
        inner("keys with its id", keys.0, "bytes"),
        inner("number of these keys", count(keys.1), "keys"),
        measure("runner memory a waiting run", each(during.runner, before.runner), "bytes"),
        measure("resume rate", rate(*runs, waiting.resumed), "runs/s"),
        measure("due to outcome p50", p50(late), "ms"),
        measure("due to last outcome", percentile(late, 1.0), "ms"),
    ];
    for (half, used) in [("start until waiting", to_wait), ("due to outcome", to_end)] {
        measures.push(measure(&format!("{half}: redis"), used.all_trips(), "trips"));
        measures.extend(details(&used.trips, "trips"));
        measures.push(measure(&format!("{half}: messages"), used.all_messages(), "messages"));
        measures.extend(details(&used.messages, "messages"));
        measures.extend(processor(&format!("{half}: processor time"), used));
    }
    measures
}

/// Runs of agents: one turn, three turns with two tools, and what a turn takes beyond its model, which answers at once.
pub(crate) fn agents(n: usize, one: &Taken, three: &Taken, waiting: &InFlight) -> Vec<Measure> {
    let further = |value: fn(&Taken) -> f64| (value(three) - value(one)) / 2.0;
    let alone = |taken: &Taken| p50(&taken.alone.ends);
    let processor_of = |taken: &Taken| taken.used.processor.values().sum::<f64>();
    let mut measures = Vec::new();
    for (name, taken) in [("one turn", one), ("three turns", three)] {
        let Taken { round, used, .. } = taken;
        measures.extend([
            measure(name, rate(n, round.wall), "runs/s"),
            inner("start to outcome p50", p50(&round.ends), "ms"),
            inner("start to outcome p99", p99(&round.ends), "ms"),
            inner("start p50, alone", p50(&taken.alone.replies), "ms"),
            inner("start to outcome p50, alone", alone(taken), "ms"),
            measure(&format!("{name}: redis round trips a run"), used.all_trips(), "trips"),
        ]);
        measures.extend(details(&used.trips, "trips"));
        measures.push(measure(&format!("{name}: messages a run"), used.all_messages(), "messages"));
        measures.extend(details(&used.messages, "messages"));
        measures.extend(processor(&format!("{name}: processor time a run"), used));
    }
    measures.extend([
        measure("further turn with a tool, alone", further(alone), "ms"),
        inner("processor time", further(processor_of), "µs"),
        measure("memory a run that waits", waiting.runner, "bytes"),
        inner("runs that wait", count(waiting.runs), "runs"),
        inner("redis memory", waiting.redis, "bytes"),
    ]);
    measures
}

/// Messages to people.
pub(crate) fn messages(n: usize, own: &Sent, hook: &Sent) -> Vec<Measure> {
    let of = |name: &str, sent: &Sent| {
        vec![
            measure(&format!("{name}: throughput"), rate(n, sent.wall), "messages/s"),
            measure(&format!("{name}: call to result p50"), p50(&sent.told), "ms"),
            measure(&format!("{name}: call to result p99"), p99(&sent.told), "ms"),
        ]
    };
    [of("conversation", own), of("webhook", hook)].concat()
}

/// Messages whose number is known.
pub(crate) fn exact(exact: &Exact) -> Vec<Measure> {
    let Exact { people, asked, came, refused, wall } = exact;
    vec![
        measure("caps: throughput", rate(*asked, *wall), "messages/s"),
        inner("people", count(*people), "people"),
        inner("messages", count(*asked), "messages"),
        inner("came, each once", count(*came), "messages"),
        inner("held back by a cap", count(*refused), "messages"),
    ]
}

/// Outcome jobs handled by hosts.
pub(crate) fn hosts(n: usize, in_flight: usize, rust: &ByHost, node: &ByHost) -> Vec<Measure> {
    let of = |name: &str, handled: &Handled| {
        vec![
            measure(name, rate(n, handled.wall), "runs/s"),
            inner("start to handled p50", p50(&handled.waits), "ms"),
            inner("start to handled p99", p99(&handled.waits), "ms"),
            inner("start to handled p50, alone", p50(&handled.alone), "ms"),
            inner("start to handled p99, alone", p99(&handled.alone), "ms"),
            inner("runs in flight", count(in_flight), "runs"),
        ]
    };
    [
        of("Process, host in Rust", &rust.process),
        of("agent, host in Rust", &rust.agent),
        of("Process, host under Node.js", &node.process),
        of("agent, host under Node.js", &node.agent),
    ]
    .concat()
}

/// What happens once in a hundred runs or more often.
fn details<'a>(
    used: &'a std::collections::BTreeMap<String, f64>,
    unit: &'static str,
) -> impl Iterator<Item = Measure> + 'a {
    let often = used.iter().filter(|(_, value)| **value >= 0.01);
    often.map(move |(name, value)| inner(name, *value, unit))
}

/// The median of each measure over the rounds of a part.
fn medians(rounds: &[Vec<Measure>]) -> Vec<Measure> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    first
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let all: Vec<&Measure> = rounds.iter().filter_map(|round| round.get(index)).collect();
            Measure {
                value: median(all.iter().map(|measure| measure.value).collect()),
                relay: one
                    .relay
                    .map(|_| median(all.iter().filter_map(|measure| measure.relay).collect())),
                ..one.clone()
            }
        })
        .collect()
}

impl Report {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, parts: Vec::new(), once: Vec::new() }
    }

    /// Takes the measures of one round of a part.
    pub(crate) fn add(&mut self, part: Part, round: Vec<Measure>) {
        match self.parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, rounds)) => rounds.push(round),
            None => self.parts.push((part, vec![round])),
        }
    }

    /// Takes what a part measures once, which comes after its rounds.
    pub(crate) fn add_once(&mut self, part: Part, measures: Vec<Measure>) {
        self.once.push((part, measures));
    }

    /// All measures of each part, those of rounds as medians.
    fn all(&self) -> impl Iterator<Item = (Part, Vec<Measure>)> {
        self.parts.iter().map(|(part, rounds)| {
            let once = self.once.iter().filter(|(known, _)| known == part);
            let once = once.flat_map(|(_, measures)| measures.iter().cloned());
            (*part, medians(rounds).into_iter().chain(once).collect())
        })
    }

    /// One object per measurement.
    pub fn json(&self) -> Value {
        let mut all = Vec::new();
        for (part, measures) in self.all() {
            let mut half = String::new();
            for m in measures {
                // What is set in belongs to what is above it.
                let inner = m.name.strip_prefix("  ").map(|inner| format!("{half}: {inner}"));
                let name = inner.unwrap_or_else(|| m.name.clone());
                if !m.name.starts_with("  ") {
                    half.clone_from(&m.name);
                }
                all.push(json!({"part": part.name(), "name": name, "value": m.value, "unit": m.unit, "relay": m.relay}));
            }
        }
        Value::Array(all)
    }

    /// A table, part by part; the ratio to the relay comes last.
    pub fn table(&self) -> String {
        let Plan { count, in_flight, rounds, silent, .. } = self.plan;
        let mut text = format!(
            "{count} runs a round ({} of scripts and agents, {} of hosts, {count} that wait, once), {in_flight} requests in flight, median of {rounds} rounds{}\n",
            count / 2,
            count / 5,
            if silent { ", a host that says nothing" } else { "" }
        );
        let mut ratio = None;
        for (part, measures) in self.all() {
            let relay = if part == Part::Straight { "relay" } else { "" };
            let _ = writeln!(text, "\n{:<34}{:>12}{relay:>12}", part.name(), "fleet");
            for measure in measures {
                let relay = measure.relay.map_or_else(String::new, |value| format!("{value:.2}"));
                let _ = writeln!(
                    text,
                    "{:<34}{:>12.2}{relay:>12}  {}",
                    measure.name, measure.value, measure.unit
                );
                if measure.name == RATIO {
                    ratio = Some(measure.value);
                }
            }
        }
        if let Some(ratio) = ratio {
            let _ = writeln!(text, "\n{RATIO} of runs to relays: {ratio:.2}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan { count: 100, in_flight: 8, rounds: 3, only: None, silent: false }
    }

    #[test]
    fn medians_of_rounds_come_first_then_what_was_measured_once_and_the_ratio_last() {
        let mut report = Report::new(plan());
        for ratio in [0.5, 0.1, 0.4] {
            let round = vec![beside("throughput", 1.0, "runs/s", 2.0), measure(RATIO, ratio, "")];
            report.add(Part::Straight, round);
        }
        report.add(Part::Messages, vec![measure("webhook", 7.0, "messages/s")]);
        report.add_once(
            Part::Messages,
            vec![measure("caps", 3.0, "messages/s"), inner("people", 2.0, "people")],
        );
        let table = report.table();
        assert!(table.ends_with("\nratio of runs to relays: 0.40\n"), "{table}");
        let json = report.json();
        let names: Vec<&str> =
            json.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["throughput", "ratio", "webhook", "caps", "caps: people"]);
        assert_eq!((&json[0]["relay"], &json[1]["value"]), (&json!(2.0), &json!(0.4)));
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let values: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!((p50(&values).round(), p99(&values).round()), (51.0, 99.0));
        assert!(p99(&[]) < f64::EPSILON);
    }
}
