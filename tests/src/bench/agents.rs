//! Runs of agents whose model answers at once: what is measured is the fleet, not the model. And runs that wait for their model:
//! what each of them costs meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use runfleet_contracts::agents::AgentStart;
use runfleet_contracts::request::OutcomeJob;

use super::count;
use super::fleet::{Arrivals, Bench, Start, Started};
use super::relay::Round;
use super::usage::Counts;

/// Who takes part in a run of an agent.
const WORKERS: [&str; 3] = ["start-intake", "agent-runner", "completion-dispatcher"];

/// Most runs that wait for their model at the same time.
const WAITING_MAX: usize = 500;

/// How long the model of these runs takes, as its script says.
const MODEL: Duration = Duration::from_secs(30);

/// Longest time from the first start of waiting runs to their last outcome.
const BOUND: Duration = Duration::from_mins(2);

/// The memory of a process follows what happens with a delay.
const SETTLE: Duration = Duration::from_secs(2);

/// The turns of a run, and how it is asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One turn.
    One,
    /// Three turns; a tool is called after the first and after the second.
    Three,
    /// One turn, whose model takes its time.
    Waits,
}

impl Shape {
    const fn instruction(self) -> &'static str {
        match self {
            Self::One => "one turn",
            Self::Three => "three turns",
            Self::Waits => "take your time",
        }
    }

    /// A start of such a run, whose result becomes a job.
    pub(super) fn start(self) -> Start {
        let on_result = Some(OutcomeJob { job: "deal_coached".into(), payload: None });
        Start::Agent(AgentStart {
            agent_id: "bench-agent".into(),
            instruction: self.instruction().into(),
            variables: None,
            records: None,
            result_schema: None,
            run_as: None,
            approval_policy: None,
            timeout_seconds: None,
            idempotency_key: None,
            on_result,
            deliver_to: None,
        })
    }
}

/// A round of runs of one shape.
pub(crate) struct Taken {
    /// Many at a time.
    pub(crate) round: Round,
    /// What each of these has used.
    pub(crate) used: Counts,
    /// One after the other.
    pub(crate) alone: Round,
}

impl Taken {
    /// Fails when the runs have not asked their model and called tools as their script has them do. A message that was published
    /// once more on a busy machine changes nothing about that.
    pub(crate) fn ensure_turns(&self, turns: f64, tools: f64) -> Result<()> {
        for (target, expected) in [("turn", turns), ("tool", tools)] {
            let each = self.used.messages.get(target).copied().unwrap_or(0.0);
            let fits = (expected - 0.01..expected + 0.5).contains(&each);
            ensure!(fits, "a run makes {each} messages `{target}` and not {expected}");
        }
        Ok(())
    }
}

/// What was measured of runs that wait for their model, each.
pub(crate) struct InFlight {
    /// How many.
    pub(crate) runs: usize,
    /// Resident memory of agent-runner, in bytes.
    pub(crate) runner: f64,
    /// Memory of Redis, in bytes.
    pub(crate) redis: f64,
}

impl Bench {
    /// Takes `runs` runs of one shape, and a tenth of them one after the other.
    pub(crate) async fn agents(
        &self,
        shape: Shape,
        runs: usize,
        in_flight: usize,
    ) -> Result<Taken> {
        let start = shape.start();
        let before = self.counts_of(&WORKERS).await?;
        let round = self.round(&start, runs, in_flight).await?;
        let used = self.counts_of(&WORKERS).await?.since(&before, count(runs));
        let alone = self.one_by_one(&start, runs / 10).await?;
        Ok(Taken { round, used, alone })
    }

    /// Each run is started when the outcome of the one before it has come.
    async fn one_by_one(&self, start: &Start, runs: usize) -> Result<Round> {
        let (mut replies, mut ends) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
        let first = Instant::now();
        let arrivals = Arrivals::take(&self.fleet, self.says);
        for done in 1..=runs {
            let began = Instant::now();
            replies.extend(self.start_many(start, 1, 1).await?.replies);
            let at = arrivals.last_of(done, BOUND).await?;
            ends.push(at.duration_since(began));
        }
        Ok(Round { wall: first.elapsed(), replies, ends })
    }

    /// Lets runs wait for their model, all at the same time.
    pub(crate) async fn in_flight(&self, most: usize, callers: usize) -> Result<InFlight> {
        let runs = most.min(WAITING_MAX);
        // What the first runs fill stays.
        self.round(&Shape::One.start(), runs, callers).await.context("warming up")?;
        tokio::time::sleep(SETTLE).await;
        let series = r#"runfleet_agent_slices_total{result="waiting"}"#;
        let waiting = self.fleet.metric("agent-runner", series).await?;
        let (runner, redis) = (self.runner_memory().await?, self.memory().await?.redis);
        let arrivals = Arrivals::take(&self.fleet, self.says);
        let first = Instant::now();
        let Started { .. } = self.start_many(&Shape::Waits.start(), runs, callers).await?;
        while self.fleet.metric("agent-runner", series).await? - waiting < count(runs)
            || self.fleet.depth("agent-runner.turns").await? > 0
        {
            ensure!(first.elapsed() < MODEL, "the machine is too busy: not all runs wait at once");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(SETTLE).await;
        let each = |now: f64, then: f64| (now - then) / count(runs);
        let runner = each(self.runner_memory().await?, runner);
        let redis = each(self.memory().await?.redis, redis);
        ensure!(first.elapsed() < MODEL, "the machine is too busy: a run has ended meanwhile");
        arrivals.all(runs, BOUND).await?;
        Ok(InFlight { runs, runner, redis })
    }

    async fn runner_memory(&self) -> Result<f64> {
        self.fleet.metric("agent-runner", "process_resident_memory_bytes").await
    }
}
