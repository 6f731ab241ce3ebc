//! What is declared, after validation: the parts of a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::{JobKey, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use runfleet_domain::limits::{
    AGENT_DEPTH_MAX, AGENT_STARTS_PER_EXECUTION, CAPABILITY_CALLS, HOPS_START, JOB_CHAIN_MAX,
    StartLimits,
};
use runfleet_domain::policy::Policy;

use crate::registered::Registered;
use crate::schedule::Schedule;
use crate::summary::{InputProblem, ProcessSummary};

/// A workspace without its people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// Its id.
    pub id: Name,
    /// A name for people, 1 to 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it has paid for; without it nothing is limited and every model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// Whether messages can be delivered to people.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub delivery: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

/// What a workspace has paid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Billing {
    /// Whether it has an AI plan.
    pub subscription: bool,
    /// Credits that it has been given in all; none means that they are not limited. What was charged is in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<u32>,
    /// Models that have a price.
    pub prices: BTreeMap<String, Price>,
}

/// What one million tokens cost, in credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Tokens that the model reads.
    pub input_per_million: u32,
    /// Tokens that it writes.
    pub output_per_million: u32,
    /// Those of the tokens read that came from a cache; none when they cost what others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_per_million: Option<u32>,
}

/// A person of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// A name for people, 1 to 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the person has an account in the workspace.
    pub account: bool,
    /// Whether the person is active.
    pub active: bool,
    /// Which Processes the person may start.
    pub may_start_processes: Grant,
    /// Which agents the person may use: start, and get messages from.
    #[serde(default, skip_serializing_if = "Grant::is_all")]
    pub may_use_agents: Grant,
    /// Whether the person holds an AI Agent seat.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub ai_seat: bool,
    /// By what chat sinks know the person, such as a mail address; at most 16.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reach: BTreeMap<Name, String>,
}

/// What somebody was granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Grant {
    /// Everything.
    #[default]
    All,
    /// These and nothing else; at most 200.
    Only(BTreeSet<Name>),
}

impl Grant {
    /// Whether it covers `id`.
    pub fn covers(&self, id: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(id),
        }
    }

    /// The ids of a grant that lists them.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Name> {
        match self {
            Self::All => None,
            Self::Only(ids) => Some(ids),
        }
        .into_iter()
        .flatten()
    }

    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// A name for people, 1 to 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The active version: 1 to 64 letters, digits, `.`, `_`, `+` and `-`.
    pub version: String,
    /// The jobs that this version declares; at most 50, no two equal when case is ignored.
    pub jobs: BTreeMap<JobKey, Job>,
    /// What code of this version may start: the policy that was approved for it. Empty when none was, or when the policy is
    /// disabled.
    pub policy: Policy,
    /// The newest policies that were approved, by version of the project; at most 20.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<String, ApprovedPolicy>,
    /// Whether all of them are switched off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub policy_disabled: bool,
    /// How much.
    pub limits: Limits,
    /// Where its code reads and writes records; none means the only source of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_source: Option<Name>,
    /// The agents that answer model calls of its code, at most 16: the first one with the model that is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_agents: Vec<Name>,
    /// The active version as its hosts have registered it: `version` and `jobs` are those of it. None while the document says
    /// what is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
}

/// The policy that was approved for one version of a project. Code of that version goes on being judged by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedPolicy {
    /// Counts the policies that were approved for the project, from 1.
    pub revision: u32,
    /// What was approved.
    pub policy: Policy,
}

impl Project {
    /// Whether the active version declares the job, spelt exactly so.
    pub fn declares(&self, job: &JobKey) -> bool {
        self.jobs.contains_key(job)
    }

    /// The policy that judges code of a version; none means the active one. A version for which nothing was approved has none.
    pub fn policy_for(&self, version: Option<&str>) -> Option<&Policy> {
        if self.policy_disabled {
            return None;
        }
        match version {
            Some(version) if version != self.version => {
                self.policies.get(version).map(|approved| &approved.policy)
            }
            Some(_) | None => Some(&self.policy),
        }
    }
}

/// A background job of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// A name for people, 1 to 250 characters; the key unless it was given.
    pub name: String,
    /// One attempt, in milliseconds: 1,000 to 60,000.
    pub timeout_ms: u32,
    /// Attempts, the first included: 1 to 10.
    pub max_attempts: u32,
    /// When it runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

/// Limits of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Process starts of one UTC day.
    pub process_starts_per_day: u32,
    /// Process starts of one execution.
    pub process_starts_per_execution: u32,
    /// Agent starts of one execution.
    #[serde(default = "Limits::agent_starts")]
    pub agent_starts_per_execution: u32,
    /// Calls of every kind of one execution.
    #[serde(default)]
    pub capability_calls: CapabilityCalls,
    /// Automation steps that an execution may have at most.
    #[serde(default = "Limits::hops")]
    pub hops: u32,
    /// Levels of agents that start agents.
    #[serde(default = "Limits::agent_depth")]
    pub agent_depth: u32,
    /// Links of a job chain without an outside event.
    #[serde(default = "Limits::job_chain")]
    pub job_chain: u32,
    /// Job runs that may wait or run.
    pub jobs_waiting: u32,
}

/// Calls of every kind that one execution may make, by what is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityCalls {
    /// A route, script, action, inbound webhook or development session.
    pub route: u32,
    /// A trigger before a change.
    pub before_change: u32,
    /// A trigger after a change.
    pub after_change: u32,
    /// A background job, also one that a schedule started.
    pub job: u32,
}

impl Default for CapabilityCalls {
    fn default() -> Self {
        let runfleet_domain::limits::CapabilityCalls { route, before_change, after_change, job } =
            CAPABILITY_CALLS;
        Self { route, before_change, after_change, job }
    }
}

impl Limits {
    fn agent_starts() -> u32 {
        AGENT_STARTS_PER_EXECUTION
    }

    fn hops() -> u32 {
        HOPS_START
    }

    fn agent_depth() -> u32 {
        AGENT_DEPTH_MAX
    }

    fn job_chain() -> u32 {
        JOB_CHAIN_MAX
    }

    /// Those that admission and ledger need.
    pub fn start(&self) -> StartLimits {
        let CapabilityCalls { route, before_change, after_change, job } = self.capability_calls;
        StartLimits {
            process_starts_per_day: self.process_starts_per_day,
            process_starts_per_execution: self.process_starts_per_execution,
            agent_starts_per_execution: self.agent_starts_per_execution,
            capability_calls: runfleet_domain::limits::CapabilityCalls {
                route,
                before_change,
                after_change,
                job,
            },
            hops: self.hops,
            agent_depth: self.agent_depth,
        }
    }
}

/// A Process and its newest version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessDefinition {
    /// A name for people, 1 to 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it can be started.
    pub state: ProcessState,
    /// Counts the definitions that were applied, from 1.
    pub version: u32,
    /// SHA-256 of the definition's text, in lower-case hexadecimal.
    pub sha256: String,
    /// What the definition says about itself.
    pub summary: ProcessSummary,
}

impl ProcessDefinition {
    /// Whether it can be started; to callers an inactive Process does not exist.
    pub fn is_active(&self) -> bool {
        self.state == ProcessState::Active
    }

    /// Checks the input of a start; see [`ProcessSummary::check_input`].
    pub fn check_input(&self, input: &Map<String, Value>) -> Result<(), InputProblem> {
        self.summary.check_input(input)
    }
}

/// Whether a Process or agent can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessState {
    /// It can.
    Active,
    /// It cannot; runs that have begun go on.
    Inactive,
}
