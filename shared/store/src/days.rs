//! The starts of a project and its days, as operators see them. Nothing is counted here.

use redis::Value;
use runfleet_domain::{Name, RunKind, Shard};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{items, text};
use crate::store::Store;

/// How much a project has started on the newest UTC day that it has started something on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayStarts {
    /// The day, in days since 1 January 1970.
    pub day: u64,
    /// The runs that were made on it.
    pub starts: u64,
}

impl Store {
    /// The newest counted day of a project for one kind of run; none when it has started nothing in the last three days.
    pub async fn starts_of_day(
        &self,
        workspace: &Name,
        project: &Name,
        kind: RunKind,
    ) -> Result<Option<DayStarts>, StoreError> {
        let shard = Shard::of_workspace(workspace.as_str());
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys().days(shard, workspace, project, kind));
        let value = self.run_command(Operation::StartsOfDay, command).await?;
        let counted = read(value).ok_or(StoreError::Corrupt { kind: "days", field: "answer" })?;
        Ok(counted.into_iter().max_by_key(|counted| counted.day))
    }
}

/// Days and their counts, one after the other.
fn read(value: Value) -> Option<Vec<DayStarts>> {
    let numbers: Option<Vec<u64>> =
        items(value)?.into_iter().map(|item| text(item)?.parse().ok()).collect();
    let numbers = numbers?;
    let (days, rest) = numbers.as_chunks();
    rest.is_empty().then(|| days.iter().map(|&[day, starts]| DayStarts { day, starts }).collect())
}
