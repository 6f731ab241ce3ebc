//! Names that expressions of a process may use, collected before any of them is read.

use roxmltree::Node;

use super::Settings;
use super::xml::{self, local};
use crate::engine::{AGENT_WORK, HTTP_WORK};
use crate::feel::{Names, variable_name_problem};

/// Every variable that is declared or assigned in the process. The names are open when an answer without known names is
/// merged somewhere.
pub(super) fn of(process: Node<'_, '_>, settings: &Settings) -> Names {
    let mut names = Names::default();
    let declared = settings.inputs.iter().chain(&settings.outputs);
    names.known.extend(declared.map(|variable| variable.name.clone()));
    for node in process.descendants().filter(Node::is_element) {
        let mut assigned = |name: Option<&str>| {
            let name = name.map(str::trim).filter(|name| variable_name_problem(name).is_none());
            names.known.extend(name.map(str::to_owned));
        };
        if xml::is_in(node, xml::ZEEBE) {
            match local(node) {
                "script" => assigned(node.attribute("resultVariable")),
                "header" if node.attribute("key") == Some("resultVariable") => {
                    assigned(node.attribute("value"));
                }
                "input" | "output" => {
                    assigned(node.attribute("target").and_then(|target| target.split('.').next()));
                }
                "loopCharacteristics" => {
                    assigned(node.attribute("inputElement"));
                    assigned(node.attribute("outputCollection"));
                }
                _ => {}
            }
        } else if xml::is_in(node, xml::BPMN) {
            assigned(node.attribute((xml::RUNFLEET, "resultVariable")));
            if local(node) == "multiInstanceLoopCharacteristics" {
                assigned(Some("loopCounter"));
            }
            names.open |= is_merged(node);
        }
    }
    names
}

/// Whether the element gets an answer whose names nobody knows beforehand, which its output mappings see.
pub(super) fn is_answered(node: Node<'_, '_>) -> bool {
    match local(node) {
        "userTask" | "receiveTask" | "callActivity" => true,
        "startEvent" | "intermediateCatchEvent" | "boundaryEvent" => {
            xml::bpmn_children(node).any(|child| {
                matches!(
                    local(child),
                    "messageEventDefinition" | "signalEventDefinition" | "errorEventDefinition"
                )
            })
        }
        _ => {
            let is_task = xml::extensions(node, xml::ZEEBE)
                .any(|extension| local(extension) == "taskDefinition");
            let is_named = header(node, "resultVariable").is_some()
                || node.has_attribute((xml::RUNFLEET, "resultVariable"));
            is_task && (!is_named || header(node, "resultExpression").is_some())
        }
    }
}

/// Whether such an answer is merged into the variables around the element. That of an HTTP request or an agent is not.
fn is_merged(node: Node<'_, '_>) -> bool {
    let kept = xml::extensions(node, xml::ZEEBE).any(|extension| match local(extension) {
        "ioMapping" => {
            extension.children().any(|child| child.is_element() && local(child) == "output")
        }
        "calledElement" => {
            let all = extension.attribute("propagateAllChildVariables");
            all.and_then(xml::truth) == Some(false)
        }
        "taskDefinition" => {
            let work = extension.attribute("type").map(str::trim).unwrap_or_default();
            let named = work == AGENT_WORK || HTTP_WORK.contains(&work);
            named && header(node, "resultExpression").is_none()
        }
        _ => false,
    });
    !kept && is_answered(node)
}

/// Value of a task header.
fn header<'a>(node: Node<'a, '_>, key: &str) -> Option<&'a str> {
    xml::extensions(node, xml::ZEEBE)
        .filter(|extension| local(*extension) == "taskHeaders")
        .flat_map(|headers| headers.children())
        .find(|header| header.is_element() && header.attribute("key") == Some(key))
        .and_then(|header| header.attribute("value"))
}
