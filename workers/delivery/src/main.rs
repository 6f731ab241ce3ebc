//! The program `runfleet-delivery`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_runtime::main("delivery", runfleet_delivery::Config::from_env, runfleet_delivery::run)
}
