//! Work for somebody outside: asking, answers, attempts, incidents.

use serde_json::{Map, Value as Json, json};

use super::run::{Run, mismatch};
use super::{Ask, Effect};
use crate::definition::{Definition, Node, NodeKind, OnFailure, Task};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::limits;
use crate::state::{Asked, AskedNow, Awaited, Sent, Stage, State};

/// Task types that mean an HTTP request: the caller of the engine carries it out and answers with `status`, `headers` and
/// `body`.
pub const HTTP_WORK: [&str; 2] = ["http", "io.camunda:http-json:1"];

/// The task type that means a run of an agent: the caller of the engine starts it and answers with `text`, `result` and `usage`.
pub const AGENT_WORK: &str = "runfleet:agent";

/// Failure of an attempt that was not answered in time.
const TASK_TIMEOUT: &str = "TASK_TIMEOUT";

/// Code of an error of the drawing, and what goes with it.
type Reported = (String, Map<String, Json>);

impl Run<'_> {
    /// Asks for the first time.
    pub(super) fn ask_first(&mut self, id: u64, node: &Node, task: &Task) -> Result<(), Failure> {
        let work = self.text(id, &task.work, &node.id)?;
        let granted = self.attempts(id, node, task)?;
        let asked = Asked { work, attempt: 0, last: granted, granted, now: AskedNow::Pause };
        self.instance(id)?.stage = Stage::Asked(asked);
        self.ask(id, node, task)
    }

    fn attempts(&mut self, id: u64, node: &Node, task: &Task) -> Result<u32, Failure> {
        use crate::definition::Text;
        let number = match &task.attempts {
            Text::Given(text) => text.trim().parse().ok(),
            Text::Feel(expression) => match self.evaluate(id, expression, &[], &node.id)? {
                Json::Number(number) => number.as_u64(),
                Json::String(text) => text.trim().parse().ok(),
                _ => None,
            },
        };
        let number: u64 =
            number.ok_or_else(|| Failure::at(FailureCode::NumberExpected, &node.id))?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX).clamp(1, limits::ATTEMPTS_MAX))
    }

    /// Asks for the next time.
    fn ask(&mut self, id: u64, node: &Node, task: &Task) -> Result<(), Failure> {
        let now_ms = self.now_ms;
        let Stage::Asked(asked) = &mut self.instance(id)?.stage else { return Err(mismatch()) };
        let grace_ms = if asked.work == AGENT_WORK { limits::AGENT_GRACE_MS } else { 0 };
        let expires_ms = now_ms.saturating_add(task.timeout_ms).saturating_add(grace_ms);
        asked.attempt += 1;
        asked.now = AskedNow::Out { expires_ms };
        self.forget_own_times(id);
        self.await_(id, &node.id, Awaited::Expiry { due_ms: expires_ms })?;
        let ask = self.state.ask(self.definition, id);
        self.effects.extend(ask.map(Effect::Ask));
        Ok(())
    }

    /// Drops the waits of a task for its own times; those of its boundary events stay.
    fn forget_own_times(&mut self, id: u64) {
        self.state.waits.retain(|wait| {
            wait.owner != id
                || !matches!(wait.awaited, Awaited::Expiry { .. } | Awaited::Retry { .. })
        });
    }

    /// The task of an instance, if `attempt` is the one whose answer it waits for.
    fn awaited_task(&self, id: u64, attempt: u32) -> Option<(&'_ Node, &'_ Task)> {
        let instance = self.state.instances.get(&id)?;
        let Stage::Asked(Asked { attempt: current, now: AskedNow::Out { .. }, .. }) =
            &instance.stage
        else {
            return None;
        };
        (*current == attempt).then_some(())?;
        task_of(self.definition, &instance.element)
    }

    /// Takes an answer.
    pub(super) fn answered(
        &mut self,
        id: u64,
        attempt: u32,
        answer: Json,
    ) -> Result<bool, Failure> {
        let definition = self.definition;
        if self.awaited_task(id, attempt).is_none() {
            return Ok(false);
        }
        let element = self.instance(id)?.element.clone();
        let Some((node, task)) = task_of(definition, &element) else { return Ok(false) };
        if !crate::value::is_plain(&answer) {
            return Err(Failure::at(FailureCode::ResultNotStorable, &node.id));
        }
        if let Some((code, variables)) = self.error_in(id, node, task, &[("response", &answer)])? {
            self.throw_from_task(id, &code, variables)?;
            return Ok(true);
        }
        let result = &task.result;
        if let Some(expression) = &result.expression {
            match self.evaluate(id, expression, &[("response", &answer)], &node.id)? {
                Json::Object(values) => self.give_all(id, node, values)?,
                Json::Null => {}
                _ => return Err(Failure::at(FailureCode::ContextExpected, &node.id)),
            }
        }
        match answer {
            answer if result.variable.is_some() => {
                let name = result.variable.clone().unwrap_or_default();
                self.give(id, node, &name, answer)?;
            }
            Json::Object(values) if result.expression.is_none() && self.merges(id, node) => {
                self.give_all(id, node, values)?;
            }
            _ => {}
        }
        self.forget_own_times(id);
        self.finish(id)?;
        Ok(true)
    }

    /// Whether an answer is merged when nothing says what to do with it: that of an HTTP request or an agent is not, unless
    /// output mappings look at it.
    fn merges(&self, id: u64, node: &Node) -> bool {
        let named = matches!(self.state.instances.get(&id).map(|instance| &instance.stage),
            Some(Stage::Asked(asked)) if asked.work == AGENT_WORK || HTTP_WORK.contains(&asked.work.as_str()));
        !named || !node.outputs.is_empty()
    }

    /// The error that the error expression of a task finds.
    fn error_in(
        &mut self,
        id: u64,
        node: &Node,
        task: &Task,
        extra: super::variables::Extra<'_>,
    ) -> Result<Option<Reported>, Failure> {
        let Some(expression) = &task.result.error else { return Ok(None) };
        let Json::Object(mut found) = self.evaluate(id, expression, extra, &node.id)? else {
            return Ok(None);
        };
        let kind = found.get("errorType").and_then(Json::as_str);
        if !kind.is_none_or(|kind| kind.eq_ignore_ascii_case("bpmnError")) {
            return Ok(None);
        }
        let Some(Json::String(code)) = found.remove("code") else { return Ok(None) };
        let variables = match found.remove("variables") {
            Some(Json::Object(variables)) => variables,
            _ => Map::new(),
        };
        Ok(Some((code, variables)))
    }

    /// Takes the news that an attempt has failed.
    pub(super) fn attempt_failed(
        &mut self,
        id: u64,
        attempt: u32,
        code: &str,
        retry: bool,
        after_ms: Option<u64>,
    ) -> Result<bool, Failure> {
        let definition = self.definition;
        if self.awaited_task(id, attempt).is_none() {
            return Ok(false);
        }
        let element = self.instance(id)?.element.clone();
        let Some((node, task)) = task_of(definition, &element) else { return Ok(false) };
        self.note(id, What::Failed);
        self.forget_own_times(id);
        let Stage::Asked(asked) = &mut self.instance(id)?.stage else { return Err(mismatch()) };
        if retry && asked.attempt < asked.last {
            let failed = asked.granted.saturating_sub(asked.last - asked.attempt);
            asked.now = AskedNow::Pause;
            let number = (failed.max(1) as usize - 1).min(task.back_off_ms.len().saturating_sub(1));
            let pause = task.back_off_ms.get(number).copied().unwrap_or_default();
            let pause = pause.max(after_ms.unwrap_or_default()).min(limits::PAUSE_MS_MAX);
            let due_ms = self.now_ms.saturating_add(pause);
            self.await_(id, &node.id, Awaited::Retry { due_ms })?;
            return Ok(true);
        }
        let code: String =
            code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect();
        let error = json!({ "code": code });
        if let Some((code, variables)) = self.error_in(id, node, task, &[("error", &error)])? {
            self.throw_from_task(id, &code, variables)?;
            return Ok(true);
        }
        // Like a called process, an agent fails with a code that the drawing may catch.
        let agent =
            matches!(&self.instance(id)?.stage, Stage::Asked(asked) if asked.work == AGENT_WORK);
        if agent && self.is_caught(id, &code) {
            self.throw_from_task(id, &code, Map::new())?;
            return Ok(true);
        }
        if definition.on_failure == OnFailure::Fail {
            return Err(Failure {
                error: Some(code),
                ..Failure::at(FailureCode::TaskFailed, &node.id)
            });
        }
        let since_ms = self.now_ms;
        let Stage::Asked(asked) = &mut self.instance(id)?.stage else { return Err(mismatch()) };
        asked.now = AskedNow::Incident { code, since_ms };
        Ok(true)
    }

    /// Takes an error of the drawing that whoever was asked reports.
    pub(super) fn task_error(
        &mut self,
        id: u64,
        attempt: u32,
        code: &str,
        variables: Map<String, Json>,
    ) -> Result<bool, Failure> {
        if self.awaited_task(id, attempt).is_none() {
            return Ok(false);
        }
        self.throw_from_task(id, code, variables)?;
        Ok(true)
    }

    fn throw_from_task(
        &mut self,
        id: u64,
        code: &str,
        variables: Map<String, Json>,
    ) -> Result<(), Failure> {
        let instance = self.instance(id)?;
        let element = instance.element.clone();
        // What it waited for has come: nothing is left to be called off.
        if let Stage::Asked(asked) = &mut instance.stage {
            asked.now = AskedNow::Pause;
        }
        self.throw_error(id, code, variables, &element)
    }

    /// An attempt was not answered in time.
    pub(super) fn expired(&mut self, id: u64) -> Result<(), Failure> {
        let attempt = match self.state.instances.get(&id).map(|instance| &instance.stage) {
            Some(Stage::Asked(asked)) => asked.attempt,
            _ => return Ok(()),
        };
        self.attempt_failed(id, attempt, TASK_TIMEOUT, true, None).map(|_| ())
    }

    /// The pause before an attempt is over, or somebody wants it tried again.
    pub(super) fn ask_again(&mut self, id: u64) -> Result<(), Failure> {
        let element = self.instance(id)?.element.clone();
        let Some((node, task)) = task_of(self.definition, &element) else { return Err(mismatch()) };
        self.ask(id, node, task)
    }

    /// Gives failed tasks a new set of attempts.
    pub(super) fn retry(&mut self, task: Option<u64>) -> Result<bool, Failure> {
        let failed: Vec<u64> = self
            .state
            .instances
            .iter()
            .filter(|(id, instance)| {
                task.is_none_or(|task| task == **id)
                    && matches!(&instance.stage, Stage::Asked(asked) if matches!(asked.now, AskedNow::Incident { .. }))
            })
            .map(|(id, _)| *id)
            .collect();
        for id in &failed {
            if let Stage::Asked(asked) = &mut self.instance(*id)?.stage {
                asked.last = asked.attempt.saturating_add(asked.granted);
            }
            self.ask_again(*id)?;
        }
        Ok(!failed.is_empty())
    }
}

