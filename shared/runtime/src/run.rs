//! From the start of a worker process to its exit code.
//!
//! The main thread supervises on a small runtime of its own, so that signals and the drain deadline work even when every
//! thread of the worker is stuck; the worker and the admin server share the other runtime.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use prometheus::IntGaugeVec;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::env::{Env, SettingsError};
use crate::frame::{DRAIN_MARGIN, Frame};
use crate::logs::{self, LogFormat};
use crate::process::Process;
use crate::{admin, exit, report};

/// Longest text of a panic in a log line, in characters.
const PANIC_CHARS_MAX: usize = 1_000;

/// Runs a worker until it ends or is asked to stop, and says how it went ([`exit`]).
///
/// `from_env` reads the worker's settings and must read all of them before it gives up on one. `run` is the worker; it
/// must stop taking work when [`Process::shutdown`] is cancelled and return within [`Process::grace`] plus a margin. It ends
/// in `Ok` when asked to stop and drained; an error that holds [`exit::Lost`] means that what it lives on is gone.
pub fn main<C, F, Fut>(
    worker: &'static str,
    from_env: fn(&mut Env) -> Option<C>,
    run: F,
) -> ExitCode
where
    C: Send + 'static,
    F: FnOnce(C, Process) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let mut env = Env::from_process();
    let log_settings = logs::Settings::from_env(&mut env);
    let format = log_settings.format;
    if logs::init(worker, log_settings).is_err() {
        return ExitCode::from(exit::CONFIGURATION);
    }
    log_panics();
    // An error says that the process already has a provider, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let frame = Frame::from_env(&mut env);
    let config = from_env(&mut env);
    let (frame, config) = match (env.finish(), frame, config) {
        (Ok(()), Some(frame), Some(config)) => (frame, config),
        (finished, ..) => return refuse(finished, format),
    };
    let unread = env.unread("RUNFLEET_");
    if !unread.is_empty() {
        tracing::info!(
            variables = unread.join(" "),
            "variables that are no settings of this worker"
        );
    }
    let code = supervise(worker, &frame, config, run).unwrap_or_else(|error| {
        tracing::error!(error = report::chain(error.as_ref()), "start failed");
        exit::FAILED
    });
    tracing::info!(code, "stopped");
    ExitCode::from(code)
}

fn refuse(finished: Result<(), SettingsError>, format: LogFormat) -> ExitCode {
    let error = finished.err().unwrap_or_else(|| SettingsError {
        mistakes: vec!["the worker refused its settings without naming one".to_owned()],
    });
    tracing::error!(%error, "configuration refused");
    if format == LogFormat::Pretty {
        for mistake in &error.mistakes {
            tracing::error!(mistake, "setting refused");
        }
    }
    ExitCode::from(exit::CONFIGURATION)
}

/// Panics become log lines like everything else. The text may hold what a developer put into it, so it is bounded.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let text: String =
            panic.payload_as_str().unwrap_or("").chars().take(PANIC_CHARS_MAX).collect();
        tracing::error!(location, error = text, "panicked");
    }));
}

fn supervise<C, F, Fut>(
    worker: &'static str,
    frame: &Frame,
    config: C,
    run: F,
) -> anyhow::Result<u8>
where
    C: Send + 'static,
    F: FnOnce(C, Process) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let supervisor =
        Builder::new_current_thread().enable_all().build().context("building the supervisor")?;
    let workers = Builder::new_multi_thread()
        .worker_threads(frame.threads)
        .thread_name(worker)
        .enable_all()
        .build()
        .context("building the runtime")?;
    let process = Process::new(worker, frame.grace);
    register(&process).context("registering metrics")?;
    // Listen for signals before anything can be waited for.
    let mut signals =
        supervisor.block_on(async { Signals::new() }).context("listening for signals")?;
    workers.block_on(open_admin(frame, process.clone()))?;

    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, threads = frame.threads, "starting");
    let for_run = process.clone();
    let task = workers.spawn(async move { Box::pin(run(config, for_run)).await });
    let code = supervisor.block_on(until_end(task, &process, &mut signals, &workers));
    // Whatever still runs was told to stop and had its time.
    workers.shutdown_background();
    Ok(code)
}

async fn open_admin(frame: &Frame, process: Process) -> anyhow::Result<()> {
    if let Some(file) = &frame.admin_file {
        // A file of an earlier process would send a parent to the wrong place.
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context("removing the old RUNFLEET_ADMIN_FILE");
            }
            _ => {}
        }
    }
    let listener = TcpListener::bind(frame.admin_addr)
        .await
        .with_context(|| format!("binding the admin server to {}", frame.admin_addr))?;
    let address = listener.local_addr().context("asking for the address of the admin server")?;
    tracing::info!(%address, "admin server listens");
    tokio::spawn(admin::serve(listener, process));
    if let Some(file) = &frame.admin_file {
        admin::announce(file, address).context("writing RUNFLEET_ADMIN_FILE")?;
    }
    Ok(())
}

fn register(process: &Process) -> prometheus::Result<()> {
    let labels = ["worker", "version"];
    let build = IntGaugeVec::new(
        prometheus::opts!("runfleet_build_info", "What runs; always 1."),
        &labels,
    )?;
    build.with_label_values(&[process.worker, env!("CARGO_PKG_VERSION")]).set(1);
    process.registry.register(Box::new(build))?;
    #[cfg(target_os = "linux")]
    process
        .registry
        .register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
    Ok(())
}

type Run = JoinHandle<anyhow::Result<()>>;

/// Waits for the end of the worker, or for a signal and then at most for the drain deadline.
async fn until_end(
    mut task: Run,
    process: &Process,
    signals: &mut Signals,
    workers: &Runtime,
) -> u8 {
    let ended = tokio::select! {
        ended = &mut task => Some(ended),
        name = signals.next() => {
            tracing::info!(signal = name, grace_ms = millis(process.grace), "stopping");
            None
        }
    };
    let asked = ended.is_none();
    process.shutdown.cancel();
    process.tasks.close();
    let drained = async {
        let ended = match ended {
            Some(ended) => ended,
            None => (&mut task).await,
        };
        let code = code_of(ended, asked);
        process.tasks.wait().await;
        code
    };
    tokio::select! {
        code = drained => code,
        name = signals.next() => {
            tracing::error!(signal = name, "a second signal ends the process at once");
            exit::KILLED
        }
        () = tokio::time::sleep(process.grace + DRAIN_MARGIN) => {
            let alive_tasks = workers.metrics().num_alive_tasks();
            tracing::error!(alive_tasks, background_tasks = process.tasks.len(), "not drained in time");
            exit::FAILED
        }
    }
}

fn code_of(ended: Result<anyhow::Result<()>, tokio::task::JoinError>, asked: bool) -> u8 {
    match ended {
        Ok(Ok(())) if asked => exit::STOPPED,
        Ok(Ok(())) => {
            tracing::error!("the worker ended without being asked");
            exit::FAILED
        }
        Ok(Err(error)) => {
            tracing::error!(error = report::chain(error.as_ref()), "the worker failed");
            exit::code_of(&error)
        }
        Err(_) => {
            tracing::error!("the worker panicked");
            exit::FAILED
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the next request to stop.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
