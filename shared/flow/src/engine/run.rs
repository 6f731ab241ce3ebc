//! A run while a slice executes: its state, what is ready, and the books that are kept beside it.

use std::collections::{HashMap, VecDeque};

use super::{Effect, Event};
use crate::definition::{Definition, Node};
use crate::failure::{Failure, FailureCode};
use crate::history::{Entry, What};
use crate::limits;
use crate::state::{Asked, Awaited, Instance, Phase, ROOT, Stage, State, Wait};
use crate::value;

/// A run while a slice executes.
pub(super) struct Run<'d> {
    pub(super) definition: &'d Definition,
    pub(super) state: State,
    pub(super) now_ms: u64,
    /// Instances to execute, in the order in which they became ready.
    queue: VecDeque<u64>,
    /// How many instances each scope has.
    members: HashMap<u64, u32>,
    /// Approximate size of all variables, in bytes of JSON.
    pub(super) bytes: usize,
    /// Work of the expressions of this slice.
    pub(super) work: u64,
    /// Approximate size of what this slice has sent, in bytes of JSON.
    pub(super) sent_bytes: usize,
    pub(super) effects: Vec<Effect>,
    pub(super) history: Vec<Entry>,
    pub(super) ignored: u32,
}

impl<'d> Run<'d> {
    /// Takes up a run. One that does not belong to the definition is failed from the beginning.
    pub(super) fn open(definition: &'d Definition, state: State, now_ms: u64) -> Self {
        let mut run = Self {
            definition,
            state,
            now_ms,
            queue: VecDeque::new(),
            members: HashMap::new(),
            bytes: 0,
            work: 0,
            sent_bytes: 0,
            effects: Vec::new(),
            history: Vec::new(),
            ignored: 0,
        };
        run.state.sent.clear();
        run.state.dropped.clear();
        if run.fits() {
            run.count();
        } else {
            run.fail(Failure { code: FailureCode::DefinitionMismatch, element: None, error: None });
        }
        run
    }

    /// Whether the state is one of this definition, with values that an engine can have put there.
    fn fits(&self) -> bool {
        let state = &self.state;
        let index = &self.definition.index;
        let plain = |values: &serde_json::Map<String, serde_json::Value>| {
            values.values().all(value::is_plain)
        };
        state.process == self.definition.summary.id
            && !state.instances.is_empty()
            && plain(&state.variables)
            && state
                .variables
                .iter()
                .all(|(name, value)| self.definition.type_of(name).accepts(value))
            && state.waits.iter().all(|wait| index.contains_key(&wait.element))
            && state
                .instances
                .values()
                .all(|instance| index.contains_key(&instance.element) && plain(&instance.variables))
    }

    fn count(&mut self) {
        self.bytes = self.state.variables.values().map(value::bytes).sum();
        for (id, instance) in &self.state.instances {
            *self.members.entry(instance.scope).or_default() += 1;
            self.bytes += instance.variables.values().map(value::bytes).sum::<usize>();
            if let Stage::Repeating(repeating) = &instance.stage {
                let values = repeating.items.iter().chain(&repeating.results);
                self.bytes += values.map(value::bytes).sum::<usize>();
            }
            if matches!(instance.stage, Stage::Ready | Stage::Fired) {
                self.queue.push_back(*id);
            }
        }
    }

    /// Takes in what has happened, in order, and what is due.
    pub(super) fn take_in(&mut self, events: Vec<Event>) {
        for event in events {
            if self.state.phase != Phase::Running {
                self.ignored += 1;
                continue;
            }
            let outcome = self.occur(event);
            self.settle_with(outcome);
        }
        self.settle_with(Ok(()));
    }

    /// Whether the slice has done and sent as much as one may.
    pub(super) fn is_full(&self) -> bool {
        self.work > limits::SLICE_WORK_MAX || self.sent_bytes > limits::SLICE_SENT_BYTES_MAX
    }

    /// Whether something is ready.
    pub(super) fn goes_on(&self) -> bool {
        self.state.phase == Phase::Running && !self.queue.is_empty()
    }

    /// Executes the instance that has been ready longest.
    pub(super) fn step(&mut self) {
        let Some(id) = self.queue.pop_front() else { return };
        let outcome = match self.state.instances.get(&id).map(|instance| &instance.stage) {
            Some(Stage::Ready) => self.enter(id),
            Some(Stage::Fired) => self.finish(id),
            // Ended by something else since it became ready.
            _ => Ok(()),
        };
        self.settle_with(outcome);
    }

    /// Takes a failure to the run. When nothing is ready, lets due timers ring and joins open.
    fn settle_with(&mut self, outcome: Result<(), Failure>) {
        let mut outcome = outcome;
        loop {
            if let Err(failure) = outcome {
                return self.fail(failure);
            }
            if self.state.phase != Phase::Running || !self.queue.is_empty() {
                return;
            }
            outcome = match self.due() {
                Some(wait) => self.ring(wait),
                None if self.open_inclusive_join() => Ok(()),
                None if self.waits_for_something() => return,
                None => Err(self.stuck()),
            };
        }
    }

