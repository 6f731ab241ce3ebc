//! Accepts start requests exactly once, answers get requests, carries out what is done to runs that exist, enqueues jobs, and refuses the
//! rest without leaving a trace.

mod admission;
mod answer;
mod asked;
mod calls;
mod chat;
mod data;
mod enqueue;
mod facts;
mod get;
mod handler;
mod key_set;
mod metrics;
mod models;
mod operate;
mod projects;
mod start;

use std::path::PathBuf;
use std::sync::Arc;

use runfleet_domain::Lane;
use runfleet_runtime::{Env, Process};
use runfleet_worker::tokens::{TokenSettings, Tokens};
use runfleet_worker::{Fleet, Settings};

use crate::data::{DataConfig, Sources};
use crate::facts::{FactServices, FactsConfig};
use crate::handler::{Deps, Offered, RawRequest};

/// Settings of start-intake.
#[derive(Debug)]
pub struct Config {
    fleet: Settings,
    token_keys_file: PathBuf,
    offered: Offered,
    facts: FactsConfig,
    tokens: TokenSettings,
    data: DataConfig,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let fleet = Settings::from_env(env, "start-intake");
        let token_keys_file = env.required(
            "RUNFLEET_TOKEN_KEYS_FILE",
            "JSON Web Key Set with the public keys that may sign execution tokens; read again when it changes.",
        );
        let processes = env.or(
            "RUNFLEET_PROCESSES_ENABLED",
            true,
            "Whether Processes can be started and asked for; `PROCESSES_DISABLED` otherwise.",
        );
        let agents = env.or(
            "RUNFLEET_AGENTS_ENABLED",
            true,
            "Whether agents can be started and asked for; `AGENTS_DISABLED` otherwise.",
        );
        let jobs = env.or(
            "RUNFLEET_JOBS_ENABLED",
            true,
            "Whether background jobs can be enqueued; `JOBS_DISABLED` otherwise. Jobs of outcomes and schedules run all the same.",
        );
        let facts = facts::from_env(env);
        let tokens = TokenSettings::from_env(env);
        let data = DataConfig::from_env(env);
        Some(Self {
            fleet: fleet?,
            token_keys_file: token_keys_file?,
            offered: Offered { processes: processes?, agents: agents?, jobs: jobs? },
            facts: facts?,
            tokens: tokens?,
            data: data?,
        })
    }
}

/// Runs until asked to stop.
pub async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let file = &config.token_keys_file;
    let (key_set, keys) = key_set::open(file)?;
    process.tasks.spawn(key_set.follow(process.shutdown.clone()));
    let fleet = Fleet::connect(config.fleet, process).await?;
    let lanes = fleet.lanes(&Lane::ALL);
    let http =
        runfleet_http::Client::new(runfleet_http::Config::default(), &fleet.process.registry)?;
    let facts = FactServices::new(config.facts, &http)?;
    let tokens = Tokens::open(&config.tokens)?;
    let sources = Sources::new(config.data, &http)?;
    let code = (tokens, sources);
    let deps = Arc::new(Deps::new(&fleet, keys, facts, &lanes, config.offered, code)?);
    fleet
        .consume::<RawRequest, _, _>(lanes, move |message| {
            handler::handle(Arc::clone(&deps), message)
        })
        .await
}
