//! Approved policies, version by version.

use runfleet_catalog::{Merged, Snapshot};
use runfleet_domain::Name;

use crate::bundle::{Files, WORKSPACE, document};

const ALL: &str = "processes: {processes: {mode: ALL}}";

fn apply(previous: Option<&Snapshot>, spec: &str) -> Merged {
    let files = Files::new(&[WORKSPACE, ("2.yaml", &document("Project", "shop", spec))]);
    Snapshot::merge(previous, files.load().unwrap()).unwrap()
}

fn allows(snapshot: &Snapshot, version: Option<&str>) -> bool {
    let shop: Name = "shop".parse().unwrap();
    let policy = snapshot.project(&shop).unwrap().policy_for(version);
    policy.is_some_and(|policy| policy.processes.is_some())
}

/// CG-010
#[test]
fn each_version_keeps_the_policy_that_was_approved_for_it() {
    let first = apply(None, &format!("{{version: '1', policy: {{{ALL}}}}}")).snapshot;
    let second = apply(Some(&first), "{version: '2'}").snapshot;
    assert!(allows(&second, Some("1")) && !allows(&second, Some("2")) && !allows(&second, None));
    assert!(!allows(&second, Some("3")), "nothing was approved for a version that nobody declared");
}

/// CG-010
#[test]
fn a_policy_that_is_not_approved_has_no_effect() {
    let proposed = format!("{{version: '1', policy: {{approved: false, {ALL}}}}}");
    let merged = apply(None, &proposed);
    assert!(!allows(&merged.snapshot, None));
    assert_eq!(
        merged.changes.warnings,
        ["the policy of project shop is not approved: version 1 may start nothing"]
    );
    let approved = apply(None, &format!("{{version: '1', policy: {{{ALL}}}}}")).snapshot;
    let kept = apply(Some(&approved), "{version: '1', policy: {approved: false}}");
    assert!(allows(&kept.snapshot, None) && kept.changes.warnings.len() == 1);
}

/// CG-010
#[test]
fn a_change_that_is_approved_is_a_new_revision_and_the_same_again_is_not() {
    let revision =
        |snapshot: &Snapshot| snapshot.projects.values().next().unwrap().policies["1"].revision;
    let all = format!("{{version: '1', policy: {{{ALL}}}}}");
    let first = apply(None, &all).snapshot;
    assert_eq!(revision(&apply(Some(&first), &all).snapshot), 1);
    let second = apply(Some(&first), "{version: '1'}").snapshot;
    assert_eq!((revision(&second), allows(&second, None)), (2, false));
}

/// CG-011
#[test]
fn a_disabled_policy_disables_every_version() {
    let all = format!("version: '1', policy: {{{ALL}}}");
    let first = apply(None, &format!("{{{all}}}")).snapshot;
    let disabled = apply(Some(&first), &format!("{{{all}, policyState: disabled}}")).snapshot;
    assert!(!allows(&disabled, None) && !allows(&disabled, Some("1")));
    let enabled = apply(Some(&disabled), &format!("{{{all}}}")).snapshot;
    assert!(allows(&enabled, None));
}

#[test]
fn only_the_newest_20_versions_are_kept() {
    let mut snapshot = apply(None, &format!("{{version: v0, policy: {{{ALL}}}}}")).snapshot;
    for version in 1..=20 {
        let spec = format!("{{version: v{version}, policy: {{{ALL}}}}}");
        snapshot = apply(Some(&snapshot), &spec).snapshot;
    }
    assert!(!allows(&snapshot, Some("v0")) && allows(&snapshot, Some("v1")));
    assert_eq!(snapshot.projects.values().next().unwrap().policies.len(), 20);
}

#[test]
fn a_policy_that_was_stored_before_versions_were_kept_is_the_approved_one() {
    let mut old = apply(None, &format!("{{version: '1', policy: {{{ALL}}}}}")).snapshot;
    for project in old.projects.values_mut() {
        project.policies.clear();
    }
    let next = apply(Some(&old), "{version: '2'}").snapshot;
    assert!(allows(&next, Some("1")));
}
