//! What all flow nodes have in common, and sequence flows.

use roxmltree::Node;

use super::context::{Context, Place};
use super::modeler::{self, Extensions};
use super::xml::{self, local};
use super::{DraftFlow, DraftKind, DraftNode, Listed, Role};
use super::{events, gateways, mapping, names, own, repeat, tasks};
use crate::definition::{End, NodeKind};
use crate::limits;
use crate::problem::Problems;

/// Where a flow node lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Within {
    /// Index of the scope.
    pub(super) scope: usize,
    /// Whether that is an event sub-process.
    pub(super) event: bool,
}

/// Reads a flow node that is no sub-process.
pub(super) fn node(
    node: Node<'_, '_>,
    within: Within,
    context: &mut Context<'_>,
) -> Option<DraftNode> {
    let id = id(node, context.problems)?;
    let kind = local(node);
    children(node, &id, context);
    let message = xml::bpmn_children(node).any(|child| local(child) == "messageEventDefinition");
    let allowed = modeler::allowed(kind, message);
    let extensions = Extensions::of(node, &id, allowed, context.problems);
    let (role, read) = if kind.ends_with("Gateway") {
        gateways::read(node, &id, context)
    } else if kind.ends_with("Event") {
        events::read(node, &id, within, &extensions, context)
    } else {
        tasks::read(node, &id, &extensions, context)
    };
    let is_task =
        matches!(&read, Some(DraftKind::Ready(NodeKind::Task(_) | NodeKind::End(End::Task(_)))))
            || extensions.get("taskDefinition").is_some();
    own::refuse_unknown(node, &id, is_task, context.problems);
    let mut draft = common(node, id, within.scope, role, &extensions, context);
    draft.kind = read;
    Some(draft)
}

/// The parts that every kind of node may have. The kind is still missing.
pub(super) fn common(
    node: Node<'_, '_>,
    id: String,
    scope: usize,
    role: Role,
    extensions: &Extensions<'_, '_>,
    context: &mut Context<'_>,
) -> DraftNode {
    let answered = names::is_answered(node);
    let (inputs, outputs) = mapping::read(local(node), &id, extensions, answered, context);
    let repeat = repeat::read(node, &id, answered, context);
    refuse_rare_attributes(node, &id, context);
    DraftNode {
        name: display_name(node, &id, context.problems),
        scope,
        role,
        kind: None,
        host: node.attribute("attachedToRef").filter(|_| role == Role::Boundary).map(str::to_owned),
        default: node.attribute("default").map(str::to_owned),
        listed: listed(node),
        inputs,
        outputs,
        repeat,
        id,
    }
}

/// Refuses children that this kind of element does not have.
fn children(node: Node<'_, '_>, id: &str, context: &mut Context<'_>) {
    let kind = local(node);
    let is_activity = !kind.ends_with("Gateway") && !kind.ends_with("Event");
    for child in xml::bpmn_children(node) {
        let name = local(child);
        let known = match name {
            // The second line is how data objects are drawn.
            "incoming"
            | "outgoing"
            | "documentation"
            | "extensionElements"
            | "property"
            | "dataInputAssociation"
            | "dataOutputAssociation"
            | "dataInput"
            | "dataOutput"
            | "inputSet"
            | "outputSet" => true,
            "script" => kind == "scriptTask",
            "multiInstanceLoopCharacteristics" => is_activity,
            _ => events::allows(kind, name),
        };
        if !known {
            context.at(id, format!("`{name}` is not supported in a `{kind}`"));
        }
    }
}

fn refuse_rare_attributes(node: Node<'_, '_>, id: &str, context: &mut Context<'_>) {
    if context.flag(node, id, "isForCompensation", false) {
        context.at(id, "compensation is not supported");
    }
    for attribute in ["startQuantity", "completionQuantity"] {
        if node.attribute(attribute).is_some_and(|value| value != "1") {
            context.at(id, format!("`{attribute}` other than 1 is not supported"));
        }
    }
}

fn listed(node: Node<'_, '_>) -> Vec<Listed> {
    xml::bpmn_children(node)
        .filter_map(|child| {
            let outgoing = match local(child) {
                "incoming" => false,
                "outgoing" => true,
                _ => return None,
            };
            Some(Listed { outgoing, flow: xml::text(child).trim().to_owned() })
        })
        .collect()
}

/// Reads a sequence flow.
pub(super) fn flow(
    node: Node<'_, '_>,
    scope: usize,
    context: &mut Context<'_>,
) -> Option<DraftFlow> {
    let id = id(node, context.problems)?;
    let mut condition = None;
    for child in xml::bpmn_children(node) {
        match local(child) {
            "documentation" | "extensionElements" => {}
            "conditionExpression" if condition.is_none() => {
                if !child.attribute("language").is_none_or(is_feel) {
                    context.at(&id, "the condition must be written in FEEL");
                }
                condition = Some(xml::text(child));
            }
            other => context.at(&id, format!("`{other}` is not supported here")),
        }
    }
    own::refuse_unknown(node, &id, false, context.problems);
    Extensions::of(node, &id, &[], context.problems);
    let (Some(source), Some(target)) = (node.attribute("sourceRef"), node.attribute("targetRef"))
    else {
        context.at(&id, "a sequence flow needs sourceRef and targetRef");
        return None;
    };
    Some(DraftFlow {
        name: display_name(node, &id, context.problems),
        scope,
        source: source.to_owned(),
        target: target.to_owned(),
        conditional: condition.is_some(),
        condition: condition.and_then(|text| context.expression(&id, &text, Place::Any)),
        id,
    })
}

/// Whether a language or format names FEEL: short, as a media type, or by the address of its specification.
pub(super) fn is_feel(language: &str) -> bool {
    let language = language.trim().to_ascii_lowercase();
    matches!(language.as_str(), "feel" | "application/feel")
        || (language.contains("omg.org/spec/") && language.trim_end_matches('/').ends_with("feel"))
}

/// The id of an element, which it must have.
pub(super) fn id(node: Node<'_, '_>, problems: &mut Problems) -> Option<String> {
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
