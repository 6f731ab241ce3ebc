//! Ending an element and taking the flows that leave it.

use super::run::Run;
use crate::definition::{Node, NodeKind};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::state::{Phase, ROOT};

impl Run<'_> {
    /// Ends an instance that has done its work, and goes on behind it.
    pub(super) fn finish(&mut self, id: u64) -> Result<(), Failure> {
        let node = self.node(id)?;
        self.map_outputs(id, node)?;
        if self.instance(id)?.item.is_some() {
            return self.finish_item(id, node);
        }
        self.leave_whole(id, node)
    }

    /// Leaves an element, with its mappings done.
    pub(super) fn leave_whole(&mut self, id: u64, node: &Node) -> Result<(), Failure> {
        let flows = self.choose(id, node)?;
        self.note(id, What::Left);
        let Some(instance) = self.remove(id) else { return Ok(()) };
        for flow in flows {
            self.arrive(flow, instance.scope)?;
        }
        self.scope_may_end(instance.scope)
    }

    /// The flows to take.
    fn choose(&mut self, id: u64, node: &Node) -> Result<Vec<usize>, Failure> {
        let definition = self.definition;
        let exclusive = matches!(node.kind, NodeKind::Exclusive);
        let conditions = !matches!(node.kind, NodeKind::Parallel);
        let mut taken = Vec::with_capacity(node.outgoing.len().min(4));
        for position in
            node.outgoing.iter().copied().filter(|position| Some(*position) != node.default)
        {
            let flow = &definition.flows[position];
            let take = match &flow.condition {
                Some(condition) if conditions => self.decide(id, condition, &[], &flow.id)?,
                _ => true,
            };
            if take {
                taken.push(position);
                if exclusive {
                    return Ok(taken);
                }
            }
        }
        if taken.is_empty() {
            taken.extend(node.default);
        }
        if taken.is_empty() && !node.outgoing.is_empty() {
            return Err(Failure::at(FailureCode::NoFlowTaken, &node.id));
        }
        Ok(taken)
    }

    /// Ends a scope in which nothing is left.
    pub(super) fn scope_may_end(&mut self, scope: u64) -> Result<(), Failure> {
        if self.members(scope) > 0 {
            return Ok(());
        }
        if scope == ROOT {
            self.complete();
            return Ok(());
        }
        self.finish(scope)
    }

    /// Ends the run as drawn.
    pub(super) fn complete(&mut self) {
        self.state.waits.clear();
        self.state.phase = Phase::Completed;
    }
}
