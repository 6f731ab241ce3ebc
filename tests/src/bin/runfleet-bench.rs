//! `make bench`: runs/s of a fleet beside a bare relay through the same RabbitMQ, other shapes of runs, what runs cost that wait,
//! messages to people, and hosts of projects, in one run.

#![recursion_limit = "256"]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use runfleet_tests::bench::{self, Command, Plan};
use tokio::signal::unix::{SignalKind, signal};

const DIR: &str = "target/bench";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let plan = match Command::read(std::env::args().skip(1)) {
        Ok(Command::Measure(plan)) => plan,
        Ok(Command::Help) => {
            print!("{}", bench::help());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("runfleet-bench: {error:#}\ntry runfleet-bench --help");
            return ExitCode::from(64);
        }
    };
    match measure(plan) {
        Ok(table) => {
            println!("\n{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("runfleet-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "progress")]
fn measure(plan: Plan) -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    // What was started is stopped when this is dropped, also after a signal.
    let report = runtime.block_on(async {
        tokio::select! {
            report = bench::run(plan, |text| eprintln!("{text}")) => report,
            stopped = stopped() => stopped,
        }
    })?;
    std::fs::create_dir_all(DIR).context("making target/bench")?;
    let file = Path::new(DIR).join("report.json");
    std::fs::write(&file, serde_json::to_string_pretty(&report.json())? + "\n")
        .context("writing the report")?;
    Ok(report.table())
}

/// Waits for a signal, and fails then.
async fn stopped<T>() -> Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminate.recv() => (),
    }
    bail!("stopped by a signal; nothing was reported")
}
