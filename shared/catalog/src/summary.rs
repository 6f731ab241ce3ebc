//! What the Process engine says about a definition, and the check of an input against it. The engine itself is not known
//! here: whoever applies a bundle brings it.

use runfleet_contracts::ErrorBody;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest name of an unknown input that a problem repeats, in characters.
const NAME_CHARS_MAX: usize = 64;

/// What a catalog keeps about a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSummary {
    /// BPMN id of the process.
    pub id: String,
    /// Display name in the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What starts it.
    pub kind: ProcessKind,
    /// Declared inputs, in the order of the document.
    pub inputs: Vec<Variable>,
    /// Declared outputs, in the order of the document.
    pub outputs: Vec<Variable>,
    /// Longest time a run may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
}

/// What starts a Process. Callers may start only [`ProcessKind::Normal`] ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessKind {
    /// A caller.
    Normal,
    /// An event.
    Event,
    /// Another Process.
    Sub,
}

/// A declared variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// The name.
    pub name: String,
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: VariableType,
    /// For an input: a start without it, or with null, is refused.
    #[serde(default)]
    pub required: bool,
}

/// Type of a declared variable. Null fits every type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VariableType {
    /// A JSON number.
    Number,
    /// A JSON string.
    String,
    /// A JSON boolean.
    Boolean,
    /// A JSON string that holds a date; the engine checks the form.
    Date,
    /// A JSON string that holds a date and time; the engine checks the form.
    DateTime,
    /// A JSON array.
    List,
    /// A JSON object.
    Context,
    /// Any JSON value.
    Any,
}

impl VariableType {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_number(),
            Self::String | Self::Date | Self::DateTime => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Context => value.is_object(),
            Self::Any => true,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Number => "must be a number",
            Self::String => "must be a string",
            Self::Boolean => "must be true or false",
            Self::Date => "must be a string that holds a date",
            Self::DateTime => "must be a string that holds a date and time",
            Self::List => "must be an array",
            Self::Context => "must be an object",
            Self::Any => "may be anything",
        }
    }
}

/// The Process engine as this crate sees it: given the text of a BPMN document, it says what the document declares, or
/// everything that is wrong with it.
pub type ProcessCheck<'c> = &'c dyn Fn(&str) -> Result<ProcessSummary, Vec<ProcessProblem>>;

/// One mistake in a BPMN document, as the engine tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessProblem {
    /// Id of the BPMN element, when the mistake belongs to one.
    pub element: Option<String>,
    /// Line in the document, when it is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: String,
}

/// Why an input does not fit. Never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InputProblem {
    /// `input.` and the name of the variable, cut after 64 characters.
    pub field: String,
    /// A phrase that completes "`field` …".
    pub problem: &'static str,
}

impl From<InputProblem> for ErrorBody {
    fn from(problem: InputProblem) -> Self {
        Self::field(&problem.field, problem.problem)
    }
}

impl ProcessSummary {
    /// Checks the input of a start: no unknown names, nothing required absent or null, JSON types as declared.
    pub fn check_input(&self, input: &Map<String, Value>) -> Result<(), InputProblem> {
        let wrong = |name: &str, problem| {
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            Err(InputProblem { field: format!("input.{name}"), problem })
        };
        for name in input.keys() {
            if !self.inputs.iter().any(|variable| variable.name == *name) {
                return wrong(name, "is not an input variable of the Process");
            }
        }
        for variable in &self.inputs {
            match input.get(&variable.name).filter(|value| !value.is_null()) {
                None if variable.required => return wrong(&variable.name, "is required"),
                Some(value) if !variable.kind.accepts(value) => {
                    return wrong(&variable.name, variable.kind.expected());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary() -> ProcessSummary {
        serde_json::from_value(json!({
            "id": "p",
            "kind": "normal",
            "inputs": [
                {"name": "amount", "type": "number", "required": true},
                {"name": "tags", "type": "list"},
                {"name": "due", "type": "dateTime"},
                {"name": "extra", "type": "any"}
            ],
            "outputs": []
        }))
        .unwrap()
    }

    fn check(input: &Value, expected: Result<(), (&str, &str)>) {
        let found = summary().check_input(input.as_object().unwrap());
        let found = found.map_err(|problem| (problem.field, problem.problem));
        assert_eq!(
            found,
            expected.map_err(|(field, problem)| (field.to_owned(), problem)),
            "{input}"
        );
    }

    /// CG-027
    #[test]
    fn an_input_has_known_names_everything_required_and_the_declared_types() {
        check(&json!({"amount": 1}), Ok(()));
        check(
            &json!({"amount": 0.5, "tags": [], "due": "2026-01-31T08:00:00Z", "extra": {"a": [1]}}),
            Ok(()),
        );
        check(&json!({"amount": 1, "tags": null}), Ok(()));
        check(&json!({}), Err(("input.amount", "is required")));
        check(&json!({"amount": null}), Err(("input.amount", "is required")));
        check(&json!({"amount": "1"}), Err(("input.amount", "must be a number")));
        check(&json!({"amount": 1, "tags": {}}), Err(("input.tags", "must be an array")));
        check(
            &json!({"amount": 1, "Amount": 1}),
            Err(("input.Amount", "is not an input variable of the Process")),
        );
    }

    #[test]
    fn a_problem_never_repeats_a_value_and_cuts_a_foreign_name() {
        let input = json!({"x".repeat(500): "s3cret"});
        let body = ErrorBody::from(summary().check_input(input.as_object().unwrap()).unwrap_err());
        let text = serde_json::to_string(&body).unwrap();
        assert!(text.len() < 300 && !text.contains("s3cret"), "{text}");
    }
}
