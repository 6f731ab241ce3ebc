//! The frame around a real child process: exit codes, signals, admin server, log lines.

#[cfg(test)]
mod child;
mod lifecycle;
mod settings;
