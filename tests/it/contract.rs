//! The page of the contract and the tests that show it: each statement names its tests, and each test its statements.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{files, read, root, source_files};

const PAGE: &str = "CONTRACT.md";

/// Words for a statement without a test.
const WITHOUT: [&str; 2] = ["not built yet", "guidance"];

/// Ids in a line, such as `CG-013, NB-14`.
fn ids(line: &str) -> impl Iterator<Item = String> {
    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .filter(|word| {
            let number = word.strip_prefix("CG-").or(word.strip_prefix("NB-"));
            let digits = if word.starts_with("CG-") { 3 } else { 2 };
            number.is_some_and(|number| {
                number.len() == digits && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
        .map(str::to_owned)
}

/// Names of tests by the ids in their doc comments.
fn shown_by_tests() -> BTreeMap<String, BTreeSet<String>> {
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in source_files() {
        let text = read(&path);
        let (mut noted, mut is_test) = (Vec::new(), false);
        for line in text.lines().map(str::trim) {
            if line.starts_with("///") {
                noted.extend(ids(line));
            } else if line.starts_with("#[") {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            } else {
                let name = line.trim_start_matches("async ").strip_prefix("fn ");
                if let Some((name, _)) = name.and_then(|rest| rest.split_once('(')) {
                    // Tests written by a macro carry the attribute in the macro.
                    if is_test || path.ends_with("at_random.rs") {
                        for id in &noted {
                            shown.entry(id.clone()).or_default().insert(name.to_owned());
                        }
                    }
                }
                noted.clear();
                is_test = false;
            }
        }
    }
    shown
}

/// Titles of tests of the SDK by the ids in the comments before them.
fn shown_by_the_sdk() -> BTreeMap<String, BTreeSet<String>> {
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("shared/sdk/test", &[".test.ts"]) {
        let text = read(&path);
        for (comment, test) in text.lines().zip(text.lines().skip(1)) {
            let title = test.trim().strip_prefix("test(\"").and_then(|rest| rest.split('"').next());
            let (Some(noted), Some(title)) = (comment.trim().strip_prefix("/** "), title) else {
                continue;
            };
            for id in ids(noted) {
                shown.entry(id).or_default().insert(title.to_owned());
            }
        }
    }
    shown
}

/// The three cells of a row about a statement.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let rest = line.strip_prefix("| ")?;
    if !rest.starts_with("CG-") && !rest.starts_with("NB-") {
        return None;
    }
    let cells: Vec<_> = rest.trim_end_matches(" |").splitn(3, " | ").collect();
    match cells[..] {
        [id, text, shown] => Some((id, text, shown.trim())),
        [id, text] => Some((id, text.trim_end_matches(" |"), "")),
        _ => None,
    }
}

#[test]
fn every_statement_of_the_contract_names_the_tests_that_show_it() {
    let (shown, by_the_sdk) = (shown_by_tests(), shown_by_the_sdk());
    let page = read(PAGE);
    let (mut listed, mut fresh) = (BTreeSet::new(), String::new());
    for line in page.lines() {
        let Some((id, text, before)) = row(line) else {
            fresh += line;
            fresh.push('\n');
            continue;
        };
        let id = id.to_owned();
        // The SDK's tests stand where they alone can show it.
        let now = match shown.get(&id).or_else(|| by_the_sdk.get(&id)) {
            Some(tests) => {
                tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ")
            }
            None if WITHOUT.contains(&before) => before.to_owned(),
            None => panic!("{id} has no test and does not say {WITHOUT:?}: {before}"),
        };
        assert!(
            !WITHOUT.contains(&before) || !shown.contains_key(&id),
            "{id} has tests now: {now}"
        );
        fresh.extend(["| ", &id, " | ", text, " | ", &now, " |\n"]);
        assert!(listed.insert(id.clone()), "{id} is listed twice");
    }
    for id in shown.keys().chain(by_the_sdk.keys()) {
        assert!(listed.contains(id), "a test shows {id}, which the page does not list");
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(root().join(PAGE), &fresh).unwrap();
    }
    assert_eq!(fresh, read(PAGE), "UPDATE_GOLDEN=1 rewrites the last column");
}

#[test]
fn the_page_lists_every_error_code_and_no_other() {
    let page = read(PAGE);
    for code in runfleet_contracts::ErrorCode::ALL {
        assert!(page.contains(&format!("`{}`", code.as_str())), "{}", code.as_str());
    }
}

#[test]
fn the_tests_that_the_codes_of_agent_runs_name_are_there() {
    let page = read(PAGE);
    let (_, rest) = page.split_once("### How an agent run fails").unwrap();
    let rows = rest.lines().skip(1).take_while(|line| !line.starts_with("### "));
    let sources: Vec<String> = source_files().iter().map(read).collect();
    let mut seen = 0;
    for row in rows.filter(|row| row.starts_with("| `")) {
        let shown = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in shown.split('`').skip(1).step_by(2) {
            let written = format!("fn {test}(");
            assert!(sources.iter().any(|source| source.contains(&written)), "{test}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}
