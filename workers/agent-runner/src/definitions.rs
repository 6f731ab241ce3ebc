//! Agents in memory, ready to be executed. A version never changes, so what was read once stays true.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use runfleet_agent::{Definition, DefinitionError, ErrorCode};
use runfleet_broker::{Classify, Failure};
use runfleet_catalog::StoredError;
use runfleet_domain::{Name, RunKind};
use runfleet_store::{RunRecord, Store};

/// Definitions kept; when full, all are dropped and read again when needed.
const KEPT_MAX: usize = 1_000;

type Key = (Name, Name, u32);

/// Definitions by workspace, agent and version. Clones share the memory.
#[derive(Clone)]
pub(crate) struct Definitions {
    store: Store,
    read: Arc<Mutex<HashMap<Key, Arc<Definition>>>>,
}

impl Definitions {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, read: Arc::default() }
    }

    /// The version that a run began with, or the code with which a run ends that has none.
    pub(crate) async fn of(
        &self,
        record: &RunRecord,
    ) -> Result<Result<Arc<Definition>, ErrorCode>, Failure> {
        let (workspace, agent, version) =
            (&record.workspace, &record.target, record.target_version);
        let key = (workspace.clone(), agent.clone(), version);
        if let Some(known) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Ok(Arc::clone(known)));
        }
        let stored = self
            .store
            .load_definition(RunKind::Agent, workspace, agent, version)
            .await
            .transient("loading a definition")?;
        let Some(json) = stored else { return Ok(Err(ErrorCode::ConfigLoadFailed)) };
        let definition = match Definition::parse(&json) {
            Ok(definition) => Arc::new(definition),
            Err(DefinitionError::Blueprint(error @ StoredError::Newer { .. })) => {
                return Err(error).transient("reading a definition");
            }
            Err(error) => {
                tracing::error!(%agent, version, %error, "a stored definition cannot be used");
                return Ok(Err(ErrorCode::AgentConfigInvalid));
            }
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.len() >= KEPT_MAX {
            read.clear();
        }
        read.insert(key, Arc::clone(&definition));
        Ok(Ok(definition))
    }
}
