//! The process element: its identity, settings, and everything drawn in it.

use roxmltree::Node;

use super::xml::{self, local};
use super::{Draft, element, extension};
use crate::limits;
use crate::problem::Problems;

/// Reads a process. Without a usable id there is nothing to work with.
pub(super) fn read(process: Node<'_, '_>, problems: &mut Problems) -> Option<Draft> {
    let id = process_id(process, problems)?;
    let settings = extension::settings(process, &id, problems);
    let mut draft = Draft {
        name: element::display_name(process, &id, problems),
        id,
        settings,
        nodes: Vec::new(),
        flows: Vec::new(),
    };
    for child in xml::bpmn_children(process) {
        if draft.nodes.len() + draft.flows.len() >= limits::ELEMENTS_MAX {
            problems.at(
                &draft.id,
                format!("the process has more than {} elements", limits::ELEMENTS_MAX),
            );
            break;
        }
        match local(child) {
            "documentation" | "extensionElements" | "textAnnotation" | "association" | "group" => {}
            "sequenceFlow" => draft.flows.extend(element::flow(child, problems)),
            "startEvent" | "endEvent" | "scriptTask" | "exclusiveGateway" => {
                draft.nodes.extend(element::node(child, problems));
            }
            other => problems.add(child.attribute("id"), format!("`{other}` is not supported")),
        }
    }
    Some(draft)
}

fn process_id(process: Node<'_, '_>, problems: &mut Problems) -> Option<String> {
    let id = process.attribute("id").unwrap_or_default();
    let fits = (1..=limits::PROCESS_ID_BYTES_MAX).contains(&id.len())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if fits {
        return Some(id.to_owned());
    }
    let most = limits::PROCESS_ID_BYTES_MAX;
    problems.add(
        None,
        format!("the id of the process must be 1 to {most} letters, digits, `_` and `-`"),
    );
    None
}
