//! `runfleet dev`: a whole fleet on this machine, private and disposable, with the example project running on it.

pub mod chat;
mod demo;
mod host;
pub(crate) mod keys;
mod model;
mod servers;
mod workers;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runfleet_broker::Broker;
use runfleet_domain::Name;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::chat::{ChatPage, Whose};
use self::host::Host;
use self::servers::Servers;
use self::workers::Workers;
use crate::context::{Context, DEV_ENV, Identity};

/// Arguments of `dev`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// End when the outcome job of the example has arrived: exit 0, or 1 if it does not arrive.
    #[arg(long)]
    demo: bool,
    /// Whose conversations the chat page shows.
    #[arg(long, default_value = "ada")]
    person: Name,
    /// Port of the chat page on this machine; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    chat_port: u16,
}

/// Speaks to whoever started it.
pub(crate) fn say(text: &str) {
    crate::out::line(text);
}

/// SIGINT or SIGTERM.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Returns when somebody wants this program to end.
    pub(crate) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let mut stop = Stop::new()?;
    let checkout = servers::checkout()?;
    let dir = checkout.join(".runfleet");
    std::fs::create_dir_all(&dir).context("making .runfleet")?;
    let _lock = lock(&dir)?;
    let began = Instant::now();
    say("starting a private RabbitMQ and Redis, data in .runfleet");
    let started = tokio::select! {
        started = Servers::start(&checkout, &dir) => started,
        () = stop.wanted() => bail!("interrupted; `make clean-local` stops what was started"),
    };
    let (servers, addresses) = started?;
    say(&format!("  up after {:.1} s", began.elapsed().as_secs_f64()));
    let result = fleet(&args, &checkout, &dir, addresses, &mut stop).await;
    let _ = std::fs::remove_file(checkout.join(DEV_ENV));
    say("stopping RabbitMQ and Redis");
    servers.stop().await?;
    result
}

/// One development fleet per checkout: two would share queues and data.
fn lock(dir: &Path) -> Result<File> {
    let file = File::create(dir.join("dev.lock")).context("making the lock file")?;
    if file.try_lock().is_err() {
        bail!("`runfleet dev` is already running in this checkout");
    }
    Ok(file)
}

async fn fleet(
    args: &Args,
    checkout: &Path,
    dir: &Path,
    mut env: BTreeMap<String, String>,
    stop: &mut Stop,
) -> Result<ExitCode> {
    let keys = keys::prepare(dir)?;
    env.insert("RUNFLEET_NAMESPACE".into(), "dev".into());
    env.insert("RUNFLEET_TOKEN_KEYS_FILE".into(), keys.set.display().to_string());
    env.insert("RUNFLEET_TOKEN_SIGNING_KEY_FILE".into(), keys.signing.display().to_string());
    env.insert("RUNFLEET_TOKEN_SIGNING_KID".into(), keys::KID.into());
    env.insert("RUNFLEET_WORKSPACE".into(), demo::WORKSPACE.into());
    env.insert("RUNFLEET_PROJECT".into(), demo::PROJECT.into());
    let scripts = checkout.join("deploy/example/scripts");
    env.insert("RUNFLEET_MODEL_SCRIPTS_DIR".into(), scripts.display().to_string());
    env.insert("RUNFLEET_SECRET_VARIABLES".into(), model::variables());
    write_env(checkout, &env, &[])?;
    say("declaring exchanges, queues and policies");
    let mut context = Context::load()?;
    context.topology_admin()?.apply().await.context("declaring the topology")?;
    say("starting five workers, logs in .runfleet/logs");
    let mut workers = Workers::start(dir, env.clone())?;
    let mut host = None;
    let result = tokio::select! {
        result = with_workers(args, (checkout, dir), &env, &mut workers, &mut host) => result,
        () = stop.wanted() => Ok(None),
    };
    let result = match result {
        Ok(Some(code)) => Ok(code),
        Ok(None) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    };
    let code = match result {
        Ok(code) if !args.demo && code == ExitCode::SUCCESS => {
            let page = open_page(&args.person, args.chat_port).await;
            if let Err(error) = &page {
                say(&format!("there is no chat page: {error:#}"));
            }
            stay(&mut workers, host.as_mut(), stop).await;
            if let Ok((page, broker)) = page {
                drop(page);
                broker.close().await;
            }
            Ok(code)
        }
        other => other,
    };
    if let Some(host) = host {
        say("draining the host of the example");
        say(&format!("  host: {}", host.stop().await));
    }
    say("draining the workers");
    for (name, how) in workers.stop().await {
        say(&format!("  {name}: {how}"));
    }
    code
}

