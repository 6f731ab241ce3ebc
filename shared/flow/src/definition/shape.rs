//! What the drawing must look like for execution to go from its start to an end.

use std::collections::HashMap;

use crate::problem::Problems;
use crate::read::{Draft, DraftFlow, DraftKind, DraftNode};

/// Checks the shape of the whole process. `index` gives the position of each node by its id.
pub(super) fn check(draft: &Draft, index: &HashMap<String, usize>, problems: &mut Problems) {
    let edges = Edges::of(draft, index, problems);
    starts(draft, problems);
    for (position, node) in draft.nodes.iter().enumerate() {
        degree(node, edges.into[position].len(), edges.out[position].len(), problems);
        let outgoing: Vec<&DraftFlow> =
            edges.out[position].iter().map(|flow| &draft.flows[*flow]).collect();
        branches(node, &outgoing, problems);
        listed(node, draft, problems);
    }
    reach(draft, &edges, problems);
}

/// Flows into and out of each node, by position.
struct Edges {
    into: Vec<Vec<usize>>,
    out: Vec<Vec<usize>>,
    /// Source and target of each flow, where both exist.
    ends: Vec<Option<(usize, usize)>>,
}

impl Edges {
    fn of(draft: &Draft, index: &HashMap<String, usize>, problems: &mut Problems) -> Self {
        let nodes = draft.nodes.len();
        let mut edges =
            Self { into: vec![Vec::new(); nodes], out: vec![Vec::new(); nodes], ends: Vec::new() };
        for (position, flow) in draft.flows.iter().enumerate() {
            let (source, target) =
                (index.get(&flow.source).copied(), index.get(&flow.target).copied());
            for (end, id, found) in
                [("sourceRef", &flow.source, source), ("targetRef", &flow.target, target)]
            {
                if found.is_none() {
                    let id: String = id.chars().take(60).collect();
                    problems.at(&flow.id, format!("{end} `{id}` names no element that can be run"));
                }
            }
            if let Some(source) = source {
                edges.out[source].push(position);
            }
            if let Some(target) = target {
                edges.into[target].push(position);
            }
            edges.ends.push(source.zip(target));
        }
        edges
    }
}

fn starts(draft: &Draft, problems: &mut Problems) {
    let count = draft.nodes.iter().filter(|node| node.kind == DraftKind::Start).count();
    if count != 1 {
        problems.at(
            &draft.id,
            format!("the process must have exactly one start event, and has {count}"),
        );
    }
    if !draft.nodes.iter().any(|node| node.kind == DraftKind::End) {
        problems.at(&draft.id, "the process has no end event");
    }
}

/// How many flows may enter and leave a node.
fn degree(node: &DraftNode, into: usize, out: usize, problems: &mut Problems) {
    match node.kind {
        DraftKind::Start if into > 0 => {
            problems.at(&node.id, "a sequence flow leads into the start event");
        }
        DraftKind::End if out > 0 => problems.at(&node.id, "a sequence flow leaves the end event"),
        _ => {}
    }
    match node.kind {
        DraftKind::End => {}
        _ if out == 0 => problems.at(&node.id, "no sequence flow leaves this element"),
        DraftKind::Exclusive => {}
        _ if out > 1 => {
            problems.at(
                &node.id,
                "several sequence flows leave this element; branch at an exclusive gateway",
            );
        }
        _ => {}
    }
}

/// Conditions and the default flow.
fn branches(node: &DraftNode, outgoing: &[&DraftFlow], problems: &mut Problems) {
    let default = node.default.as_deref();
    if let Some(default) = default
        && !outgoing.iter().any(|flow| flow.id == default)
    {
        problems.at(&node.id, "the default flow does not leave this element");
    }
    for flow in outgoing {
        let is_default = default == Some(flow.id.as_str());
        match (&node.kind, &flow.condition) {
            (DraftKind::Exclusive, Some(_)) if is_default => {
                problems.at(&flow.id, "the default flow must have no condition");
            }
            (DraftKind::Exclusive, None) if outgoing.len() > 1 && !is_default => problems.at(
                &flow.id,
                "a flow that leaves a gateway with several flows needs a condition, or to be the default",
            ),
            (DraftKind::Exclusive, _) | (_, None) => {}
            (_, Some(_)) => {
                problems.at(&flow.id, "only a flow that leaves an exclusive gateway can have a condition");
            }
        }
    }
}

/// What a node lists as its flows must be its flows.
fn listed(node: &DraftNode, draft: &Draft, problems: &mut Problems) {
    for entry in &node.listed {
        let fits = draft.flows.iter().any(|flow| {
            flow.id == entry.flow
                && node.id == *(if entry.outgoing { &flow.source } else { &flow.target })
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

/// Every node must be reachable from the start, and an end from every node.
fn reach(draft: &Draft, edges: &Edges, problems: &mut Problems) {
    let of_kind = |kind: &DraftKind| {
        draft
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind == *kind)
            .map(|(position, _)| position)
            .collect()
    };
    let from_start =
        closure(of_kind(&DraftKind::Start), &edges.out, &edges.ends, |(_, target)| target);
    let to_end = closure(of_kind(&DraftKind::End), &edges.into, &edges.ends, |(source, _)| source);
    for (position, node) in draft.nodes.iter().enumerate() {
        if !from_start[position] && node.kind != DraftKind::Start {
            problems.at(&node.id, "this element cannot be reached from the start event");
        } else if !to_end[position] && !edges.out[position].is_empty() {
            problems.at(&node.id, "no end event can be reached from this element");
        }
    }
}

/// Marks what can be reached from `open` along `edges`.
fn closure(
    mut open: Vec<usize>,
    edges: &[Vec<usize>],
    ends: &[Option<(usize, usize)>],
    next: fn((usize, usize)) -> usize,
) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    while let Some(position) = open.pop() {
        if !std::mem::replace(&mut reached[position], true) {
            open.extend(edges[position].iter().filter_map(|flow| ends[*flow]).map(next));
        }
    }
    reached
}
