//! The variables of a run while a slice executes: as JSON in the state and as FEEL in the scope, always the same.

use dsntk_feel::{FeelScope, Name};
use serde_json::{Map, Value as Json};

use crate::definition::Definition;
use crate::failure::FailureCode;
use crate::feel::{EvaluationError, Expression, functions};
use crate::limits;
use crate::value::{self, Unstorable};

/// Bytes of variables that make a repeated part of an expression count once more.
const WEIGHT_BYTES: usize = 4 * 1024;

/// Scope of the expressions of one run.
#[derive(Default)]
pub(super) struct Variables {
    scope: FeelScope,
    /// Approximate size of all values, in bytes of JSON.
    bytes: usize,
}

impl Variables {
    /// Loads the values of a run, unless one is not what the definition says, as after damage to the store.
    pub(super) fn load(definition: &Definition, values: &Map<String, Json>) -> Option<Self> {
        let mut context = functions();
        for name in definition.variables.keys() {
            context.set_null(Name::from(name));
        }
        let mut bytes = 0;
        for (name, json) in values {
            let kind = definition.type_of(name);
            if !definition.variables.contains_key(name)
                || !kind.accepts(json)
                || !value::is_plain(json)
            {
                return None;
            }
            bytes += value::bytes(json);
            context.set_entry(&Name::from(name), value::to_feel(json, kind));
        }
        Some(Self { scope: FeelScope::from(context), bytes })
    }

    /// Evaluates a condition and adds to `work`.
    pub(super) fn decide(
        &self,
        expression: &Expression,
        work: &mut u64,
    ) -> Result<bool, FailureCode> {
        match self.evaluate(expression, work)? {
            dsntk_feel::values::Value::Boolean(answer) => Ok(answer),
            _ => Err(FailureCode::ConditionNotBoolean),
        }
    }

    /// Evaluates a script, adds to `work`, and puts its result into `values` and the scope.
    pub(super) fn assign(
        &mut self,
        definition: &Definition,
        values: &mut Map<String, Json>,
        (name, expression): (&str, &Expression),
        work: &mut u64,
    ) -> Result<(), FailureCode> {
        let result = self.evaluate(expression, work)?;
        let json = value::to_json(&result).map_err(|reason| match reason {
            Unstorable::Error => FailureCode::ExpressionFailed,
            Unstorable::Kind => FailureCode::ResultNotStorable,
        })?;
        let kind = definition.type_of(name);
        if !kind.accepts(&json) {
            return Err(FailureCode::ResultTypeMismatch);
        }
        if !value::is_plain(&json) {
            return Err(FailureCode::ResultNotStorable);
        }
        let before = values.get(name).map_or(0, value::bytes);
        self.bytes = self.bytes.saturating_sub(before) + value::bytes(&json);
        if self.bytes > limits::VARIABLES_BYTES_MAX {
            return Err(FailureCode::VariablesTooLarge);
        }
        // Back through JSON, so that the next element sees what it would see after a restart.
        self.scope.set_value(&Name::from(name), value::to_feel(&json, kind));
        values.insert(name.to_owned(), json);
        Ok(())
    }

    fn evaluate(
        &self,
        expression: &Expression,
        work: &mut u64,
    ) -> Result<dsntk_feel::values::Value, FailureCode> {
        let weight = 1 + (self.bytes / WEIGHT_BYTES) as u64;
        let (outcome, used) = expression.evaluate(&self.scope, weight);
        *work = work.saturating_add(used);
        outcome.map_err(|error| match error {
            EvaluationError::TooExpensive => FailureCode::ExpressionTooExpensive,
            EvaluationError::Failed => FailureCode::ExpressionFailed,
        })
    }
}
