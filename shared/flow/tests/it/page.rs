//! The page about BPMN says what the reader does.

use crate::support::{document, problems, through};

const PAGE: &str = include_str!("../../BPMN.md");

/// Names in backticks of the lines that begin with `start`, up to the next empty line.
fn named(start: &str) -> Vec<&'static str> {
    let (_, rest) = PAGE.split_once(start).expect("the page has this part");
    let part = rest.split("\n\n").next().expect("it has an end");
    part.split('`').skip(1).step_by(2).collect()
}

#[test]
fn elements_that_the_page_calls_read_are_not_refused_by_name() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && line.split('|').count() == 5);
    let mut seen = 0;
    for row in rows {
        let read = row.split('|').nth(2).expect("a column");
        for element in read.split('`').skip(1).step_by(2).filter(|name| !name.contains(':')) {
            let name = format!("u: `{element}` is not supported");
            let told = problems(&document(&format!("<{element} id=\"u\"/>")));
            if element != "multiInstanceLoopCharacteristics" && element != "process" {
                assert!(!told.contains(&name), "{element}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn elements_that_the_page_calls_refused_are_refused_by_name() {
    for element in named("Refused by name, among all others: ") {
        let told = match element {
            "isForCompensation" => {
                problems(&through("<task id=\"t\" isForCompensation=\"true\"/>", ""))
            }
            "zeebe:calledDecision" => problems(&through(
                "<businessRuleTask id=\"t\"><extensionElements><zeebe:calledDecision/></extensionElements></businessRuleTask>",
                "",
            )),
            element => problems(&document(&format!("<{element} id=\"u\"/>"))),
        };
        let word = if element == "isForCompensation" { "compensation" } else { element };
        let refused = told.iter().any(|told| told.contains(word) && told.contains("not supported"));
        assert!(refused, "{element}: {told:#?}");
    }
}

#[test]
fn extensions_that_the_page_calls_refused_are_refused_by_name() {
    let names = named("Refused: ");
    assert!(names.len() >= 5);
    for name in names {
        let task = format!(
            "<serviceTask id=\"t\"><extensionElements><{name}/></extensionElements></serviceTask>"
        );
        let told = format!("t: `{name}` is not supported in a `serviceTask`");
        assert!(problems(&through(&task, "")).contains(&told), "{name}");
    }
}

#[test]
fn the_page_passes_over_what_the_reader_passes_over() {
    let of_definitions = ["collaboration", "category", "dataStore"];
    for element in named("Drawing, and passed over: the diagram, ") {
        let xml = through("<task id=\"t\"/>", "");
        let drawn = format!("<{element} id=\"drawn\"/>");
        let xml = if of_definitions.contains(&element) {
            xml.replace("</process>", &format!("</process>{drawn}"))
        } else {
            xml.replace("</process>", &format!("{drawn}</process>"))
        };
        assert!(runfleet_flow::Definition::parse(&xml).is_ok(), "{element}");
    }
}
