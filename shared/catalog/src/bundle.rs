//! A validated set of documents: exactly one workspace, and projects, Processes and agents of different names.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use crate::agent::AgentDefinition;
use crate::mistake::Mistakes;
use crate::model::{Person, ProcessState, Project, Workspace};
use crate::sink::ChatSink;
use crate::summary::ProcessSummary;
use crate::tool::{McpServer, ModelProvider, RecordSource, SkillDefinition, ToolDefinition};

/// What one apply brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The workspace that everything belongs to.
    pub workspace: Workspace,
    /// Everybody in it.
    pub people: BTreeMap<Name, Person>,
    /// Projects by name.
    pub projects: BTreeMap<Name, Project>,
    /// Processes by name.
    pub processes: BTreeMap<Name, BundleProcess>,
    /// Agents by name; their version is not counted yet.
    pub agents: BTreeMap<Name, AgentDefinition>,
    /// Tools by name.
    pub tools: BTreeMap<Name, ToolDefinition>,
    /// Skills by name.
    pub skills: BTreeMap<Name, SkillDefinition>,
    /// MCP servers by name.
    pub mcp_servers: BTreeMap<Name, McpServer>,
    /// Providers of models by name.
    pub providers: BTreeMap<Name, ModelProvider>,
    /// Sources of records by name.
    pub record_sources: BTreeMap<Name, RecordSource>,
    /// Chat sinks by name.
    pub chat_sinks: BTreeMap<Name, ChatSink>,
    /// What is wrong with tools in `tools` directories: each such tool is left out, and the others stay.
    pub left_out: Mistakes,
    /// Projects whose policy is not approved: it has no effect.
    pub unapproved: BTreeSet<Name>,
}

/// A Process as a bundle brings it, before it has a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleProcess {
    /// A name for people, 1 to 250 characters.
    pub name: Option<String>,
    /// Whether it can be started.
    pub state: ProcessState,
    /// The BPMN document.
    pub xml: String,
    /// What it says about itself.
    pub summary: ProcessSummary,
}
