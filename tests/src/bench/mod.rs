//! The benchmark: a fleet and a bare relay through the same RabbitMQ, in one run, and runs of other shapes through the same
//! fleet.

mod agents;
mod board;
mod command;
mod ears;
mod exact;
mod fleet;
mod host;
mod hosts;
mod messages;
mod relay;
mod report;
mod usage;
mod waiting;

use std::time::Duration;

use anyhow::{Context, Result};

use agents::Shape;
pub use command::{Command, help};
use fleet::{Bench, Start};
use host::Says;
pub use report::{Measure, Report};
use usage::Processor;

/// What is measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The example Process, which goes straight to its end, beside the bare relay.
    Straight,
    /// Ten script tasks, one after the other.
    Scripts,
    /// A parallel gateway into ten script tasks, and a join.
    Parallel,
    /// Runs that wait for one date.
    Timers,
    /// Runs of agents whose model answers at once, and such as wait for their model.
    Agents,
    /// Messages of agents to people, through the conversation alone and through a webhook.
    Messages,
    /// Runs whose outcome jobs are handled by a host in Rust and by the project host of the SDK.
    Hosts,
}

impl Part {
    /// All parts, in the order in which they are measured.
    pub const ALL: [Self; 7] = [
        Self::Straight,
        Self::Scripts,
        Self::Parallel,
        Self::Timers,
        Self::Agents,
        Self::Messages,
        Self::Hosts,
    ];

    /// Its name at the command line and in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Straight => "straight",
            Self::Scripts => "scripts",
            Self::Parallel => "parallel",
            Self::Timers => "timers",
            Self::Agents => "agents",
            Self::Messages => "messages",
            Self::Hosts => "hosts",
        }
    }

    /// What it measures, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Straight => {
                "the example Process beside a bare relay: runs/s and their ratio, start, start to job handled, Redis round trips"
            }
            Self::Scripts => "a Process of ten scripts, one after the other; half of RUNS",
            Self::Parallel => "a Process of ten scripts at once, and a join; half of RUNS",
            Self::Timers => {
                "RUNS runs wait for one date, once: what each costs meanwhile, and how fast all go on"
            }
            Self::Agents => {
                "agents whose model answers at once: one turn, three turns with two tools, a further turn, memory in flight; half of RUNS"
            }
            Self::Messages => {
                "RUNS messages to people: into conversations, and through a webhook; once 10,000 at most to 1,000 people with caps, counted"
            }
            Self::Hosts => {
                "start to outcome job handled by a host in Rust and by runfleet-host under Node.js, of Processes and agents; a fifth of RUNS"
            }
        }
    }

    /// The part of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Runs, and chains of the relay, in one round. Runs of scripts and of agents are half as many, those for hosts a fifth; as
    /// many wait for a timer, once.
    pub count: usize,
    /// Requests that wait for their answer at any time.
    pub in_flight: usize,
    /// Rounds of each kind, taken in turns.
    pub rounds: usize,
    /// The only part to measure; all if absent.
    pub only: Option<Part>,
    /// Whether the host that takes outcome jobs says nothing of them.
    pub silent: bool,
}

/// Runs everything and returns what was measured. Progress goes to `tell`.
pub async fn run(plan: Plan, tell: impl Fn(&str)) -> Result<Report> {
    let wanted = |part: Part| plan.only.is_none_or(|only| only == part);
    if wanted(Part::Hosts) {
        // Better now than after minutes.
        crate::NodeHost::built().context("the part hosts")?;
    }
    tell("starting a private RabbitMQ and Redis");
    let servers = crate::OwnServers::start()?;
    let addresses = servers.addresses()?;
    tell(if cfg!(debug_assertions) {
        "starting five workers (build for debugging: the figures mean nothing)"
    } else {
        "starting five workers (release build)"
    });
    let mut bench =
        Bench::start(addresses, if plan.silent { Says::Nothing } else { Says::Results }).await?;
    let warm = Start::Process(fleet::example()?);
    bench.round(&warm, plan.count / 10, plan.in_flight).await.context("warming up")?;
    let mut report = Report::new(plan);
    for part in Part::ALL.into_iter().filter(|part| wanted(*part)) {
        let done = match part {
            Part::Straight => straight(&mut bench, &servers, plan, &mut report, &tell).await,
            Part::Scripts => shape(&bench, part, "bench-scripts", plan, &mut report, &tell).await,
            Part::Parallel => shape(&bench, part, "bench-parallel", plan, &mut report, &tell).await,
            Part::Timers => timers(&bench, plan, &mut report, &tell).await,
            Part::Agents => agents(&bench, plan, &mut report, &tell).await,
            Part::Messages => told(servers.addresses()?, plan, &mut report, &tell).await,
            Part::Hosts => hosts(&bench, plan, &mut report, &tell).await,
        };
        done.with_context(|| format!("the part {}", part.name()))?;
    }
    bench.stop().await?;
    Ok(report)
}

