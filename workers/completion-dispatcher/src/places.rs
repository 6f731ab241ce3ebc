//! Which workspaces there are. Kept up by asking for changes of catalogs; what is declared in them is the catalog's business.

use std::collections::BTreeSet;

use runfleet_domain::Name;
use runfleet_store::{Store, StoreError};

/// The workspaces that have a catalog.
#[derive(Default)]
pub(crate) struct Workspaces {
    seen: u64,
    known: BTreeSet<Name>,
}

impl Workspaces {
    /// All of them, as far as the ledger knows now.
    pub(crate) async fn all(&mut self, store: &Store) -> Result<Vec<Name>, StoreError> {
        let changes = store.catalog_changes(self.seen).await?;
        self.seen = changes.latest;
        self.known.extend(changes.workspaces);
        Ok(self.known.iter().cloned().collect())
    }
}
