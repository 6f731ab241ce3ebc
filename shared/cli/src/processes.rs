//! `runfleet start process` and `runfleet get`: calls as project code makes them, over the public path.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_client::{Client, ClientError};
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use serde_json::value::RawValue;

use crate::context::{Context, Identity};

/// Arguments of `start process`.
#[derive(clap::Args)]
pub(crate) struct StartArgs {
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

/// Arguments of `get`.
#[derive(clap::Args)]
pub(crate) struct GetArgs {
    /// The id of the run.
    id: String,
    #[command(flatten)]
    identity: Identity,
}

fn json(option: &str, text: Option<String>) -> Result<Option<Box<RawValue>>> {
    text.map(RawValue::from_string).transpose().with_context(|| format!("--{option} is not JSON"))
}

fn client(identity: &Identity) -> Result<(Client, runfleet_broker::Broker)> {
    let mut context = Context::load()?;
    let token = context.token(identity)?;
    let broker = context.broker()?;
    Ok((Client::new(&broker, token).deadline(Duration::from_secs(15)), broker))
}

pub(crate) async fn start(args: StartArgs) -> Result<ExitCode> {
    let payload = json("payload", args.payload)?;
    let start = ProcessStart {
        process_info_id: args.process,
        input: json("input", args.input)?,
        instance_name: args.name,
        idempotency_key: args.key,
        on_complete: args.job.map(|job| OutcomeJob { job, payload }),
    };
    let (client, broker) = client(&args.identity)?;
    let answer = client.start_process(&start).await;
    broker.close().await;
    print(answer)
}

pub(crate) async fn get(args: GetArgs) -> Result<ExitCode> {
    let (client, broker) = client(&args.identity)?;
    let answer = client.get_process(&args.id).await;
    broker.close().await;
    print(answer)
}

/// The answer as JSON on stdout; a refusal too, with exit code 1: programs read both.
fn print<T: serde::Serialize>(answer: Result<T, ClientError>) -> Result<ExitCode> {
    match answer {
        Ok(data) => {
            crate::out::line(serde_json::to_string_pretty(&data)?);
            Ok(ExitCode::SUCCESS)
        }
        Err(ClientError::Refused(error)) => {
            crate::out::line(serde_json::to_string_pretty(&error)?);
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}
