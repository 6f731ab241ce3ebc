//! The example that the product ships with.

use runfleet_catalog::{Changed, Snapshot, load};

use crate::bundle::{check, in_crate};

#[test]
fn the_example_project_is_a_good_bundle_and_names_no_process_that_it_lacks() {
    // The engine has tests of its own for the BPMN files; here any document does.
    let any = |_: &str| check("normal:");
    let bundle = load(&[in_crate("../../deploy/example")], &any)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(bundle.left_out.list.is_empty(), "{}", bundle.left_out);
    let merged = Snapshot::merge(None, bundle).unwrap();
    assert!(merged.changes.list.iter().all(|change| change.changed == Changed::Created));
    assert_eq!(merged.changes.warnings, Vec::<String>::new());
    let shop = merged.snapshot.project(&"shop".parse().unwrap()).unwrap();
    for job in ["discount_decided", "count_done", "deal_coached"] {
        assert!(shop.declares(&job.parse().unwrap()), "{job}");
    }
    for process in ["approve-discount", "count-to-limit"] {
        let process = process.parse().unwrap();
        assert!(merged.snapshot.process(&process).unwrap().is_active());
        let section = shop.policy.processes.as_ref().unwrap();
        assert!(section.allow_system && section.processes.picks(&process));
    }
    assert!(merged.snapshot.agent(&"deal-coach".parse().unwrap()).unwrap().is_active());
    let coach = merged.agent_versions.iter().find(|version| version.agent.as_str() == "deal-coach");
    let blueprint = runfleet_catalog::AgentBlueprint::from_json(&coach.unwrap().json).unwrap();
    let tools: Vec<&str> = blueprint.tools.keys().map(runfleet_domain::Name::as_str).collect();
    assert_eq!(tools, ["approve-discount", "calculate", "current-time", "record-query"]);
    let discount = &blueprint.tools[&"approve-discount".parse().unwrap()];
    assert!(discount.description.starts_with("Decides whether"));
}