    /// The wait that is due longest.
    fn due(&self) -> Option<u64> {
        let due =
            self.state.waits.iter().filter_map(|wait| Some((wait.awaited.due_ms()?, wait.id)));
        due.filter(|(due_ms, _)| *due_ms <= self.now_ms).min().map(|(_, id)| id)
    }

    fn waits_for_something(&self) -> bool {
        !self.state.waits.is_empty()
            || self.state.instances.values().any(|instance| {
                matches!(instance.stage, Stage::Asked(_) | Stage::Person(_) | Stage::Called { .. })
            })
    }

    fn stuck(&self) -> Failure {
        let joining = self
            .state
            .instances
            .values()
            .find(|instance| matches!(instance.stage, Stage::Joining(_)));
        Failure {
            code: FailureCode::Stuck,
            element: joining.map(|instance| instance.element.clone()),
            error: None,
        }
    }

    /// Ends the run as failed; instances stay where they are, to be looked at.
    pub(super) fn fail(&mut self, failure: Failure) {
        if let Some(element) = &failure.element {
            let at = self
                .state
                .instances
                .iter()
                .rev()
                .find(|(_, instance)| instance.element == *element);
            if let Some((id, _)) = at {
                self.note(*id, What::Failed);
            }
        }
        self.state.phase =
            Phase::Failed { code: failure.code, element: failure.element, error: failure.error };
    }

    /// The node that an instance is a visit of.
    pub(super) fn node(&self, id: u64) -> Result<&'d Node, Failure> {
        let instance = self.state.instances.get(&id);
        let position = instance.and_then(|instance| self.definition.index.get(&instance.element));
        position.map(|position| &self.definition.nodes[*position]).ok_or_else(mismatch)
    }

    pub(super) fn instance(&mut self, id: u64) -> Result<&mut Instance, Failure> {
        self.state.instances.get_mut(&id).ok_or_else(mismatch)
    }

    /// The scope of the definition that an instance opens; none for what is no sub-process.
    pub(super) fn scope_of(&self, id: u64) -> Option<usize> {
        use crate::definition::NodeKind;
        if id == ROOT {
            return Some(0);
        }
        match self.node(id).ok()?.kind {
            NodeKind::Sub { scope } | NodeKind::EventSub { scope } => {
                matches!(self.state.instances[&id].stage, Stage::Open).then_some(scope)
            }
            _ => None,
        }
    }

    /// Adds an instance of a node that is not to be executed yet.
    pub(super) fn add(&mut self, node: &Node, scope: u64) -> Result<u64, Failure> {
        if self.state.instances.len() >= limits::INSTANCES_MAX {
            return Err(Failure::at(FailureCode::TooManyInstances, &node.id));
        }
        *self.members.entry(scope).or_default() += 1;
        Ok(self.state.add(&node.id, scope))
    }

    /// Says that an instance can be executed.
    pub(super) fn ready(&mut self, id: u64) {
        self.queue.push_back(id);
    }

    /// Takes an instance out, with everything that it waits for.
    pub(super) fn remove(&mut self, id: u64) -> Option<Instance> {
        let instance = self.state.instances.remove(&id)?;
        self.forget_waits(id);
        if let Some(members) = self.members.get_mut(&instance.scope) {
            *members = members.saturating_sub(1);
        }
        let own = instance.variables.values().map(value::bytes).sum();
        self.bytes = self.bytes.saturating_sub(own);
        if let Stage::Repeating(repeating) = &instance.stage {
            let values = repeating.items.iter().chain(&repeating.results);
            self.bytes = self.bytes.saturating_sub(values.map(value::bytes).sum());
        }
        Some(instance)
    }

    pub(super) fn members(&self, scope: u64) -> u32 {
        self.members.get(&scope).copied().unwrap_or_default()
    }

    pub(super) fn forget_waits(&mut self, owner: u64) {
        self.state.waits.retain(|wait| wait.owner != owner);
    }

    /// Begins to wait.
    pub(super) fn await_(
        &mut self,
        owner: u64,
        element: &str,
        awaited: Awaited,
    ) -> Result<(), Failure> {
        if self.state.waits.len() >= limits::WAITS_MAX {
            return Err(Failure::at(FailureCode::TooManyInstances, element));
        }
        let id = self.state.take_id();
        self.state.waits.push(Wait { id, owner, element: element.to_owned(), awaited });
        Ok(())
    }

    /// Writes down what happened to an instance.
    pub(super) fn note(&mut self, id: u64, what: What) {
        let Some(instance) = self.state.instances.get(&id) else { return };
        let attempt = match &instance.stage {
            Stage::Asked(Asked { attempt, .. }) => *attempt,
            _ => 1,
        };
        self.history.push(Entry(instance.element.clone(), id, what, attempt, self.now_ms));
    }
}

/// The state refers to something that is not there: it was not made by this engine from this definition.
pub(super) fn mismatch() -> Failure {
    Failure { code: FailureCode::DefinitionMismatch, element: None, error: None }
}
