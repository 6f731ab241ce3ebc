//! What code of a project may start, as its administrator approved it, and why it may not.

use std::collections::BTreeSet;

use runfleet_contracts::{ErrorBody, ErrorCode};
use runfleet_domain::Name;
use serde::{Deserialize, Serialize};

/// The policy of one project. An absent section refuses everything that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// What may be done with Processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessPolicy>,
    /// What may be done with agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentPolicy>,
}

/// The section for Processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessPolicy {
    /// Which Processes.
    pub processes: Selector,
    /// Whether executions without a user may start them.
    pub allow_system: bool,
}

/// The section for agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPolicy {
    /// Which agents.
    pub agents: Selector,
    /// Whether executions without a user may start them.
    pub allow_system: bool,
    /// Runs of one UTC day, 1 to 10,000.
    pub max_runs_per_day: u32,
    /// Whether an execution with a user may have tool calls approved automatically.
    pub allow_auto_approve: bool,
}

/// Picks ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// How `ids` is meant.
    pub mode: SelectorMode,
    /// At most 200 ids.
    pub ids: BTreeSet<Name>,
}

/// How the ids of a selector are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SelectorMode {
    /// Everything; there are no ids.
    All,
    /// Everything but the ids.
    AllExcept,
    /// Nothing but the ids; there is at least one.
    Only,
}

impl Selector {
    /// Whether `id` is picked.
    pub fn picks(&self, id: &Name) -> bool {
        match self.mode {
            SelectorMode::All => true,
            SelectorMode::AllExcept => !self.ids.contains(id),
            SelectorMode::Only => self.ids.contains(id),
        }
    }
}

/// Why something may not be started. Turns into the error that the caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The project has no policy for Processes.
    #[error("the policy of the project has no section for Processes")]
    NoProcessPolicy,
    /// The policy does not pick this Process.
    #[error("the policy of the project does not select the Process")]
    NotSelected,
    /// The execution has no user, which the policy does not allow.
    #[error("the policy of the project does not allow executions without a user")]
    NoSystem,
    /// The workspace does not know the person, or the person is not active.
    #[error("the person is not active in the workspace")]
    PersonNotActive,
    /// The person has no account.
    #[error("the person has no account in the workspace")]
    NoAccount,
    /// The person may not start this Process.
    #[error("the person may not start the Process")]
    NotGranted,
}

impl Refusal {
    /// `details.reason` of the caller's error.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoProcessPolicy | Self::NotSelected | Self::NoSystem => "PROCESSES_NOT_ALLOWED",
            Self::PersonNotActive | Self::NoAccount | Self::NotGranted => "PROCESS_START_DENIED",
        }
    }
}

impl From<Refusal> for ErrorBody {
    fn from(refusal: Refusal) -> Self {
        let body = Self::new(ErrorCode::PermissionDenied).with("reason", refusal.reason());
        match refusal {
            Refusal::NoSystem => body.with("identity", "system"),
            Refusal::NoProcessPolicy
            | Refusal::NotSelected
            | Refusal::PersonNotActive
            | Refusal::NoAccount
            | Refusal::NotGranted => body,
        }
    }
}

impl Policy {
    /// Whether the project may use Processes at all, which is what reading the state of its runs needs.
    pub fn allows_processes(&self) -> Result<(), Refusal> {
        self.processes.as_ref().map(|_| ()).ok_or(Refusal::NoProcessPolicy)
    }

    /// Whether the project may start this Process, for an execution with a user or without.
    pub fn allows_process(&self, process: &Name, has_user: bool) -> Result<(), Refusal> {
        let section = self.processes.as_ref().ok_or(Refusal::NoProcessPolicy)?;
        if !section.processes.picks(process) {
            return Err(Refusal::NotSelected);
        }
        if !has_user && !section.allow_system {
            return Err(Refusal::NoSystem);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: SelectorMode, ids: &[&str], allow_system: bool) -> Policy {
        let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
        let processes = Selector { mode, ids };
        Policy { processes: Some(ProcessPolicy { processes, allow_system }), agents: None }
    }

    fn check(policy: &Policy, process: &str, has_user: bool, expected: Result<(), Refusal>) {
        assert_eq!(
            policy.allows_process(&process.parse().unwrap(), has_user),
            expected,
            "{policy:?} {process}"
        );
    }

    /// CG-010, CG-011
    #[test]
    fn a_policy_without_the_section_refuses_every_call() {
        check(&Policy::default(), "p", true, Err(Refusal::NoProcessPolicy));
        assert_eq!(Policy::default().allows_processes(), Err(Refusal::NoProcessPolicy));
    }

    /// CG-010
    #[test]
    fn the_selector_decides_about_the_process() {
        check(&policy(SelectorMode::All, &[], false), "p", true, Ok(()));
        check(&policy(SelectorMode::AllExcept, &["q"], false), "p", true, Ok(()));
        check(
            &policy(SelectorMode::AllExcept, &["p"], false),
            "p",
            true,
            Err(Refusal::NotSelected),
        );
        check(&policy(SelectorMode::Only, &["p"], false), "p", true, Ok(()));
        check(&policy(SelectorMode::Only, &["P"], false), "p", true, Err(Refusal::NotSelected));
    }

    /// CG-015
    #[test]
    fn an_execution_without_a_user_needs_allow_system() {
        check(&policy(SelectorMode::All, &[], true), "p", false, Ok(()));
        check(&policy(SelectorMode::All, &[], false), "p", false, Err(Refusal::NoSystem));
        let body = serde_json::to_value(ErrorBody::from(Refusal::NoSystem)).unwrap();
        assert_eq!(body["details"]["reason"], "PROCESSES_NOT_ALLOWED");
        assert_eq!(body["details"]["identity"], "system");
    }

    /// CG-017
    #[test]
    fn reading_the_state_of_runs_needs_the_section_and_no_selection() {
        assert_eq!(policy(SelectorMode::Only, &["q"], false).allows_processes(), Ok(()));
    }
}
