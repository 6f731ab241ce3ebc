//! The handle that everything else of the fleet holds, and what all operations share.

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

/// Arguments of one script.
#[derive(Default)]
pub(crate) struct Args {
    values: Vec<Vec<u8>>,
}

impl Args {
    /// Adds one argument.
    #[expect(clippy::needless_pass_by_value, reason = "callers have numbers and references")]
    pub(crate) fn with(mut self, value: impl ToString) -> Self {
        self.values.push(value.to_string().into_bytes());
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
    pub(crate) fn field(self, name: &str, value: impl ToString) -> Self {
        self.with(name).with(value)
    }

    /// Adds a field of a record if it has a value.
    pub(crate) fn field_if(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
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
        let args: Vec<&[u8]> = args.values.iter().map(Vec::as_slice).collect();
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
