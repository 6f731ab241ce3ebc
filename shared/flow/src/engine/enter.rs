//! Beginning an element.

use super::Effect;
use super::run::{Run, mismatch};
use crate::definition::{Call, End, NodeKind, Throw, Trigger, UserTask};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::limits;
use crate::state::{Person, ROOT, Sent, Stage};
use crate::value;

/// Size of what is sent without its texts and values, in bytes of JSON.
const SENT_BYTES: usize = 64;

impl Run<'_> {
    /// Enters the element of an instance that is ready, and carries it out as far as nobody else is needed.
    pub(super) fn enter(&mut self, id: u64) -> Result<(), Failure> {
        let node = self.node(id)?;
        let instance = self.instance(id)?;
        let (scope, is_item) = (instance.scope, instance.item.is_some());
        if !is_item {
            self.visit(&node.id)?;
        }
        self.note(id, What::Entered);
        if let (Some(repeat), false) = (&node.repeat, is_item) {
            self.attach(id, node)?;
            return self.begin_repeating(id, node, repeat);
        }
        self.map_inputs(id, node)?;
        if !is_item {
            self.attach(id, node)?;
        }
        match &node.kind {
            NodeKind::Start { .. } => {
                // The run begins with the start event alone; a sub-process has its events watched when it is opened.
                if scope == ROOT {
                    self.watch_events(ROOT, &self.definition.scopes[0])?;
                }
                self.finish(id)
            }
            NodeKind::Boundary { .. }
            | NodeKind::Pass
            | NodeKind::Exclusive
            | NodeKind::Inclusive
            | NodeKind::Parallel => self.finish(id),
            NodeKind::End(end) => self.end(id, scope, end),
            NodeKind::Script { expression, result } => {
                let value = self.evaluate(id, expression, &[], &node.id)?;
                self.give(id, node, result, value)?;
                self.finish(id)
            }
            NodeKind::Task(task) => self.ask_first(id, node, task),
            NodeKind::User(user) => self.hand_to_person(id, node, user),
            NodeKind::Call(call) => self.call(id, node, call),
            NodeKind::Sub { scope } => {
                self.instance(id)?.stage = Stage::Open;
                self.open_scope(id, *scope)
            }
            // Only what triggers it begins an event sub-process.
            NodeKind::EventSub { .. } => Err(mismatch()),
            NodeKind::EventBased => {
                self.instance(id)?.stage = Stage::Waiting;
                for flow in &node.outgoing {
                    let target = &self.definition.nodes[self.definition.flows[*flow].target];
                    if let NodeKind::Catch(trigger) = &target.kind {
                        self.subscribe(id, id, target, trigger)?;
                    }
                }
                Ok(())
            }
            NodeKind::Catch(trigger) => {
                self.instance(id)?.stage = Stage::Waiting;
                self.subscribe(id, id, node, trigger)
            }
            NodeKind::Throw(throw) => {
                self.throw(id, throw)?;
                // An escalation may have ended it.
                if self.state.instances.contains_key(&id) { self.finish(id) } else { Ok(()) }
            }
        }
    }

    /// Counts a visit of an element.
    pub(super) fn visit(&mut self, element: &str) -> Result<(), Failure> {
        self.state.steps += 1;
        let visits = match self.state.visits.get_mut(element) {
            Some(visits) => visits,
            None => self.state.visits.entry(element.to_owned()).or_default(),
        };
        if *visits >= limits::ELEMENT_VISITS_MAX {
            return Err(Failure::at(FailureCode::ElementVisitLimit, element));
        }
        *visits += 1;
        Ok(())
    }

    /// Begins the elements of a scope: its start event, and waiting for what starts its event sub-processes.
    pub(super) fn open_scope(&mut self, id: u64, scope: usize) -> Result<(), Failure> {
        let definition = self.definition;
        let scope = &definition.scopes[scope];
        let start = self.add(&definition.nodes[scope.start], id)?;
        self.ready(start);
        self.watch_events(id, scope)
    }

    /// Begins to wait for what starts the event sub-processes of a scope.
    pub(super) fn watch_events(
        &mut self,
        id: u64,
        scope: &crate::definition::Scope,
    ) -> Result<(), Failure> {
        let definition = self.definition;
        for event in &scope.events {
            let NodeKind::EventSub { scope } = definition.nodes[*event].kind else { continue };
            let start = &definition.nodes[definition.scopes[scope].start];
            if let NodeKind::Start { trigger: Some(trigger), .. } = &start.kind {
                self.subscribe(id, id, start, trigger)?;
            }
        }
        Ok(())
    }

    /// Begins to wait for the boundary events of an activity.
    fn attach(&mut self, id: u64, node: &crate::definition::Node) -> Result<(), Failure> {
        let definition = self.definition;
        for boundary in &node.boundary {
            let boundary = &definition.nodes[*boundary];
            if let NodeKind::Boundary { trigger, .. } = &boundary.kind {
                self.subscribe(id, id, boundary, trigger)?;
            }
        }
        Ok(())
    }

    /// Carries out an end event.
    fn end(&mut self, id: u64, scope: u64, end: &End) -> Result<(), Failure> {
        match end {
            End::None => self.finish(id),
            End::Terminate => {
                self.note(id, What::Left);
                self.remove(id);
                self.kill_members(scope);
                if scope == ROOT {
                    self.complete();
                    return Ok(());
                }
                self.finish(scope)
            }
            End::Error { code } => {
                // It ends with the scope that catches the error; when none does, the run fails at it.
                if self.is_caught(scope, code) {
                    self.note(id, What::Left);
                }
                let element = self.instance(id)?.element.clone();
                self.throw_error(scope, code, serde_json::Map::new(), &element)
            }
            End::Throw(throw) => {
                self.throw(id, throw)?;
                if self.state.instances.contains_key(&id) { self.finish(id) } else { Ok(()) }
            }
            End::Task(task) => {
                let node = self.node(id)?;
                self.ask_first(id, node, task)
            }
        }
    }

    /// Sends what a throw event says.
    fn throw(&mut self, id: u64, throw: &Throw) -> Result<(), Failure> {
        let node = self.node(id)?;
        let sent = match throw {
            Throw::Escalation { code } => return self.escalate(id, code),
            Throw::Message(message) => Sent {
                by: id,
                name: self.text(id, &message.name, &node.id)?,
                key: message.key.as_ref().map(|key| self.key(id, key, &node.id)).transpose()?,
                signal: false,
                variables: self.payload(id, node),
            },
            Throw::Signal { name } => Sent {
                by: id,
                name: self.text(id, name, &node.id)?,
                key: None,
                signal: true,
                variables: self.payload(id, node),
            },
        };
        let texts = sent.name.len() + sent.key.as_ref().map_or(0, String::len);
        let values = sent.variables.iter().map(|(name, value)| name.len() + value::bytes(value));
        self.sent_bytes += SENT_BYTES + texts + values.sum::<usize>();
        self.effects.push(Effect::from(sent.clone()));
        self.state.sent.push(sent);
        Ok(())
    }

    fn hand_to_person(
        &mut self,
        id: u64,
        node: &crate::definition::Node,
        user: &UserTask,
    ) -> Result<(), Failure> {
        let text = |run: &mut Self, text: &Option<crate::definition::Text>| match text {
            Some(text) => run.text_or_null(id, text, &node.id),
            None => Ok(None),
        };
        let person = Person {
            assignee: text(self, &user.assignee)?,
            groups: self.texts(id, user.candidate_groups.as_ref(), &node.id)?,
            users: self.texts(id, user.candidate_users.as_ref(), &node.id)?,
            due: text(self, &user.due)?,
            since_ms: self.now_ms,
        };
        self.instance(id)?.stage = Stage::Person(person);
        Ok(())
    }

    fn call(
        &mut self,
        id: u64,
        node: &crate::definition::Node,
        call: &Call,
    ) -> Result<(), Failure> {
        let process = self.text(id, &call.process, &node.id)?;
        self.instance(id)?.stage = Stage::Called { process };
        let effect = self.state.call_effect(self.definition, id);
        self.effects.extend(effect);
        Ok(())
    }

    /// Begins to wait for what an event waits for. `at` is the instance whose variables its expressions see.
    pub(super) fn subscribe(
        &mut self,
        owner: u64,
        at: u64,
        event: &crate::definition::Node,
        trigger: &Trigger,
    ) -> Result<(), Failure> {
        let Some(awaited) = self.awaited(at, event, trigger)? else { return Ok(()) };
        self.await_(owner, &event.id, awaited)
    }
}
