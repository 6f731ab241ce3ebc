//! Whether a value fits a JSON Schema: arguments of tools, with defaults. What does not fit is told by place and kind, and
//! never with a value.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{PROBLEM_BYTES_MAX, PROBLEMS_MAX};
use crate::text::clean;

/// Deepest nesting of a schema into which defaults are looked for.
const DEFAULTS_DEPTH_MAX: usize = 16;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// JSON Pointer; empty for the whole.
    pub path: String,
    /// A phrase that completes "`path` …". Never holds a value.
    pub message: String,
}

impl Problem {
    /// A problem; both texts are cut.
    pub fn new(path: &str, message: &str) -> Self {
        Self { path: clean(path, PROBLEM_BYTES_MAX), message: clean(message, PROBLEM_BYTES_MAX) }
    }
}

/// Compiles the schema of a tool. Nothing outside of the schema is looked at.
pub(crate) fn compile(schema: &Map<String, Value>) -> Option<Validator> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(&Value::Object(schema.clone()))
        .ok()
}

/// Reads the arguments of a call as a model wrote them, and fills in defaults.
pub(crate) fn arguments(
    schema: &Map<String, Value>,
    validator: &Validator,
    written: &str,
) -> Result<Map<String, Value>, Vec<Problem>> {
    let written = if written.trim().is_empty() { "{}" } else { written };
    let read: Value =
        serde_json::from_str(written).map_err(|_| vec![Problem::new("", "is not valid JSON")])?;
    let Value::Object(mut arguments) = read else {
        return Err(vec![Problem::new("", "must be an object")]);
    };
    fill(schema, &mut arguments, DEFAULTS_DEPTH_MAX);
    let whole = Value::Object(arguments);
    let problems: Vec<Problem> = validator
        .iter_errors(&whole)
        .take(PROBLEMS_MAX)
        .map(|error| Problem::new(error.instance_path().as_str(), &message(error.kind())))
        .collect();
    match whole {
        Value::Object(arguments) if problems.is_empty() => Ok(arguments),
        _ => Err(problems),
    }
}

/// Fills in the defaults of properties that are absent, also in objects within.
fn fill(schema: &Map<String, Value>, object: &mut Map<String, Value>, depth: usize) {
    let Some(Value::Object(properties)) = schema.get("properties").filter(|_| depth > 0) else {
        return;
    };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        if let Some(default) = property.get("default").filter(|_| !object.contains_key(name)) {
            object.insert(name.clone(), default.clone());
        }
        match object.get_mut(name) {
            Some(Value::Object(inner)) => fill(property, inner, depth - 1),
            Some(Value::Array(items)) => {
                let Some(Value::Object(item)) = property.get("items") else { continue };
                for inner in items.iter_mut().filter_map(Value::as_object_mut) {
                    fill(item, inner, depth - 1);
                }
            }
            _ => {}
        }
    }
}

/// A phrase for a kind of mistake. It may repeat the schema, which the model knows, and never what the model wrote.
fn message(kind: &Kind) -> String {
    match kind {
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            "has a property that is not known".to_owned()
        }
        Kind::Required { property } => match property.as_str() {
            Some(name) => format!("lacks the property `{name}`"),
            None => "lacks a property".to_owned(),
        },
        Kind::Type { kind: TypeKind::Single(kind) } => format!("must be of type {kind}"),
        Kind::Type { .. } => "has the wrong type".to_owned(),
        Kind::Enum { .. } | Kind::Constant { .. } => "is not one of the allowed values".to_owned(),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        other => format!("does not fit `{}` of the schema", other.keyword()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(written: &str) -> Result<Map<String, Value>, Vec<Problem>> {
        let Value::Object(schema) = json!({"type": "object", "properties": {
            "n": {"type": "integer", "minimum": 1, "default": 7},
            "o": {"type": "object", "properties": {"b": {"type": "boolean", "default": true}}},
            "l": {"type": "array", "items": {"properties": {"x": {"default": 1}}}},
            "p": {"type": "string", "pattern": "^(a+)+$"}
        }, "additionalProperties": false}) else {
            unreachable!()
        };
        arguments(&schema, &compile(&schema).unwrap(), written)
    }

    /// NB-14
    #[test]
    fn defaults_are_filled_in_before_the_check() {
        assert_eq!(Value::from(check("").unwrap()), json!({"n": 7}));
        let nested = check(r#"{"o":{},"l":[{},{"x":2}],"n":1}"#).unwrap();
        assert_eq!(
            Value::from(nested),
            json!({"o": {"b": true}, "l": [{"x": 1}, {"x": 2}], "n": 1})
        );
    }

    /// NB-13, NB-35
    #[test]
    fn what_does_not_fit_is_told_by_place_and_without_a_value() {
        let problems = check(r#"{"n":0,"o":{"b":"s3cret"},"s3cret":1,"p":"s3cret"}"#).unwrap_err();
        let text = format!("{problems:?}");
        assert!(!text.contains("s3cret"), "{text}");
        for expected in ["/n", "must be at least 1", "/o/b", "must be of type boolean", "not known"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert_eq!(check("{").unwrap_err(), [Problem::new("", "is not valid JSON")]);
        assert_eq!(check("[1]").unwrap_err(), [Problem::new("", "must be an object")]);
    }
}
