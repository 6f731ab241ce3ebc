//! What has happened in a run: compact entries in the words of its runner, the newest 1,000, for as long as its record.

use std::fmt::Display;

use runfleet_domain::RunId;
use runfleet_domain::limits::{HISTORY_ENTRY_BYTES_MAX, RUN_HISTORY_MAX};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{items, text};
use crate::store::{Args, Store, check_size};

/// The newest entries, as many as are kept.
pub(crate) fn newest<'a>(entries: &'a [&'a str]) -> Result<&'a [&'a str], StoreError> {
    let newest = &entries[entries.len().saturating_sub(RUN_HISTORY_MAX)..];
    for entry in newest {
        check_size(Some(entry), HISTORY_ENTRY_BYTES_MAX, "an entry of history is too long")?;
    }
    Ok(newest)
}

impl Args {
    /// Adds each text.
    pub(crate) fn all<T: Display>(self, texts: impl IntoIterator<Item = T>) -> Self {
        texts.into_iter().fold(self, Self::with)
    }
}

impl Store {
    /// At most `count` (1 to 1,000) entries of the history of a run, oldest first, beginning with the one at place `from` among
    /// those that are kept. Empty for a run that is not there.
    pub async fn history(
        &self,
        run: RunId,
        from: u32,
        count: u32,
    ) -> Result<Vec<String>, StoreError> {
        let most = u32::try_from(RUN_HISTORY_MAX).unwrap_or(u32::MAX);
        let last = u64::from(from) + u64::from(count.clamp(1, most)) - 1;
        let mut command = redis::cmd("LRANGE");
        command.arg(self.keys().history(run)).arg(from).arg(last);
        let answer = self.run_command(Operation::History, command).await?;
        items(answer)
            .and_then(|items| items.into_iter().map(text).collect())
            .ok_or(StoreError::Corrupt { kind: "history", field: "answer" })
    }
}
