//! Where several flows meet.

use super::run::Run;
use crate::definition::{Definition, NodeKind};
use crate::failure::Failure;
use crate::state::{Instance, Stage};

impl Run<'_> {
    /// Comes along a flow to its target.
    pub(super) fn arrive(&mut self, flow: usize, scope: u64) -> Result<(), Failure> {
        let definition = self.definition;
        let flow = &definition.flows[flow];
        let node = &definition.nodes[flow.target];
        let id = self.add(node, scope)?;
        let joins = node.incoming.len() > 1;
        match node.kind {
            NodeKind::Parallel if joins => {
                self.instance(id)?.stage = Stage::Joining(flow.id.clone());
                self.open_parallel_join(flow.target, scope);
            }
            NodeKind::Inclusive if joins => {
                self.instance(id)?.stage = Stage::Joining(flow.id.clone());
            }
            _ => self.ready(id),
        }
        Ok(())
    }

    /// Opens a parallel join when somebody has come along every flow.
    fn open_parallel_join(&mut self, node: usize, scope: u64) {
        let definition = self.definition;
        let node = &definition.nodes[node];
        let arrived: Option<Vec<u64>> = node
            .incoming
            .iter()
            .map(|flow| self.first_along(&node.id, scope, &definition.flows[*flow].id))
            .collect();
        if let Some(arrived) = arrived {
            self.merge(&arrived);
        }
    }

    /// Who has come along a flow first and waits.
    fn first_along(&self, element: &str, scope: u64, flow: &str) -> Option<u64> {
        let found =
            self.state.instances.iter().find(|(_, instance)| {
                instance.scope == scope && is_joining(instance, element, flow)
            });
        found.map(|(id, _)| *id)
    }

    /// Makes one of those that have arrived ready to go on, and ends the others.
    fn merge(&mut self, arrived: &[u64]) {
        // The one that came last goes on, so that ids keep the order in which things became ready.
        let Some(last) = arrived.iter().copied().max() else { return };
        for id in arrived.iter().filter(|id| **id != last) {
            self.remove(*id);
        }
        if let Some(instance) = self.state.instances.get_mut(&last) {
            instance.stage = Stage::Ready;
            self.ready(last);
        }
    }

    /// Opens one inclusive join that nobody else can reach any more. Asked only when nothing is ready.
    ///
    /// As in the standard: somebody has come along at least one flow, and whoever could still come along an empty flow could
    /// also come along one that is not empty.
    pub(super) fn open_inclusive_join(&mut self) -> bool {
        let definition = self.definition;
        let mut places: Vec<(usize, u64)> = Vec::new();
        for instance in self.state.instances.values() {
            if let (Stage::Joining(_), Some(position)) =
                (&instance.stage, definition.index.get(&instance.element))
                && matches!(definition.nodes[*position].kind, NodeKind::Inclusive)
                && !places.contains(&(*position, instance.scope))
            {
                places.push((*position, instance.scope));
            }
        }
        for (position, scope) in places {
            if let Some(arrived) = self.complete_inclusive(position, scope) {
                self.merge(&arrived);
                return true;
            }
        }
        false
    }

    /// Who goes on at an inclusive join, if it opens: one from each flow that somebody has come along.
    fn complete_inclusive(&self, position: usize, scope: u64) -> Option<Vec<u64>> {
        let definition = self.definition;
        let node = &definition.nodes[position];
        let (mut arrived, mut filled, mut empty) = (Vec::new(), Vec::new(), Vec::new());
        for flow in &node.incoming {
            let flow = &definition.flows[*flow];
            match self.first_along(&node.id, scope, &flow.id) {
                Some(id) => {
                    arrived.push(id);
                    filled.push(flow.source);
                }
                None => empty.push(flow.source),
            }
        }
        let to_empty = leading_to(definition, &empty, position);
        let to_filled = leading_to(definition, &filled, position);
        let blocked = self.state.instances.values().any(|instance| {
            let at = definition.index.get(&instance.element);
            instance.scope == scope
                && at.is_some_and(|at| *at != position && to_empty[*at] && !to_filled[*at])
        });
        (!blocked && !arrived.is_empty()).then_some(arrived)
    }
}

fn is_joining(instance: &Instance, element: &str, flow: &str) -> bool {
    instance.element == element && matches!(&instance.stage, Stage::Joining(along) if along == flow)
}

/// Marks every node from which one of `ends` can be reached without passing `around`.
fn leading_to(definition: &Definition, ends: &[usize], around: usize) -> Vec<bool> {
    let mut marked = vec![false; definition.nodes.len()];
    let mut open = ends.to_vec();
    while let Some(position) = open.pop() {
        if position == around || std::mem::replace(&mut marked[position], true) {
            continue;
        }
        let node = &definition.nodes[position];
        open.extend(node.incoming.iter().map(|flow| definition.flows[*flow].source));
        if let NodeKind::Boundary { host, .. } = node.kind {
            open.push(host);
        }
    }
    marked
}
