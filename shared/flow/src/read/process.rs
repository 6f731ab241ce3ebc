//! The process element and its sub-processes: identity, settings, and everything drawn in them.

use std::collections::HashSet;

use roxmltree::Node;

use super::context::Context;
use super::element::{self, Within};
use super::modeler::{self, Extensions};
use super::roots::Roots;
use super::xml::{self, local};
use super::{Draft, DraftKind, Role, names, own};
use crate::definition::NodeKind;
use crate::limits;
use crate::problem::Problems;

/// Reads a process. Without a usable id there is nothing to work with.
pub(super) fn read(process: Node<'_, '_>, roots: Roots, problems: &mut Problems) -> Option<Draft> {
    let id = process_id(process, problems)?;
    let settings = own::settings(process, &id, problems);
    Extensions::of(process, &id, modeler::allowed("process", false), problems);
    let names = names::of(process, &settings);
    let mut draft = Draft {
        name: element::display_name(process, &id, problems),
        id,
        settings,
        scopes: vec![None],
        nodes: Vec::new(),
        flows: Vec::new(),
        refused: HashSet::new(),
        quick: false,
    };
    let mut context = Context::new(&draft.id, roots, names, problems);
    scope(process, Within { scope: 0, event: false }, 0, &mut draft, &mut context);
    draft.quick = context.quick;
    Some(draft)
}

/// Reads everything that lies in the process or a sub-process. Goes as deep as sub-processes may nest.
fn scope(
    container: Node<'_, '_>,
    within: Within,
    depth: usize,
    draft: &mut Draft,
    context: &mut Context<'_>,
) {
    let is_process = depth == 0;
    for child in xml::bpmn_children(container) {
        let kind = local(child);
        let is_element = kind == "sequenceFlow" || kind == "subProcess" || is_node(kind);
        if is_element && draft.nodes.len() + draft.flows.len() >= limits::ELEMENTS_MAX {
            let most = limits::ELEMENTS_MAX;
            // The innermost scope tells it, and all around it end here too.
            if !context.full {
                context.full = true;
                let message = format!("the process has more than {most} elements");
                context.problems.at(&draft.id, message);
            }
            return;
        }
        match kind {
            "documentation"
            | "extensionElements"
            | "textAnnotation"
            | "association"
            | "group"
            | "dataObject"
            | "dataObjectReference"
            | "dataStoreReference"
            | "property" => {}
            "laneSet" if is_process => {}
            "incoming"
            | "outgoing"
            | "multiInstanceLoopCharacteristics"
            | "dataInputAssociation"
            | "dataOutputAssociation"
                if !is_process => {}
            "sequenceFlow" => draft.flows.extend(element::flow(child, within.scope, context)),
            "subProcess" => sub_process(child, within, depth, draft, context),
            _ if is_node(kind) => draft.nodes.extend(element::node(child, within, context)),
            other => {
                let id = child.attribute("id").or(container.attribute("id"));
                context.problems.add(id, format!("`{other}` is not supported"));
                draft.refused.extend(child.attribute("id").map(str::to_owned));
            }
        }
    }
}

/// Whether this is a flow node that is run, sub-processes aside.
fn is_node(kind: &str) -> bool {
    matches!(
        kind,
        "startEvent"
            | "endEvent"
            | "intermediateCatchEvent"
            | "intermediateThrowEvent"
            | "boundaryEvent"
            | "task"
            | "manualTask"
            | "scriptTask"
            | "serviceTask"
            | "sendTask"
            | "receiveTask"
            | "userTask"
            | "businessRuleTask"
            | "callActivity"
            | "exclusiveGateway"
            | "parallelGateway"
            | "inclusiveGateway"
            | "eventBasedGateway"
    )
}

fn sub_process(
    node: Node<'_, '_>,
    within: Within,
    depth: usize,
    draft: &mut Draft,
    context: &mut Context<'_>,
) {
    let Some(id) = element::id(node, context.problems) else { return };
    if depth >= limits::SUB_PROCESS_DEPTH_MAX {
        let most = limits::SUB_PROCESS_DEPTH_MAX;
        return context.at(&id, format!("sub-processes nest deeper than {most}"));
    }
    let event = context.flag(node, &id, "triggeredByEvent", false);
    let allowed = if event { &[] } else { modeler::allowed("subProcess", false) };
    let extensions = Extensions::of(node, &id, allowed, context.problems);
    own::refuse_unknown(node, &id, false, context.problems);
    let scope = draft.scopes.len();
    let (role, kind) = if event {
        (Role::EventSub { scope }, NodeKind::EventSub { scope })
    } else {
        (Role::Sub { scope }, NodeKind::Sub { scope })
    };
    let mut draft_node = element::common(node, id, within.scope, role, &extensions, context);
    if event && draft_node.repeat.is_some() {
        context.at(&draft_node.id, "an event sub-process cannot be multi-instance");
    }
    draft_node.kind = Some(DraftKind::Ready(kind));
    draft.scopes.push(Some(draft.nodes.len()));
    draft.nodes.push(draft_node);
    self::scope(node, Within { scope, event }, depth + 1, draft, context);
}

fn process_id(process: Node<'_, '_>, problems: &mut Problems) -> Option<String> {
    let id = process.attribute("id").unwrap_or_default();
    let problem = process_id_problem(id);
    match problem {
        None => Some(id.to_owned()),
        Some(problem) => {
            problems.add(None, format!("the id of the process {problem}"));
            None
        }
    }
}

/// What is wrong with the id of a process, as a phrase that completes "the id …".
pub(super) fn process_id_problem(id: &str) -> Option<String> {
    let most = limits::PROCESS_ID_BYTES_MAX;
    let fits = (1..=most).contains(&id.len())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (!fits).then(|| format!("must be 1 to {most} letters, digits, `_` and `-`"))
}
