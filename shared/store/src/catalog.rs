//! Catalogs of workspaces and the texts of their Processes, with a cheap way to see that one has changed.
//!
//! A catalog is written first and announced afterwards, since the two are in different slots. When the announcement is lost,
//! the next one of that workspace makes up for it: applying the same catalog again announces it again.

use redis::Value;
use runfleet_domain::{Name, RunKind};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{Fields, Reply, text};
use crate::store::{Args, Store, call_token};

/// Largest catalog of a workspace, in bytes of its JSON text.
pub const CATALOG_BYTES_MAX: usize = 8 * 1_048_576;

/// Largest text of one Process, in bytes.
pub const DEFINITION_BYTES_MAX: usize = 1_048_576;

/// Most definitions that one change brings.
pub const DEFINITIONS_MAX: usize = 1_000;

/// Newest version of a catalog record that this program reads, and the one that it writes.
const CATALOG_VERSION: u64 = 1;

const CATALOG: &str = "catalog";

/// The text of one version of a Process or agent.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    /// What it is. A Process and an agent may have the same name.
    pub kind: RunKind,
    /// The Process or agent.
    pub target: &'a Name,
    /// The version; once it has been applied its text must not change.
    pub version: u32,
    /// The text.
    pub text: &'a str,
}

/// What became of a new catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogPut {
    /// It is stored under this revision and announced.
    Stored {
        /// Grows by one with each change of the workspace.
        revision: u64,
    },
    /// Somebody else has changed the catalog since; nothing was stored.
    Changed {
        /// The revision that is stored.
        revision: u64,
    },
}

/// A stored catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCatalog {
    /// Grows by one with each change of the workspace.
    pub revision: u64,
    /// The catalog.
    pub json: String,
}

/// What has been announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogChanges {
    /// The last announcement: what to ask with next time.
    pub latest: u64,
    /// Workspaces that were announced since. With 0 all of them.
    pub workspaces: Vec<Name>,
}

fn check(json: &str, definitions: &[Definition<'_>]) -> Result<(), StoreError> {
    if json.len() > CATALOG_BYTES_MAX {
        return Err(StoreError::Invalid("the catalog is larger than 8 MiB"));
    }
    if definitions.len() > DEFINITIONS_MAX {
        return Err(StoreError::Invalid("more than 1,000 definitions in one change"));
    }
    if definitions.iter().any(|definition| definition.text.len() > DEFINITION_BYTES_MAX) {
        return Err(StoreError::Invalid("a definition is larger than 1 MiB"));
    }
    Ok(())
}

impl Store {
    /// Replaces the catalog of a workspace together with the definitions that it names, and announces that.
    ///
    /// With `expected` only if that is still the stored revision (0: none is stored).
    pub async fn put_catalog(
        &self,
        workspace: &Name,
        expected: Option<u64>,
        json: &str,
        definitions: &[Definition<'_>],
    ) -> Result<CatalogPut, StoreError> {
        check(json, definitions)?;
        let mut names = vec![self.keys().catalog(workspace)];
        names.extend(definitions.iter().map(|definition| {
            self.keys().definition(
                definition.kind,
                workspace,
                definition.target,
                definition.version,
            )
        }));
        let args = Args::default()
            .with(call_token())
            .with(expected.map_or(String::new(), |revision| revision.to_string()))
            .with(json)
            .with(CATALOG_VERSION);
        let args = definitions.iter().fold(args, |args, definition| args.with(definition.text));
        let lua = &self.scripts().catalog_put;
        let value = self.run_script(Operation::PutCatalog, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("catalog_put", value)?;
        let revision = reply.parsed()?;
        match tag.as_str() {
            "changed" => return Ok(CatalogPut::Changed { revision }),
            "stored" => {}
            _ => return reply.unknown(),
        }
        let names = [self.keys().catalog_revision(), self.keys().catalog_changes()];
        let args = Args::default().with(workspace);
        let lua = &self.scripts().catalog_announce;
        self.run_script(Operation::PutCatalog, lua, &names, args).await?;
        Ok(CatalogPut::Stored { revision })
    }

    /// The catalog of a workspace.
    pub async fn load_catalog(
        &self,
        workspace: &Name,
    ) -> Result<Option<StoredCatalog>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys().catalog(workspace));
        let value = self.run_command(Operation::LoadCatalog, command).await?;
        let mut fields = Fields::new(CATALOG, value)?;
        if fields.is_empty() {
            return Ok(None);
        }
        fields.check_version(CATALOG_VERSION)?;
        Ok(Some(StoredCatalog { revision: fields.must("revision")?, json: fields.must("json")? }))
    }

    /// The text of one version of a Process or agent.
    pub async fn load_definition(
        &self,
        kind: RunKind,
        workspace: &Name,
        target: &Name,
        version: u32,
    ) -> Result<Option<String>, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys().definition(kind, workspace, target, version));
        match self.run_command(Operation::LoadDefinition, command).await? {
            Value::Nil => Ok(None),
            value => text(value)
                .map(Some)
                .ok_or(StoreError::Corrupt { kind: "definition", field: "text" }),
        }
    }

    /// Which catalogs have been announced after announcement number `since`. When there are none this is one small read, fit to
    /// be asked several times a second.
    pub async fn catalog_changes(&self, since: u64) -> Result<CatalogChanges, StoreError> {
        let mut command = redis::cmd("GET");
        command.arg(self.keys().catalog_revision());
        let latest = match self.run_command(Operation::CatalogChanges, command).await? {
            Value::Nil => 0,
            value => text(value)
                .and_then(|text| text.parse().ok())
                .ok_or(StoreError::Corrupt { kind: CATALOG, field: "revision" })?,
        };
        if latest == since {
            return Ok(CatalogChanges { latest, workspaces: Vec::new() });
        }
        let names = [self.keys().catalog_revision(), self.keys().catalog_changes()];
        let args = Args::default().with(since);
        let lua = &self.scripts().catalog_changes;
        let value = self.run_script(Operation::CatalogChanges, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("catalog_changes", value)?;
        if tag != "changes" {
            return reply.unknown();
        }
        let latest = reply.parsed()?;
        let workspaces = reply
            .texts()?
            .iter()
            .map(|name| name.parse())
            .collect::<Result<_, _>>()
            .map_err(|_| StoreError::Corrupt { kind: CATALOG, field: "workspace" })?;
        Ok(CatalogChanges { latest, workspaces })
    }
}
