//! The handle that everything else of the fleet holds, and what all operations share.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use rand::Rng;
use redis::{Cmd, Value};
use runfleet_domain::Shard;

use crate::call::{Caller, Request};
use crate::config::{StoreConfig, Timings};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::link::Slots;
use crate::metrics::{Metrics, Operation};
use crate::script::{Lua, Scripts};

/// The ledger. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) caller: Caller,
    pub(crate) keys: Keys,
    pub(crate) scripts: Scripts,
    pub(crate) timings: Timings,
    pub(crate) chat_retention: Duration,
    pub(crate) skew: bool,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("keys", &self.inner.keys).finish_non_exhaustive()
    }
}

/// Arguments of one script, one after the other in one buffer.
pub(crate) struct Args {
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl Default for Args {
    fn default() -> Self {
        // As much as the record of a run with its arguments.
        Self { text: Vec::with_capacity(1_024), ends: Vec::with_capacity(80) }
    }
}

impl Args {
    /// Adds one argument.
    pub(crate) fn with(mut self, value: impl Display) -> Self {
        // Writing into memory does not fail.
        let _ = write!(self.text, "{value}");
        self.ends.push(self.text.len());
        self
    }

    /// Adds a span in milliseconds.
    pub(crate) fn millis(self, span: Duration) -> Self {
        self.with(span.as_millis())
    }

    /// Adds yes or no.
    pub(crate) fn flag(self, yes: bool) -> Self {
        self.with(u8::from(yes))
    }

    /// Adds a field of a record.
    pub(crate) fn field(self, name: &str, value: impl Display) -> Self {
        self.with(name).with(value)
    }

    /// Adds a field of a record if it has a value.
    pub(crate) fn field_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    fn slices(&self) -> Vec<&[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).filter_map(|(begin, end)| self.text.get(begin..*end)).collect()
    }
}

impl Store {
    /// Prepares the store. Connections are made by the first operations, so this does not wait for Redis; use
    /// [`Store::ping`] to see whether it can be reached. The metrics go into `registry`.
    ///
    /// # Errors
    /// [`StoreError::Config`] when the settings cannot work, or when `registry` already has the metrics of a store.
    pub fn open(config: &StoreConfig, registry: &Registry) -> Result<Self, StoreError> {
        config.check()?;
        let metrics = Metrics::new(registry)
            .map_err(|_| StoreError::Config("the registry already has the metrics of a store"))?;
        let slots = Slots::new(config)?;
        let inner = Inner {
            caller: Caller { slots, metrics, deadline: config.deadline },
            keys: Keys::new(config.namespace.clone()),
            scripts: Scripts::new(config.skew),
            timings: config.timings,
            chat_retention: config.chat_retention,
            skew: config.skew,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The spans that this store counts with.
    pub fn timings(&self) -> Timings {
        self.inner.timings
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.inner.scripts
    }

    /// Runs a script to its answer.
    pub(crate) async fn run_script(
        &self,
        operation: Operation,
        lua: &Lua,
        keys: &[String],
        args: Args,
    ) -> Result<Value, StoreError> {
        let args = args.slices();
        self.inner.caller.call(operation, Request::Script { lua, keys, args: &args }).await
    }

    /// Sends a command that may be repeated.
    pub(crate) async fn run_command(
        &self,
        operation: Operation,
        command: Cmd,
    ) -> Result<Value, StoreError> {
        self.inner.caller.call(operation, Request::Plain(command)).await
    }
}

/// Marks one call, so that a script recognises it when it comes again after its answer was lost.
pub(crate) fn call_token() -> String {
    format!("{:016x}", rand::rng().random::<u64>())
}

/// Refuses a record that would be put where nobody looks for it.
pub(crate) fn check_shard(shard: Shard, workspace: &str) -> Result<(), StoreError> {
    if shard == Shard::of_workspace(workspace) {
        Ok(())
    } else {
        Err(StoreError::Invalid("the id is in another shard than the workspace"))
    }
}

/// Refuses a text that is longer than `bytes_max`.
pub(crate) fn check_size(
    text: Option<&str>,
    bytes_max: usize,
    complaint: &'static str,
) -> Result<(), StoreError> {
    match text {
        Some(text) if text.len() > bytes_max => Err(StoreError::Invalid(complaint)),
        _ => Ok(()),
    }
}
