//! What can go wrong with the ledger, sorted by what a handler should do about it. No variant ever carries a password.

use std::error::Error as StdError;

/// The cause of a [`StoreError`], kept for the log.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// Why an operation of the store gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Redis did not answer in time, or refused for a passing reason. Try again later: every operation may be repeated.
    #[error("redis is unavailable for `{operation}` ({reason})")]
    Unavailable {
        /// The operation, as in the metrics.
        operation: &'static str,
        /// A word for the metrics: `connect`, `timeout`, `io`, `loading`, `readonly`, …
        reason: &'static str,
        /// Whether the operation may have been carried out although no answer came. When this is false nothing has changed.
        maybe_written: bool,
        /// What the client library said last.
        #[source]
        cause: Option<Cause>,
    },

    /// A stored record or an answer cannot be read. Trying again does not help.
    #[error("the stored `{kind}` has an unreadable field `{field}`")]
    Corrupt {
        /// Which kind of record.
        kind: &'static str,
        /// Which field of it.
        field: &'static str,
    },

    /// A record was written by a newer version of the fleet. Passing: it goes away when this process is upgraded.
    #[error("the stored `{kind}` has version {version}, newer than this program understands")]
    Newer {
        /// Which kind of record.
        kind: &'static str,
        /// The version found.
        version: u64,
    },

    /// A caller passed something out of bounds. A fault of ours, or of whoever did not check its input.
    #[error("cannot store this: {0}")]
    Invalid(&'static str),

    /// Redis refused a command for a reason that repeating does not cure: a fault of ours.
    #[error("redis refused `{operation}`")]
    Refused {
        /// The operation, as in the metrics.
        operation: &'static str,
        /// What Redis said.
        #[source]
        cause: Cause,
    },

    /// The settings cannot work: the URL, the namespace, or the login.
    #[error("the redis settings cannot work: {0}")]
    Config(&'static str),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Newer { .. })
    }

    /// Whether the call may have changed something although it failed.
    pub fn maybe_written(&self) -> bool {
        match self {
            Self::Unavailable { maybe_written, .. } => *maybe_written,
            // An answer came, so the script ran.
            Self::Corrupt { .. } | Self::Newer { .. } => true,
            // Scripts validate before their first write.
            Self::Invalid(_) | Self::Refused { .. } | Self::Config(_) => false,
        }
    }

    /// The word of the failure in the metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable { reason, .. } => reason,
            Self::Corrupt { .. } => "corrupt",
            Self::Newer { .. } => "newer",
            Self::Invalid(_) => "invalid",
            Self::Refused { .. } => "refused",
            Self::Config(_) => "config",
        }
    }
}
