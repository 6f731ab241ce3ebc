//! What only agent-runner knows.

use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use runfleet_domain::RunState;

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Runs ended here, by their final state.
    pub(crate) ended: IntCounterVec,
    /// Slices committed, by how they went.
    pub(crate) slices: IntCounterVec,
    /// Events that changed nothing.
    pub(crate) ignored: IntCounter,
    /// Seconds of model calls, by how they went.
    pub(crate) turns: HistogramVec,
    /// Tool calls, by how they went.
    pub(crate) tools: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let ended = IntCounterVec::new(
            Opts::new("runfleet_agent_runs_ended_total", "Agent runs ended by this worker."),
            &["state"],
        )?;
        let slices = IntCounterVec::new(
            Opts::new("runfleet_agent_slices_total", "Slices of agent runs, by how they went."),
            &["result"],
        )?;
        let ignored = IntCounter::new(
            "runfleet_agent_events_ignored_total",
            "Events that changed nothing: what they are about was over.",
        )?;
        let turns = HistogramVec::new(
            HistogramOpts::new(
                "runfleet_agent_model_call_seconds",
                "Model calls, by how they went.",
            )
            .buckets(vec![0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]),
            &["result"],
        )?;
        let tools = IntCounterVec::new(
            Opts::new("runfleet_agent_tool_calls_total", "Tool calls of agents, by how they went."),
            &["result"],
        )?;
        registry.register(Box::new(ended.clone()))?;
        registry.register(Box::new(slices.clone()))?;
        registry.register(Box::new(ignored.clone()))?;
        registry.register(Box::new(turns.clone()))?;
        registry.register(Box::new(tools.clone()))?;
        for state in RunState::ALL.into_iter().filter(|state| state.is_final()) {
            ended.with_label_values(&[state.as_str()]);
        }
        for result in ["ended", "continued", "waiting", "superseded"] {
            slices.with_label_values(&[result]);
        }
        Ok(Self { ended, slices, ignored, turns, tools })
    }
}
