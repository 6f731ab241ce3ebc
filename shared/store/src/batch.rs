//! Batches: starts of one long-lived execution that can be revoked, and whose progress is recorded.

use std::time::Duration;

use runfleet_domain::{Name, Shard};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::store::{Args, Store};

/// How long the progress of a batch is kept after its last start.
pub(crate) const BATCH_MEMORY: Duration = Duration::from_hours(30 * 24);

/// Messages that made no run which a batch remembers, so that each counts once. When more are refused, the oldest are
/// forgotten, and count again when they come again.
pub(crate) const BATCH_IDS_MAX: u32 = 100_000;

/// Longest span for which a batch can be revoked: longer than any token is valid.
pub const BATCH_REVOKED_MAX: Duration = Duration::from_hours(400 * 24);

/// How far a batch has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchProgress {
    /// Messages that have a run: they made one, or their key named one.
    pub accepted: u64,
    /// Messages that were refused and have no run since.
    pub refused: u64,
    /// Unix milliseconds of the first start that was counted.
    pub first_at_ms: Option<u64>,
    /// Unix milliseconds of the last start that was counted.
    pub last_at_ms: Option<u64>,
    /// How long it is still revoked; none when it is not.
    pub revoked_for: Option<Duration>,
}

impl Store {
    /// Refuses all further starts of a batch for a time, which should be as long as its tokens are valid: 1 ms to
    /// [`BATCH_REVOKED_MAX`]. Runs that it has made go on. Revoking again sets the time anew.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a time out of bounds.
    pub async fn revoke_batch(
        &self,
        workspace: &Name,
        project: &Name,
        execution: &Name,
        keep: Duration,
    ) -> Result<(), StoreError> {
        if keep.as_millis() == 0 || keep > BATCH_REVOKED_MAX {
            return Err(StoreError::Invalid("a batch is revoked for 1 ms to 400 days"));
        }
        let mut command = redis::cmd("SET");
        let millis = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        command.arg(self.revoked_name(workspace, project, execution)).arg(1).arg("PX").arg(millis);
        self.run_command(Operation::RevokeBatch, command).await.map(drop)
    }

    /// Lets a revoked batch start again.
    pub async fn unrevoke_batch(
        &self,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> Result<(), StoreError> {
        let mut command = redis::cmd("UNLINK");
        command.arg(self.revoked_name(workspace, project, execution));
        self.run_command(Operation::RevokeBatch, command).await.map(drop)
    }

    /// Whether a batch is revoked.
    pub async fn batch_revoked(
        &self,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> Result<bool, StoreError> {
        let progress = self.show_batch(workspace, project, execution).await?;
        Ok(progress.is_some_and(|progress| progress.revoked_for.is_some()))
    }

    /// How far a batch has got; none when it has not been heard of for 30 days and is not revoked.
    pub async fn show_batch(
        &self,
        workspace: &Name,
        project: &Name,
        execution: &Name,
    ) -> Result<Option<BatchProgress>, StoreError> {
        let shard = Shard::of_workspace(workspace.as_str());
        let names = [
            self.keys().batch(shard, workspace, project, execution),
            self.revoked_name(workspace, project, execution),
        ];
        let lua = &self.scripts().batch_show;
        let value = self.run_script(Operation::ShowBatch, lua, &names, Args::default()).await?;
        let (tag, mut reply) = Reply::open("batch_show", value)?;
        if tag != "batch" {
            return reply.unknown();
        }
        let progress = BatchProgress {
            accepted: reply.parsed()?,
            refused: reply.parsed()?,
            first_at_ms: reply.optional()?,
            last_at_ms: reply.optional()?,
            revoked_for: u64::try_from(reply.parsed::<i64>()?).ok().map(Duration::from_millis),
        };
        let known = progress.last_at_ms.is_some() || progress.revoked_for.is_some();
        Ok(known.then_some(progress))
    }

    fn revoked_name(&self, workspace: &Name, project: &Name, execution: &Name) -> String {
        let shard = Shard::of_workspace(workspace.as_str());
        self.keys().revoked(shard, workspace, project, execution)
    }
}
