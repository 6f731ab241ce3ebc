//! What a run waits for: messages and signals of its project. Names and keys are any text; the ledger knows their digests.

use runfleet_domain::limits::{EVENT_NAME_BYTES_MAX, RUN_WAITS_MAX};
use runfleet_domain::{Name, RunId};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::store::{check_shard, check_size};

/// One message or signal that a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait<'a> {
    /// One message. Each subscription gets one: for the next message a run subscribes under a new number.
    Message {
        /// The name of the message, 1 to 256 bytes.
        name: &'a str,
        /// The correlation key, at most 256 bytes; none is the same as an empty one.
        key: Option<&'a str>,
        /// A number that the run has never used before for another message.
        subscription: u64,
    },
    /// Every signal of that name, until the run no longer waits for it.
    Signal {
        /// The name of the signal, 1 to 256 bytes.
        name: &'a str,
    },
}

/// Everything that a run waits for from now on.
#[derive(Debug, Clone, Copy)]
pub struct Waits<'a> {
    /// The workspace of the run.
    pub workspace: &'a Name,
    /// The project of the run.
    pub project: &'a Name,
    /// At most 1,000; none to wait for nothing.
    pub list: &'a [Wait<'a>],
}

impl Waits<'_> {
    /// The words of the field `waits` of the run: see `lua/waits.lua`.
    pub(crate) fn words(&self, run: RunId) -> Result<Vec<String>, StoreError> {
        check_shard(run.shard(), self.workspace.as_str())?;
        if self.list.len() > RUN_WAITS_MAX {
            return Err(StoreError::Invalid("the run waits for too many messages and signals"));
        }
        self.list.iter().map(|wait| self.word(wait)).collect()
    }

    fn word(&self, wait: &Wait<'_>) -> Result<String, StoreError> {
        Ok(match *wait {
            Wait::Message { name, key, subscription } => {
                let digest = message_digest(self.workspace, self.project, name, key)?;
                format!("m:{digest}:{subscription}")
            }
            Wait::Signal { name } => {
                format!("s:{}", signal_digest(self.workspace, self.project, name)?)
            }
        })
    }
}

/// Stands for the messages of one name and correlation key.
pub(crate) fn message_digest(
    workspace: &Name,
    project: &Name,
    name: &str,
    key: Option<&str>,
) -> Result<Digest, StoreError> {
    check_name(name)?;
    check_size(key, EVENT_NAME_BYTES_MAX, "the correlation key is too long")?;
    let key = key.unwrap_or_default();
    Ok(Digest::of(&["message", workspace.as_str(), project.as_str(), name, key]))
}

/// Stands for the signals of one name.
pub(crate) fn signal_digest(
    workspace: &Name,
    project: &Name,
    name: &str,
) -> Result<Digest, StoreError> {
    check_name(name)?;
    Ok(Digest::of(&["signal", workspace.as_str(), project.as_str(), name]))
}

fn check_name(name: &str) -> Result<(), StoreError> {
    if name.is_empty() {
        return Err(StoreError::Invalid("a message or signal has a name"));
    }
    check_size(Some(name), EVENT_NAME_BYTES_MAX, "the name of the message or signal is too long")
}
