//! What start-intake reads from strangers: it ends in time, with a checked request or with an error that tells the field and
//! no value.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod fuzz;
mod hostile;
mod places;
mod reading;
