//! One version of an agent as it is stored: the agent with everything that it names. A run keeps the version it began with.

use std::collections::BTreeMap;

use runfleet_domain::Name;
use serde::{Deserialize, Serialize};

use crate::agent::AgentSpec;
use crate::snapshot::Snapshot;
use crate::stored::{self, StoredError};
use crate::tool::{
    McpServer, ModelProvider, RecordSource, Scope, SkillDefinition, ToolDefinition, ToolKind,
};

/// The format of stored blueprints that this code writes.
pub const BLUEPRINT_FORMAT: u32 = 1;

/// An agent with everything that it names. Holds where secrets are found, and no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentBlueprint {
    /// [`BLUEPRINT_FORMAT`] of whoever wrote it.
    pub format: u32,
    /// The agent.
    pub agent: Name,
    /// The model, as the price table names it.
    pub model: String,
    /// Credits that the agent may use in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_limit: Option<u32>,
    /// How it works.
    pub spec: AgentSpec,
    /// Its provider by name, when one is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<(Name, ModelProvider)>,
    /// General tools, those that it names, and those of its skills.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, ToolDefinition>,
    /// General skills and those that it names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<Name, SkillDefinition>,
    /// MCP servers that it or one of its tools names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<Name, McpServer>,
    /// Where the records are fetched that are given at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_source: Option<RecordSource>,
}

impl AgentBlueprint {
    /// Reads a stored blueprint.
    pub fn from_json(json: &str) -> Result<Self, StoredError> {
        stored::read(json.as_bytes(), "definition", BLUEPRINT_FORMAT)
    }

    /// The text to store. The same blueprint always gives the same text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

impl Snapshot {
    /// The newest version of an agent, with everything that it names and that is declared.
    pub fn blueprint(&self, agent: &Name) -> Option<AgentBlueprint> {
        let definition = self.agents.get(agent)?;
        let spec = &definition.spec;
        let skills: BTreeMap<_, _> =
            self.skills_of(spec).map(|(name, skill)| (name.clone(), skill.clone())).collect();
        let tools: BTreeMap<_, _> = self
            .all_tools()
            .filter(|(name, tool)| self.is_tool_of((agent, spec), name, tool))
            .map(|(name, tool)| (name.clone(), tool.clone()))
            .collect();
        let through = |server: &Name| {
            tools.values().any(
                |tool| matches!(&tool.kind, ToolKind::Mcp { server: named, .. } if named == server),
            )
        };
        let mcp_servers = self
            .mcp_servers
            .iter()
            .filter(|(name, _)| spec.mcp_servers.contains(*name) || through(name))
            .map(|(name, server)| (name.clone(), server.clone()))
            .collect();
        Some(AgentBlueprint {
            format: BLUEPRINT_FORMAT,
            agent: agent.clone(),
            model: definition.model.clone(),
            credit_limit: definition.credit_limit,
            provider: self.provider_of(spec, &definition.model),
            record_source: spec
                .record_source
                .as_ref()
                .and_then(|name| self.record_sources.get(name))
                .cloned(),
            spec: spec.clone(),
            tools,
            skills,
            mcp_servers,
        })
    }

    /// General skills and those that an agent names.
    fn skills_of<'a>(
        &'a self,
        spec: &'a AgentSpec,
    ) -> impl Iterator<Item = (&'a Name, &'a SkillDefinition)> {
        self.skills
            .iter()
            .filter(|(name, skill)| skill.scope == Scope::General || spec.skills.contains(*name))
    }

    /// Whether an agent has a tool: it is general, named by the agent, or comes with one of its skills.
    pub(crate) fn is_tool_of(
        &self,
        (agent, spec): (&Name, &AgentSpec),
        name: &Name,
        tool: &ToolDefinition,
    ) -> bool {
        self.comes_by_itself(agent, name, tool)
            || spec.tools.contains_key(name)
            || (tool.scope == Scope::Specified
                && self.skills_of(spec).any(|(_, skill)| skill.tools.contains(name)))
    }

    /// Whether a tool comes to an agent that does not name it. A version of a project is made active by whoever has a key of the
    /// project, so its general tools come only to agents that the approved policy of the project picks.
    fn comes_by_itself(&self, agent: &Name, name: &Name, tool: &ToolDefinition) -> bool {
        if tool.scope != Scope::General || self.tools.contains_key(name) {
            return tool.scope == Scope::General;
        }
        let ToolKind::Project { project, .. } = &tool.kind else { return false };
        let section = self.project(project).and_then(|project| project.policy.agents.as_ref());
        section.is_some_and(|section| section.agents.picks(agent))
    }

    /// The provider that an agent names, or the first one that lists its model.
    fn provider_of(&self, spec: &AgentSpec, model: &str) -> Option<(Name, ModelProvider)> {
        let found = match &spec.provider {
            Some(name) => self.providers.get_key_value(name),
            None => self.providers.iter().find(|(_, provider)| provider.models.contains_key(model)),
        };
        found.map(|(name, provider)| (name.clone(), provider.clone()))
    }
}
