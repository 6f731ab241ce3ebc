//! The lane of a request: who waits for it. A run keeps the lane of its start for life.

use serde::{Deserialize, Serialize};

/// Interactive work never waits behind a backfill: each worker has a queue and a prefetch of its own per lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Somebody waits for it.
    #[default]
    Interactive,
    /// Work pushed in bulk, which has a share of its own and can never take the interactive share.
    Backfill,
}

impl Lane {
    /// Both lanes, the more urgent one first.
    pub const ALL: [Self; 2] = [Self::Interactive, Self::Backfill];

    /// The word used in queue names, records and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Backfill => "backfill",
        }
    }

    /// The lane that [`Lane::as_str`] names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == word)
    }
}

impl std::fmt::Display for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
