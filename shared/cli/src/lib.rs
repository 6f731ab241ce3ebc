//! `runfleet`: the operator's and developer's command line.
//!
//! Data goes to stdout, everything else to stderr. Each command says whose view it shows: the ledger's, the broker's or the
//! fleet's.

mod agent_show;
pub mod apply;
mod batch;
mod calls;
mod chat;
mod context;
mod credits;
pub mod dev;
mod job_list;
mod jobs;
mod keys;
mod messages;
mod out;
mod process;
mod project;
mod run_ops;
mod run_show;
mod settings;
mod tasks;
mod token;
mod topology;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Starts business Processes and agent runs in the background, looks at them, and acts on them.
#[derive(Parser)]
#[command(name = "runfleet", version, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a whole fleet on this machine, with a private RabbitMQ and Redis and the example project.
    Dev(dev::Args),
    /// Validate documents of a workspace and make them the catalog.
    Apply(apply::Args),
    /// Start something through the public path.
    #[command(subcommand)]
    Start(Start),
    /// Ask the fleet where a run of your project stands.
    Get(calls::GetArgs),
    /// Look at a run, end it, hold it, correct it.
    #[command(subcommand)]
    Run(Run),
    /// User tasks of a run.
    #[command(subcommand)]
    Task(tasks::Command),
    /// Messages that runs of a project wait for.
    #[command(subcommand)]
    Message(messages::MessageCommand),
    /// Signals that runs of a project wait for.
    #[command(subcommand)]
    Signal(messages::SignalCommand),
    /// Jobs of a project.
    #[command(subcommand)]
    Jobs(Jobs),
    /// Idempotency keys of a project.
    #[command(subcommand)]
    Keys(keys::Command),
    /// What a workspace and its agents have used up.
    Credits(credits::Args),
    /// Batches of starts.
    #[command(subcommand)]
    Batch(batch::Command),
    /// BPMN documents: check them, look at them. Needs no servers.
    #[command(subcommand)]
    Process(process::Command),
    /// Exchanges, queues and policies on the broker.
    #[command(subcommand)]
    Topology(topology::Command),
    /// Execution tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Conversations of a person with agents.
    #[command(subcommand)]
    Chat(chat::ChatCommand),
    /// Print every setting of every worker.
    Settings,
    /// Keys, versions and hosts of a project.
    #[command(subcommand)]
    Project(project::Command),
    /// Scripts of a project.
    #[command(subcommand)]
    Script(project::Script),
    /// HTTP routes of a project.
    #[command(subcommand)]
    Route(project::Route),
    /// Triggers of a project.
    #[command(subcommand)]
    Trigger(project::Trigger),
    /// Actions of a project.
    #[command(subcommand)]
    Action(project::Action),
}

#[derive(Subcommand)]
enum Start {
    /// Start a Process.
    Process(calls::StartProcess),
    /// Start an agent.
    Agent(calls::StartAgent),
}

#[derive(Subcommand)]
enum Run {
    /// Where a run stands, why, and what happens next by when. Looks into the ledger.
    Show {
        /// The id of the run.
        id: String,
    },
    /// End a run and every run that it has called. A run that has ended stays as it is.
    Cancel(run_ops::OnRun),
    /// The same, as removed.
    Delete(run_ops::OnRun),
    /// Hold a run: nothing happens until it is resumed, but its deadline counts.
    Pause(run_ops::OnRun),
    /// Let a run go on that was held.
    Resume(run_ops::OnRun),
    /// Try again what has failed for good: one incident, or all of the run.
    Retry(run_ops::Retry),
    /// Set variables of a run, or of one of its sub-processes.
    Set(run_ops::Set),
    /// What has happened in a run, oldest first: one line of JSON for each entry.
    History(run_ops::History),
}

async fn on_run(command: Run) -> anyhow::Result<ExitCode> {
    use run_ops::Change;
    match command {
        Run::Show { id } => run_show::run(&id).await.map(|()| ExitCode::SUCCESS),
        Run::Cancel(args) => run_ops::change(Change::Cancel, args).await,
        Run::Delete(args) => run_ops::change(Change::Delete, args).await,
        Run::Pause(args) => run_ops::change(Change::Pause, args).await,
        Run::Resume(args) => run_ops::change(Change::Resume, args).await,
        Run::Retry(args) => run_ops::retry(args).await,
        Run::Set(args) => run_ops::set(args).await,
        Run::History(args) => run_ops::history(args).await,
    }
}

#[derive(Subcommand)]
enum Jobs {
    /// Take the jobs of a project off its queue, print each one and report it done: a stand-in for a project host.
    Tail(jobs::TailArgs),
    /// Enqueue a job of the project through the public path.
    Enqueue(jobs::EnqueueArgs),
    /// Job runs of a project, newest first, and whether a host takes them. Looks into the ledger and at the queue.
    List(job_list::ListArgs),
    /// Where a job run stands. Looks into the ledger.
    Show {
        /// The id of the job run.
        id: String,
    },
}

/// Documents or directories, for commands that read them.
#[derive(clap::Args)]
pub(crate) struct Files {
    /// YAML or JSON documents, or directories with them.
    #[arg(short = 'f', long = "file", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// What the program `runfleet` does.
pub fn main() -> ExitCode {
    runfleet_runtime::init_logs_for_cli();
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return say(&error.into()),
    };
    match runtime.block_on(run(cli.command)) {
        Ok(code) => code,
        Err(error) => say(&error),
    }
}

#[expect(clippy::print_stderr, reason = "this is where the command line speaks to its user")]
fn say(error: &anyhow::Error) -> ExitCode {
    eprintln!("runfleet: {error:#}");
    ExitCode::FAILURE
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Dev(args) => return Box::pin(dev::run(args)).await,
        Command::Apply(args) => return apply::run(args).await,
        Command::Start(Start::Process(args)) => return calls::start_process(args).await,
        Command::Start(Start::Agent(args)) => return calls::start_agent(args).await,
        Command::Get(args) => return calls::get(args).await,
        Command::Run(command) => return on_run(command).await,
        Command::Task(command) => return tasks::run(command).await,
        Command::Message(command) => return messages::message(command).await,
        Command::Signal(command) => return messages::signal(command).await,
        Command::Chat(command) => return chat::run(command).await,
        Command::Jobs(Jobs::Tail(args)) => jobs::tail(args).await?,
        Command::Jobs(Jobs::Enqueue(args)) => return jobs::enqueue(args).await,
        Command::Jobs(Jobs::List(args)) => job_list::list(args).await?,
        Command::Jobs(Jobs::Show { id }) => job_list::show(&id).await?,
        Command::Keys(command) => keys::run(command).await?,
        Command::Credits(args) => credits::run(&args).await?,
        Command::Batch(command) => batch::run(command).await?,
        Command::Process(command) => return process::run(command),
        Command::Topology(command) => return topology::run(command).await,
        Command::Token(command) => token::run(command)?,
        Command::Settings => settings::print(),
        Command::Project(command) => return project::run(command).await,
        Command::Script(command) => return project::script(command).await,
        Command::Route(command) => return project::route(command).await,
        Command::Trigger(command) => return project::trigger(command).await,
        Command::Action(command) => return project::action(command).await,
    }
    Ok(ExitCode::SUCCESS)
}
