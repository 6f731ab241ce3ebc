//! The catalog in memory: one snapshot per workspace, loaded when first needed, refreshed within a second of a change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use runfleet_catalog::{Snapshot, StoredError};
use runfleet_domain::Name;
use runfleet_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

/// Workspaces kept; when full, all are dropped and loaded again when needed.
const KEPT_MAX: usize = 10_000;

/// The catalog could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The ledger did not answer.
    #[error("reading the catalog from the ledger")]
    Store(#[from] StoreError),
    /// What is stored is not a snapshot that this version can read.
    #[error("the stored catalog cannot be read by this version")]
    Unreadable(#[source] StoredError),
}

/// Snapshots by workspace. `None` is remembered too: a workspace without a catalog.
type Known = HashMap<Name, Option<Arc<Snapshot>>>;

/// Clones share the memory.
#[derive(Clone)]
pub struct CatalogCache {
    store: Store,
    known: Arc<RwLock<Known>>,
    /// Counts what was forgotten, so that a snapshot read before a change is not remembered after it.
    forgotten: Arc<AtomicU64>,
}

impl CatalogCache {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, known: Arc::default(), forgotten: Arc::default() }
    }

    /// The snapshot of a workspace, from memory if it is there.
    pub async fn get(&self, workspace: &Name) -> Result<Option<Arc<Snapshot>>, CatalogError> {
        if let Some(known) =
            self.known.read().unwrap_or_else(PoisonError::into_inner).get(workspace)
        {
            return Ok(known.clone());
        }
        self.refresh(workspace).await
    }

    /// The snapshot of a workspace as the ledger has it now.
    pub async fn refresh(&self, workspace: &Name) -> Result<Option<Arc<Snapshot>>, CatalogError> {
        let before = self.forgotten.load(Ordering::Acquire);
        let stored = self.store.load_catalog(workspace).await?;
        let snapshot = stored
            .map(|stored| Snapshot::from_json(stored.json.as_bytes()).map(Arc::new))
            .transpose()
            .map_err(CatalogError::Unreadable)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        if self.forgotten.load(Ordering::Acquire) == before {
            known.insert(workspace.clone(), snapshot.clone());
        }
        Ok(snapshot)
    }

    /// Asks for changes again and again, and forgets what has changed.
    pub(crate) async fn follow(self, every: Duration, shutdown: CancellationToken) {
        let mut seen = 0;
        while shutdown.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
            match self.store.catalog_changes(seen).await {
                Ok(changes) => {
                    for workspace in &changes.workspaces {
                        self.forget(workspace);
                    }
                    seen = changes.latest;
                }
                // What is in memory goes on being used; the next round asks again.
                Err(error) => tracing::warn!(%error, "asking for changes of the catalog failed"),
            }
        }
    }

    fn forget(&self, workspace: &Name) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        known.remove(workspace);
    }
}
