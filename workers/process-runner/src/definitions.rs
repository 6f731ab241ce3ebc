//! Parsed Process definitions in memory. A version never changes, so what was parsed once stays true.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use runfleet_broker::{Classify, Failure};
use runfleet_domain::{Name, RunKind};
use runfleet_flow::Definition;
use runfleet_store::Store;

/// Definitions kept; when full, all are dropped and parsed again when needed.
const KEPT_MAX: usize = 1_000;

type Key = (Name, Name, u32);

/// Definitions by workspace, Process and version. Clones share the memory.
#[derive(Clone)]
pub(crate) struct Definitions {
    store: Store,
    parsed: Arc<Mutex<HashMap<Key, Arc<Definition>>>>,
}

impl Definitions {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, parsed: Arc::default() }
    }

    /// The definition, or none when this version was never stored or cannot be parsed by this program.
    pub(crate) async fn get(
        &self,
        workspace: &Name,
        process: &Name,
        version: u32,
    ) -> Result<Option<Arc<Definition>>, Failure> {
        let key = (workspace.clone(), process.clone(), version);
        if let Some(known) = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let stored = self
            .store
            .load_definition(RunKind::Process, workspace, process, version)
            .await
            .transient("loading a definition")?;
        let Some(xml) = stored else { return Ok(None) };
        let definition = match Definition::parse(&xml) {
            Ok(definition) => Arc::new(definition),
            Err(problems) => {
                tracing::error!(%process, version, problems = problems.len(), "a stored definition cannot be parsed");
                return Ok(None);
            }
        };
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if parsed.len() >= KEPT_MAX {
            parsed.clear();
        }
        parsed.insert(key, Arc::clone(&definition));
        Ok(Some(definition))
    }
}
