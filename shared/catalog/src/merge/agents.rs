//! Versions of agents. An agent has a new version whenever it, or anything that it names, differs from what was stored.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use super::{AgentVersion, Changed, Changes, MergeError};
use crate::agent::AgentDefinition;
use crate::bounds::FILE_BYTES_MAX;
use crate::digest::sha256;
use crate::model::Grant;
use crate::sink::BUILTIN_SINK;
use crate::snapshot::Snapshot;
use crate::tool::ToolKind;

/// Takes in the agents of a bundle, after everything that they may name, and gives those versions that are new.
pub(crate) fn merge(
    snapshot: &mut Snapshot,
    new: BTreeMap<Name, AgentDefinition>,
    changes: &mut Changes,
) -> Result<Vec<AgentVersion>, MergeError> {
    let before = snapshot.agents.clone();
    let given: Vec<Name> = new.keys().cloned().collect();
    snapshot.agents.extend(new);
    let mut versions = Vec::new();
    for name in snapshot.agents.keys().cloned().collect::<Vec<_>>() {
        let Some(blueprint) = snapshot.blueprint(&name) else { continue };
        let json = blueprint.to_json().unwrap_or_default();
        if json.is_empty() || json.len() > FILE_BYTES_MAX {
            return Err(MergeError::AgentTooLarge);
        }
        let sha256 = sha256(&json);
        let stored = before.get(&name);
        let Some(agent) = snapshot.agents.get_mut(&name) else { continue };
        agent.version = stored.map_or(0, |stored| stored.version);
        agent.sha256.clone_from(&sha256);
        // Also a change that runs do not see, such as of a description, is a version: callers could see it.
        if stored != Some(&*agent) {
            agent.version = agent.version.checked_add(1).ok_or(MergeError::NoVersionLeft)?;
            let version = agent.version;
            versions.push(AgentVersion { agent: name.clone(), version, sha256, json });
        }
        let changed = Changed::of(stored, &*agent);
        if given.contains(&name) || changed != Changed::Unchanged {
            changes.add("agent", &name, changed, Some(agent.version));
        }
    }
    Ok(versions)
}

/// Names that agents, skills and tools refer to and nobody declared. To a run they do not exist.
pub(super) fn unknown_names(snapshot: &Snapshot, warnings: &mut Vec<String>) {
    let mut check = |place: &str, kind: &str, id: &Name, known: bool| {
        if !known {
            warnings.push(format!("{place} names the {kind} {id}, which is not declared"));
        }
    };
    let tools: BTreeSet<&Name> = snapshot.all_tools().map(|(name, _)| name).collect();
    for (name, agent) in &snapshot.agents {
        let place = format!("agent {name}");
        let spec = &agent.spec;
        for tool in spec.tools.keys() {
            check(&place, "tool", tool, tools.contains(tool));
        }
        for skill in &spec.skills {
            check(&place, "skill", skill, snapshot.skills.contains_key(skill));
        }
        for server in &spec.mcp_servers {
            check(&place, "MCP server", server, snapshot.mcp_servers.contains_key(server));
        }
        if let Some(provider) = &spec.provider {
            check(&place, "provider", provider, snapshot.providers.contains_key(provider));
        }
        if let Some(source) = &spec.record_source {
            check(&place, "record source", source, snapshot.record_sources.contains_key(source));
        }
        if let Some(sink) = &spec.chat_sink {
            let known = snapshot.chat_sinks.contains_key(sink) || sink.as_str() == BUILTIN_SINK;
            check(&place, "chat sink", sink, known);
        }
        if let Grant::Only(people) = &spec.users {
            for person in people {
                check(&place, "person", person, snapshot.people.contains_key(person));
            }
        }
    }
    for (name, skill) in &snapshot.skills {
        for tool in &skill.tools {
            check(&format!("skill {name}"), "tool", tool, tools.contains(tool));
        }
    }
    for (name, tool) in &snapshot.tools {
        let place = format!("tool {name}");
        match &tool.kind {
            ToolKind::Builtin(_) | ToolKind::Http(_) => {}
            ToolKind::ProcessStart { process, .. } => {
                check(&place, "Process", process, snapshot.processes.contains_key(process));
            }
            ToolKind::Agent { agent } => {
                check(&place, "agent", agent, snapshot.agents.contains_key(agent));
            }
            ToolKind::Project { project, .. } => {
                check(&place, "project", project, snapshot.projects.contains_key(project));
            }
            ToolKind::Mcp { server, .. } => {
                check(&place, "MCP server", server, snapshot.mcp_servers.contains_key(server));
            }
        }
    }
}
