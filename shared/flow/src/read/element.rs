//! Flow nodes and sequence flows.

use roxmltree::Node;

use super::xml::{self, local};
use super::{DraftFlow, DraftKind, DraftNode, Listed, extension};
use crate::limits;
use crate::problem::Problems;

/// Reads a flow node whose kind is supported.
pub(super) fn node(node: Node<'_, '_>, problems: &mut Problems) -> Option<DraftNode> {
    let id = id(node, problems)?;
    let kind = local(node);
    let mut listed = Vec::new();
    for child in xml::bpmn_children(node) {
        match (local(child), kind) {
            ("incoming", _) => {
                listed.push(Listed { outgoing: false, flow: xml::text(child).trim().to_owned() });
            }
            ("outgoing", _) => {
                listed.push(Listed { outgoing: true, flow: xml::text(child).trim().to_owned() });
            }
            ("documentation" | "extensionElements", _) | ("script", "scriptTask") => {}
            (other, _) => problems.at(&id, format!("`{other}` is not supported in a `{kind}`")),
        }
    }
    let kind = match kind {
        "startEvent" => DraftKind::Start,
        "endEvent" => DraftKind::End,
        "exclusiveGateway" => DraftKind::Exclusive,
        _ => script(node, &id, problems)?,
    };
    extension::refuse_unknown(node, &id, problems);
    Some(DraftNode {
        name: display_name(node, &id, problems),
        default: node.attribute("default").map(str::to_owned),
        kind,
        listed,
        id,
    })
}

/// Reads a sequence flow.
pub(super) fn flow(node: Node<'_, '_>, problems: &mut Problems) -> Option<DraftFlow> {
    let id = id(node, problems)?;
    let mut condition = None;
    for child in xml::bpmn_children(node) {
        match local(child) {
            "documentation" | "extensionElements" => {}
            "conditionExpression" if condition.is_none() => {
                if !child.attribute("language").is_none_or(is_feel) {
                    problems.at(&id, "the condition must be written in FEEL");
                }
                condition = Some(xml::text(child));
            }
            other => problems.at(&id, format!("`{other}` is not supported here")),
        }
    }
    extension::refuse_unknown(node, &id, problems);
    let (Some(source), Some(target)) = (node.attribute("sourceRef"), node.attribute("targetRef"))
    else {
        problems.at(&id, "a sequence flow needs sourceRef and targetRef");
        return None;
    };
    let (source, target) = (source.to_owned(), target.to_owned());
    Some(DraftFlow { name: display_name(node, &id, problems), source, target, condition, id })
}

fn script(node: Node<'_, '_>, id: &str, problems: &mut Problems) -> Option<DraftKind> {
    if node.attribute("isForCompensation") == Some("true") {
        problems.at(id, "compensation is not supported");
    }
    for attribute in ["startQuantity", "completionQuantity"] {
        if node.attribute(attribute).is_some_and(|value| value != "1") {
            problems.at(id, format!("`{attribute}` other than 1 is not supported"));
        }
    }
    let standard = standard_script(node, id, problems);
    let modeler = extension::modeler_script(node, id, problems);
    let (expression, result) = match (standard, modeler) {
        (Some(_), Some(_)) => {
            problems.at(id, "the script task has two scripts");
            return None;
        }
        (Some(script), None) | (None, Some(script)) => script,
        (None, None) => {
            problems.at(id, "the script task has no script");
            return None;
        }
    };
    let Some(result) = result.filter(|name| !name.is_empty()) else {
        problems.at(
            id,
            "the script task does not name the variable for its result (rf:resultVariable)",
        );
        return None;
    };
    Some(DraftKind::Script { expression, result })
}

/// The script in the form of the standard: its text and the name of the variable for its result.
fn standard_script(
    node: Node<'_, '_>,
    id: &str,
    problems: &mut Problems,
) -> Option<(String, Option<String>)> {
    let script = xml::bpmn_children(node).find(|child| local(*child) == "script")?;
    match node.attribute("scriptFormat") {
        Some(format) if is_feel(format) => {}
        Some(format) => {
            let format: String = format.chars().take(60).collect();
            problems.at(id, format!("scripts in `{format}` are not supported, only `feel`"));
        }
        None => problems.at(id, "scriptFormat must be `feel`"),
    }
    let result = node.attribute((xml::RUNFLEET, "resultVariable")).map(str::to_owned);
    Some((xml::text(script), result))
}

/// Whether a language or format names FEEL: short, as a media type, or by the address of its specification.
fn is_feel(language: &str) -> bool {
    let language = language.trim().to_ascii_lowercase();
    matches!(language.as_str(), "feel" | "application/feel")
        || (language.contains("omg.org/spec/") && language.trim_end_matches('/').ends_with("feel"))
}

/// The id of an element, which it must have.
fn id(node: Node<'_, '_>, problems: &mut Problems) -> Option<String> {
    let id = node.attribute("id").unwrap_or_default();
    if (1..=limits::ELEMENT_ID_BYTES_MAX).contains(&id.len()) {
        return Some(id.to_owned());
    }
    let most = limits::ELEMENT_ID_BYTES_MAX;
    problems.add(None, format!("a `{}` needs an id of 1 to {most} bytes", local(node)));
    None
}

/// The display name of an element.
pub(super) fn display_name(
    node: Node<'_, '_>,
    id: &str,
    problems: &mut Problems,
) -> Option<String> {
    let name = node.attribute("name").map(str::trim).filter(|name| !name.is_empty())?;
    if name.len() > limits::NAME_BYTES_MAX {
        problems.at(id, format!("the name is longer than {} bytes", limits::NAME_BYTES_MAX));
        return None;
    }
    Some(name.to_owned())
}
