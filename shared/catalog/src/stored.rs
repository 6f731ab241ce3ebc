//! What another release may have stored: its format is read before anything else of it.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Why something that is stored cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// A newer release wrote it. Wait: this worker is about to be replaced.
    #[error("the {what} has format {format}, newer than {known}")]
    Newer {
        /// What was read.
        what: &'static str,
        /// Its format.
        format: u32,
        /// The newest format that this code reads.
        known: u32,
    },
    /// It is something else.
    #[error("the {what} cannot be read")]
    Unreadable {
        /// What was to be read.
        what: &'static str,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
}

/// Reads a `what` that has been stored in a format up to `known`.
pub(crate) fn read<T: DeserializeOwned>(
    json: &[u8],
    what: &'static str,
    known: u32,
) -> Result<T, StoredError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let unreadable = |source| StoredError::Unreadable { what, source };
    let Head { format } = serde_json::from_slice(json).map_err(unreadable)?;
    if format > known {
        return Err(StoredError::Newer { what, format, known });
    }
    serde_json::from_slice(json).map_err(unreadable)
}
