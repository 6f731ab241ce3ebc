//! Models that come as documents: what is delivered with the product is read and played, and the page about patterns is true.

use std::path::{Path, PathBuf};

use runfleet_flow::{Definition, Status, What};
use serde_json::{Value, json};

use crate::play::{Play, cut};
use crate::support::parse;

/// What is played: the document, its input, what happens, the path of everything that is left, and the output.
type Trip = (&'static str, Value, fn(&mut Play), &'static str, Value);

fn trips() -> Vec<Trip> {
    vec![
        (
            "approve-discount.bpmn",
            json!({"amount": 120}),
            |_| {},
            "OrderReceived ComputeDiscount WithinLimit Approve ExplainApproval Approved",
            json!({"approved": true, "discount": 6, "reason": "A discount of 6 is within the limit"}),
        ),
        (
            "count-to-limit.bpmn",
            json!({"limit": 2}),
            |_| {},
            "Started Zero Again Reached CountUp Again Reached CountUp Again Reached Counted",
            json!({"counter": 2}),
        ),
    ]
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/example")
}

#[test]
fn every_document_that_is_delivered_is_read() {
    let mut found = 0;
    for entry in std::fs::read_dir(examples()).expect("the examples are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "bpmn") {
            continue;
        }
        found += 1;
        let text = std::fs::read_to_string(&path).expect("readable");
        let definition = Definition::parse(&text);
        let definition = definition.unwrap_or_else(|problems| panic!("{path:?}: {problems:?}"));
        assert!(definition.describe().starts_with("process "));
    }
    assert!(found >= trips().len());
}

#[test]
fn delivered_documents_take_the_path_that_is_expected() {
    for (file, input, happen, path, output) in trips() {
        let text = std::fs::read_to_string(examples().join(file)).expect("readable");
        let definition = std::sync::Arc::new(parse(&text));
        cut(|| {
            let mut run = Play::new(&definition, input.clone());
            run.rest(Vec::new());
            happen(&mut run);
            let left = run.history.iter().filter(|entry| entry.2 == What::Left);
            let left: Vec<&str> = left.map(|entry| entry.0.as_str()).collect();
            assert!(matches!(run.status, Status::Completed { .. }), "{file}: {:?}", run.status);
            assert_eq!(left.join(" "), path, "{file}");
            assert_eq!(run.output(), output, "{file}");
        });
    }
}

#[test]
fn the_page_about_patterns_names_43_of_them_and_tests_that_exist() {
    let page = include_str!("../../PATTERNS.md");
    let tests = include_str!("patterns.rs");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| cells.len() == 7 && cells[1].parse::<u32>().is_ok())
        .collect();
    let mut verdicts = [0; 3];
    for (number, cells) in (1..).zip(&rows) {
        assert_eq!(cells[1], number.to_string());
        let verdict =
            ["holds", "in part", "does not hold"].iter().position(|word| *word == cells[3]);
        verdicts[verdict.unwrap_or_else(|| panic!("{cells:?}"))] += 1;
        let test = cells[5].trim_matches('`');
        assert!(tests.contains(&format!("#[test]\nfn {test}()")), "there is no test {test}");
    }
    assert_eq!(rows.len(), 43);
    let [hold, part, not] = verdicts;
    assert!(
        page.contains(&format!("\n{hold} hold, {part} hold in part, {not} do not.")),
        "{verdicts:?}"
    );
    // And no test that the page leaves out.
    for line in tests.lines().filter(|line| line.starts_with("fn p") && line.contains("()")) {
        let name = line.trim_start_matches("fn ").split('(').next().unwrap_or_default();
        assert!(page.contains(&format!("`{name}`")), "the page does not name {name}");
    }
}
