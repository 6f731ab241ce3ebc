//! `runfleet start process`, `runfleet start agent` and `runfleet get`: calls as project code makes them, over the public path.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_client::{Client, Error};
use runfleet_contracts::agents::{AgentRecord, AgentStart, DeliverTo};
use runfleet_contracts::processes::ProcessStart;
use runfleet_contracts::request::OutcomeJob;
use runfleet_domain::{RunId, RunKind};
use serde_json::value::RawValue;

use crate::context::{Context, Identity};

/// Arguments of `start process`.
#[derive(clap::Args)]
pub(crate) struct StartProcess {
    /// The Process.
    process: String,
    /// Values of its input variables: a JSON object.
    #[arg(long)]
    input: Option<String>,
    /// A name for people.
    #[arg(long)]
    name: Option<String>,
    /// Idempotency key: two starts with one key are one run.
    #[arg(long)]
    key: Option<String>,
    /// The job of the project that gets the outcome.
    #[arg(long)]
    job: Option<String>,
    /// JSON given back to that job.
    #[arg(long, requires = "job")]
    payload: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `start agent`.
#[derive(clap::Args)]
pub(crate) struct StartAgent {
    /// The agent.
    agent: String,
    /// What it is to do.
    instruction: String,
    /// Facts for it: a JSON object of strings, numbers and booleans.
    #[arg(long)]
    variables: Option<String>,
    /// JSON Schema that the result must fit.
    #[arg(long)]
    result_schema: Option<String>,
    /// Longest time of the run, in seconds: 10 to 1800.
    #[arg(long)]
    timeout_seconds: Option<u32>,
    /// Idempotency key: two starts with one key are one run.
    #[arg(long)]
    key: Option<String>,
    /// The job of the project that gets the outcome.
    #[arg(long)]
    job: Option<String>,
    /// JSON given back to that job.
    #[arg(long, requires = "job")]
    payload: Option<String>,
    /// The person who may get a message.
    #[arg(long)]
    deliver_to: Option<String>,
    /// A record that it gets to see; may be given several times.
    #[arg(long = "record", value_name = "KIND/ID", value_parser = record)]
    records: Vec<AgentRecord>,
    #[command(flatten)]
    identity: Identity,
}

/// A record with everything that happened to it, written `KIND/ID`.
fn record(text: &str) -> Result<AgentRecord, String> {
    let (kind, id) = text.split_once('/').ok_or("is not KIND/ID")?;
    Ok(AgentRecord { object_slug: kind.into(), record_id: id.into(), with_activities: true })
}

/// Arguments of `get`.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The id of the run.
    id: String,
    #[command(flatten)]
    identity: Identity,
}

/// An argument that is JSON.
pub(crate) fn json(argument: &str, text: Option<String>) -> Result<Option<Box<RawValue>>> {
    text.map(RawValue::from_string).transpose().with_context(|| format!("{argument} is not JSON"))
}

/// A client for one call. The session must be closed after it.
pub(crate) fn client(identity: &Identity) -> Result<(Client, runfleet_broker::Broker)> {
    let mut context = Context::load()?;
    let token = context.token(identity)?;
    let broker = context.broker()?;
    Ok((Client::new(&broker, token).deadline(Duration::from_secs(15)), broker))
}

pub(crate) async fn start_process(args: StartProcess) -> Result<ExitCode> {
    let payload = json("--payload", args.payload)?;
    let start = ProcessStart {
        process_info_id: args.process,
        input: json("--input", args.input)?,
        instance_name: args.name,
        idempotency_key: args.key,
        on_complete: args.job.map(|job| OutcomeJob { job, payload }),
    };
    let (client, broker) = client(&args.identity)?;
    let answer = client.processes().start_with(&start).await;
    broker.close().await;
    print(answer)
}

pub(crate) async fn start_agent(args: StartAgent) -> Result<ExitCode> {
    let payload = json("--payload", args.payload)?;
    let deliver_to = args.deliver_to.map(|personnel_id| DeliverTo {
        personnel_id,
        conversation: None,
        title: None,
    });
    let start = AgentStart {
        agent_id: args.agent,
        instruction: args.instruction,
        variables: json("--variables", args.variables)?,
        records: Some(args.records).filter(|records| !records.is_empty()),
        result_schema: json("--result-schema", args.result_schema)?,
        run_as: None,
        approval_policy: None,
        timeout_seconds: args.timeout_seconds,
        idempotency_key: args.key,
        on_result: args.job.map(|job| OutcomeJob { job, payload }),
        deliver_to,
    };
    let (client, broker) = client(&args.identity)?;
    let answer = client.agents().start_with(&start).await;
    broker.close().await;
    print(answer)
}

pub(crate) async fn get(args: GetArgs) -> Result<ExitCode> {
    let (client, broker) = client(&args.identity)?;
    let agent = args.id.parse::<RunId>().is_ok_and(|id| id.kind() == RunKind::Agent);
    let shown = if agent {
        print(client.agents().get(&args.id).await)
    } else {
        print(client.processes().get(&args.id).await)
    };
    broker.close().await;
    shown
}

/// The answer as JSON on stdout; a refusal too, with exit code 1: programs read both.
pub(crate) fn print<T: serde::Serialize>(answer: Result<T, Error>) -> Result<ExitCode> {
    match answer {
        Ok(data) => {
            crate::out::line(serde_json::to_string_pretty(&data)?);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let Some(body) = error.body() else { return Err(error.into()) };
            crate::out::line(serde_json::to_string_pretty(body)?);
            Ok(ExitCode::FAILURE)
        }
    }
}
