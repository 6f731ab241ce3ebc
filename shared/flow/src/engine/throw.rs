//! Errors and escalations on their way up, and what ends early because of them.

use serde_json::{Map, Value as Json};

use super::Effect;
use super::run::{Run, mismatch};
use super::variables::is_kept;
use crate::definition::{Node, NodeKind, Trigger};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::state::{ROOT, Stage};

/// What is on its way up.
#[derive(Clone, Copy)]
enum Thrown<'a> {
    Error(&'a str),
    Escalation(&'a str),
}

impl Thrown<'_> {
    /// How well a trigger fits: a code of its own better than any code.
    fn fits(self, trigger: &Trigger) -> Option<u8> {
        let ((Self::Error(code), Trigger::Error { code: wanted })
        | (Self::Escalation(code), Trigger::Escalation { code: wanted })) = (self, trigger)
        else {
            return None;
        };
        match wanted {
            None => Some(0),
            Some(wanted) => (wanted == code).then_some(1),
        }
    }
}

/// What catches it.
enum Catcher<'d> {
    /// A boundary event of this instance.
    Boundary { host: u64, event: &'d Node, interrupting: bool },
    /// The start event of an event sub-process of this scope.
    Start { scope: u64, event: &'d Node, interrupting: bool },
}

impl<'d> Run<'d> {
    /// Throws an error, first at the boundary events of `at`, which is an activity, or at the event sub-processes of `at`,
    /// which is a scope; then further up. One that nobody catches ends the run.
    pub(super) fn throw_error(
        &mut self,
        at: u64,
        code: &str,
        variables: Map<String, Json>,
        element: &str,
    ) -> Result<(), Failure> {
        match self.catcher(at, Thrown::Error(code)) {
            Some(Catcher::Boundary { host, event, .. }) => self.interrupt(host, event, variables),
            Some(Catcher::Start { scope, event, .. }) => {
                self.start_event_sub(scope, event, variables, true)
            }
            None => {
                let error = Some(code.chars().take(128).collect());
                Err(Failure { error, ..Failure::at(FailureCode::UncaughtError, element) })
            }
        }
    }

    /// Whether something catches an error that is thrown in a scope.
    pub(super) fn is_caught(&self, scope: u64, code: &str) -> bool {
        self.catcher(scope, Thrown::Error(code)).is_some()
    }

    /// Throws an escalation from a throw or end event; nobody needs to catch it.
    pub(super) fn escalate(&mut self, id: u64, code: &str) -> Result<(), Failure> {
        let scope = self.instance(id)?.scope;
        match self.catcher(scope, Thrown::Escalation(code)) {
            Some(Catcher::Boundary { host, event, interrupting: true }) => {
                self.note(id, What::Left);
                self.interrupt(host, event, Map::new())
            }
            Some(Catcher::Boundary { host, event, interrupting: false }) => {
                let around = self.instance(host)?.scope;
                self.fire(event, around, Map::new()).map(|_| ())
            }
            Some(Catcher::Start { scope, event, interrupting }) => {
                if interrupting {
                    self.note(id, What::Left);
                }
                self.start_event_sub(scope, event, Map::new(), interrupting)
            }
            None => Ok(()),
        }
    }

    fn catcher(&self, at: u64, thrown: Thrown<'_>) -> Option<Catcher<'d>> {
        let mut at = at;
        // What an event sub-process throws, its siblings do not catch.
        let mut from_event_sub = false;
        loop {
            if !from_event_sub && let Some(found) = self.catching_start(at, thrown) {
                return Some(found);
            }
            let instance = self.state.instances.get(&at)?;
            if instance.item.is_none()
                && let Some(found) = self.catching_boundary(at, thrown)
            {
                return Some(found);
            }
            from_event_sub =
                self.node(at).is_ok_and(|node| matches!(node.kind, NodeKind::EventSub { .. }));
            at = instance.scope;
        }
    }

    fn catching_start(&self, at: u64, thrown: Thrown<'_>) -> Option<Catcher<'d>> {
        let definition = self.definition;
        let scope = &definition.scopes[self.scope_of(at)?];
        let starts = scope.events.iter().filter_map(|event| match definition.nodes[*event].kind {
            NodeKind::EventSub { scope } => Some(&definition.nodes[definition.scopes[scope].start]),
            _ => None,
        });
        let fitting = starts.filter_map(|start| match &start.kind {
            NodeKind::Start { trigger: Some(trigger), interrupting } => {
                Some((thrown.fits(trigger)?, start, *interrupting))
            }
            _ => None,
        });
        let (_, event, interrupting) = fitting.max_by_key(|(fit, ..)| *fit)?;
        Some(Catcher::Start { scope: at, event, interrupting })
    }

    fn catching_boundary(&self, at: u64, thrown: Thrown<'_>) -> Option<Catcher<'d>> {
        let definition = self.definition;
        let boundary = self.node(at).ok()?.boundary.iter().map(|event| &definition.nodes[*event]);
        let fitting = boundary.filter_map(|event| match &event.kind {
            NodeKind::Boundary { trigger, interrupting, .. } => {
                Some((thrown.fits(trigger)?, event, *interrupting))
            }
            _ => None,
        });
        let (_, event, interrupting) = fitting.max_by_key(|(fit, ..)| *fit)?;
        Some(Catcher::Boundary { host: at, event, interrupting })
    }

    /// Ends an activity by one of its boundary events and goes on there.
    pub(super) fn interrupt(
        &mut self,
        host: u64,
        event: &Node,
        variables: Map<String, Json>,
    ) -> Result<(), Failure> {
        let scope = self.instance(host)?.scope;
        self.kill(host);
        self.fire(event, scope, variables).map(|_| ())
    }

    /// Begins an event sub-process whose start event has happened. An interrupting one ends everything else in the scope.
    pub(super) fn start_event_sub(
        &mut self,
        scope: u64,
        start: &Node,
        variables: Map<String, Json>,
        interrupting: bool,
    ) -> Result<(), Failure> {
        let definition = self.definition;
        let inner = definition.scopes.get(start.scope).ok_or_else(mismatch)?;
        let sub = inner.owner.map(|owner| &definition.nodes[owner]).ok_or_else(mismatch)?;
        if interrupting {
            self.kill_members(scope);
            // No further event sub-process of this scope begins.
            let starts: Vec<&str> = self
                .state
                .waits
                .iter()
                .filter(|wait| wait.owner == scope)
                .filter_map(|wait| {
                    let node = &definition.nodes[*definition.index.get(&wait.element)?];
                    matches!(node.kind, NodeKind::Start { .. }).then_some(node.id.as_str())
                })
                .collect();
            self.state
                .waits
                .retain(|wait| wait.owner != scope || !starts.contains(&wait.element.as_str()));
        }
        let id = self.add(sub, scope)?;
        self.visit(&sub.id)?;
        self.note(id, What::Entered);
        self.instance(id)?.stage = Stage::Open;
        self.watch_events(id, inner)?;
        let keep = start.outputs.is_empty();
        if keep {
            for (name, value) in variables.clone() {
                if !is_kept(&name, &value) {
                    return Err(Failure::at(FailureCode::ResultNotStorable, &start.id));
                }
                self.set_own(id, &name, value, &start.id)?;
            }
        }
        self.fire(start, id, if keep { Map::new() } else { variables }).map(|_| ())
    }

    /// Ends everything in a scope.
    pub(super) fn kill_members(&mut self, scope: u64) {
        let members: Vec<u64> = self
            .state
            .instances
            .iter()
            .filter(|(_, instance)| instance.scope == scope)
            .map(|(id, _)| *id)
            .collect();
        for member in members {
            self.kill(member);
        }
    }

    /// Ends an instance early, with everything in it.
    pub(super) fn kill(&mut self, id: u64) {
        // What lies in it was added after it.
        let mut doomed = vec![id];
        for (inner, instance) in self.state.instances.range(id + 1..) {
            if instance.scope != ROOT && doomed.contains(&instance.scope) {
                doomed.push(*inner);
            }
        }
        for id in doomed.into_iter().rev() {
            match self.state.instances.get(&id).map(|instance| &instance.stage) {
                None | Some(Stage::Ready | Stage::Joining(_)) => {}
                Some(stage) => {
                    let called = stage.has_child();
                    self.note(id, What::Canceled);
                    if called {
                        self.effects.push(Effect::CancelCall { task: id });
                        self.state.dropped.push(id);
                    }
                }
            }
            self.remove(id);
        }
    }
}
