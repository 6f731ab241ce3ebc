//! `runfleet run cancel` and the like: what people do to runs, over the public path. The fleet's view.

use std::process::ExitCode;

use anyhow::Result;
use runfleet_client::Error;
use runfleet_contracts::operations::RunOperated;

use crate::calls::{client, json, print};
use crate::context::Identity;

/// Which run, and who asks.
#[derive(clap::Args)]
pub(crate) struct OnRun {
    /// The id of the run.
    run: String,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `run retry`.
#[derive(clap::Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    on: OnRun,
    /// The incident: the number of its task, as `runfleet task list` shows it. All of the run unless it is given.
    #[arg(long)]
    task: Option<u64>,
}

/// Arguments of `run set`.
#[derive(clap::Args)]
pub(crate) struct Set {
    #[command(flatten)]
    on: OnRun,
    /// The new values: a JSON object. Variables that are not named stay as they are.
    variables: String,
    /// The instance of a sub-process whose variables are set, as the history shows it. Those of the run itself unless it is
    /// given.
    #[arg(long)]
    scope: Option<u64>,
}

/// Arguments of `run history`.
#[derive(clap::Args)]
pub(crate) struct History {
    #[command(flatten)]
    on: OnRun,
    /// Entries to pass over, from the oldest that is kept.
    #[arg(long, default_value_t = 0)]
    from: u32,
    /// Most entries: 1 to 200. All that are kept unless it is given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200))]
    count: Option<u32>,
}

/// What ends, holds or resumes a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Cancel,
    Delete,
    Pause,
    Resume,
}

pub(crate) async fn change(change: Change, args: OnRun) -> Result<ExitCode> {
    let (client, broker) = client(&args.identity)?;
    let processes = client.processes();
    let answer = match change {
        Change::Cancel => processes.cancel(&args.run).await,
        Change::Delete => processes.delete(&args.run).await,
        Change::Pause => processes.pause(&args.run).await,
        Change::Resume => processes.resume(&args.run).await,
    };
    broker.close().await;
    print(answer)
}

pub(crate) async fn retry(args: Retry) -> Result<ExitCode> {
    let (client, broker) = client(&args.on.identity)?;
    let answer = client.processes().retry(&args.on.run, args.task).await;
    broker.close().await;
    print(answer)
}

pub(crate) async fn set(args: Set) -> Result<ExitCode> {
    let variables = json("VARIABLES", Some(args.variables))?;
    let (client, broker) = client(&args.on.identity)?;
    let answer: Result<RunOperated, Error> =
        client.processes().set(&args.on.run, args.scope, &variables).await;
    broker.close().await;
    print(answer)
}

/// One line for each entry; without `--count` page after page until the end.
pub(crate) async fn history(args: History) -> Result<ExitCode> {
    let (client, broker) = client(&args.on.identity)?;
    let mut from = args.from;
    let code = loop {
        match client.processes().history(&args.on.run, from, args.count).await {
            Ok(page) => {
                for entry in &page.entries {
                    crate::out::line(serde_json::to_string(entry)?);
                }
                match page.next {
                    Some(next) if args.count.is_none() && next > from => from = next,
                    _ => break ExitCode::SUCCESS,
                }
            }
            refused => break print(refused)?,
        }
    };
    broker.close().await;
    Ok(code)
}
