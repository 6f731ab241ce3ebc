//! Data for stdout. Whoever reads it may stop reading (`| head`): that ends the program quietly.

use std::io::Write;

/// Prints a line.
pub(crate) fn line(text: impl std::fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
