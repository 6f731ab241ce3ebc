//! Rules about elements that catch events: event-based gateways, boundary events and event sub-processes.

use std::collections::HashSet;

use super::edges::Edges;
use crate::definition::{NodeKind, Trigger};
use crate::problem::Problems;
use crate::read::{Draft, DraftKind, Role};

/// Checks them all.
pub(super) fn check(draft: &Draft, edges: &Edges, problems: &mut Problems) {
    for (position, node) in draft.nodes.iter().enumerate() {
        if node.role == Role::EventBased {
            gateway(draft, position, edges, problems);
        }
        twice(draft, &edges.attached[position], problems);
    }
    let mut starts = vec![Vec::new(); draft.scopes.len()];
    for (position, node) in draft.nodes.iter().enumerate() {
        let owner = draft.scopes[node.scope].map(|owner| &draft.nodes[owner]);
        if let (Role::Start, Some(owner)) = (node.role, owner)
            && matches!(owner.role, Role::EventSub { .. })
        {
            starts[owner.scope].push(position);
        }
    }
    for starts in &starts {
        twice(draft, starts, problems);
    }
}

/// What follows an event-based gateway waits for something, and nothing else leads there.
fn gateway(draft: &Draft, position: usize, edges: &Edges, problems: &mut Problems) {
    for target in edges.out[position].iter().filter_map(|flow| edges.ends[*flow]) {
        let (_, target) = target;
        let node = &draft.nodes[target];
        if !matches!(node.role, Role::Catch | Role::Receive) {
            problems.at(
                &node.id,
                "an event-based gateway is followed by catch events and receive tasks only",
            );
        } else if edges.into[target].len() > 1 {
            problems
                .at(&node.id, "only the event-based gateway before it can lead to this element");
        } else if !edges.attached[target].is_empty() || node.repeat.is_some() {
            problems.at(
                &node.id,
                "a receive task after an event-based gateway has no boundary events and is not multi-instance",
            );
        }
    }
}

/// No error or escalation is caught twice at one place.
fn twice(draft: &Draft, catching: &[usize], problems: &mut Problems) {
    let mut seen = HashSet::new();
    for position in catching {
        let node = &draft.nodes[*position];
        let Some(
            DraftKind::Boundary { trigger, .. }
            | DraftKind::Ready(NodeKind::Start { trigger: Some(trigger), .. }),
        ) = &node.kind
        else {
            continue;
        };
        let caught = match trigger {
            Trigger::Error { code } => ("error", code),
            Trigger::Escalation { code } => ("escalation", code),
            _ => continue,
        };
        if !seen.insert(caught) {
            let (kind, code) = caught;
            let which = code.as_deref().map_or("without a code".to_owned(), |c| format!("`{c}`"));
            problems.at(&node.id, format!("the {kind} {which} is caught here twice"));
        }
    }
}
