//! The smallest worker: settings, readiness, work until it is asked to stop. `RUNFLEET_EXAMPLE_ENDING` makes it end in
//! each way that a worker can end.

use std::process::ExitCode;
use std::time::Duration;

use runfleet_runtime::{Env, Lost, Process};

struct Config {
    ending: String,
    drain: Duration,
}

fn from_env(env: &mut Env) -> Option<Config> {
    let url = env.secret("RUNFLEET_EXAMPLE_URL", "Where the work comes from.");
    let ending = env.or("RUNFLEET_EXAMPLE_ENDING", "drain".to_owned(), "How it ends.");
    let drain = env.millis_or(
        "RUNFLEET_EXAMPLE_DRAIN_MS",
        Duration::ZERO,
        "How long the work in hand takes.",
    );
    url?;
    Some(Config { ending: ending?, drain: drain? })
}

async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    process.readiness.declare(&["broker"]);
    match config.ending.as_str() {
        "lost" => return Err(anyhow::Error::from(Lost("broker")).context("consuming")),
        "fail" => anyhow::bail!("the queue is gone"),
        #[expect(clippy::panic, reason = "shows what a panic of a worker does")]
        "panic" => panic!("a fault of the worker"),
        "early" => return Ok(()),
        _ => {}
    }
    process.readiness.set("broker", true);
    process.shutdown.cancelled().await;
    if config.ending == "stuck" {
        // Blocks a thread on purpose: the worst that a worker can do.
        std::thread::sleep(Duration::from_mins(10));
    }
    process.tasks.spawn(tokio::time::sleep(config.drain));
    Ok(())
}

fn main() -> ExitCode {
    runfleet_runtime::main("smallest-worker", from_env, run)
}
