//! What happens from outside: events, and times that come.

use dsntk_feel::values::Value as Feel;
use serde_json::{Map, Value as Json};

use super::Event;
use super::run::{Run, mismatch};
use crate::definition::{Node, NodeKind, Text, Timer, Trigger};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::state::{Awaited, Cycle, ROOT, Stage, Wait};
use crate::timer::{Schedule, TimerKind};

impl Run<'_> {
    /// Takes in one event. What it is about may be over; then it changes nothing.
    pub(super) fn occur(&mut self, event: Event) -> Result<(), Failure> {
        let used = match event {
            Event::Message { subscription, variables } => {
                let waits = |wait: &&Wait| {
                    wait.id == subscription && matches!(wait.awaited, Awaited::Message { .. })
                };
                match self.state.waits.iter().find(waits).map(|wait| wait.id) {
                    Some(wait) => self.happen(wait, variables).map(|()| true)?,
                    None => false,
                }
            }
            Event::Signal { name, variables } => self.signal(&name, &variables)?,
            Event::TaskDone { task, attempt, answer } => self.answered(task, attempt, answer)?,
            Event::TaskFailed { task, attempt, code, retry, after_ms } => {
                self.attempt_failed(task, attempt, &code, retry, after_ms)?
            }
            Event::TaskError { task, attempt, code, variables } => {
                self.task_error(task, attempt, &code, variables)?
            }
            Event::UserDone { task, variables } => self.user_done(task, variables)?,
            Event::UserAssigned { task, assignee } => self.user_assigned(task, assignee),
            Event::ChildEnded { task, output, failed } => self.child_ended(task, output, failed)?,
            Event::Retry { task } => self.retry(task)?,
            Event::Set { scope, variables } => self.change(scope.unwrap_or(ROOT), variables)?,
        };
        if !used {
            self.ignored += 1;
        }
        Ok(())
    }

    /// A signal comes to everything in the run that waits for its name now.
    fn signal(&mut self, name: &str, variables: &Map<String, Json>) -> Result<bool, Failure> {
        let waiting: Vec<u64> = self
            .state
            .waits
            .iter()
            .filter(|wait| matches!(&wait.awaited, Awaited::Signal { name: awaited } if awaited == name))
            .map(|wait| wait.id)
            .collect();
        for wait in &waiting {
            // One of them may have ended another one.
            if self.state.waits.iter().any(|known| known.id == *wait) {
                self.happen(*wait, variables.clone())?;
            }
        }
        Ok(!waiting.is_empty())
    }

    fn user_done(&mut self, id: u64, variables: Map<String, Json>) -> Result<bool, Failure> {
        if !self
            .state
            .instances
            .get(&id)
            .is_some_and(|instance| matches!(instance.stage, Stage::Person(_)))
        {
            return Ok(false);
        }
        let node = self.node(id)?;
        self.give_all(id, node, variables)?;
        self.finish(id)?;
        Ok(true)
    }

    fn user_assigned(&mut self, id: u64, assignee: Option<String>) -> bool {
        match self.state.instances.get_mut(&id).map(|instance| &mut instance.stage) {
            Some(Stage::Person(person)) => {
                person.assignee = assignee;
                true
            }
            _ => false,
        }
    }

    fn child_ended(
        &mut self,
        id: u64,
        output: Option<Map<String, Json>>,
        failed: Option<String>,
    ) -> Result<bool, Failure> {
        if !self
            .state
            .instances
            .get(&id)
            .is_some_and(|instance| matches!(instance.stage, Stage::Called { .. }))
        {
            return Ok(false);
        }
        let node = self.node(id)?;
        if let Some(code) = failed {
            let outcome = self.throw_error(id, &code, Map::new(), &node.id);
            return match outcome {
                Err(Failure { code: FailureCode::UncaughtError, element, error }) => {
                    Err(Failure { code: FailureCode::CalledProcessFailed, element, error })
                }
                outcome => outcome.map(|()| true),
            };
        }
        let all_out = matches!(&node.kind, NodeKind::Call(call) if call.all_out);
        if all_out || !node.outputs.is_empty() {
            self.give_all(id, node, output.unwrap_or_default())?;
        }
        self.finish(id)?;
        Ok(true)
    }

    /// Somebody changes variables: all of them or, when one does not fit, none.
    fn change(&mut self, scope: u64, variables: Map<String, Json>) -> Result<bool, Failure> {
        let known = scope == ROOT || self.state.instances.contains_key(&scope);
        let size: usize = variables.values().map(crate::value::bytes).sum();
        let fits = variables.iter().all(|(name, value)| {
            crate::feel::variable_name_problem(name).is_none()
                && crate::value::is_plain(value)
                && (scope != ROOT || self.definition.type_of(name).accepts(value))
        });
        if !known || !fits || self.bytes + size > crate::limits::VARIABLES_BYTES_MAX {
            return Ok(false);
        }
        for (name, value) in variables {
            self.set_own(scope, &name, value, "")?;
        }
        Ok(true)
    }

    /// A time has come.
    pub(super) fn ring(&mut self, id: u64) -> Result<(), Failure> {
        let Some(wait) = self.state.waits.iter().find(|wait| wait.id == id) else { return Ok(()) };
        let (owner, expired) = match wait.awaited {
            Awaited::Timer { .. } => return self.happen(id, Map::new()),
            Awaited::Message { .. } | Awaited::Signal { .. } => return Err(mismatch()),
            Awaited::Expiry { .. } => (wait.owner, true),
            Awaited::Retry { .. } => (wait.owner, false),
        };
        // It is over whatever comes of it, so that the same time never comes twice.
        self.state.waits.retain(|wait| wait.id != id);
        if expired { self.expired(owner) } else { self.ask_again(owner) }
    }

    /// What a wait is for has happened.
    fn happen(&mut self, id: u64, variables: Map<String, Json>) -> Result<(), Failure> {
        let Some(place) = self.state.waits.iter().position(|wait| wait.id == id) else {
            return Ok(());
        };
        let wait = self.state.waits.remove(place);
        let definition = self.definition;
        let position = definition.index.get(&wait.element).ok_or_else(mismatch)?;
        let node = &definition.nodes[*position];
        match &node.kind {
            NodeKind::Catch(_) => self.caught(wait.owner, node, variables),
            NodeKind::Boundary { interrupting, trigger, .. } => {
                if *interrupting {
                    return self.interrupt(wait.owner, node, variables);
                }
                let scope = self.around(wait.owner)?;
                self.again(wait, trigger, node)?;
                self.fire(node, scope, variables).map(|_| ())
            }
            NodeKind::Start { trigger: Some(trigger), interrupting } => {
                let owner = wait.owner;
                if !*interrupting {
                    self.again(wait, trigger, node)?;
                }
                self.start_event_sub(owner, node, variables, *interrupting)
            }
            _ => Err(mismatch()),
        }
    }

    /// The scope around an activity, also for an activity that is one of several items.
    fn around(&self, id: u64) -> Result<u64, Failure> {
        self.state.instances.get(&id).map(|instance| instance.scope).ok_or_else(mismatch)
    }

    /// A catch event has caught, or one of those behind an event-based gateway.
    fn caught(
        &mut self,
        owner: u64,
        node: &Node,
        variables: Map<String, Json>,
    ) -> Result<(), Failure> {
        let instance = self.instance(owner)?;
        if instance.element == node.id {
            self.give_all(owner, node, variables)?;
            return self.finish(owner);
        }
        let scope = instance.scope;
        self.note(owner, What::Left);
        self.remove(owner);
        self.fire(node, scope, variables).map(|_| ())
    }

    /// Adds an instance of an event that has happened, ready to be left.
    pub(super) fn fire(
        &mut self,
        node: &Node,
        scope: u64,
        variables: Map<String, Json>,
    ) -> Result<u64, Failure> {
        let id = self.add(node, scope)?;
        self.note(id, What::Entered);
        self.give_all(id, node, variables)?;
        self.instance(id)?.stage = Stage::Fired;
        self.ready(id);
        Ok(id)
    }

    /// Begins to wait once more for an event that does not interrupt.
    fn again(&mut self, wait: Wait, trigger: &Trigger, node: &Node) -> Result<(), Failure> {
        match (wait.awaited, trigger) {
            (Awaited::Timer { due_ms, cycle: Some(Cycle { text, fired }) }, _) => {
                let schedule = Schedule::parse(TimerKind::Cycle, &text);
                let schedule =
                    schedule.map_err(|_| Failure::at(FailureCode::TimerInvalid, &node.id))?;
                let fired = fired.saturating_add(1);
                let Some(due_ms) = schedule.next_due(fired, due_ms, self.now_ms) else {
                    return Ok(());
                };
                let cycle = Some(Cycle { text, fired });
                self.await_(wait.owner, &node.id, Awaited::Timer { due_ms, cycle })
            }
            (Awaited::Timer { cycle: None, .. }, _) => Ok(()),
            (awaited, _) => self.await_(wait.owner, &node.id, awaited),
        }
    }

    /// What an event waits for, with its expressions evaluated; none for what is only ever thrown at it.
    pub(super) fn awaited(
        &mut self,
        at: u64,
        event: &Node,
        trigger: &Trigger,
    ) -> Result<Option<Awaited>, Failure> {
        Ok(match trigger {
            Trigger::Timer(timer) => Some(self.timer(at, event, timer)?),
            Trigger::Message(message) => Some(Awaited::Message {
                name: self.text(at, &message.name, &event.id)?,
                key: match &message.key {
                    Some(key) => Some(self.key(at, key, &event.id)?),
                    None => None,
                },
            }),
            Trigger::Signal { name } => {
                Some(Awaited::Signal { name: self.text(at, name, &event.id)? })
            }
            Trigger::Error { .. } | Trigger::Escalation { .. } => None,
        })
    }

    fn timer(&mut self, at: u64, event: &Node, timer: &Timer) -> Result<Awaited, Failure> {
        let (kind, text) = match timer {
            Timer::Date(text) => (TimerKind::Date, text),
            Timer::Duration(text) => (TimerKind::Duration, text),
            Timer::Cycle(text) => (TimerKind::Cycle, text),
        };
        let invalid = || Failure::at(FailureCode::TimerInvalid, &event.id);
        let given = match text {
            Text::Given(text) => Feel::String(text.clone()),
            Text::Feel(expression) => self.raw(at, expression, &[], &event.id)?,
        };
        let schedule = Schedule::of_value(kind, &given).map_err(|_| invalid())?;
        let due_ms = schedule.first_due(self.now_ms).max(self.now_ms);
        let cycle = match (kind, given) {
            (TimerKind::Cycle, Feel::String(text)) => Some(Cycle { text, fired: 0 }),
            _ => None,
        };
        Ok(Awaited::Timer { due_ms, cycle })
    }
}
