//! `runfleet task`: what in a run waits for a person. Listing is the ledger's view; completing and assigning go over the public
//! path.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use runfleet_domain::{RunId, RunKind};
use runfleet_flow::{ActiveElement, Doing, RunView, State};
use runfleet_store::RunRecord;

use crate::calls::{client, json, print};
use crate::context::{Context, Identity};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List user tasks and incidents of a run: one line of JSON for each. Looks into the ledger.
    List {
        /// The id of the run.
        run: String,
    },
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
        Command::List { run } => list(&run).await,
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

async fn list(id: &str) -> Result<ExitCode> {
    let run: RunId = id.parse().with_context(|| format!("`{id}` is not the id of a run"))?;
    let store = Context::load()?.store().await?;
    let Some(record) = store.load_run(run).await.context("asking the ledger")? else {
        bail!("the ledger has no run {run}: it never existed, or it ended more than 8 days ago");
    };
    let active = view(&record)?.map_or(Vec::new(), |view| view.active);
    for element in active.iter().filter(|element| wants_a_person(element)) {
        crate::out::line(serde_json::to_string(element)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn wants_a_person(element: &ActiveElement) -> bool {
    matches!(element.doing, Doing::Person { .. } | Doing::Incident { .. })
}

/// Where a run of a Process stands; none when it has not begun or has ended.
pub(crate) fn view(record: &RunRecord) -> Result<Option<RunView>> {
    if record.id.kind() != RunKind::Process {
        return Ok(None);
    }
    let Some(position) = &record.position else { return Ok(None) };
    let state = State::from_json(position).map_err(|_| {
        anyhow::anyhow!("the position of the run cannot be read by this version of the program")
    })?;
    Ok(Some(state.view(None)))
}
