//! `runfleet message` and `runfleet signal`: what runs of a project wait for, over the public path. The fleet's view.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use runfleet_client::Message;

use crate::calls::{client, json, print};
use crate::context::Identity;

#[derive(clap::Subcommand)]
pub(crate) enum MessageCommand {
    /// Give a message to the one run that has waited for it longest, or keep it for a while.
    Publish(Publish),
}

/// Arguments of `message publish`.
#[derive(clap::Args)]
pub(crate) struct Publish {
    /// The name of the message as Processes have it.
    name: String,
    /// The correlation key: the value that tells which run it is for.
    #[arg(long)]
    key: Option<String>,
    /// What it carries: a JSON object.
    #[arg(long)]
    variables: Option<String>,
    /// How long it waits when no run wants it yet, in seconds: at most seven days. Not at all unless it is given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=604_800))]
    ttl: Option<u32>,
    /// Makes two messages one: what comes again under this id is published once.
    #[arg(long)]
    id: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

#[derive(clap::Subcommand)]
pub(crate) enum SignalCommand {
    /// Give a signal to every run of the project that waits for it.
    Send(Send),
}

/// Arguments of `signal send`.
#[derive(clap::Args)]
pub(crate) struct Send {
    /// The name of the signal as Processes have it.
    name: String,
    /// What it carries: a JSON object.
    #[arg(long)]
    variables: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn message(command: MessageCommand) -> Result<ExitCode> {
    let MessageCommand::Publish(args) = command;
    let mut message = Message::new(args.name);
    if let Some(key) = args.key {
        message = message.correlation_key(key);
    }
    if let Some(variables) = json("--variables", args.variables)? {
        message = message.variables(&variables)?;
    }
    if let Some(seconds) = args.ttl {
        message = message.time_to_live(Duration::from_secs(seconds.into()));
    }
    if let Some(id) = args.id {
        message = message.message_id(id);
    }
    let (client, broker) = client(&args.identity)?;
    let answer = client.processes().message(message).await;
    broker.close().await;
    print(answer)
}

pub(crate) async fn signal(command: SignalCommand) -> Result<ExitCode> {
    let SignalCommand::Send(args) = command;
    let variables = json("--variables", args.variables)?;
    let (client, broker) = client(&args.identity)?;
    let answer = client.processes().signal(args.name, variables.as_deref()).await;
    broker.close().await;
    print(answer)
}
