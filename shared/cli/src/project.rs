//! `runfleet project`, `script`, `route`, `trigger` and `action`: keys and versions of a project, and calls of its code.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_client::{CallKind, Client};
use runfleet_domain::Source;
use runfleet_store::BATCH_REVOKED_MAX;
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::calls::{client, print};
use crate::context::{Context, Identity};

/// How long the answer of a call is waited for: longer than the longest one may take.
const CALL_BOUND: Duration = Duration::from_secs(35);

const DAY_SECONDS: u64 = 86_400;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Print a project key: what a host of the project logs in with. It registers and activates versions, and starts nothing.
    Key(Key),
    /// Refuse a project key from now on, by the id that was printed with it. Looks into the ledger.
    RevokeKey {
        /// The id of the key.
        id: String,
        #[command(flatten)]
        identity: Identity,
    },
    /// List the registered versions, the active one first, one a line.
    List(Identity),
    /// Show versions and hosts as JSON.
    Show(Identity),
    /// Make a registered version the active one.
    Activate {
        /// The version.
        version: String,
        #[command(flatten)]
        identity: Identity,
    },
}

/// What a project key says.
#[derive(clap::Args)]
pub(crate) struct Key {
    /// The workspace.
    workspace: String,
    /// The project.
    project: String,
    /// The developer behind it, in whose name local development runs.
    #[arg(long)]
    user: Option<String>,
    /// How long it is valid, in days.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=365))]
    days: u64,
    /// It may only look, and open sessions that only read.
    #[arg(long)]
    read_only: bool,
}

#[derive(clap::Subcommand)]
pub(crate) enum Script {
    /// Call a script of the active version, and print what it returns.
    Run(Call),
}

#[derive(clap::Subcommand)]
pub(crate) enum Route {
    /// Call a route of the active version, such as `GET/orders/orderId`, and print its answer. The input is an object with
    /// params, query, headers and body.
    Run(Call),
}

#[derive(clap::Subcommand)]
pub(crate) enum Trigger {
    /// Call a trigger of the active version, and print what it returns. The input is an object with operation and records.
    Run(Call),
}

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Call an action of the active version, and print what it returns.
    Run {
        #[command(flatten)]
        call: Call,
        /// Two calls with one run id are one: the second gets the answer of the first.
        #[arg(long)]
        run_id: Option<String>,
    },
}

/// What is called.
#[derive(clap::Args)]
pub(crate) struct Call {
    /// Its name or key.
    name: String,
    /// What it gets: JSON.
    #[arg(long)]
    input: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Key(key) => mint(key)?,
        Command::RevokeKey { id, identity } => revoke(&id, &identity).await?,
        Command::List(identity) => return list(&identity).await,
        Command::Show(identity) => {
            let (client, broker) = keyed(&identity)?;
            let shown = client.projects().show(None).await;
            broker.close().await;
            return print(shown);
        }
        Command::Activate { version, identity } => {
            let (client, broker) = keyed(&identity)?;
            let activated = client.projects().activate(version).await;
            broker.close().await;
            return print(activated);
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "the id is for people, the key for a file")]
fn mint(key: Key) -> Result<()> {
    let Key { workspace, project, user, days, read_only } = key;
    let identity = Identity { workspace: Some(workspace), project: Some(project), user };
    let mut context = Context::load()?;
    let mut claims = context.claims(&identity)?;
    claims.source = Source::Host;
    claims.read_only = read_only;
    claims.hops = 0;
    claims.exp = claims.iat.saturating_add(days.saturating_mul(DAY_SECONDS));
    let token = context.signer()?.mint(&claims).context("minting a project key")?;
    eprintln!("id of the key: {}", claims.execution);
    crate::out::line(token.expose_secret());
    Ok(())
}

async fn revoke(id: &str, identity: &Identity) -> Result<()> {
    let mut context = Context::load()?;
    let (workspace, project) = context.project(identity)?;
    let id = id.parse().map_err(|error| anyhow::anyhow!("the id {error}"))?;
    let store = context.store().await?;
    store.revoke_batch(&workspace, &project, &id, BATCH_REVOKED_MAX).await?;
    crate::out::line("revoked");
    Ok(())
}

/// A client with a project key: the given one, or one for a moment, signed with the key that the settings name.
fn keyed(identity: &Identity) -> Result<(Client, runfleet_broker::Broker)> {
    let mut context = Context::load()?;
    let token = context.project_key(identity)?;
    let broker = context.broker()?;
    Ok((Client::new(&broker, token).deadline(Duration::from_secs(15)), broker))
}

async fn list(identity: &Identity) -> Result<ExitCode> {
    let (client, broker) = keyed(identity)?;
    let shown = client.projects().show(None).await;
    broker.close().await;
    let mut shown = match shown {
        Ok(shown) => shown,
        Err(error) => return print::<Value>(Err(error)),
    };
    shown.versions.sort_by_key(|version| !version.active);
    for version in shown.versions {
        let hosts = shown.hosts.iter().filter(|host| host.version == version.version).count();
        let state = if version.active { "active" } else { "registered" };
        crate::out::line(format_args!("{} {state}, {hosts} hosts", version.version));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn script(command: Script) -> Result<ExitCode> {
    let Script::Run(call) = command;
    invoke(CallKind::Script, call, None).await
}

pub(crate) async fn route(command: Route) -> Result<ExitCode> {
    let Route::Run(call) = command;
    invoke(CallKind::Route, call, None).await
}

pub(crate) async fn trigger(command: Trigger) -> Result<ExitCode> {
    let Trigger::Run(call) = command;
    invoke(CallKind::Trigger, call, None).await
}

pub(crate) async fn action(command: Action) -> Result<ExitCode> {
    let Action::Run { call, run_id } = command;
    invoke(CallKind::Action, call, run_id).await
}

async fn invoke(kind: CallKind, call: Call, run_id: Option<String>) -> Result<ExitCode> {
    let input = call.input.as_deref().unwrap_or("null");
    let input: Value = serde_json::from_str(input).context("--input is not JSON")?;
    let (client, broker) = client(&call.identity)?;
    let client = client.deadline(CALL_BOUND);
    let answer = client.projects().invoke(kind, call.name, &input, run_id).await;
    broker.close().await;
    print(answer)
}
