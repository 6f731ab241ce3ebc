//! The document around the process: exactly one executable process, ids that are unique, root elements.

use std::collections::HashSet;

use roxmltree::{Document, Node};

use super::roots::Roots;
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
    let mut roots = Roots::default();
    let process = executable_process(&document, &mut roots, problems)?;
    process::read(process, roots, problems)
}

fn executable_process<'a, 'i>(
    document: &'a Document<'i>,
    roots: &mut Roots,
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
            "documentation" | "extensionElements" | "collaboration" | "category" | "dataStore" => {}
            _ if roots.take(child, problems) => {}
            other => problems.add(child.attribute("id"), format!("`{other}` is not supported")),
        }
    }
    only_process(&processes, problems)
}

/// The executable process. Others are drawn to show with whom it talks.
fn only_process<'a, 'i>(
    processes: &[Node<'a, 'i>],
    problems: &mut Problems,
) -> Option<Node<'a, 'i>> {
    let executable = |process: &&Node<'a, 'i>| {
        process.attribute("isExecutable").and_then(xml::truth) == Some(true)
    };
    let found: Vec<_> = processes.iter().filter(executable).collect();
    match (processes, found.as_slice()) {
        (_, [process]) => Some(**process),
        ([process], []) => {
            problems.add(
                process.attribute("id"),
                "the process is not executable; set isExecutable=\"true\"",
            );
            Some(*process)
        }
        _ => {
            let count = found.len();
            problems.add(
                None,
                format!("the document must have exactly one executable process, and has {count}"),
            );
            None
        }
    }
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
