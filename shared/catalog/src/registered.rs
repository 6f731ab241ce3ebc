//! The version of a project that its hosts have registered and somebody has made the active one: what it declares, and how it comes
//! into a snapshot.
//!
//! It takes the place of the version and the jobs in the document of the project, for as long as there is one. Everything else
//! stays as a workspace administrator has approved it.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_contracts::ErrorBody;
use runfleet_contracts::host_call::CallKind;
use runfleet_contracts::projects::{
    Access, JobDeclared, RegisterVersion, ToolDeclared, ToolPermission, ToolScope,
};
use runfleet_domain::{JobKey, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approval;
use crate::bounds::{CALL_SECONDS_DEFAULT, JOB_ATTEMPTS_DEFAULT, JOB_TIMEOUT_MS_DEFAULT};
use crate::merge::{Changes, MergeError, Merged, agents};
use crate::model::{Job, Project};
use crate::schedule::Schedule;
use crate::schema::schema_problem;
use crate::snapshot::Snapshot;
use crate::tool::{Permission, Scope, ToolDefinition, ToolKind};

/// One call of a script, in milliseconds.
const SCRIPT_MS: u32 = 30_000;

/// One call of a route, in milliseconds.
const ROUTE_MS: u32 = 8_000;

const TRIGGER_MS_DEFAULT: u32 = 2_000;
const ACTION_MS_DEFAULT: u32 = 8_000;

/// The active version of a project, as its hosts have registered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// The version.
    pub version: String,
    /// Its scripts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub scripts: BTreeSet<String>,
    /// Its HTTP routes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub routes: BTreeSet<String>,
    /// Its triggers, with the time of one call in milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub triggers: BTreeMap<String, u32>,
    /// Its actions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, Callable>,
    /// Its tools for agents. A tool of the workspace with the same name comes first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, ToolDefinition>,
}

/// How something of a project is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Callable {
    /// Longest time of one call, in milliseconds.
    pub timeout_ms: u32,
    /// Whether it may only read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// A version with everything that it declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    registered: Registered,
    jobs: BTreeMap<JobKey, Job>,
}

/// Why a version cannot be made the active one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActivateError {
    /// Nobody has declared the project.
    #[error("the project is not declared")]
    NoProject,
    /// Another project has a tool of the same name.
    #[error("the tool {tool} is a tool of project {project} already")]
    ToolTaken {
        /// The tool.
        tool: Name,
        /// The project that has it.
        project: Name,
    },
    /// It does not fit.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl Registered {
    /// How something of this version is called; none when the version does not declare it.
    pub fn callable(&self, kind: CallKind, name: &str) -> Option<Callable> {
        let of = |timeout_ms| Callable { timeout_ms, read_only: false };
        match kind {
            CallKind::Script => self.scripts.contains(name).then_some(of(SCRIPT_MS)),
            CallKind::Route => self.routes.contains(name).then_some(of(ROUTE_MS)),
            CallKind::Trigger => self.triggers.get(name).copied().map(of),
            CallKind::Action => self.actions.get(name).copied(),
        }
    }
}

impl Declared {
    /// Brings what a version of `project` declares into the form of the catalog, after [`RegisterVersion::parse`]. What is still
    /// wrong then is told by field.
    pub fn new(project: &Name, declared: &RegisterVersion) -> Result<Self, ErrorBody> {
        let mut jobs = BTreeMap::new();
        for (index, job) in declared.jobs.iter().enumerate() {
            let (key, job) = read_job(&format!("jobs[{index}]"), job)?;
            jobs.insert(key, job);
        }
        let mut tools = BTreeMap::new();
        for (index, tool) in declared.tools.iter().enumerate() {
            let (name, tool) = read_tool(&format!("tools[{index}]"), project, tool)?;
            tools.insert(name, tool);
        }
        let trigger = |one: &runfleet_contracts::projects::TriggerDeclared| {
            (one.key.clone(), one.timeout_ms.unwrap_or(TRIGGER_MS_DEFAULT))
        };
        let action = |one: &runfleet_contracts::projects::ActionDeclared| {
            let timeout_ms = one.timeout_ms.unwrap_or(ACTION_MS_DEFAULT);
            (one.key.clone(), Callable { timeout_ms, read_only: one.access == Access::Read })
        };
        let registered = Registered {
            version: declared.version.clone(),
            scripts: declared.scripts.iter().cloned().collect(),
            routes: declared.routes.iter().cloned().collect(),
            triggers: declared.triggers.iter().map(trigger).collect(),
            actions: declared.actions.iter().map(action).collect(),
            tools,
        };
        Ok(Self { registered, jobs })
    }
}

fn wrong<T, E: std::fmt::Display>(
    at: &str,
    field: &str,
    read: Result<T, E>,
) -> Result<T, ErrorBody> {
    read.map_err(|error| ErrorBody::field(&format!("{at}.{field}"), error.to_string()))
}

