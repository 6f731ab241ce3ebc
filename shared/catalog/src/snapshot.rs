//! Everything that is declared for one workspace, as it is stored and as the workers hold it.

use std::collections::BTreeMap;

use runfleet_domain::Name;
use serde::{Deserialize, Serialize};

use crate::agent::AgentDefinition;
use crate::model::{Person, ProcessDefinition, Project, Workspace};
use crate::sink::ChatSink;
use crate::stored::{self, StoredError};
use crate::tool::{McpServer, ModelProvider, RecordSource, SkillDefinition, ToolDefinition};

/// The format of stored snapshots that this code writes. Raise it when an older reader would misread a newer snapshot; a new
/// field that older readers may ignore does not need it.
pub const FORMAT: u32 = 1;

/// What is declared for one workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// [`FORMAT`] of whoever wrote it.
    pub format: u32,
    /// Counts the merges that changed something, from 1.
    pub revision: u64,
    /// The workspace.
    pub workspace: Workspace,
    /// Everybody in it.
    pub people: BTreeMap<Name, Person>,
    /// Projects by name.
    pub projects: BTreeMap<Name, Project>,
    /// Processes by name.
    pub processes: BTreeMap<Name, ProcessDefinition>,
    /// Agents by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, AgentDefinition>,
    /// Tools by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, ToolDefinition>,
    /// Skills by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<Name, SkillDefinition>,
    /// MCP servers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<Name, McpServer>,
    /// Providers of models by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<Name, ModelProvider>,
    /// Sources of records by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub record_sources: BTreeMap<Name, RecordSource>,
    /// Chat sinks by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chat_sinks: BTreeMap<Name, ChatSink>,
}

impl Snapshot {
    /// Reads a stored snapshot.
    pub fn from_json(json: &[u8]) -> Result<Self, StoredError> {
        stored::read(json, "snapshot", FORMAT)
    }

    /// The text to store. The same snapshot always gives the same text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// A project.
    pub fn project(&self, id: &Name) -> Option<&Project> {
        self.projects.get(id)
    }

    /// A Process, active or not.
    pub fn process(&self, id: &Name) -> Option<&ProcessDefinition> {
        self.processes.get(id)
    }

    /// A person.
    pub fn person(&self, id: &Name) -> Option<&Person> {
        self.people.get(id)
    }

    /// An agent, active or not.
    pub fn agent(&self, id: &Name) -> Option<&AgentDefinition> {
        self.agents.get(id)
    }
}
