//! The program `runfleet-agent-runner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_runtime::main(
        "agent-runner",
        runfleet_agent_runner::Config::from_env,
        runfleet_agent_runner::run,
    )
}
