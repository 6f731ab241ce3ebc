//! Which nodes follow which: sequence flows, and boundary events that follow their host.

use std::collections::HashMap;

use crate::problem::Problems;
use crate::read::Draft;

/// Flows into and out of each node, by position.
pub(super) struct Edges {
    pub(super) into: Vec<Vec<usize>>,
    pub(super) out: Vec<Vec<usize>>,
    /// Source and target of each flow, where both exist in one scope.
    pub(super) ends: Vec<Option<(usize, usize)>>,
    /// The host of each boundary event.
    pub(super) host: Vec<Option<usize>>,
    /// The boundary events of each node.
    pub(super) attached: Vec<Vec<usize>>,
}

impl Edges {
    /// Resolves the ends of all flows and the hosts of all boundary events, and tells what does not fit.
    pub(super) fn of(
        draft: &Draft,
        index: &HashMap<String, usize>,
        problems: &mut Problems,
    ) -> Self {
        let nodes = draft.nodes.len();
        let mut edges = Self {
            into: vec![Vec::new(); nodes],
            out: vec![Vec::new(); nodes],
            ends: Vec::new(),
            host: vec![None; nodes],
            attached: vec![Vec::new(); nodes],
        };
        for position in 0..draft.flows.len() {
            edges.add_flow(draft, position, index, problems);
        }
        for position in 0..nodes {
            edges.add_boundary(draft, position, index, problems);
        }
        edges
    }

    fn add_flow(
        &mut self,
        draft: &Draft,
        position: usize,
        index: &HashMap<String, usize>,
        problems: &mut Problems,
    ) {
        let flow = &draft.flows[position];
        let (source, target) = (index.get(&flow.source), index.get(&flow.target));
        for (end, id, found) in
            [("sourceRef", &flow.source, source), ("targetRef", &flow.target, target)]
        {
            match found {
                None if draft.refused.contains(id) => {}
                None => {
                    let id: String = id.chars().take(60).collect();
                    problems.at(&flow.id, format!("{end} `{id}` names no element that can be run"));
                }
                Some(node) if draft.nodes[*node].scope != flow.scope => {
                    let id: String = id.chars().take(60).collect();
                    let message = format!("{end} `{id}` lies in another process or sub-process");
                    problems.at(&flow.id, message);
                }
                Some(_) => {}
            }
        }
        if let Some(source) = source {
            self.out[*source].push(position);
        }
        if let Some(target) = target {
            self.into[*target].push(position);
        }
        let ends = source.copied().zip(target.copied());
        self.ends.push(ends.filter(|(source, target)| {
            draft.nodes[*source].scope == flow.scope && draft.nodes[*target].scope == flow.scope
        }));
    }

    fn add_boundary(
        &mut self,
        draft: &Draft,
        position: usize,
        index: &HashMap<String, usize>,
        problems: &mut Problems,
    ) {
        let node = &draft.nodes[position];
        let Some(id) = &node.host else { return };
        let host = index.get(id).copied().filter(|host| {
            let host = &draft.nodes[*host];
            host.scope == node.scope && host.role.is_activity()
        });
        if let Some(host) = host {
            self.host[position] = Some(host);
            self.attached[host].push(position);
        } else if !draft.refused.contains(id) {
            let id: String = id.chars().take(60).collect();
            let message = format!("attachedToRef `{id}` names no activity beside the event");
            problems.at(&node.id, message);
        }
    }

    /// Marks what can be reached from `open`.
    pub(super) fn forward(&self, mut open: Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        while let Some(position) = open.pop() {
            if !std::mem::replace(&mut reached[position], true) {
                let flows = self.out[position].iter().filter_map(|flow| self.ends[*flow]);
                open.extend(flows.map(|(_, target)| target));
                open.extend(&self.attached[position]);
            }
        }
        reached
    }

    /// Marks from where one of `open` can be reached.
    pub(super) fn backward(&self, mut open: Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        while let Some(position) = open.pop() {
            if !std::mem::replace(&mut reached[position], true) {
                let flows = self.into[position].iter().filter_map(|flow| self.ends[*flow]);
                open.extend(flows.map(|(source, _)| source));
                open.extend(self.host[position]);
            }
        }
        reached
    }
}
