//! What is stored, and what the workers ask of it.

use runfleet_catalog::{ProcessKind, Snapshot, StoredError, load};
use runfleet_domain::admission::Wish;

use crate::bundle::{check, golden, in_crate};

fn stored() -> Snapshot {
    let bundle = load(&[in_crate("tests/good")], &check).unwrap();
    Snapshot::merge(None, bundle).unwrap().snapshot
}

#[test]
fn the_stored_form_is_the_golden_one_and_is_read_back() {
    let snapshot = stored();
    golden("snapshot.json", &(serde_json::to_string_pretty(&snapshot).unwrap() + "\n"));
    let json = snapshot.to_json().unwrap();
    assert_eq!(Snapshot::from_json(json.as_bytes()).unwrap(), snapshot);
}

#[test]
fn a_snapshot_of_a_newer_release_is_told_apart_from_a_broken_one() {
    assert!(matches!(
        Snapshot::from_json(br#"{"format":2,"shape":"new"}"#),
        Err(StoredError::Newer { format: 2, known: 1, .. })
    ));
    for broken in [&br#"{"format":1}"#[..], b"[]"] {
        assert!(matches!(Snapshot::from_json(broken), Err(StoredError::Unreadable { .. })));
    }
}

#[test]
fn a_field_that_a_newer_release_adds_is_ignored() {
    let mut value = serde_json::to_value(stored()).unwrap();
    value["added"] = true.into();
    value["projects"]["shop"]["added"] = true.into();
    assert_eq!(Snapshot::from_json(value.to_string().as_bytes()).unwrap(), stored());
}

#[test]
fn what_was_declared_is_found_by_its_name() {
    let snapshot = stored();
    let name = |text: &str| text.parse().unwrap();
    let shop = snapshot.project(&name("shop")).unwrap();
    assert!(shop.declares(&"done".parse().unwrap()) && !shop.declares(&"Done".parse().unwrap()));
    assert!(snapshot.project(&name("Shop")).is_none());

    let approve = snapshot.process(&name("approve")).unwrap();
    assert!(
        approve.is_active() && approve.version == 1 && approve.summary.kind == ProcessKind::Normal
    );
    let input = serde_json::json!({"amount": "7"});
    let problem = approve.check_input(input.as_object().unwrap()).unwrap_err();
    assert_eq!(problem.to_string(), "input.amount must be a number");
    assert!(!snapshot.process(&name("old")).unwrap().is_active());

    let old = name("old");
    let wish = Wish { target: &old, job: None, agent: None };
    assert!(snapshot.person_facts(&name("ada"), &wish).may_start);
    assert!(!snapshot.person_facts(&name("ben"), &wish).may_start);
    assert!(!snapshot.person_facts(&name("nobody"), &wish).active);
}
