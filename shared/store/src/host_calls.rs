//! Calls of scripts, routes, triggers and actions of a project: one record each, while the call lasts and a while longer, so that a
//! request that comes again gets the same answer, and an action runs once for each of its runs.

use std::time::Duration;

use runfleet_domain::{Name, Shard};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::store::{Args, Store, call_token, check_size};

/// Largest answer that is kept, in bytes.
pub const CALL_ANSWER_BYTES_MAX: usize = 262_144;

/// Version of the record of a call.
const CALL_VERSION: u64 = 1;

/// How much longer than its deadline a call that has no answer is kept.
const MARGIN: Duration = Duration::from_mins(10);

/// A call that begins.
#[derive(Debug, Clone, Copy)]
pub struct BeginCall<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// Names the call.
    pub call_id: &'a Name,
    /// The message that asks for it.
    pub message_id: &'a str,
    /// What it gets, as JSON text. Only a digest of it is kept.
    pub input: &'a str,
    /// The time of one attempt.
    pub within: Duration,
    /// Where the answer goes, and what it is called there.
    pub reply: Option<(&'a str, &'a str)>,
}

/// What a beginning finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallBegun {
    /// The call is to be made, perhaps again: with this attempt, deadline and key it is the same call.
    Begun(CallAttempt),
    /// It has ended; this was the answer.
    Ended(String),
    /// A call of that name had another input.
    OtherInput,
    /// A call of that name goes on, for another request.
    Busy,
}

/// One attempt of a call.
#[derive(Clone, PartialEq, Eq)]
pub struct CallAttempt {
    /// Counts them, from 1.
    pub attempt: u32,
    /// Unix milliseconds after which nobody waits for the answer.
    pub deadline_ms: u64,
    /// Who knows it may end the attempt.
    pub answer_key: String,
}

impl std::fmt::Debug for CallAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallAttempt").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// An attempt that ends.
#[derive(Clone, Copy)]
pub struct EndCall<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// Names the call.
    pub call_id: &'a Name,
    /// The attempt.
    pub attempt: u32,
    /// The key of the attempt.
    pub answer_key: &'a str,
    /// Whether it is done; a call that has failed may be made again under its name, by another request.
    pub done: bool,
    /// What the caller is told, at most [`CALL_ANSWER_BYTES_MAX`] bytes.
    pub answer: &'a str,
    /// How long it is kept.
    pub keep: Duration,
}

/// What an ending finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnded {
    /// It has ended now; with where the answer goes and what it is called there, when somebody waits.
    Ended(Option<(String, String)>),
    /// It had ended before, with this answer; with where it went and what it is called there, when somebody waits.
    Known {
        /// Address and name.
        to: Option<(String, String)>,
        /// What was told.
        answer: String,
    },
    /// There is no such attempt, or the key is wrong.
    Missing,
}

impl Store {
    /// Begins a call, or finds out that it has begun or ended. One round trip.
    pub async fn begin_call(&self, begin: &BeginCall<'_>) -> Result<CallBegun, StoreError> {
        let key = self.call_key(begin.workspace, begin.project, begin.call_id);
        let (reply_to, correlation) = begin.reply.unwrap_or_default();
        let answer_key = format!("{}{}", call_token(), call_token());
        let args = Args::default()
            .with(begin.message_id)
            .with(Digest::of(&[begin.input]))
            .millis(begin.within)
            .with(answer_key)
            .with(reply_to)
            .with(correlation)
            .millis(MARGIN)
            .with(CALL_VERSION);
        let lua = &self.scripts().call_begin;
        let value = self.run_script(Operation::BeginCall, lua, &[key], args).await?;
        let (tag, mut reply) = Reply::open("call_begin", value)?;
        match tag.as_str() {
            "begun" => Ok(CallBegun::Begun(CallAttempt {
                attempt: reply.parsed()?,
                deadline_ms: reply.parsed()?,
                answer_key: reply.text()?,
            })),
            "ended" => Ok(CallBegun::Ended(reply.text()?)),
            "other_input" => Ok(CallBegun::OtherInput),
            "busy" => Ok(CallBegun::Busy),
            _ => reply.unknown(),
        }
    }

    /// Ends an attempt of a call. The first answer counts.
    pub async fn end_call(&self, end: &EndCall<'_>) -> Result<CallEnded, StoreError> {
        check_size(Some(end.answer), CALL_ANSWER_BYTES_MAX, "the answer is too large")?;
        let key = self.call_key(end.workspace, end.project, end.call_id);
        let args = Args::default()
            .with(end.attempt)
            .with(end.answer_key)
            .with(if end.done { "done" } else { "failed" })
            .with(end.answer)
            .millis(end.keep);
        let lua = &self.scripts().call_end;
        let value = self.run_script(Operation::EndCall, lua, &[key], args).await?;
        let (tag, mut reply) = Reply::open("call_end", value)?;
        match tag.as_str() {
            "ended" => Ok(CallEnded::Ended(address(&mut reply)?)),
            "known" => Ok(CallEnded::Known { to: address(&mut reply)?, answer: reply.text()? }),
            "missing" => Ok(CallEnded::Missing),
            _ => reply.unknown(),
        }
    }

    fn call_key(&self, workspace: &Name, project: &Name, call: &Name) -> String {
        let shard = Shard::of_workspace(workspace.as_str());
        self.keys().host_call(shard, workspace, project, call)
    }
}

fn address(reply: &mut Reply) -> Result<Option<(String, String)>, StoreError> {
    let (to, correlation) = (reply.text()?, reply.text()?);
    Ok((!to.is_empty()).then_some((to, correlation)))
}
