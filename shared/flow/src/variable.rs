//! Declared variables of a process and what fits into them.

use dsntk_feel::values::Value as Feel;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// A declared input or output variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// Name, usable as it is in expressions.
    pub name: String,
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: VariableType,
    /// For an input: a start without it, or with null, is refused. Always false for an output.
    pub required: bool,
}

/// Type of a declared variable. Null fits every type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VariableType {
    /// A JSON number.
    Number,
    /// A JSON string.
    String,
    /// A JSON boolean.
    Boolean,
    /// A string such as `2026-01-31`; a FEEL date in expressions.
    Date,
    /// A string such as `2026-01-31T08:00:00Z`; a FEEL date and time in expressions.
    DateTime,
    /// A JSON array.
    List,
    /// A JSON object.
    Context,
    /// Any JSON value.
    Any,
}

impl VariableType {
    /// The type as it is written in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::DateTime => "dateTime",
            Self::List => "list",
            Self::Context => "context",
            Self::Any => "any",
        }
    }

    /// The type written as `text` in a document.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let all = [
            Self::Number,
            Self::String,
            Self::Boolean,
            Self::Date,
            Self::DateTime,
            Self::List,
            Self::Context,
            Self::Any,
        ];
        all.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether `value` may be held by a variable of this type.
    pub(crate) fn accepts(self, value: &Json) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (_, Json::Null)
            | (Self::Number, Json::Number(_))
            | (Self::String, Json::String(_))
            | (Self::Boolean, Json::Bool(_))
            | (Self::List, Json::Array(_))
            | (Self::Context, Json::Object(_)) => true,
            (Self::Date, Json::String(text)) => Feel::try_from_xsd_date(text).is_ok(),
            (Self::DateTime, Json::String(text)) => Feel::try_from_xsd_date_time(text).is_ok(),
            _ => false,
        }
    }
}

impl std::fmt::Display for VariableType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::VariableType;

    #[test]
    fn every_type_takes_null_and_its_own_values_only() {
        for (kind, good, bad) in [
            (VariableType::Number, json!(1.5), json!("1.5")),
            (VariableType::String, json!("a"), json!(1)),
            (VariableType::Boolean, json!(false), json!("false")),
            (VariableType::Date, json!("2026-02-28"), json!("2026-02-30")),
            (VariableType::DateTime, json!("2026-02-28T23:59:59Z"), json!("2026-02-28 23:59")),
            (VariableType::List, json!([1]), json!({"a": 1})),
            (VariableType::Context, json!({"a": 1}), json!([1])),
        ] {
            assert!(kind.accepts(&good), "{kind}: {good}");
            assert!(!kind.accepts(&bad), "{kind}: {bad}");
            assert!(kind.accepts(&json!(null)), "{kind}");
            assert_eq!(VariableType::named(kind.as_str()), Some(kind));
        }
        assert!(VariableType::Any.accepts(&json!([{"a": null}])));
    }
}