impl Stage {
    /// Whether a run was started for it whose end it waits for: of a called process or an agent.
    pub(crate) fn has_child(&self) -> bool {
        match self {
            Self::Called { .. } => true,
            Self::Asked(asked) => {
                asked.work == AGENT_WORK && matches!(asked.now, AskedNow::Out { .. })
            }
            _ => false,
        }
    }
}

/// The task that an element asks somebody to carry out.
fn task_of<'d>(definition: &'d Definition, element: &str) -> Option<(&'d Node, &'d Task)> {
    let node = &definition.nodes[*definition.index.get(element)?];
    match &node.kind {
        NodeKind::Task(task) | NodeKind::End(crate::definition::End::Task(task)) => {
            Some((node, task))
        }
        _ => None,
    }
}

impl State {
    /// Everything that somebody outside has been asked for and that is not answered, and what was sent and given up in the
    /// last slice: to be done again when it is not certain that it was done.
    pub fn outstanding(&self, definition: &Definition) -> Vec<Effect> {
        let asked = self.instances.keys().filter_map(|id| {
            self.ask(definition, *id).map(Effect::Ask).or_else(|| self.call_effect(definition, *id))
        });
        self.sent().into_iter().chain(asked).collect()
    }

    /// What was sent and given up in the last slice.
    pub fn sent(&self) -> Vec<Effect> {
        let dropped = self.dropped.iter().map(|task| Effect::CancelCall { task: *task });
        self.sent.iter().cloned().map(Effect::from).chain(dropped).collect()
    }

