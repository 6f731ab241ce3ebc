//! Approved policies: what a version of a project was approved for goes on judging its code, whatever comes later.

use runfleet_domain::Name;
use runfleet_domain::policy::Policy;

use crate::bounds::POLICIES_MAX;
use crate::model::{ApprovedPolicy, Project};

/// Brings what was approved before into a project that was declared anew, and says what people should know about it.
///
/// An approved policy is in force for the version that was declared with it. One that is not approved changes nothing: the
/// version keeps what was approved for it, or may do nothing.
pub(crate) fn settle(
    name: &Name,
    previous: Option<&Project>,
    declared: &mut Project,
    approved: bool,
) -> Option<String> {
    let mut policies = previous.map(|previous| previous.policies.clone()).unwrap_or_default();
    if let Some(previous) = previous.filter(|previous| previous.policies.is_empty()) {
        // Stored before policies were kept by version: what was in force was approved.
        let policy = previous.policy.clone();
        policies.insert(previous.version.clone(), ApprovedPolicy { revision: 1, policy });
    }
    let newest = policies.values().map(|approved| approved.revision).max().unwrap_or(0);
    let mut warning = None;
    let known = policies.get(&declared.version);
    if approved {
        if known.is_none_or(|known| known.policy != declared.policy) {
            let policy = declared.policy.clone();
            let revision = newest.saturating_add(1);
            policies.insert(declared.version.clone(), ApprovedPolicy { revision, policy });
        }
    } else {
        let rest = if known.is_some() {
            "keeps the policy that was approved"
        } else {
            "may start nothing"
        };
        let version = &declared.version;
        warning =
            Some(format!("the policy of project {name} is not approved: version {version} {rest}"));
    }
    while policies.len() > POLICIES_MAX {
        let oldest = policies
            .iter()
            .filter(|(version, _)| **version != declared.version)
            .min_by_key(|(_, approved)| approved.revision)
            .map(|(version, _)| version.clone());
        let Some(oldest) = oldest else { break };
        policies.remove(&oldest);
    }
    declared.policy = if declared.policy_disabled {
        Policy::default()
    } else {
        policies.get(&declared.version).map(|known| known.policy.clone()).unwrap_or_default()
    };
    declared.policies = policies;
    warning
}
