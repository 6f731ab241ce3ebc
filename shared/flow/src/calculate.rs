//! One expression, evaluated with given values: for whoever wants to calculate without a process.

use serde_json::{Map, Value};

use crate::feel::{EvaluationError, Expression, Names, variable_name_problem};
use crate::variable::VariableType;
use crate::{limits, value};

/// Why there is no result. Tells neither the expression nor a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CalculateError {
    /// The expression cannot be read, or names what is not there.
    #[error("the expression cannot be read")]
    Expression,
    /// A value is too large, nests too deep, or has a name that expressions cannot use.
    #[error("the values cannot be used")]
    Values,
    /// It takes more work than one evaluation may do.
    #[error("the expression takes too much work")]
    TooExpensive,
    /// It has no value, as a sum of a text and a number has none.
    #[error("the expression has no value")]
    NoValue,
}

/// Evaluates a FEEL expression of at most [`limits::EXPRESSION_BYTES_MAX`] bytes in which `values` can be named, which have at
/// most [`limits::VARIABLES_BYTES_MAX`] together. Does at most [`limits::EXPRESSION_WORK_MAX`] units of work, without a clock
/// and without leaving the process.
pub fn calculate(expression: &str, values: &Map<String, Value>) -> Result<Value, CalculateError> {
    let usable = values.len() <= limits::VARIABLES_MAX
        && values.keys().all(|name| variable_name_problem(name).is_none())
        && values.values().all(value::is_plain)
        && values.values().map(value::bytes).sum::<usize>() <= limits::VARIABLES_BYTES_MAX;
    if !usable {
        return Err(CalculateError::Values);
    }
    let names = Names { known: values.keys().cloned().collect(), open: false };
    let compiled =
        Expression::compile(expression, &names).map_err(|_| CalculateError::Expression)?;
    let lookup = |name: &str| values.get(name).map(|value| (value, VariableType::Any));
    let found = compiled.evaluate_in(lookup, &mut 0).map_err(|error| match error {
        EvaluationError::TooExpensive => CalculateError::TooExpensive,
        EvaluationError::Failed => CalculateError::NoValue,
    })?;
    value::to_json(&found).map_err(|_| CalculateError::NoValue)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(expression: &str, values: &Value) -> Result<Value, CalculateError> {
        calculate(expression, values.as_object().expect("an object"))
    }

    #[test]
    fn an_expression_is_evaluated_with_the_values_that_it_names() {
        assert_eq!(of("0.1 + 0.2", &json!({})), Ok(json!(0.3)));
        let values = json!({"prices": [10, 20.5], "rate": 0.19});
        assert_eq!(of("= sum(prices) * (1 + rate)", &values), Ok(json!(36.295)));
        assert_eq!(of("prices[item > 15]", &values), Ok(json!([20.5])));
    }

    #[test]
    fn each_way_to_have_no_result_has_its_word() {
        for (expression, values, expected) in [
            ("1 +", json!({}), CalculateError::Expression),
            ("unknown + 1", json!({}), CalculateError::Expression),
            ("now()", json!({}), CalculateError::Expression),
            ("1", json!({"a b": 1}), CalculateError::Values),
            ("1", json!({"sum": 1}), CalculateError::Values),
            ("1", json!({"a": "x".repeat(limits::VARIABLES_BYTES_MAX)}), CalculateError::Values),
            ("a + 1", json!({"a": "s3cret"}), CalculateError::NoValue),
            (
                "for i in 1..9000 return for j in 1..9000 return i",
                json!({}),
                CalculateError::TooExpensive,
            ),
        ] {
            let error = of(expression, &values).expect_err(expression);
            assert_eq!(error, expected, "{expression}");
            assert!(!format!("{error} {error:?}").contains("s3cret"));
        }
        let long = "1+".repeat(limits::EXPRESSION_BYTES_MAX);
        assert_eq!(of(&long, &json!({})), Err(CalculateError::Expression));
    }
}
