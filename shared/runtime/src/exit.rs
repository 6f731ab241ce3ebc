//! What the exit code of a worker says to whoever started it. The numbers are a contract with operators.

/// Asked to stop, and everything that was in hand was finished or given back.
pub const STOPPED: u8 = 0;

/// Something was lost, or the worker ended although nobody asked it to.
pub const FAILED: u8 = 1;

/// A service that the worker lives on stayed away past the limit. Starting again is the remedy.
pub const LOST: u8 = 70;

/// The configuration is refused. Starting again does not help.
pub const CONFIGURATION: u8 = 78;

/// A second signal ended the process at once.
pub const KILLED: u8 = 130;

/// Marks an error of a worker's `run` as "what it lives on is gone": the process ends with [`LOST`].
///
/// It may stand anywhere in the chain of causes, as the error itself or as context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is lost")]
pub struct Lost(
    /// What is gone, as a noun: `broker`, `ledger`.
    pub &'static str,
);

/// The exit code for an error that ended a worker.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    // The chain does not see a marker that was attached as context; the error itself does.
    let marked = error.downcast_ref::<Lost>().is_some()
        || error.chain().any(<dyn std::error::Error>::is::<Lost>);
    if marked { LOST } else { FAILED }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn the_marker_is_found_wherever_it_stands_in_the_chain() {
        let inside =
            Err::<(), _>(Lost("broker")).context("consuming").context("running").unwrap_err();
        assert_eq!(code_of(&inside), LOST);
        let outside =
            Err::<(), _>(anyhow!("closed")).context(Lost("broker")).context("running").unwrap_err();
        assert_eq!(code_of(&outside), LOST);
        assert_eq!(code_of(&anyhow!("the broker is lost")), FAILED);
    }
}
