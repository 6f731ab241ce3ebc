//! Answers of models and what they cost: charged to run, agent and workspace by the script that stores the answer, so that one
//! answer is charged once, however often it comes. What may be used up is decided elsewhere.

use std::time::Duration;

use runfleet_domain::admission::CreditsUsed;
use runfleet_domain::limits::{INBOX_EVENT_BYTES_MAX, INBOX_EVENTS_MAX, MESSAGE_ID_MEMORY};
use runfleet_domain::{MessageId, Name, RunId};

use crate::error::StoreError;
use crate::inbox::{Appended, SEEN_MAX};
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::{Reply, items, text};
use crate::runs::ALARM_WAKE;
use crate::store::{Args, Store, check_shard, check_size};

/// Largest sum that is counted: up to here Lua tells whole numbers apart.
const SUM_MAX: u64 = 9_000_000_000_000_000;

/// An answer of a model and what it has used.
#[derive(Debug, Clone, Copy)]
pub struct ModelAnswer<'a> {
    /// The workspace of the run.
    pub workspace: &'a Name,
    /// The agent that is charged beside the workspace.
    pub agent: &'a Name,
    /// The answer as an event, at most 65 KiB.
    pub body: &'a str,
    /// Its cost, in millionths of a credit.
    pub cost: u64,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Whether it counts as an iteration.
    pub counts: bool,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It is the caller's, for the time of the lease.
    Held,
    /// Somebody else makes it.
    Busy {
        /// Until then at most, if nothing is heard of that one.
        left: Duration,
    },
}

impl Store {
    /// Puts the answer of a model into the inbox of its run and charges for it, once per id.
    pub async fn append_answer(
        &self,
        run: RunId,
        id: &MessageId,
        answer: &ModelAnswer<'_>,
    ) -> Result<Appended, StoreError> {
        check_size(Some(answer.body), INBOX_EVENT_BYTES_MAX, "the event is too large")?;
        check_shard(run.shard(), answer.workspace.as_str())?;
        let keys = self.keys();
        let names = [
            keys.run(run),
            keys.alarms(run.shard(), AlarmSet::from(run.kind())),
            keys.inbox(run),
            keys.events(run),
            keys.seen(run),
            keys.credits(answer.workspace),
        ];
        let args = Args::default()
            .with(run)
            .with(id)
            .with(answer.body)
            .with(INBOX_EVENTS_MAX)
            .millis(ALARM_WAKE)
            .millis(MESSAGE_ID_MEMORY)
            .with(SEEN_MAX)
            .with(answer.agent)
            .with(answer.cost.min(SUM_MAX))
            .with(SUM_MAX)
            .with(answer.input_tokens.min(SUM_MAX))
            .with(answer.output_tokens.min(SUM_MAX))
            .flag(answer.counts);
        let lua = &self.scripts().answer_append;
        let value = self.run_script(Operation::AppendAnswer, lua, &names, args).await?;
        Appended::read("answer_append", value)
    }

    /// What was charged to a workspace and to one of its agents.
    pub async fn credits_used(
        &self,
        workspace: &Name,
        agent: &Name,
    ) -> Result<CreditsUsed, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys().credits(workspace)).arg("total").arg(format!("a:{agent}"));
        let value = self.run_command(Operation::CreditsUsed, command).await?;
        let corrupt = || StoreError::Corrupt { kind: "credits", field: "answer" };
        let mut sums = items(value).ok_or_else(corrupt)?.into_iter().map(|item| match item {
            redis::Value::Nil => Some(0),
            item => text(item)?.parse().ok(),
        });
        let mut next = || sums.next().flatten().ok_or_else(corrupt);
        Ok(CreditsUsed { workspace: next()?, agent: next()? })
    }

    /// Takes a call of a run, or makes the lease longer on one that `holder` has. The lease ends by itself.
    pub async fn hold_call(
        &self,
        run: RunId,
        call: &MessageId,
        holder: &str,
        lease: Duration,
    ) -> Result<Held, StoreError> {
        let names = [self.keys().call(run, call)];
        let args = Args::default().with(holder).millis(lease);
        let lua = &self.scripts().call_hold;
        let value = self.run_script(Operation::HoldCall, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("call_hold", value)?;
        match tag.as_str() {
            "held" => Ok(Held::Held),
            "busy" => Ok(Held::Busy { left: Duration::from_millis(reply.parsed()?) }),
            _ => reply.unknown(),
        }
    }
}
