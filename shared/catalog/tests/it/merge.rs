//! How bundles change what is stored.

use runfleet_catalog::{MergeError, Merged, Snapshot};

use crate::bundle::{Files, WORKSPACE, document};

fn merge(previous: Option<&Snapshot>, files: &Files) -> Merged {
    Snapshot::merge(previous, files.load().unwrap()).unwrap()
}

fn files() -> Files {
    Files::new(&[
        WORKSPACE,
        ("p.bpmn", "normal:"),
        ("2.yaml", &document("Process", "count", "{file: p.bpmn}")),
        ("3.yaml", &document("Project", "shop", "{version: '1'}")),
    ])
}

#[test]
fn a_first_bundle_creates_everything_with_version_1() {
    let merged = merge(None, &files());
    assert_eq!(
        merged.changes.to_string(),
        "workspace demo created\nproject shop created\nprocess count created (version 1)\n"
    );
    assert_eq!(merged.snapshot.revision, 1);
    assert_eq!(merged.definitions.len(), 1);
    assert_eq!((merged.definitions[0].version, merged.definitions[0].xml.as_str()), (1, "normal:"));
}

#[test]
fn the_same_bundle_again_changes_nothing() {
    let files = files();
    let first = merge(None, &files);
    let again = merge(Some(&first.snapshot), &files);
    assert!(again.changes.is_empty() && again.definitions.is_empty());
    assert_eq!(again.snapshot, first.snapshot);
    assert!(again.changes.to_string().contains("process count unchanged (version 1)\n"));
}

#[test]
fn only_another_definition_text_makes_a_new_version() {
    let files = files();
    let first = merge(None, &files).snapshot;
    files.write("2.yaml", document("Process", "count", "{file: p.bpmn, state: inactive}"));
    let renamed = merge(Some(&first), &files);
    assert!(renamed.changes.to_string().contains("process count changed (version 1)\n"));
    assert!(renamed.definitions.is_empty() && renamed.snapshot.revision == 2);

    files.write("p.bpmn", "normal: a:any");
    let second = merge(Some(&renamed.snapshot), &files);
    assert!(second.changes.to_string().contains("process count changed (version 2)\n"));
    assert_eq!((second.definitions[0].version, second.snapshot.revision), (2, 3));
    assert_eq!(
        second.definitions[0].sha256,
        second.snapshot.processes.values().next().unwrap().sha256
    );

    files.write("p.bpmn", "normal:");
    let back = merge(Some(&second.snapshot), &files);
    assert_eq!(back.definitions[0].version, 3, "a version is never used for two texts");
}

#[test]
fn what_a_bundle_does_not_name_stays() {
    let first = merge(None, &files()).snapshot;
    let other =
        Files::new(&[WORKSPACE, ("2.yaml", &document("Project", "desk", "{version: '1'}"))]);
    let merged = merge(Some(&first), &other);
    assert_eq!(merged.changes.to_string(), "workspace demo unchanged\nproject desk created\n");
    assert_eq!((merged.snapshot.projects.len(), merged.snapshot.processes.len()), (2, 1));
}

#[test]
fn a_bundle_of_another_workspace_is_not_merged() {
    let first = merge(None, &files()).snapshot;
    let other = Files::new(&[("1.yaml", &WORKSPACE.1.replace("demo", "other"))]);
    assert_eq!(
        Snapshot::merge(Some(&first), other.load().unwrap()),
        Err(MergeError::OtherWorkspace)
    );
}

#[test]
fn a_version_never_starts_again_at_1() {
    let files = files();
    let mut first = merge(None, &files).snapshot;
    first.processes.values_mut().for_each(|process| process.version = u32::MAX);
    files.write("p.bpmn", "normal: a:any");
    assert_eq!(
        Snapshot::merge(Some(&first), files.load().unwrap()),
        Err(MergeError::NoVersionLeft)
    );
}

#[test]
fn names_of_processes_that_nobody_declared_are_warned_about() {
    let files = files();
    let policy = "{version: '1', policy: {processes: {processes: {mode: ONLY, processInfoIds: [count, cuont]}}}}";
    files.write("3.yaml", document("Project", "shop", policy));
    let people = "{people: [{id: ada, mayStart: {processes: [coutn]}}]}";
    files.write("1.yaml", document("Workspace", "demo", people));
    let changes = merge(None, &files).changes.to_string();
    assert!(
        changes.ends_with(
            "warning: the policy of project shop names the Process cuont, which is not declared\n\
         warning: the rights of person ada name the Process coutn, which is not declared\n"
        ),
        "{changes}"
    );
}
