//! Runs AI agents: takes `run.advance.v1`, executes one slice of a run, commits it, and publishes what follows. Asks models
//! (`agent.turn.v1`) and carries out tool calls (`agent.tool.v1`) on lines of their own.
//!
//! What an agent does next is decided by `runfleet-agent` alone; here is what touches the world.

mod begin;
mod calls;
mod config;
mod conversation;
mod definitions;
mod events;
mod flight;
mod handler;
mod held;
mod metrics;
mod models;
mod rights;
mod saying;
mod slice;
mod tools;
mod turn;

use std::sync::Arc;

use runfleet_broker::LaneConfig;
use runfleet_domain::Lane;
use runfleet_runtime::{Env, Process};
use runfleet_store::AlarmSet;
use runfleet_worker::inbox::{RunnerInbox, ToolInbox, TurnInbox};
use runfleet_worker::{Fleet, Settings};

use crate::calls::Calls;
use crate::config::CallConfig;
use crate::handler::Deps;
use crate::models::Models;
use crate::tools::Tools;

/// Settings of agent-runner.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
    calls: CallConfig,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let fleet = Settings::from_env(env, "agent-runner");
        let calls = CallConfig::from_env(env);
        Some(Self { fleet: fleet?, calls: calls? })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let mut fleet = Fleet::connect(config.fleet, process).await?;
    fleet.sweep(AlarmSet::Agent)?;
    let (turn_lanes, tool_lanes) = (config.calls.turn_lanes(), config.calls.tool_lanes());
    let tools = Arc::new(Tools::new(&fleet, &config.calls)?);
    let deps = Arc::new(Deps::new(&fleet, Arc::clone(&tools))?);
    let calls = Arc::new(Calls::new(&fleet, Arc::clone(&deps)));
    let models = Arc::new(Models::new(&config.calls)?);
    let (own, answers) = (Arc::clone(&calls), Arc::clone(&calls));
    fleet.consume_beside::<TurnInbox, _, _>(turn_lanes, turn::HANDLER_BOUND, move |message| {
        turn::handle(Arc::clone(&own), Arc::clone(&models), message)
    });
    fleet.consume_beside::<ToolInbox, _, _>(tool_lanes, tools::HANDLER_BOUND, move |message| {
        tools::handle(Arc::clone(&calls), Arc::clone(&tools), message)
    });
    let mut lanes = fleet.lanes(&Lane::ALL);
    // One at a time: what waits here was in hand when a runner died, and the next crash must tell which one it was.
    lanes.push(LaneConfig::new(handler::QUARANTINE, Lane::Interactive, 1));
    fleet
        .consume::<RunnerInbox, _, _>(lanes, move |message| {
            handler::handle(Arc::clone(&answers), message)
        })
        .await
}