/// Waits for the workers, applies the example and shows one run. `None` is never returned from here; see the caller.
async fn with_workers(
    args: &Args,
    (checkout, dir): (&Path, &Path),
    env: &BTreeMap<String, String>,
    workers: &mut Workers,
    host: &mut Option<Host>,
) -> Result<Option<ExitCode>> {
    let metrics = workers.ready().await?;
    write_env(checkout, env, &metrics)?;
    say("  all ready");
    say("applying deploy/example");
    let mut bundle = crate::apply::read(&[checkout.join("deploy/example")])?;
    say(&format!("  {}", model::choose(&mut bundle)));
    let mut context = Context::load()?;
    let changes =
        crate::apply::store_bundle(&context.store().await?, &context.topology_admin()?, &bundle)
            .await?;
    for line in changes.to_string().lines() {
        say(&format!("  {line}"));
    }
    if let Some(why) = host::missing(checkout).await {
        say(&format!("a stand-in takes the jobs of the example: {why}"));
    } else {
        say("starting the host of the example, its code is in deploy/example/shop");
        *host = Some(Host::start(checkout, dir).await?);
    }
    let arrived = demo::show(host.as_ref()).await?;
    if !arrived {
        return Ok(Some(ExitCode::FAILURE));
    }
    if !args.demo {
        introduce(&metrics, host.is_some());
    }
    Ok(Some(ExitCode::SUCCESS))
}

/// `.runfleet/dev.env`: what other shells and other people's clients need to join.
fn write_env(
    checkout: &Path,
    env: &BTreeMap<String, String>,
    metrics: &[(&str, String)],
) -> Result<()> {
    let mut text = String::new();
    for (name, value) in env.iter().filter(|(name, _)| !name.ends_with("_PID")) {
        let _ = writeln!(text, "{name}={value}");
    }
    for (worker, address) in metrics {
        let _ = writeln!(
            text,
            "RUNFLEET_METRICS_{}={address}",
            worker.replace('-', "_").to_uppercase()
        );
    }
    keys::write(&checkout.join(PathBuf::from(DEV_ENV)), &text)
}

fn introduce(metrics: &[(&str, String)], hosted: bool) {
    say("\nThe fleet is up. Metrics:");
    for (worker, address) in metrics {
        say(&format!("  {worker:<22} {address}"));
    }
    say("\nIn another shell of this checkout:");
    if hosted {
        say(
            "  target/debug/runfleet script run look-at-deal --input '{\"id\": \"7\", \"amount\": 18500}'",
        );
        say("  tail -f .runfleet/logs/host.log");
    } else {
        say("  target/debug/runfleet jobs tail");
    }
    for line in [
        "target/debug/runfleet start process approve-discount --input '{\"amount\": 20000}' --job discount_decided",
        "target/debug/runfleet start agent deal-coach \"May we give a discount?\"",
        "target/debug/runfleet start agent deal-coach \"Tell Ada about the deal\" --deliver-to ada",
        "target/debug/runfleet get ID        what its project sees",
        "target/debug/runfleet run show ID   what the ledger knows",
        "target/debug/runfleet topology show",
        "set -a; . .runfleet/dev.env         the addresses for your own client",
    ] {
        say(&format!("  {line}"));
    }
    say("\nCtrl-C drains and stops everything.");
}

/// Serves the chat page, and says where it is and what opens it.
async fn open_page(person: &Name, port: u16) -> Result<(ChatPage, Broker)> {
    let mut context = Context::load()?;
    let identity = Identity {
        workspace: Some(demo::WORKSPACE.into()),
        project: Some(demo::PROJECT.into()),
        user: None,
    };
    let (workspace, project) = context.project(&identity)?;
    let whose = Whose { workspace, project, person: person.clone() };
    let listener = TcpListener::bind(("127.0.0.1", port)).await.context("finding a port")?;
    let (signer, broker) = (context.signer()?, context.broker()?);
    let told = |code: &str| say(&format!("  code for the chat page, once: {code}"));
    let page = ChatPage::start(listener, &broker, whose, signer, told)?;
    say(&format!("  conversations of {person}: {}", page.url()));
    Ok((page, broker))
}

/// Keeps the workers alive until somebody wants to end.
async fn stay(workers: &mut Workers, mut host: Option<&mut Host>, stop: &mut Stop) {
    loop {
        tokio::select! {
            () = stop.wanted() => return,
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
        match workers.restart_ended() {
            Ok(ended) => {
                for (name, status) in ended {
                    say(&format!(
                        "{name} ended with {status}; started again, see .runfleet/logs/{name}.log"
                    ));
                }
            }
            Err(error) => say(&format!("looking after the workers failed: {error:#}")),
        }
        match host.as_mut().map(|host| host.restart_ended()) {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => say("the host had ended; started again, see .runfleet/logs/host.log"),
            Some(Err(error)) => say(&format!("looking after the host failed: {error:#}")),
        }
    }
}
