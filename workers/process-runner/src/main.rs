//! The program `runfleet-process-runner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_runtime::main(
        "process-runner",
        runfleet_process_runner::Config::from_env,
        runfleet_process_runner::run,
    )
}
