//! Looking for what a start has made before, and whether it may call at all. Nothing is written and nothing is counted here.

use runfleet_domain::limits::RETENTION;
use runfleet_domain::{IdempotencyKey, MessageId, Name, RunKind, RunState, Shard};

use crate::error::StoreError;
use crate::keys::Keys;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::start::Started;
use crate::store::{Args, Store, check_size};

/// Longest identity in bytes.
pub(crate) const IDENTITY_BYTES_MAX: usize = 256;

/// The part of a start that says whether it has happened before. The fields are those of [`crate::StartRun`].
#[derive(Debug, Clone, Copy)]
pub struct FindStart<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project that calls.
    pub project: &'a Name,
    /// What would be started.
    pub kind: RunKind,
    /// The request.
    pub message_id: &'a MessageId,
    /// The idempotency key.
    pub key: Option<&'a IdempotencyKey>,
    /// Who calls.
    pub identity: &'a str,
    /// The Process or agent.
    pub target: &'a Name,
    /// The execution that calls.
    pub execution: &'a Name,
    /// Calls of every kind that the execution may make.
    pub calls_budget: Option<u32>,
    /// Starts of this kind that the execution may call.
    pub calls_limit: Option<u32>,
    /// Whether the execution is a batch.
    pub batch: bool,
}

impl Store {
    /// What [`Store::start_run`] would answer without regard to verdict and day, in the same order; none when it would go on to
    /// those. Reads only: a call that is answered from this alone has not been counted, nor has its batch.
    ///
    /// Of [`Started`] it can be `Replayed`, `Duplicate`, `Conflict`, `OtherTarget`, `Revoked`, `BudgetExceeded` or
    /// `CallsExceeded`. `Replayed` also when the very run of a lost answer is found.
    pub async fn find_start(&self, find: &FindStart<'_>) -> Result<Option<Started>, StoreError> {
        check_size(Some(find.identity), IDENTITY_BYTES_MAX, "the identity is too long")?;
        let keys = find.keys(self.keys(), []);
        let lua = &self.scripts().start_find;
        let value = self.run_script(Operation::FindStart, lua, &keys, find.args(0)).await?;
        let (tag, mut reply) = Reply::open("start_find", value)?;
        match tag.as_str() {
            "open" => Ok(None),
            tag => find.told(tag, &mut reply).map(Some),
        }
    }
}

impl FindStart<'_> {
    /// All keys of a script that begins with `start_look.lua`; `own` are those that only this script has.
    pub(crate) fn keys<const N: usize>(&self, keys: &Keys, own: [String; N]) -> Vec<String> {
        let Self { workspace, project, execution, .. } = *self;
        let shard = Shard::of_workspace(workspace.as_str());
        let mut names = vec![
            keys.message(shard, workspace, project, self.message_id),
            keys.calls(shard, workspace, project, execution),
        ];
        names.extend(own);
        names.extend(self.key.map(|key| keys.key(shard, &Keys::key_ref(workspace, project, key))));
        if self.batch {
            names.push(keys.revoked(shard, workspace, project, execution));
            names.push(keys.batch(shard, workspace, project, execution));
            names.push(keys.batch_ids(shard, workspace, project, execution));
        }
        names
    }

    /// The arguments that `start_look.lua` takes, when the script has so many keys of its own.
    pub(crate) fn args(&self, own: usize) -> Args {
        let bound = |bound: Option<u32>| bound.map_or(String::new(), |bound| bound.to_string());
        // Places are counted from 1; the message and the calls come before what is the script's own.
        let key_at = own + 3;
        let revoked_at = key_at + usize::from(self.key.is_some());
        Args::default()
            .with(self.message_id)
            .with(self.identity)
            .with(self.kind)
            .with(self.target)
            .with(bound(self.calls_budget))
            .with(bound(self.calls_limit))
            .millis(RETENTION)
            .with(if self.key.is_some() { key_at } else { 0 })
            .with(if self.batch { revoked_at } else { 0 })
    }

    /// Reads an answer that `start_look.lua` can give.
    pub(crate) fn told(&self, tag: &str, reply: &mut Reply) -> Result<Started, StoreError> {
        Ok(match tag {
            "replayed" => {
                Started::Replayed { run: reply.parsed()?, state: reply.word(RunState::from_word)? }
            }
            "duplicate" => {
                Started::Duplicate { run: reply.parsed()?, state: reply.word(RunState::from_word)? }
            }
            "conflict" => Started::Conflict,
            "other_target" => Started::OtherTarget,
            "revoked" => Started::Revoked,
            "budget_exceeded" => Started::BudgetExceeded {
                limit: self.calls_budget.unwrap_or_default(),
                used: reply.parsed()?,
            },
            "calls_exceeded" => Started::CallsExceeded,
            _ => return reply.unknown(),
        })
    }
}
