//! Idempotency keys as operators see them: what one stands for, and letting go of it.

use runfleet_domain::limits::RETENTION;
use runfleet_domain::{IdempotencyKey, Name, RunId, RunState, Shard};

use crate::error::StoreError;
use crate::keys::Keys;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::store::{Args, Store};

/// What a key that is not free stands for. What kind of run it is, the id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    /// The run that it names.
    pub run: RunId,
    /// The Process or agent.
    pub target: Name,
    /// Where the run is.
    pub state: RunState,
    /// Who owns the run and the key.
    pub identity: String,
    /// Unix milliseconds of the start.
    pub created_at_ms: u64,
    /// Unix milliseconds of the end.
    pub finished_at_ms: Option<u64>,
    /// Unix milliseconds until which it is held; none while the run goes on.
    pub held_until_ms: Option<u64>,
}

impl Store {
    /// What a key of a project stands for; none when it is free, which it also is when its run has vanished.
    pub async fn show_key(
        &self,
        workspace: &Name,
        project: &Name,
        key: &IdempotencyKey,
    ) -> Result<Option<HeldKey>, StoreError> {
        let names = [self.key_name(workspace, project, key)];
        let args = Args::default().millis(RETENTION);
        let lua = &self.scripts().key_show;
        let value = self.run_script(Operation::ShowKey, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("key_show", value)?;
        match tag.as_str() {
            "free" => Ok(None),
            "held" => read(&mut reply).map(Some),
            _ => reply.unknown(),
        }
    }

    /// Frees a key at once and tells the run that it named; none when it was free. The run goes on, and its end leaves the key
    /// alone. A start that takes the key in the meantime keeps it.
    pub async fn release_key(
        &self,
        workspace: &Name,
        project: &Name,
        key: &IdempotencyKey,
    ) -> Result<Option<RunId>, StoreError> {
        let Some(HeldKey { run, .. }) = self.show_key(workspace, project, key).await? else {
            return Ok(None);
        };
        let names = [self.key_name(workspace, project, key)];
        // The name of the run makes a repeated call harmless: it never takes the key from the next holder.
        let args = Args::default().with(run);
        let lua = &self.scripts().key_release;
        let value = self.run_script(Operation::ReleaseKey, lua, &names, args).await?;
        let (tag, reply) = Reply::open("key_release", value)?;
        if tag == "released" { Ok(Some(run)) } else { reply.unknown() }
    }

    fn key_name(&self, workspace: &Name, project: &Name, key: &IdempotencyKey) -> String {
        let shard = Shard::of_workspace(workspace.as_str());
        self.keys().key(shard, &Keys::key_ref(workspace, project, key))
    }
}

fn read(reply: &mut Reply) -> Result<HeldKey, StoreError> {
    let mut key = HeldKey {
        run: reply.parsed()?,
        target: reply.parsed()?,
        state: reply.word(RunState::from_word)?,
        identity: reply.text()?,
        created_at_ms: reply.parsed()?,
        finished_at_ms: reply.optional()?,
        held_until_ms: None,
    };
    let retention = u64::try_from(RETENTION.as_millis()).unwrap_or(u64::MAX);
    key.held_until_ms = key.finished_at_ms.map(|at| at.saturating_add(retention));
    Ok(key)
}
