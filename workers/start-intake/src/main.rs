//! The program `runfleet-start-intake`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_runtime::main(
        "start-intake",
        runfleet_start_intake::Config::from_env,
        runfleet_start_intake::run,
    )
}
