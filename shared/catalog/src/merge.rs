//! How a bundle changes what is declared: documents are added and replaced, and what a bundle does not name stays.

pub(crate) mod agents;

use std::collections::BTreeMap;
use std::fmt;

use runfleet_domain::Name;

use crate::approval;
use crate::bounds::{DOCUMENTS_MAX, FILE_BYTES_MAX};
use crate::bundle::{Bundle, BundleProcess};
use crate::digest::sha256;
use crate::model::{ProcessDefinition, Project, Workspace};
use crate::registered;
use crate::snapshot::{FORMAT, Snapshot};

/// The result of a merge. Store the definitions before the snapshot that names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// What is declared from now on.
    pub snapshot: Snapshot,
    /// Definitions that did not exist before.
    pub definitions: Vec<Definition>,
    /// Versions of agents that did not exist before.
    pub agent_versions: Vec<AgentVersion>,
    /// What the bundle changed.
    pub changes: Changes,
}

/// One version of a Process. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The Process.
    pub process: Name,
    /// Its version, from 1.
    pub version: u32,
    /// SHA-256 of the text, in lower-case hexadecimal.
    pub sha256: String,
    /// The BPMN document.
    pub xml: String,
}

/// One version of an agent with everything that it names. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVersion {
    /// The agent.
    pub agent: Name,
    /// Its version, from 1.
    pub version: u32,
    /// SHA-256 of the text, in lower-case hexadecimal.
    pub sha256: String,
    /// The text of an [`AgentBlueprint`](crate::AgentBlueprint), at most 1 MiB.
    pub json: String,
}

/// Why a bundle cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The stored snapshot is of another workspace.
    #[error("the bundle and the snapshot belong to different workspaces")]
    OtherWorkspace,
    /// More would be declared than a workspace may hold.
    #[error(
        "a workspace may declare at most {DOCUMENTS_MAX} projects, Processes, agents and what agents use, together"
    )]
    TooMuch,
    /// An agent with everything that it names is too large.
    #[error("an agent with its tools and skills has more than {FILE_BYTES_MAX} bytes")]
    AgentTooLarge,
    /// A Process or agent has no version left.
    #[error("a Process or agent has reached its last version")]
    NoVersionLeft,
}

/// What happened to one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `workspace`, `project`, `process`, `agent`, `tool`, `skill`, `mcp server`, `provider`, `record source` or `chat sink`.
    pub kind: &'static str,
    /// The name of the document.
    pub name: Name,
    /// What happened.
    pub changed: Changed,
    /// The version of a Process or agent.
    pub version: Option<u32>,
}

/// What happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It is new.
    Created,
    /// It differs from what was stored.
    Changed,
    /// It is what was stored.
    Unchanged,
}

impl Changed {
    /// The word shown to people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }

    fn of<T: PartialEq>(before: Option<&T>, after: &T) -> Self {
        match before {
            None => Self::Created,
            Some(before) if before == after => Self::Unchanged,
            Some(_) => Self::Changed,
        }
    }
}

/// What a bundle changed, a line for each of its documents when displayed, then warnings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The workspace, then projects, Processes and agents, each in the order of their names.
    pub list: Vec<Change>,
    /// Policies without effect, and references to what is not declared: good sentences, and perhaps misspelt names.
    pub warnings: Vec<String>,
}

