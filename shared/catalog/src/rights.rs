//! What a run may still do: the rights of its agent, its project and its person, as they are declared now and not as they were
//! when it began.
//!
//! A person whom the catalog does not know keeps the rights that the start has found: people may be known to a service of the
//! platform only. Who is known has exactly the rights that are declared.

use runfleet_domain::Name;

use crate::snapshot::Snapshot;
use crate::tool::ToolKind;

/// For whom something is done.
#[derive(Debug, Clone, Copy)]
pub struct Acting<'a> {
    /// The project of the run. Its active policy counts.
    pub project: &'a Name,
    /// The person it runs as; none for an execution without a user.
    pub user: Option<&'a Name>,
}

/// Why a run of an agent may not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawn {
    /// The agent was switched off.
    AgentInactive,
    /// The person may not use the agent any more.
    AccessDenied,
}

impl Snapshot {
    /// Whether a run of `agent` as `user` may go on.
    pub fn may_go_on(&self, agent: &Name, user: Option<&Name>) -> Result<(), Withdrawn> {
        if self.agent(agent).is_some_and(|agent| !agent.is_active()) {
            return Err(Withdrawn::AgentInactive);
        }
        if user.is_none_or(|user| self.person_may_use(user, agent)) {
            Ok(())
        } else {
            Err(Withdrawn::AccessDenied)
        }
    }

    fn person_may_use(&self, user: &Name, agent: &Name) -> bool {
        let let_by_agent = self.agent(agent).is_none_or(|agent| agent.spec.users.covers(user));
        let known = self.person(user);
        let_by_agent
            && known.is_none_or(|person| {
                person.active && person.account && person.may_use_agents.covers(agent)
            })
    }

    /// Whether a person holds an AI Agent seat, or is not known.
    pub fn has_seat(&self, user: &Name) -> bool {
        self.person(user).is_none_or(|person| person.ai_seat)
    }

    /// Whether a run may start a Process: policy and person allow it. Whether there is one is not looked at.
    pub fn may_start_process(&self, by: Acting<'_>, process: &Name) -> bool {
        let policy = self.project(by.project).and_then(|project| project.policy.processes.as_ref());
        let allowed = policy.is_some_and(|section| {
            section.processes.picks(process) && (section.allow_system || by.user.is_some())
        });
        let person = by.user.and_then(|user| self.person(user));
        allowed
            && person.is_none_or(|person| {
                person.active && person.account && person.may_start_processes.covers(process)
            })
    }

    /// Whether a run may start an agent: policy, agent and person allow it. Whether there is one is not looked at.
    pub fn may_start_agent(&self, by: Acting<'_>, agent: &Name) -> bool {
        let policy = self.project(by.project).and_then(|project| project.policy.agents.as_ref());
        let allowed = policy.is_some_and(|section| {
            section.agents.picks(agent) && (section.allow_system || by.user.is_some())
        });
        allowed
            && by.user.is_none_or(|user| self.person_may_use(user, agent) && self.has_seat(user))
    }

    /// Whether a run of `agent` may call a tool by the name under which the model knows it: the agent has it, and policy and
    /// person allow what it does. A tool of an MCP server is named `<server>__<tool>`.
    pub fn may_call(&self, by: Acting<'_>, agent: &Name, tool: &str) -> bool {
        let id = agent;
        let Some(agent) = self.agent(agent) else { return false };
        let declared = self.all_tools().find(|(name, _)| name.as_str() == tool);
        if let Some((name, tool)) = declared {
            return self.is_tool_of((id, &agent.spec), name, tool)
                && match &tool.kind {
                    ToolKind::ProcessStart { process, .. } => self.may_start_process(by, process),
                    ToolKind::Agent { agent } => self.may_start_agent(by, agent),
                    ToolKind::Mcp { server, tool } => self.offers(server, tool),
                    ToolKind::Builtin(_) | ToolKind::Http(_) | ToolKind::Project { .. } => true,
                };
        }
        agent.spec.mcp_servers.iter().any(|server| {
            let found = tool.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix("__"));
            found.is_some_and(|tool| self.offers(server, tool))
        })
    }

    /// Whether a tool of an MCP server is to be used at all.
    fn offers(&self, server: &Name, tool: &str) -> bool {
        self.mcp_servers
            .get(server)
            .is_some_and(|server| server.only.as_ref().is_none_or(|only| only.contains(tool)))
    }
}
