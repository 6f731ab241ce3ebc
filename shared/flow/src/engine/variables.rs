//! Variables and expressions: every scope has variables of its own, sees those around it, and what is assigned goes to the
//! nearest scope that has the variable, or else to the run.

use dsntk_feel::values::Value as Feel;
use serde_json::{Map, Value as Json};

use super::run::Run;
use crate::definition::{Mapping, Node, Text};
use crate::failure::{Failure, FailureCode};
use crate::feel::{EvaluationError, Expression};
use crate::limits;
use crate::state::{ROOT, State};
use crate::value::{self, Unstorable};
use crate::variable::VariableType;

/// Names that only one expression sees, with their values.
pub(super) type Extra<'a> = &'a [(&'a str, &'a Json)];

impl State {
    /// Value of a variable as an instance sees it.
    pub(crate) fn variable(&self, at: u64, name: &str) -> Option<&Json> {
        let mut at = at;
        while let Some(instance) = self.instances.get(&at) {
            if let Some(value) = instance.variables.get(name) {
                return Some(value);
            }
            at = instance.scope;
        }
        self.variables.get(name)
    }

    /// Everything that an instance sees.
    pub(crate) fn visible(&self, at: u64) -> Map<String, Json> {
        let mut seen = self.variables.clone();
        let mut chain = Vec::new();
        let mut at = at;
        while let Some(instance) = self.instances.get(&at) {
            chain.push(&instance.variables);
            at = instance.scope;
        }
        for own in chain.into_iter().rev() {
            seen.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        seen
    }
}

impl Run<'_> {
    /// Evaluates an expression as an instance sees the variables.
    pub(super) fn evaluate(
        &mut self,
        at: u64,
        expression: &Expression,
        extra: Extra<'_>,
        element: &str,
    ) -> Result<Json, Failure> {
        let result = self.raw(at, expression, extra, element)?;
        let json = value::to_json(&result).map_err(|reason| {
            let code = match reason {
                Unstorable::Error => FailureCode::ExpressionFailed,
                Unstorable::Kind => FailureCode::ResultNotStorable,
            };
            Failure::at(code, element)
        })?;
        if value::is_plain(&json) {
            Ok(json)
        } else {
            Err(Failure::at(FailureCode::ResultNotStorable, element))
        }
    }

    /// The same, before it is a value that can be kept.
    pub(super) fn raw(
        &mut self,
        at: u64,
        expression: &Expression,
        extra: Extra<'_>,
        element: &str,
    ) -> Result<Feel, Failure> {
        let (state, definition) = (&self.state, self.definition);
        let lookup = |name: &str| {
            if let Some((_, value)) = extra.iter().find(|(known, _)| *known == name) {
                return Some((*value, VariableType::Any));
            }
            state.variable(at, name).map(|value| (value, definition.type_of(name)))
        };
        expression.evaluate_in(lookup, &mut self.work).map_err(|error| {
            let code = match error {
                EvaluationError::TooExpensive => FailureCode::ExpressionTooExpensive,
                EvaluationError::Failed => FailureCode::ExpressionFailed,
            };
            Failure::at(code, element)
        })
    }

    /// Evaluates a condition.
    pub(super) fn decide(
        &mut self,
        at: u64,
        condition: &Expression,
        extra: Extra<'_>,
        element: &str,
    ) -> Result<bool, Failure> {
        match self.raw(at, condition, extra, element)? {
            Feel::Boolean(answer) => Ok(answer),
            _ => Err(Failure::at(FailureCode::ConditionNotBoolean, element)),
        }
    }

    /// A text that is given or computed.
    pub(super) fn text(&mut self, at: u64, text: &Text, element: &str) -> Result<String, Failure> {
        let found = self.text_or_null(at, text, element)?;
        found.ok_or_else(|| Failure::at(FailureCode::TextExpected, element))
    }

    /// The same, where null is an answer too.
    pub(super) fn text_or_null(
        &mut self,
        at: u64,
        text: &Text,
        element: &str,
    ) -> Result<Option<String>, Failure> {
        let expression = match text {
            Text::Given(text) => return Ok(Some(text.clone())),
            Text::Feel(expression) => expression,
        };
        match self.evaluate(at, expression, &[], element)? {
            Json::Null => Ok(None),
            Json::String(text) if text.len() <= limits::TEXT_BYTES_MAX => Ok(Some(text)),
            _ => Err(Failure::at(FailureCode::TextExpected, element)),
        }
    }

    /// A correlation key: a text or a number.
    pub(super) fn key(&mut self, at: u64, key: &Text, element: &str) -> Result<String, Failure> {
        if let Text::Feel(expression) = key
            && let Json::Number(number) = self.evaluate(at, expression, &[], element)?
        {
            return Ok(number.to_string());
        }
        self.text(at, key, element)
    }

