//! One element executed for one token.

use super::variables::Variables;
use crate::definition::{Definition, Flow, Node, NodeKind};
use crate::failure::{Failure, FailureCode};
use crate::limits;
use crate::state::{Phase, State};

/// A run while a slice executes.
pub(super) struct Run<'d> {
    definition: &'d Definition,
    pub(super) state: State,
    variables: Variables,
    /// Work of the expressions of this slice.
    pub(super) work: u64,
}

impl<'d> Run<'d> {
    /// Takes up a run. One that does not belong to the definition is failed from the beginning.
    pub(super) fn open(definition: &'d Definition, mut state: State) -> Self {
        let variables = Variables::load(definition, &state.variables);
        let fits = state.process == definition.summary.id && !state.tokens.is_empty();
        if variables.is_none() || !fits {
            state.phase = Phase::Failed { code: FailureCode::DefinitionMismatch, element: None };
        }
        Self { definition, state, variables: variables.unwrap_or_default(), work: 0 }
    }

    /// Executes the element under the first token. Tokens stay where they are when it fails.
    pub(super) fn step(&mut self) {
        match self.execute() {
            Ok(()) if self.state.tokens.is_empty() => self.state.phase = Phase::Completed,
            Ok(()) => {}
            Err(Failure { code, element }) => self.state.phase = Phase::Failed { code, element },
        }
    }

    fn execute(&mut self) -> Result<(), Failure> {
        let definition = self.definition;
        let element = &self.state.tokens[0].element;
        let Some(node) = definition.index.get(element).map(|position| &definition.nodes[*position])
        else {
            return Err(Failure::at(FailureCode::DefinitionMismatch, element));
        };
        self.enter(node)?;
        match &node.kind {
            NodeKind::Start => self.leave(node, &node.outgoing),
            NodeKind::End => {
                self.state.tokens.remove(0);
                Ok(())
            }
            NodeKind::Script { expression, result } => {
                let script = (result.as_str(), expression);
                self.variables
                    .assign(definition, &mut self.state.variables, script, &mut self.work)
                    .map_err(|code| Failure::at(code, &node.id))?;
                self.leave(node, &node.outgoing)
            }
            NodeKind::Exclusive { default } => {
                let flow = self.choose(node, *default)?;
                self.leave(node, &[flow])
            }
        }
    }

    /// Counts the visit.
    fn enter(&mut self, node: &Node) -> Result<(), Failure> {
        self.state.steps += 1;
        let visits = match self.state.visits.get_mut(&node.id) {
            Some(visits) => visits,
            None => self.state.visits.entry(node.id.clone()).or_default(),
        };
        if *visits >= limits::ELEMENT_VISITS_MAX {
            return Err(Failure::at(FailureCode::ElementVisitLimit, &node.id));
        }
        *visits += 1;
        Ok(())
    }

    /// The first flow whose condition is true, in the order of the document, or else the default.
    fn choose(&mut self, node: &Node, default: Option<usize>) -> Result<usize, Failure> {
        for position in node.outgoing.iter().copied().filter(|position| Some(*position) != default)
        {
            let flow = &self.definition.flows[position];
            let Some(condition) = &flow.condition else { return Ok(position) };
            let answer = self.variables.decide(condition, &mut self.work);
            if answer.map_err(|code| Failure::at(code, &flow.id))? {
                return Ok(position);
            }
        }
        default.ok_or_else(|| Failure::at(FailureCode::NoFlowTaken, &node.id))
    }

    /// Moves the first token along a flow.
    fn leave(&mut self, node: &Node, flows: &[usize]) -> Result<(), Failure> {
        let [flow] = flows else { return Err(Failure::at(FailureCode::NoFlowTaken, &node.id)) };
        let Flow { target, .. } = &self.definition.flows[*flow];
        let instance = self.state.take_id();
        let token = &mut self.state.tokens[0];
        token.element.clone_from(&self.definition.nodes[*target].id);
        token.instance = instance;
        Ok(())
    }
}