impl Changes {
    /// Whether there is anything to store.
    pub fn is_empty(&self) -> bool {
        self.list.iter().all(|change| change.changed == Changed::Unchanged)
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in &self.list {
            write!(f, "{} {} {}", change.kind, change.name, change.changed.as_str())?;
            match change.version {
                Some(version) => writeln!(f, " (version {version})")?,
                None => writeln!(f)?,
            }
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

impl Snapshot {
    /// Merges a bundle into what is stored. A Process whose text is unchanged keeps its version; another text gets the next
    /// one. The revision rises when anything changed.
    pub fn merge(previous: Option<&Self>, bundle: Bundle) -> Result<Merged, MergeError> {
        if previous.is_some_and(|previous| previous.workspace.id != bundle.workspace.id) {
            return Err(MergeError::OtherWorkspace);
        }
        let mut snapshot =
            previous.cloned().unwrap_or_else(|| Self::empty(bundle.workspace.clone()));
        let mut changes = Changes::default();
        let mut definitions = Vec::new();

        let before = previous.map(|previous| (&previous.workspace, &previous.people));
        changes.add(
            "workspace",
            &bundle.workspace.id,
            Changed::of(before.as_ref(), &(&bundle.workspace, &bundle.people)),
            None,
        );
        snapshot.workspace = bundle.workspace;
        snapshot.people = bundle.people;
        let mut warnings = Vec::new();
        for (name, mut project) in bundle.projects {
            let approved = !bundle.unapproved.contains(&name);
            let before = snapshot.projects.get(&name);
            registered::keep(before, &mut project);
            warnings.extend(approval::settle(&name, before, &mut project, approved));
            changes.add(
                "project",
                &name,
                Changed::of(snapshot.projects.get(&name), &project),
                None,
            );
            snapshot.projects.insert(name, project);
        }
        for (name, process) in bundle.processes {
            let before = snapshot.processes.get(&name);
            let after = next_version(before, &name, process, &mut definitions)?;
            changes.add("process", &name, Changed::of(before, &after), Some(after.version));
            snapshot.processes.insert(name, after);
        }
        merge_into(&mut snapshot.tools, bundle.tools, "tool", &mut changes);
        merge_into(&mut snapshot.skills, bundle.skills, "skill", &mut changes);
        merge_into(&mut snapshot.mcp_servers, bundle.mcp_servers, "mcp server", &mut changes);
        merge_into(&mut snapshot.providers, bundle.providers, "provider", &mut changes);
        merge_into(
            &mut snapshot.record_sources,
            bundle.record_sources,
            "record source",
            &mut changes,
        );
        merge_into(&mut snapshot.chat_sinks, bundle.chat_sinks, "chat sink", &mut changes);
        let agent_versions = agents::merge(&mut snapshot, bundle.agents, &mut changes)?;
        let left_out = bundle.left_out;
        warnings
            .extend(left_out.list.iter().map(|mistake| format!("a tool is left out: {mistake}")));
        let declared = snapshot.documents();
        if declared > DOCUMENTS_MAX {
            return Err(MergeError::TooMuch);
        }
        warnings.extend(snapshot.unknown_names());
        changes.warnings = warnings;
        snapshot.format = FORMAT;
        if !changes.is_empty() {
            snapshot.revision += 1;
        }
        Ok(Merged { snapshot, definitions, agent_versions, changes })
    }

    /// What is known about a workspace for which nothing was ever applied.
    pub fn nothing(id: Name) -> Self {
        Self::empty(Workspace { id, display_name: None, billing: None, delivery: true })
    }

    fn empty(workspace: Workspace) -> Self {
        Self {
            format: FORMAT,
            revision: 0,
            workspace,
            people: BTreeMap::new(),
            projects: BTreeMap::new(),
            processes: BTreeMap::new(),
            agents: BTreeMap::new(),
            tools: BTreeMap::new(),
            skills: BTreeMap::new(),
            mcp_servers: BTreeMap::new(),
            providers: BTreeMap::new(),
            record_sources: BTreeMap::new(),
            chat_sinks: BTreeMap::new(),
        }
    }

    fn documents(&self) -> usize {
        let used = self.tools.len() + self.skills.len() + self.mcp_servers.len();
        let reached = self.providers.len() + self.record_sources.len() + self.chat_sinks.len();
        self.projects.len() + self.processes.len() + self.agents.len() + used + reached
    }

    /// Names of Processes, agents and people that something refers to and nobody declared.
    fn unknown_names(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut check = |place: String, kind: &str, id: &Name, known: bool| {
            if !known {
                warnings.push(format!("{place} the {kind} {id}, which is not declared"));
            }
        };
        for (name, project) in &self.projects {
            let place = || format!("the policy of project {name} names");
            for id in &project.model_agents {
                let place = format!("the project {name} has for model calls");
                check(place, "agent", id, self.agents.contains_key(id));
            }
            for id in project.policy.processes.iter().flat_map(|section| &section.processes.ids) {
                check(place(), "Process", id, self.processes.contains_key(id));
            }
            for id in project.policy.agents.iter().flat_map(|section| &section.agents.ids) {
                check(place(), "agent", id, self.agents.contains_key(id));
            }
        }
        for (name, person) in &self.people {
            let place = || format!("the rights of person {name} name");
            for id in person.may_start_processes.listed() {
                check(place(), "Process", id, self.processes.contains_key(id));
            }
            for id in person.may_use_agents.listed() {
                check(place(), "agent", id, self.agents.contains_key(id));
            }
        }
        for (name, agent) in &self.agents {
            if let Some(id) = &agent.runs_as {
                let place = format!("agent {name} acts as");
                check(place, "person", id, self.people.contains_key(id));
            }
        }
        agents::unknown_names(self, &mut warnings);
        warnings
    }
}

fn merge_into<T: PartialEq>(
    stored: &mut BTreeMap<Name, T>,
    new: BTreeMap<Name, T>,
    kind: &'static str,
    changes: &mut Changes,
) {
    for (name, document) in new {
        changes.add(kind, &name, Changed::of(stored.get(&name), &document), None);
        stored.insert(name, document);
    }
}

impl Changes {
    pub(crate) fn project(&mut self, name: &Name, before: &Project, after: &Project) {
        self.add("project", name, Changed::of(Some(before), after), None);
    }

    fn add(&mut self, kind: &'static str, name: &Name, changed: Changed, version: Option<u32>) {
        self.list.push(Change { kind, name: name.clone(), changed, version });
    }
}

fn next_version(
    before: Option<&ProcessDefinition>,
    name: &Name,
    process: BundleProcess,
    definitions: &mut Vec<Definition>,
) -> Result<ProcessDefinition, MergeError> {
    let sha256 = sha256(&process.xml);
    let version = match before {
        Some(before) if before.sha256 == sha256 => before.version,
        before => {
            let version = before
                .map_or(0, |before| before.version)
                .checked_add(1)
                .ok_or(MergeError::NoVersionLeft)?;
            let definition = Definition {
                process: name.clone(),
                version,
                sha256: sha256.clone(),
                xml: process.xml,
            };
            definitions.push(definition);
            version
        }
    };
    Ok(ProcessDefinition {
        name: process.name,
        state: process.state,
        version,
        sha256,
        summary: process.summary,
    })
}
