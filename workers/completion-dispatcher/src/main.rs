//! The program `runfleet-completion-dispatcher`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_runtime::main(
        "completion-dispatcher",
        runfleet_completion_dispatcher::Config::from_env,
        runfleet_completion_dispatcher::run,
    )
}