    /// A list of texts; a given text is a list separated by commas.
    pub(super) fn texts(
        &mut self,
        at: u64,
        texts: Option<&Text>,
        element: &str,
    ) -> Result<Vec<String>, Failure> {
        let expression = match texts {
            None => return Ok(Vec::new()),
            Some(Text::Given(text)) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                return Ok(parts.map(str::to_owned).collect());
            }
            Some(Text::Feel(expression)) => expression,
        };
        let wrong = || Failure::at(FailureCode::TextExpected, element);
        let items = match self.evaluate(at, expression, &[], element)? {
            Json::Null => return Ok(Vec::new()),
            Json::Array(items) if items.len() <= limits::CANDIDATES_MAX => items,
            _ => return Err(wrong()),
        };
        items
            .into_iter()
            .map(|item| match item {
                Json::String(text) if text.len() <= limits::TEXT_BYTES_MAX => Ok(text),
                _ => Err(wrong()),
            })
            .collect()
    }

    /// Assigns a variable of the instance itself, or of the run.
    pub(super) fn set_own(
        &mut self,
        at: u64,
        name: &str,
        value: Json,
        element: &str,
    ) -> Result<(), Failure> {
        let size = value::bytes(&value);
        if at == ROOT && !self.definition.type_of(name).accepts(&value) {
            return Err(Failure::at(FailureCode::ResultTypeMismatch, element));
        }
        let variables = match at {
            ROOT => &mut self.state.variables,
            at => &mut self.instance(at)?.variables,
        };
        let before = variables.get(name).map_or(0, value::bytes);
        match variables.get_mut(name) {
            Some(place) => *place = value,
            None => {
                variables.insert(name.to_owned(), value);
            }
        }
        self.charge(before, size, element)
    }

    /// Counts a change of the size of all variables.
    pub(super) fn charge(
        &mut self,
        before: usize,
        after: usize,
        element: &str,
    ) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_sub(before) + after;
        if self.bytes > limits::VARIABLES_BYTES_MAX {
            return Err(Failure::at(FailureCode::VariablesTooLarge, element));
        }
        Ok(())
    }

    /// Assigns a variable where `at` sees it, or else to the run.
    pub(super) fn set(
        &mut self,
        at: u64,
        name: &str,
        value: Json,
        element: &str,
    ) -> Result<(), Failure> {
        let mut owner = at;
        while let Some(instance) = self.state.instances.get(&owner) {
            if instance.variables.contains_key(name) {
                break;
            }
            owner = instance.scope;
        }
        self.set_own(owner, name, value, element)
    }

    /// Takes a result of an element: kept for its output mappings if it has some, otherwise assigned.
    pub(super) fn give(
        &mut self,
        id: u64,
        node: &Node,
        name: &str,
        value: Json,
    ) -> Result<(), Failure> {
        if node.outputs.is_empty() {
            self.set(id, name, value, &node.id)
        } else {
            self.set_own(id, name, value, &node.id)
        }
    }

    /// Takes all that somebody outside has given.
    pub(super) fn give_all(
        &mut self,
        id: u64,
        node: &Node,
        values: Map<String, Json>,
    ) -> Result<(), Failure> {
        for (name, value) in values {
            if !is_kept(&name, &value) {
                return Err(Failure::at(FailureCode::ResultNotStorable, &node.id));
            }
            self.give(id, node, &name, value)?;
        }
        Ok(())
    }

    /// Carries out the input mappings: variables of its own.
    pub(super) fn map_inputs(&mut self, id: u64, node: &Node) -> Result<(), Failure> {
        for mapping in &node.inputs {
            let value = self.evaluate(id, &mapping.source, &[], &node.id)?;
            let (name, value) = self.target(id, mapping, value, true);
            self.set_own(id, &name, value, &node.id)?;
        }
        Ok(())
    }

    /// Carries out the output mappings: assignments around it.
    pub(super) fn map_outputs(&mut self, id: u64, node: &Node) -> Result<(), Failure> {
        let scope = self.instance(id)?.scope;
        for mapping in &node.outputs {
            let value = self.evaluate(id, &mapping.source, &[], &node.id)?;
            let (name, value) = self.target(scope, mapping, value, false);
            self.set(scope, &name, value, &node.id)?;
        }
        Ok(())
    }

    /// The variable that a mapping assigns and its new value, which differs from `value` when only a part of it is
    /// assigned.
    fn target(&self, at: u64, mapping: &Mapping, value: Json, own: bool) -> (String, Json) {
        let (name, path) = match mapping.target.split_first() {
            Some((name, path)) => (name.clone(), path),
            None => return (String::new(), value),
        };
        if path.is_empty() {
            return (name, value);
        }
        let before = match (own, self.state.instances.get(&at)) {
            (true, Some(instance)) => instance.variables.get(&name),
            _ => self.state.variable(at, &name),
        };
        let mut whole = before.cloned().unwrap_or(Json::Null);
        let mut place = &mut whole;
        for part in path {
            if !place.is_object() {
                *place = Json::Object(Map::new());
            }
            let Json::Object(entries) = place else { break };
            place = entries.entry(part.clone()).or_insert(Json::Null);
        }
        *place = value;
        (name, whole)
    }

    /// What a message or signal carries: what its input mappings say.
    pub(super) fn payload(&self, id: u64, node: &Node) -> Map<String, Json> {
        if node.inputs.is_empty() {
            return Map::new();
        }
        self.state.instances.get(&id).map(|instance| instance.variables.clone()).unwrap_or_default()
    }
}

/// Whether something from outside can be a variable. Its name need not be one that expressions can use: others are handed on
/// all the same, and a run does not fail because somebody's answer has an entry called `date`.
pub(super) fn is_kept(name: &str, value: &Json) -> bool {
    (1..=limits::VARIABLE_NAME_BYTES_MAX).contains(&name.len())
        && name.trim().len() == name.len()
        && value::is_plain(value)
}
