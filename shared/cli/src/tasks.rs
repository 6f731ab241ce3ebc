//! `runfleet task`: user tasks of a run, over the public path. The fleet's view.

use std::process::ExitCode;

use anyhow::Result;

use crate::calls::{client, json, print};
use crate::context::Identity;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Complete a user task.
    Complete {
        #[command(flatten)]
        on: OnTask,
        /// What the task gives to the run: a JSON object.
        #[arg(long)]
        variables: Option<String>,
    },
    /// Give a user task to a person.
    Assign {
        #[command(flatten)]
        on: OnTask,
        /// The person.
        #[arg(required_unless_present = "nobody")]
        person: Option<String>,
        /// Take it away from whoever has it instead.
        #[arg(long, conflicts_with = "person")]
        nobody: bool,
    },
}

/// Which task, and who asks.
#[derive(clap::Args)]
pub(crate) struct OnTask {
    /// The id of the run.
    run: String,
    /// The number of the task in its run.
    task: u64,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Complete { on, variables } => {
            let variables = json("--variables", variables)?;
            let (client, broker) = client(&on.identity)?;
            let processes = client.processes();
            let answer = processes.complete_task(&on.run, on.task, variables.as_deref()).await;
            broker.close().await;
            print(answer)
        }
        Command::Assign { on, person, .. } => {
            let (client, broker) = client(&on.identity)?;
            let answer = client.processes().assign_task(&on.run, on.task, person.as_deref()).await;
            broker.close().await;
            print(answer)
        }
    }
}
