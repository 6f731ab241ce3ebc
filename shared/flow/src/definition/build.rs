//! From a draft to a definition: resolves references by id and puts nodes, flows and scopes together.

use std::collections::{BTreeMap, HashMap};

use super::{Definition, Flow, Node, NodeKind, Scope, Summary, shape};
use crate::problem::Problems;
use crate::read::{Draft, DraftFlow, DraftKind, DraftNode, Role, Settings};
use crate::variable::VariableType;

/// Builds the definition. None is returned only with a problem.
pub(super) fn build(draft: Draft, problems: &mut Problems) -> Option<Definition> {
    let index: HashMap<String, usize> =
        draft.nodes.iter().enumerate().map(|(index, node)| (node.id.clone(), index)).collect();
    shape::check(&draft, &index, problems);
    let scopes = scopes(&draft);
    let flow_index: HashMap<String, usize> =
        draft.flows.iter().enumerate().map(|(index, flow)| (flow.id.clone(), index)).collect();
    let variables = variables(&draft.settings);
    let flows: Option<Vec<Flow>> =
        draft.flows.into_iter().map(|flow| build_flow(flow, &index)).collect();
    let nodes: Option<Vec<Node>> =
        draft.nodes.into_iter().map(|node| build_node(node, &index, &flow_index)).collect();
    let (scopes, flows, mut nodes) = (scopes?, flows?, nodes?);
    for (position, flow) in flows.iter().enumerate() {
        nodes[flow.source].outgoing.push(position);
        nodes[flow.target].incoming.push(position);
    }
    let hosts: Vec<(usize, usize)> = nodes
        .iter()
        .enumerate()
        .filter_map(|(position, node)| match node.kind {
            NodeKind::Boundary { host, .. } => Some((host, position)),
            _ => None,
        })
        .collect();
    for (host, event) in hosts {
        nodes[host].boundary.push(event);
    }
    let settings = draft.settings;
    Some(Definition {
        summary: Summary {
            id: draft.id,
            name: draft.name,
            kind: settings.kind,
            inputs: settings.inputs,
            outputs: settings.outputs,
            deadline_seconds: settings.deadline_seconds,
        },
        nodes,
        flows,
        scopes,
        index,
        variables,
        on_failure: settings.on_failure,
        quick: draft.quick,
    })
}

fn variables(settings: &Settings) -> BTreeMap<String, VariableType> {
    let declared = settings.inputs.iter().chain(&settings.outputs);
    declared.map(|variable| (variable.name.clone(), variable.kind)).collect()
}

/// The scopes, if each has its start event.
fn scopes(draft: &Draft) -> Option<Vec<Scope>> {
    let mut starts = vec![None; draft.scopes.len()];
    let mut events = vec![Vec::new(); draft.scopes.len()];
    for (position, node) in draft.nodes.iter().enumerate() {
        match node.role {
            Role::Start => starts[node.scope] = Some(position),
            Role::EventSub { .. } => events[node.scope].push(position),
            _ => {}
        }
    }
    let scopes = draft.scopes.iter().zip(starts).zip(events);
    scopes
        .map(|((owner, start), events)| Some(Scope { owner: *owner, start: start?, events }))
        .collect()
}

fn build_node(
    draft: DraftNode,
    nodes: &HashMap<String, usize>,
    flows: &HashMap<String, usize>,
) -> Option<Node> {
    let kind = match draft.kind? {
        DraftKind::Ready(kind) => kind,
        DraftKind::Boundary { trigger, interrupting } => {
            NodeKind::Boundary { host: *nodes.get(&draft.host?)?, trigger, interrupting }
        }
    };
    Some(Node {
        id: draft.id,
        name: draft.name,
        scope: draft.scope,
        kind,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        default: draft.default.and_then(|default| flows.get(&default).copied()),
        boundary: Vec::new(),
        inputs: draft.inputs,
        outputs: draft.outputs,
        repeat: draft.repeat,
    })
}

fn build_flow(draft: DraftFlow, nodes: &HashMap<String, usize>) -> Option<Flow> {
    Some(Flow {
        source: *nodes.get(&draft.source)?,
        target: *nodes.get(&draft.target)?,
        id: draft.id,
        name: draft.name,
        condition: draft.condition,
    })
}
