//! The document around the process: exactly one executable process, ids that are unique.

use std::collections::HashSet;

use roxmltree::{Document, Node};

use super::xml::{self, local};
use super::{Draft, process};
use crate::problem::{Problem, Problems};

/// Reads `text`. There is a draft only when a process was found; problems may come with it.
pub(crate) fn read(text: &str, problems: &mut Problems) -> Option<Draft> {
    let document = match xml::open(text) {
        Ok(document) => document,
        Err(Problem { element, message }) => {
            problems.add(element.as_deref(), message);
            return None;
        }
    };
    unique_ids(&document, problems);
    let process = executable_process(&document, problems)?;
    process::read(process, problems)
}

fn executable_process<'a, 'i>(
    document: &'a Document<'i>,
    problems: &mut Problems,
) -> Option<Node<'a, 'i>> {
    let root = document.root_element();
    if !xml::is_in(root, xml::BPMN) || local(root) != "definitions" {
        problems.add(
            None,
            format!("the root element must be `definitions` in the namespace {}", xml::BPMN),
        );
        return None;
    }
    let mut processes = Vec::new();
    for child in xml::bpmn_children(root) {
        match local(child) {
            "process" => processes.push(child),
            "documentation" | "extensionElements" => {}
            other => problems.add(child.attribute("id"), format!("`{other}` is not supported")),
        }
    }
    let [process] = processes.as_slice() else {
        problems.add(
            None,
            format!("the document must have exactly one process, and has {}", processes.len()),
        );
        return None;
    };
    if process.attribute("isExecutable") != Some("true") {
        problems.add(
            process.attribute("id"),
            "the process is not executable; set isExecutable=\"true\"",
        );
    }
    Some(*process)
}

fn unique_ids(document: &Document<'_>, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for node in
        document.descendants().filter(|node| node.is_element() && xml::is_in(*node, xml::BPMN))
    {
        if let Some(id) = node.attribute("id")
            && !seen.insert(id)
        {
            problems.at(id, "this id is used more than once");
        }
    }
}
