//! What code of a project may start, as its administrator approved it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Name;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(mode: SelectorMode, ids: &[&str], id: &str) -> bool {
        let ids = ids.iter().map(|id| id.parse().unwrap()).collect();
        Selector { mode, ids }.picks(&id.parse().unwrap())
    }

    /// CG-010
    #[test]
    fn the_selector_decides_about_each_target() {
        use SelectorMode::{All, AllExcept, Only};
        assert!(picks(All, &[], "p"));
        assert!(picks(AllExcept, &["q"], "p"));
        assert!(!picks(AllExcept, &["p"], "p"));
        assert!(picks(Only, &["p"], "p"));
        assert!(!picks(Only, &["P"], "p"));
    }
}