fn read_job(at: &str, job: &JobDeclared) -> Result<(JobKey, Job), ErrorBody> {
    let key: JobKey = wrong(at, "key", job.key.parse())?;
    let schedule = job.schedule.as_ref().map(|declared| {
        Schedule::parse(&declared.cron, declared.time_zone.as_deref()).map_err(|error| {
            ErrorBody::field(&format!("{at}.schedule.{}", error.field), error.problem)
        })
    });
    let read = Job {
        name: job.name.clone().unwrap_or_else(|| key.to_string()),
        timeout_ms: job.timeout_ms.unwrap_or(JOB_TIMEOUT_MS_DEFAULT),
        max_attempts: job.max_attempts.unwrap_or(JOB_ATTEMPTS_DEFAULT),
        schedule: schedule.transpose()?,
    };
    Ok((key, read))
}

fn read_tool(
    at: &str,
    project: &Name,
    tool: &ToolDeclared,
) -> Result<(Name, ToolDefinition), ErrorBody> {
    let name: Name = wrong(at, "name", tool.name.parse())?;
    let input_schema = match &tool.schema {
        None => Map::from_iter([("type".to_owned(), Value::from("object"))]),
        Some(schema) => {
            if let Some(problem) = schema_problem(&Value::Object(schema.clone())) {
                return Err(ErrorBody::field(&format!("{at}.schema"), problem));
            }
            schema.clone()
        }
    };
    let read = ToolDefinition {
        title: tool.title.clone(),
        description: tool.description.clone(),
        scope: match tool.scope {
            Some(ToolScope::General) => Scope::General,
            Some(ToolScope::Custom) => Scope::Custom,
            Some(ToolScope::Specified) | None => Scope::Specified,
        },
        permission: match tool.permission {
            Some(ToolPermission::Allow) => Permission::Allow,
            Some(ToolPermission::Ask) | None => Permission::Ask,
        },
        input_schema,
        kind: ToolKind::Project { project: project.clone(), function: name.clone() },
        idempotent: tool.idempotent,
        timeout_seconds: tool.timeout_seconds.unwrap_or(CALL_SECONDS_DEFAULT),
    };
    Ok((name, read))
}

/// Brings the registered version of a project into its document, which is declared anew.
pub(crate) fn keep(before: Option<&Project>, project: &mut Project) {
    let Some((before, registered)) =
        before.and_then(|before| Some((before, before.registered.as_ref()?)))
    else {
        return;
    };
    project.version.clone_from(&registered.version);
    project.jobs.clone_from(&before.jobs);
    project.registered = Some(registered.clone());
}

impl Snapshot {
    /// Makes a version the active one of its project. Agents that have tools of it get new versions; runs that have begun keep
    /// theirs. A version for which no policy was approved gets the one that is in force.
    pub fn activate(&self, project: &Name, declared: &Declared) -> Result<Merged, ActivateError> {
        let before = self.projects.get(project).ok_or(ActivateError::NoProject)?;
        for (name, other) in self.projects.iter().filter(|(name, _)| *name != project) {
            let theirs = other.registered.iter().flat_map(|version| version.tools.keys());
            let taken =
                theirs.into_iter().find(|tool| declared.registered.tools.contains_key(*tool));
            if let Some(tool) = taken {
                let (tool, project) = (tool.clone(), name.clone());
                return Err(ActivateError::ToolTaken { tool, project });
            }
        }
        let mut after = before.clone();
        after.version.clone_from(&declared.registered.version);
        after.jobs.clone_from(&declared.jobs);
        after.registered = Some(declared.registered.clone());
        let of = |version: &str| before.policies.get(version).map(|known| known.policy.clone());
        let own = of(&after.version);
        let in_force = own.or_else(|| of(&before.version));
        after.policy = in_force.unwrap_or_else(|| before.policy.clone());
        approval::settle(project, Some(before), &mut after, true);
        let (mut snapshot, mut changes) = (self.clone(), Changes::default());
        changes.project(project, before, &after);
        snapshot.projects.insert(project.clone(), after);
        let agent_versions = agents::merge(&mut snapshot, BTreeMap::new(), &mut changes)?;
        if !changes.is_empty() {
            snapshot.revision += 1;
        }
        Ok(Merged { snapshot, definitions: Vec::new(), agent_versions, changes })
    }

    /// The agent of a project that answers calls of a model; any model unless one is named. Only agents that can be started.
    pub fn model_agent(&self, project: &Name, model: Option<&str>) -> Option<&Name> {
        let agents = &self.project(project)?.model_agents;
        agents.iter().find(|name| {
            self.agent(name).is_some_and(|agent| {
                agent.is_active() && model.is_none_or(|model| agent.model == model)
            })
        })
    }

    /// Tools by name: those of the workspace, then those of the active versions of its projects.
    pub fn all_tools(&self) -> impl Iterator<Item = (&Name, &ToolDefinition)> {
        let registered = self.projects.values().filter_map(|project| project.registered.as_ref());
        let theirs = registered.flat_map(|version| &version.tools);
        self.tools.iter().chain(theirs.filter(|(name, _)| !self.tools.contains_key(*name)))
    }
}
