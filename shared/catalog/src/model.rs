//! What is declared, after validation: the parts of a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::{JobKey, Name};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::policy::{Policy, Refusal};
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
}

/// What somebody was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Grant {
    /// Everything.
    All,
    /// These and nothing else; at most 200.
    Only(BTreeSet<Name>),
}

impl Person {
    /// The person's own right to start a Process.
    pub fn may_start(&self, process: &Name) -> Result<(), Refusal> {
        if !self.active {
            return Err(Refusal::PersonNotActive);
        }
        if !self.account {
            return Err(Refusal::NoAccount);
        }
        match &self.may_start_processes {
            Grant::Only(ids) if !ids.contains(process) => Err(Refusal::NotGranted),
            Grant::All | Grant::Only(_) => Ok(()),
        }
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
    /// What its code may start.
    pub policy: Policy,
    /// How much.
    pub limits: Limits,
}

impl Project {
    /// Whether the active version declares the job, spelt exactly so.
    pub fn declares(&self, job: &JobKey) -> bool {
        self.jobs.contains_key(job)
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
}

/// Limits of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Process starts of one UTC day.
    pub process_starts_per_day: u32,
    /// Process starts of one execution.
    pub process_starts_per_execution: u32,
    /// Job runs that may wait or run.
    pub jobs_waiting: u32,
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

/// Whether a Process can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessState {
    /// It can.
    Active,
    /// It cannot; runs that have begun go on.
    Inactive,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(account: bool, active: bool, may_start_processes: Grant) -> Person {
        Person { name: None, account, active, may_start_processes }
    }

    /// CG-013, CG-014
    #[test]
    fn a_person_needs_an_account_and_the_right_to_start_the_process() {
        let process: Name = "p".parse().unwrap();
        let only = |ids: &[&str]| Grant::Only(ids.iter().map(|id| id.parse().unwrap()).collect());
        for (person, expected) in [
            (person(true, true, Grant::All), Ok(())),
            (person(true, true, only(&["p"])), Ok(())),
            (person(true, true, only(&[])), Err(Refusal::NotGranted)),
            (person(true, true, only(&["q"])), Err(Refusal::NotGranted)),
            (person(false, true, Grant::All), Err(Refusal::NoAccount)),
            (person(true, false, Grant::All), Err(Refusal::PersonNotActive)),
        ] {
            assert_eq!(person.may_start(&process), expected, "{person:?}");
        }
    }
}
