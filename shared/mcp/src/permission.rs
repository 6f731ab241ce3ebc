//! Which tools of a server are offered, and whether their calls need approval. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Whether a call runs at once or needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Permission {
    /// Runs at once.
    Allow,
    /// Needs approval.
    #[default]
    Ask,
}

/// What may be done with the tools of one server. They come from a document and outlive every process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// What counts for a tool that is not named.
    pub default: Permission,
    /// Tools for which something else counts.
    pub tools: BTreeMap<String, Permission>,
    /// Tools that are offered; none means all.
    pub only: Option<BTreeSet<String>>,
}

impl Permissions {
    /// The permission of a tool; none if it is not offered. What a server says about its own tools counts for nothing.
    pub fn of(&self, tool: &str) -> Option<Permission> {
        let offered = self.only.as_ref().is_none_or(|only| only.contains(tool));
        offered.then(|| self.tools.get(tool).copied().unwrap_or(self.default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_asks_unless_somebody_says_otherwise_and_is_offered_unless_others_are() {
        let mut permissions = Permissions::default();
        assert_eq!(permissions.of("a"), Some(Permission::Ask));
        permissions.tools.insert("a".to_owned(), Permission::Allow);
        assert_eq!(permissions.of("a"), Some(Permission::Allow));
        permissions.only = Some(["b".to_owned()].into());
        assert_eq!((permissions.of("a"), permissions.of("b")), (None, Some(Permission::Ask)));
    }
}
