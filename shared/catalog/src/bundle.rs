//! A validated set of documents: exactly one workspace, and projects, Processes and agents of different names.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use crate::model::{AgentDefinition, Person, ProcessState, Project, Workspace};
use crate::summary::ProcessSummary;

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
