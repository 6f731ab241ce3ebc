//! Calls of one answer: checked, approved, carried out within a width, and told to the model in their order.

use runfleet_catalog::{Permission, ToolKind};
use serde_json::{Map, Value, json};

use super::Run;
use crate::code::ErrorCode;
use crate::event::{Answer, AnswerCall, ToolFault};
use crate::limits::{
    APPROVAL_MS, CALLS_PER_ANSWER_MAX, CYCLE_MAX, DENIED_ROUNDS_MAX, GRACE_MS, PROBLEMS_MAX,
    REPETITIONS_MAX, TEXT_BYTES_MAX, TOOL_NAME_BYTES_MAX, TOOL_RESULT_BYTES_MAX,
};
use crate::offer::{self, Tool, Work};
use crate::schema::{self, Problem};
use crate::state::{Approval, Call, CallResult, Exchange, Open, Purpose, Stage, Step};
use crate::text::{clean, fingerprint};

/// What becomes of a call when it is taken from an answer.
enum Taken {
    /// It is to be carried out.
    Open(Open),
    /// The model is told at once.
    Told(CallResult),
    /// It needs approval, which nobody gives.
    Denied,
}

impl Run<'_> {
    /// Takes the calls of an answer.
    pub(super) fn open_round(&mut self, turn: u32, answer: Answer) {
        let room = self.state.room();
        let more = answer.calls.len().saturating_sub(CALLS_PER_ANSWER_MAX);
        let wanted: Vec<AnswerCall> = answer.calls.into_iter().take(CALLS_PER_ANSWER_MAX).collect();
        let mut exchange = Exchange {
            text: clean(&answer.text, TEXT_BYTES_MAX.min(room / 6)),
            ..Exchange::default()
        };
        if more > 0 {
            exchange.note = format!("{more} further calls of your answer were not taken.");
        }
        let repeats = self.repeats(&wanted);
        let cap = TOOL_RESULT_BYTES_MAX.min(room / 6 / wanted.len().max(1));
        let (mut open, mut over, mut denied, count) = (Vec::new(), false, 0, wanted.len());
        let mut arguments_left = room / 8;
        for (place, call) in wanted.into_iter().enumerate() {
            let name = clean(&call.name, TOOL_NAME_BYTES_MAX);
            let fits = call.arguments.len() <= arguments_left;
            let written = if fits { call.arguments.as_str() } else { "" };
            arguments_left -= written.len();
            let taken = if repeats {
                told("", "repeats what was called before, and is not carried out again")
            } else if fits {
                self.take(&name, written, place, &mut over)
            } else {
                told("", "is too long")
            };
            let result = match taken {
                Taken::Open(call) => {
                    open.push(call);
                    None
                }
                Taken::Told(mut result) => {
                    result.content = clean(&result.content, cap.max(1_024));
                    Some(result)
                }
                Taken::Denied => {
                    denied += 1;
                    Some(problem(
                        "",
                        "needs the approval of a person, which nobody gives in this run",
                    ))
                }
            };
            let readable = serde_json::from_str::<Map<String, Value>>(written).is_ok();
            let arguments = if readable { written.to_owned() } else { "{}".to_owned() };
            let id = format!("call_{turn}_{}", place + 1);
            exchange.calls.push(Call { id, name, arguments, result });
        }
        self.state.exchanges.push(exchange);
        self.state.step = Step::Calling { open, cap, over };
        let all_denied = denied == count;
        self.state.denied_rounds = if all_denied { self.state.denied_rounds + 1 } else { 0 };
        if self.state.denied_rounds >= DENIED_ROUNDS_MAX {
            self.end(Some(ErrorCode::ApprovalDenied));
        } else if repeats {
            self.sum_up(self.limit_code());
        }
    }

    /// Whether the last rounds and this one are the same few rounds again and again.
    fn repeats(&mut self, calls: &[AnswerCall]) -> bool {
        let pairs: Vec<_> =
            calls.iter().map(|call| (call.name.as_str(), canonical(&call.arguments))).collect();
        let text = json!(pairs).to_string();
        let rounds = &mut self.state.rounds;
        rounds.push(fingerprint(&text));
        let kept = CYCLE_MAX * REPETITIONS_MAX;
        if rounds.len() > kept {
            rounds.remove(0);
        }
        (1..=CYCLE_MAX).any(|length| {
            let Some(start) = rounds.len().checked_sub(length * REPETITIONS_MAX) else {
                return false;
            };
            let tail = &rounds[start..];
            tail.iter().zip(&tail[length..]).all(|(one, next)| one == next)
        })
    }

    fn take(&mut self, name: &str, written: &str, place: usize, over: &mut bool) -> Taken {
        let tool = offer::tool(self.definition, &self.state, name)
            .filter(|_| offer::is_visible(self.definition, &self.state, name));
        let Some(tool) = tool else { return told("", ToolFault::NotAllowed.message()) };
        let arguments = match self.check(name, &tool, written) {
            Ok(arguments) => arguments,
            Err(problems) => return Taken::Told(failure(&problems)),
        };
        let held = tool.permission == Permission::Ask;
        if held && self.state.approval == Approval::Deny {
            return Taken::Denied;
        }
        if self.state.tool_calls >= self.definition.blueprint.spec.tool_calls {
            *over = true;
            return told("", "is not carried out: the run may make no more calls");
        }
        self.state.tool_calls += 1;
        if matches!(tool.work, Work::Skill) {
            let skill = arguments.get("skillName").and_then(Value::as_str).unwrap_or_default();
            let loaded = offer::load_skill(self.definition, &mut self.state, skill);
            return Taken::Told(output(&loaded));
        }
        let stage = if held && self.state.approval == Approval::Person {
            Stage::Held { expires_ms: self.now_ms.saturating_add(APPROVAL_MS) }
        } else {
            Stage::Waiting
        };
        Taken::Open(Open { place, arguments, stage })
    }

    pub(super) fn check(
        &self,
        name: &str,
        tool: &Tool,
        written: &str,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        // A declared tool may have the name of one that the run itself brings.
        let declared = self.definition.schemas.get(name);
        if let Some(validator) = declared.filter(|_| !matches!(tool.work, Work::Message)) {
            return schema::arguments(&tool.schema, validator, written);
        }
        match schema::compile(&tool.schema) {
            Some(validator) => schema::arguments(&tool.schema, &validator, written),
            None => Err(vec![Problem::new("", "has a schema that cannot be used")]),
        }
    }

    /// Begins calls as there is room, and goes on when all have a result.
    pub(super) fn round(&mut self) {
        let spec = &self.definition.blueprint.spec;
        let width = usize::try_from(spec.parallel).unwrap_or(usize::MAX);
        let (now_ms, deadline_ms) = (self.now_ms, self.state.deadline_ms);
        let Step::Calling { open, over, .. } = &mut self.state.step else { return };
        if open.is_empty() {
            let over = *over;
            return self.next(over);
        }
        if open.iter().any(|open| matches!(open.stage, Stage::Held { .. })) {
            return;
        }
        let out = open.iter().filter(|open| matches!(open.stage, Stage::Out { .. })).count();
        let begin: Vec<usize> = (0..open.len())
            .filter(|index| open[*index].stage == Stage::Waiting)
            .take(width.saturating_sub(out))
            .collect();
        for index in begin {
            let timeout_ms = self.timeout_of(index);
            let Step::Calling { open, .. } = &mut self.state.step else { return };
            let expires_ms = now_ms.saturating_add(timeout_ms).min(deadline_ms);
            open[index].stage = Stage::Out { expires_ms, began: false };
        }
    }

    fn timeout_of(&self, index: usize) -> u64 {
        let Step::Calling { open, .. } = &self.state.step else { return 0 };
        let place = open.get(index).map(|open| open.place);
        let call = self.state.exchanges.last().zip(place).and_then(|(last, at)| last.calls.get(at));
        let tool = call.and_then(|call| offer::tool(self.definition, &self.state, &call.name));
        let Some(tool) = tool else { return 0 };
        // An agent that is asked may have to wait for the same person.
        let asks = matches!(tool.work, Work::Outside(ToolKind::Agent { .. }));
        let waits = asks && self.state.approval == Approval::Person;
        tool.timeout_ms.saturating_add(if waits { APPROVAL_MS } else { 0 })
    }

    /// The next turn, or the last one.
    fn next(&mut self, over: bool) {
        let spec = &self.definition.blueprint.spec;
        let used_up = self.state.turns >= spec.max_turns
            || self.state.tool_bytes >= u64::from(spec.tool_bytes);
        if over || used_up {
            self.sum_up(self.limit_code());
        } else if self.tokens_are_used_up() {
            self.end(Some(ErrorCode::MaxTurns));
        } else {
            self.ask(Purpose::Turn);
        }
    }

    /// Why a run ends at a limit.
    fn limit_code(&self) -> ErrorCode {
        if self.state.denied_rounds > 0 { ErrorCode::ApprovalDenied } else { ErrorCode::MaxTurns }
    }

    /// The open call of an id: its place among the open ones.
    pub(super) fn find(&self, call_id: &str) -> Option<usize> {
        let Step::Calling { open, .. } = &self.state.step else { return None };
        let calls = &self.state.exchanges.last()?.calls;
        open.iter().position(|open| calls.get(open.place).is_some_and(|call| call.id == call_id))
    }

    /// The open call of an id that somebody was asked to carry out.
    fn find_out(&self, call_id: &str) -> Option<usize> {
        let index = self.find(call_id)?;
        let Step::Calling { open, .. } = &self.state.step else { return None };
        matches!(open.get(index)?.stage, Stage::Out { .. }).then_some(index)
    }

    /// Closes an open call with its result.
    pub(super) fn close(&mut self, index: usize, mut result: CallResult) {
        let Step::Calling { open, cap, .. } = &mut self.state.step else { return };
        let closed = open.remove(index);
        result.content = clean(&result.content, *cap);
        self.state.tool_bytes = self.state.tool_bytes.saturating_add(result.content.len() as u64);
        let calls = self.state.exchanges.last_mut().map(|last| &mut last.calls);
        if let Some(call) = calls.and_then(|calls| calls.get_mut(closed.place)) {
            call.result = Some(result);
        }
    }

    pub(super) fn began(&mut self, call_id: &str) -> bool {
        let Some(index) = self.find_out(call_id) else { return false };
        let Step::Calling { open, .. } = &mut self.state.step else { return false };
        if let Stage::Out { began, .. } = &mut open[index].stage {
            *began = true;
        }
        true
    }

    pub(super) fn tool_done(&mut self, call_id: &str, value: &Value) -> bool {
        let Some(index) = self.find_out(call_id) else { return false };
        self.close(index, output(value));
        true
    }

    pub(super) fn tool_failed(
        &mut self,
        call_id: &str,
        fault: ToolFault,
        problems: &[Problem],
    ) -> bool {
        let Some(index) = self.find_out(call_id) else { return false };
        if fault == ToolFault::OutcomeUnknown {
            self.end(Some(ErrorCode::ServerRestarted));
            return true;
        }
        let result = match problems {
            [] => problem("", fault.message()),
            problems => failure(problems),
        };
        self.close(index, result);
        true
    }

    /// Decisions and answers that should have come by now.
    pub(super) fn calls_overdue(&mut self) {
        let now_ms = self.now_ms;
        loop {
            let Step::Calling { open, .. } = &self.state.step else { return };
            let late = open.iter().position(|open| match open.stage {
                Stage::Held { expires_ms } => expires_ms <= now_ms,
                Stage::Out { expires_ms, .. } => expires_ms.saturating_add(GRACE_MS) <= now_ms,
                Stage::Waiting => false,
            });
            let Some(index) = late else { return };
            match open[index].stage {
                Stage::Out { began: true, .. } if !self.is_idempotent(index) => {
                    return self.end(Some(ErrorCode::ServerRestarted));
                }
                Stage::Out { .. } => self.close(index, problem("", ToolFault::Timeout.message())),
                Stage::Held { .. } | Stage::Waiting => {
                    self.close(index, problem("", "was not approved in time"));
                }
            }
        }
    }

    fn is_idempotent(&self, index: usize) -> bool {
        let Step::Calling { open, .. } = &self.state.step else { return false };
        let place = open.get(index).map(|open| open.place);
        let call = self.state.exchanges.last().zip(place).and_then(|(last, at)| last.calls.get(at));
        call.and_then(|call| offer::tool(self.definition, &self.state, &call.name))
            .is_some_and(|tool| tool.idempotent)
    }
}

/// What a tool returned, as the model is told: `{status, content}` whole, a text as it is, nothing as nothing.
fn output(value: &Value) -> CallResult {
    let error = value.as_object().is_some_and(|object| {
        object.contains_key("content") && object.get("status") == Some(&json!("error"))
    });
    let content = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    CallResult { content, error }
}

fn failure(problems: &[Problem]) -> CallResult {
    let problems: Vec<Problem> = problems
        .iter()
        .take(PROBLEMS_MAX)
        .map(|problem| Problem::new(&problem.path, &problem.message))
        .collect();
    let content = json!({"status": "error", "content": problems}).to_string();
    CallResult { content, error: true }
}

pub(super) fn problem(path: &str, message: &str) -> CallResult {
    let content = json!({"status": "error", "content": [{"path": path, "message": message}]});
    CallResult { content: content.to_string(), error: true }
}

fn told(path: &str, message: &str) -> Taken {
    Taken::Told(problem(path, message))
}

/// Arguments without differences that mean nothing: white space and the order of names.
fn canonical(written: &str) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> =
                    fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                Value::Object(fields.into_iter().collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
            other => other,
        }
    }
    serde_json::from_str(written)
        .map_or_else(|_| written.to_owned(), |value| sorted(value).to_string())
}