async fn straight(
    bench: &mut Bench,
    servers: &crate::OwnServers,
    plan: Plan,
    report: &mut Report,
    tell: &impl Fn(&str),
) -> Result<()> {
    let shape = bench.shape().await?;
    tell(&format!("bodies in bytes: {shape:?}"));
    let (url, start) = (bench.relay_url(), Start::Process(fleet::example()?));
    relay::run(&url, &shape, plan.count / 10, plan.in_flight)
        .await
        .context("warming up the relay")?;
    for round in 1..=plan.rounds {
        let (before, begin) = (bench.counts().await?, Processor::now(servers)?);
        let fleet = bench.round(&start, plan.count, plan.in_flight).await?;
        let (used, middle) =
            (bench.counts().await?.since(&before, count(plan.count)), Processor::now(servers)?);
        let bare = relay::run(&url, &shape, plan.count, plan.in_flight).await?;
        let end = Processor::now(servers)?;
        let processor =
            [middle.since(&begin, count(plan.count)), end.since(&middle, count(plan.count))];
        let echo_shape = relay::Shape { hops: Vec::new(), ..shape.clone() };
        let echo = relay::run(&url, &echo_shape, plan.count, plan.in_flight).await?;
        let alone = bench.starts_alone(plan.count, plan.in_flight).await?;
        tell(&format!(
            "round {round}: {:.0} runs/s, {:.0} relays/s, {:.0} bare requests/s, {:.2} Redis round trips a run",
            rate(plan.count, fleet.wall),
            rate(plan.count, bare.wall),
            rate(plan.count, echo.wall),
            used.all_trips(),
        ));
        let rounds = report::Rounds { fleet, relay: bare, alone, echo, processor };
        report.add(Part::Straight, report::straight(plan.count, &rounds, &used));
    }
    Ok(())
}

/// Rounds of a Process that needs nobody else.
async fn shape(
    bench: &Bench,
    part: Part,
    process: &str,
    plan: Plan,
    report: &mut Report,
    tell: &impl Fn(&str),
) -> Result<()> {
    let runs = plan.count / 2;
    let start = Start::Process(fleet::start_of(process, r#"{"amount": 120}"#)?);
    bench.round(&start, runs / 10, plan.in_flight).await.context("warming up")?;
    for round in 1..=plan.rounds {
        let before = bench.counts().await?;
        let taken = bench.round(&start, runs, plan.in_flight).await?;
        let used = bench.counts().await?.since(&before, count(runs));
        tell(&format!("{}, round {round}: {:.0} runs/s", part.name(), rate(runs, taken.wall)));
        report.add(part, report::shape(runs, &taken, &used));
    }
    Ok(())
}

/// Runs that wait for one date, once.
async fn timers(
    bench: &Bench,
    plan: Plan,
    report: &mut Report,
    tell: &impl Fn(&str),
) -> Result<()> {
    tell(&format!("{} runs begin to wait for one date", plan.count));
    let waiting = bench.waiting(plan.count, plan.in_flight).await?;
    report.add(Part::Timers, report::waiting(&waiting));
    Ok(())
}

/// Rounds of agents, and once runs that wait for their model.
async fn agents(
    bench: &Bench,
    plan: Plan,
    report: &mut Report,
    tell: &impl Fn(&str),
) -> Result<()> {
    let runs = plan.count / 2;
    for shape in [Shape::One, Shape::Three] {
        bench.agents(shape, runs / 10, plan.in_flight).await.context("warming up")?;
    }
    tell("runs of an agent wait for their model");
    let waiting = bench.in_flight(runs, plan.in_flight).await?;
    for round in 1..=plan.rounds {
        let one = bench.agents(Shape::One, runs, plan.in_flight).await?;
        let three = bench.agents(Shape::Three, runs, plan.in_flight).await?;
        three.ensure_turns(3.0, 2.0)?;
        let rates = [&one, &three].map(|taken| rate(runs, taken.round.wall));
        tell(&format!(
            "agents, round {round}: {:.0} runs/s of one turn, {:.0} of three turns",
            rates[0], rates[1]
        ));
        report.add(Part::Agents, report::agents(runs, &one, &three, &waiting));
    }
    Ok(())
}

/// Rounds of messages to people, each through both sinks, and once many with caps whose number at the receiver is known.
async fn told(
    addresses: runfleet_testkit::Servers,
    plan: Plan,
    report: &mut Report,
    tell: &impl Fn(&str),
) -> Result<()> {
    let messages = messages::Messages::start(addresses.clone()).await?;
    let many = plan.count;
    messages.round("own", many / 10, plan.in_flight).await.context("warming up")?;
    for round in 1..=plan.rounds {
        let own = messages.round("own", many, plan.in_flight).await?;
        let hook = messages.round("hook", many, plan.in_flight).await?;
        tell(&format!(
            "messages, round {round}: {:.0}/s into the conversation, {:.0}/s through a webhook",
            rate(many, own.wall),
            rate(many, hook.wall),
        ));
        report.add(Part::Messages, report::messages(many, &own, &hook));
    }
    messages.stop().await?;
    tell("messages to many people with caps");
    let exact = exact::exact(addresses, many, plan.in_flight).await.context("caps")?;
    tell(&format!(
        "messages: exactly {} of {} to {} people came, {} were held back",
        exact.came, exact.asked, exact.people, exact.refused
    ));
    report.add_once(Part::Messages, report::exact(&exact));
    Ok(())
}

/// Rounds of hosts, taken in turns.
async fn hosts(bench: &Bench, plan: Plan, report: &mut Report, tell: &impl Fn(&str)) -> Result<()> {
    let runs = plan.count / 5;
    for round in 1..=plan.rounds {
        let said = |name: &str, by: &hosts::ByHost| {
            let [processes, agents] = [&by.process, &by.agent].map(|taken| rate(runs, taken.wall));
            tell(&format!(
                "hosts, round {round}: {processes:.0} runs/s of Processes and {agents:.0} of agents {name}"
            ));
        };
        let rust = bench.by_rust(runs, plan.in_flight).await.context("the host in Rust")?;
        said("in Rust", &rust);
        let node = bench.by_node(runs, plan.in_flight).await?;
        said("under Node.js", &node);
        report.add(Part::Hosts, report::hosts(runs, plan.in_flight, &rust, &node));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
fn count(n: usize) -> f64 {
    n as f64
}

fn rate(n: usize, wall: Duration) -> f64 {
    count(n) / wall.as_secs_f64()
}
