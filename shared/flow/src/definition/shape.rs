//! What the drawing must look like for execution to go from a start to an end, in the process and in each sub-process.

mod catching;
mod edges;

use std::collections::HashMap;

use crate::problem::Problems;
use crate::read::{Draft, DraftFlow, DraftKind, DraftNode, Role};
use edges::Edges;

use super::NodeKind;

/// Checks the shape of the whole process. `index` gives the position of each node by its id.
pub(super) fn check(draft: &Draft, index: &HashMap<String, usize>, problems: &mut Problems) {
    let edges = Edges::of(draft, index, problems);
    scopes(draft, problems);
    let flows: HashMap<&str, &DraftFlow> =
        draft.flows.iter().map(|flow| (flow.id.as_str(), flow)).collect();
    for (position, node) in draft.nodes.iter().enumerate() {
        degree(node, edges.into[position].len(), edges.out[position].len(), problems);
        let outgoing: Vec<&DraftFlow> =
            edges.out[position].iter().map(|flow| &draft.flows[*flow]).collect();
        branches(node, &outgoing, problems);
        listed(node, &flows, problems);
    }
    catching::check(draft, &edges, problems);
    // Beside elements that are not run, what cannot be reached says nothing.
    if draft.refused.is_empty() {
        reach(draft, &edges, problems);
    }
}

/// What a scope is called in a message, and the id of the element that it is.
fn named(draft: &Draft, scope: usize) -> (&str, &'static str) {
    match draft.scopes[scope].map(|owner| &draft.nodes[owner]) {
        None => (&draft.id, "process"),
        Some(owner) if matches!(owner.role, Role::EventSub { .. }) => {
            (&owner.id, "event sub-process")
        }
        Some(owner) => (&owner.id, "sub-process"),
    }
}

/// Each scope has one start event of the right kind, and an end.
fn scopes(draft: &Draft, problems: &mut Problems) {
    let mut starts = vec![0; draft.scopes.len()];
    let mut ends = vec![0; draft.scopes.len()];
    for node in &draft.nodes {
        match node.role {
            Role::Start => {
                starts[node.scope] += 1;
                let (_, what) = named(draft, node.scope);
                let untriggered = matches!(
                    node.kind,
                    Some(DraftKind::Ready(NodeKind::Start { trigger: None, .. }))
                );
                if untriggered && what == "event sub-process" {
                    problems.at(&node.id, "the start of an event sub-process needs an event");
                }
            }
            Role::End => ends[node.scope] += 1,
            _ => {}
        }
    }
    for (scope, (starts, ends)) in starts.into_iter().zip(ends).enumerate() {
        let (id, what) = named(draft, scope);
        if starts != 1 {
            problems
                .at(id, format!("the {what} must have exactly one start event, and has {starts}"));
        }
        if ends == 0 {
            problems.at(id, format!("the {what} has no end event"));
        }
    }
}

/// How many flows may enter and leave a node.
fn degree(node: &DraftNode, into: usize, out: usize, problems: &mut Problems) {
    let mut told = |message: &str| problems.at(&node.id, message);
    match node.role {
        Role::Start if into > 0 => told("a sequence flow leads into the start event"),
        Role::Boundary if into > 0 => told("a sequence flow leads into the boundary event"),
        Role::EventSub { .. } if into + out > 0 => {
            told("no sequence flow can lead into or out of an event sub-process");
        }
        _ => {}
    }
    match node.role {
        Role::End if out > 0 => told("a sequence flow leaves the end event"),
        Role::End | Role::EventSub { .. } => {}
        _ if out == 0 => told("no sequence flow leaves this element"),
        Role::EventBased if out == 1 => {
            told("an event-based gateway needs at least two sequence flows that leave it");
        }
        _ => {}
    }
}

/// Conditions and the default flow.
fn branches(node: &DraftNode, outgoing: &[&DraftFlow], problems: &mut Problems) {
    let decides = matches!(node.role, Role::Exclusive | Role::Inclusive);
    let default = node.default.as_deref();
    if let Some(default) = default {
        if !decides && !node.role.is_activity() {
            problems.at(&node.id, "this element cannot have a default flow");
        } else if !outgoing.iter().any(|flow| flow.id == default) {
            problems.at(&node.id, "the default flow does not leave this element");
        } else if !decides && !outgoing.iter().any(|flow| flow.conditional) {
            problems.at(&node.id, "a default flow needs another flow with a condition");
        }
    }
    for flow in outgoing {
        let is_default = default == Some(flow.id.as_str());
        if flow.conditional && !decides && !node.role.is_activity() {
            problems.at(
                &flow.id,
                "only a flow that leaves an exclusive or inclusive gateway or an activity can have a condition",
            );
        } else if flow.conditional && is_default {
            problems.at(&flow.id, "the default flow must have no condition");
        } else if !flow.conditional && decides && outgoing.len() > 1 && !is_default {
            problems.at(
                &flow.id,
                "a flow that leaves a gateway with several flows needs a condition, or to be the default",
            );
        }
    }
}

/// What a node lists as its flows must be its flows.
fn listed(node: &DraftNode, flows: &HashMap<&str, &DraftFlow>, problems: &mut Problems) {
    for entry in &node.listed {
        let fits = flows.get(entry.flow.as_str()).is_some_and(|flow| {
            node.id == *(if entry.outgoing { &flow.source } else { &flow.target })
        });
        if !fits {
            let (direction, verb) =
                if entry.outgoing { ("outgoing", "leaves") } else { ("incoming", "enters") };
            let flow: String = entry.flow.chars().take(60).collect();
            problems.at(
                &node.id,
                format!("`{direction}` lists `{flow}`, which is no flow that {verb} this element"),
            );
        }
    }
}

/// Every node must be reachable from the start of its scope, and an end of it from every node.
fn reach(draft: &Draft, edges: &Edges, problems: &mut Problems) {
    let of_role = |role: Role| {
        let found = draft.nodes.iter().enumerate().filter(|(_, node)| node.role == role);
        found.map(|(position, _)| position).collect::<Vec<_>>()
    };
    let from_start = edges.forward(of_role(Role::Start));
    let to_end = edges.backward(of_role(Role::End));
    for (position, node) in draft.nodes.iter().enumerate() {
        if matches!(node.role, Role::EventSub { .. }) {
            continue;
        }
        // A boundary event without its host is told as such.
        let lost = node.role == Role::Boundary && edges.host[position].is_none();
        if !from_start[position] && node.role != Role::Start && !lost {
            problems.at(&node.id, "this element cannot be reached from the start event");
        } else if !to_end[position] && !edges.out[position].is_empty() {
            problems.at(&node.id, "no end event can be reached from this element");
        }
    }
}
