//! The examples that documents point to are run as they are.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use runfleet_tests::{Fleet, Options};
use secrecy::ExposeSecret;

#[tokio::test]
async fn the_example_of_the_client_starts_both_kinds_and_is_told_where_they_stand() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let test = std::env::current_exe()?;
    let debug = test.ancestors().nth(2).context("a target directory")?;
    let program = debug.join("examples/start_and_ask");
    ensure!(program.is_file(), "build the examples first: cargo build --workspace --all-targets");
    let token = fleet.token(&fleet.claims())?;
    let mut example = Command::new(program);
    example
        .env("RUNFLEET_AMQP_URL", fleet.namespace.amqp.expose_secret())
        .env("RUNFLEET_TOKEN", token.expose_secret());
    let output = tokio::task::spawn_blocking(move || example.output()).await??;
    let said = String::from_utf8(output.stdout)?;
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["process", "state", "agent", "status", "refused"], "{said}");
    // How far the agent has come by then is a matter of moments.
    assert!(["QUEUED", "RUNNING", "COMPLETED"].contains(&lines[3].1), "{said}");
    assert_eq!(lines[4].1, "input.amount");
    fleet.remove().await
}