    /// Forgets what was sent in the last slice, once it is certain that it was.
    pub fn settle(&mut self) {
        self.sent.clear();
    }

    /// What an instance asks for, while it waits for the answer.
    pub fn ask(&self, definition: &Definition, id: u64) -> Option<Ask> {
        let instance = self.instances.get(&id)?;
        let Stage::Asked(Asked { work, attempt, now: AskedNow::Out { expires_ms }, .. }) =
            &instance.stage
        else {
            return None;
        };
        let (node, task) = task_of(definition, &instance.element)?;
        let own = !node.inputs.is_empty();
        Some(Ask {
            task: id,
            attempt: *attempt,
            element: instance.element.clone(),
            work: work.clone(),
            headers: task.headers.clone(),
            variables: if own { instance.variables.clone() } else { self.visible(id) },
            expires_ms: *expires_ms,
        })
    }

    /// The call that an instance makes.
    pub(crate) fn call_effect(&self, definition: &Definition, id: u64) -> Option<Effect> {
        let instance = self.instances.get(&id)?;
        let Stage::Called { process } = &instance.stage else { return None };
        let node = &definition.nodes[*definition.index.get(&instance.element)?];
        let NodeKind::Call(call) = &node.kind else { return None };
        let input = if call.all_in { self.visible(id) } else { instance.variables.clone() };
        Some(Effect::Call { task: id, process: process.clone(), input, exact: !call.all_in })
    }
}

impl From<Sent> for Effect {
    fn from(sent: Sent) -> Self {
        let Sent { by, name, key, signal, variables } = sent;
        if signal {
            Self::Signal { by, name, variables }
        } else {
            Self::Message { by, name, key, variables }
        }
    }
}
