//! The program `runfleet`.

use std::process::ExitCode;

fn main() -> ExitCode {
    runfleet_cli::main()
}
