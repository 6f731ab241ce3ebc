//! `make bench`: runs/s of a fleet beside a bare relay through the same RabbitMQ, other shapes of runs, and what runs cost that
//! wait, in one run.

#![recursion_limit = "256"]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use runfleet_tests::bench::{self, Part, Plan};

const DIR: &str = "target/bench";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(error) => {
            let parts = Part::ALL.map(Part::name).join(" | ");
            eprintln!(
                "runfleet-bench: {error:#}\n\
                 usage: runfleet-bench [--only {parts}] [RUNS [IN_FLIGHT [ROUNDS]]]"
            );
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

fn plan() -> Result<Plan> {
    let mut words = std::env::args().skip(1).peekable();
    let mut only = None;
    if words.next_if(|word| word == "--only").is_some() {
        let name = words.next().context("--only wants the name of a part")?;
        only = Some(Part::named(&name).context("there is no such part")?);
    }
    let mut numbers = words.map(|text| text.parse::<usize>().context("not a number"));
    let mut next = |default| numbers.next().unwrap_or(Ok(default));
    let (count, in_flight, rounds) = (next(10_000)?, next(64)?, next(3)?);
    let plan = Plan { count, in_flight, rounds, only };
    anyhow::ensure!((100..=1_000_000).contains(&plan.count), "RUNS must be 100 to 1000000");
    anyhow::ensure!((1..=1_000).contains(&plan.in_flight), "IN_FLIGHT must be 1 to 1000");
    anyhow::ensure!((1..=100).contains(&plan.rounds), "ROUNDS must be 1 to 100");
    Ok(plan)
}

#[expect(clippy::print_stderr, reason = "progress")]
fn measure(plan: Plan) -> Result<String> {
    let runtime = tokio::runtime::Runtime::new()?;
    let report = runtime.block_on(bench::run(plan, |text| eprintln!("{text}")))?;
    std::fs::create_dir_all(DIR).context("making target/bench")?;
    let file = Path::new(DIR).join("report.json");
    std::fs::write(&file, serde_json::to_string_pretty(&report.json())? + "\n")
        .context("writing the report")?;
    Ok(report.table())
}
