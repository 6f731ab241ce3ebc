//! What versions of projects declare, and which hosts were seen. Which version is active stands in the catalog.

use std::time::Duration;

use redis::Value;
use runfleet_domain::{Name, Shard};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{Reply, text};
use crate::store::{Args, Store, check_size};

/// Largest manifest of a version, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 262_144;

/// Versions of a project that are kept.
pub const VERSIONS_MAX: usize = 20;

/// Hosts of a project that are kept.
const HOSTS_MAX: u32 = 200;

/// How long a host counts after its last sign of life.
const HOST_SEEN: Duration = Duration::from_mins(1);

const SUMMARY_BYTES_MAX: usize = 1_024;

/// A version that a host registers.
#[derive(Debug, Clone, Copy)]
pub struct Registration<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// The version, without spaces.
    pub version: &'a str,
    /// What is shown of it, at most 1,024 bytes.
    pub summary: &'a str,
    /// What it declares, at most [`MANIFEST_BYTES_MAX`] bytes.
    pub manifest: &'a str,
    /// The active version, which is kept whatever its age.
    pub active: Option<&'a str>,
}

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// It is kept from now on.
    Created,
    /// The same was kept already.
    Known,
    /// Something else is kept under this version.
    Other,
}

/// A version that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVersion {
    /// The version.
    pub version: String,
    /// Unix milliseconds.
    pub registered_at_ms: u64,
    /// What is shown of it.
    pub summary: String,
}

/// A host that was seen lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenHost {
    /// What tells it from others.
    pub id: String,
    /// The version that it has loaded.
    pub version: String,
    /// Unix milliseconds.
    pub seen_at_ms: u64,
}

/// Versions and hosts of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectState {
    /// The newest first.
    pub versions: Vec<KeptVersion>,
    /// The latest first.
    pub hosts: Vec<SeenHost>,
}

impl Store {
    /// Keeps what a version declares. When there are more than [`VERSIONS_MAX`], the oldest that is not active goes.
    pub async fn register_version(&self, new: &Registration<'_>) -> Result<Registered, StoreError> {
        check_size(Some(new.manifest), MANIFEST_BYTES_MAX, "the manifest is too large")?;
        check_size(Some(new.summary), SUMMARY_BYTES_MAX, "the summary is too large")?;
        let [versions, summaries, manifests, _] = self.project_keys(new.workspace, new.project);
        let args = Args::default()
            .with(new.version)
            .with(new.summary)
            .with(new.manifest)
            .with(new.active.unwrap_or_default())
            .with(VERSIONS_MAX);
        let (keys, lua) = ([versions, summaries, manifests], &self.scripts().version_register);
        let value = self.run_script(Operation::RegisterVersion, lua, &keys, args).await?;
        let (tag, reply) = Reply::open("version_register", value)?;
        match tag.as_str() {
            "created" => Ok(Registered::Created),
            "known" => Ok(Registered::Known),
            "other" => Ok(Registered::Other),
            _ => reply.unknown(),
        }
    }

    /// What a version declares.
    pub async fn load_manifest(
        &self,
        workspace: &Name,
        project: &Name,
        version: &str,
    ) -> Result<Option<String>, StoreError> {
        let [_, _, manifests, _] = self.project_keys(workspace, project);
        let mut command = redis::cmd("HGET");
        command.arg(manifests).arg(version);
        match self.run_command(Operation::LoadManifest, command).await? {
            Value::Nil => Ok(None),
            value => {
                text(value).map(Some).ok_or(StoreError::Corrupt { kind: "manifest", field: "text" })
            }
        }
    }

    /// The versions and hosts of a project; with `host` (id and version, both without spaces) as the sign of life of one. Without
    /// it nothing is written.
    pub async fn show_project(
        &self,
        workspace: &Name,
        project: &Name,
        host: Option<(&str, &str)>,
    ) -> Result<ProjectState, StoreError> {
        let [versions, summaries, _, hosts] = self.project_keys(workspace, project);
        let member = host.map_or(String::new(), |(id, version)| format!("{id} {version}"));
        let args = Args::default().with(member).millis(HOST_SEEN).with(HOSTS_MAX);
        let (keys, lua) = ([versions, summaries, hosts], &self.scripts().project_show);
        let value = self.run_script(Operation::ShowProject, lua, &keys, args).await?;
        let (tag, mut reply) = Reply::open("project_show", value)?;
        if tag != "project" {
            return reply.unknown();
        }
        let corrupt = || StoreError::Corrupt { kind: "project_show", field: "answer" };
        let mut state = ProjectState::default();
        for version in reply.texts()?.chunks_exact(3) {
            let [version, at, summary] = version else { return Err(corrupt()) };
            state.versions.push(KeptVersion {
                version: version.clone(),
                registered_at_ms: at.parse().map_err(|_| corrupt())?,
                summary: summary.clone(),
            });
        }
        for host in reply.texts()?.chunks_exact(2) {
            let [member, at] = host else { return Err(corrupt()) };
            let (id, version) = member.split_once(' ').ok_or_else(corrupt)?;
            state.hosts.push(SeenHost {
                id: id.to_owned(),
                version: version.to_owned(),
                seen_at_ms: at.parse().map_err(|_| corrupt())?,
            });
        }
        Ok(state)
    }

    fn project_keys(&self, workspace: &Name, project: &Name) -> [String; 4] {
        let shard = Shard::of_workspace(workspace.as_str());
        ["versions", "versionsums", "manifests", "hosts"]
            .map(|kind| self.keys().of_project(shard, kind, workspace, project))
    }
}
