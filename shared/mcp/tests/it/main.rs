//! Servers on this machine, good and bad ones, through the public face of the crate.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bad;
mod fixture;
mod good;
