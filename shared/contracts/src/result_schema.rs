//! The JSON Schemas that `resultSchema` may be: the subset that a schema builder for results writes, and nothing else, so that
//! every provider of models can be held to it.

use runfleet_domain::limits::{
    OBJECT_SLUG_CHARS_MAX, RESULT_SCHEMA_BYTES_MAX, RESULT_SCHEMA_DEPTH_MAX,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::agents::is_identifier;
use crate::error::ErrorBody;
use crate::request::object;

/// Marks a string that is the id of a record; its value is the kind of record.
const RECORD_KIND: &str = "x-cogover-object";

/// Words that describe and do not constrain.
const ANNOTATIONS: [&str; 2] = ["title", "description"];

/// What is wrong, and where: a JSON Pointer into the schema.
struct Wrong {
    path: String,
    problem: String,
}

type Node = Map<String, Value>;

/// Checks that a schema describes an object in the supported subset.
///
/// # Errors
/// A validation error of `resultSchema` whose `details.path` is a JSON Pointer to the place.
pub fn check(schema: &RawValue) -> Result<(), ErrorBody> {
    const FIELD: &str = "resultSchema";
    object(FIELD, schema, RESULT_SCHEMA_BYTES_MAX)?;
    let value: Value = serde_json::from_str(schema.get())
        .map_err(|_| ErrorBody::field(FIELD, "is not valid JSON"))?;
    root(&value).map_err(|wrong| ErrorBody::field(FIELD, wrong.problem).with("path", wrong.path))
}

fn root(value: &Value) -> Result<(), Wrong> {
    let is_object = value.get("type").and_then(Value::as_str) == Some("object");
    if !is_object {
        return wrong("", "must have the type `object` at its root");
    }
    node(value, "", 1)
}

fn wrong<T>(path: &str, problem: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { path: path.to_owned(), problem: problem.into() })
}

fn node(value: &Value, path: &str, depth: usize) -> Result<(), Wrong> {
    let Value::Object(schema) = value else { return wrong(path, "must be an object") };
    for name in ANNOTATIONS {
        if schema.get(name).is_some_and(|text| !text.is_string()) {
            return wrong(&format!("{path}/{name}"), "must be a string");
        }
    }
    if schema.contains_key("enum") {
        return choice(schema, path);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => string(schema, path),
        Some("number") => range(schema, path, &["minimum", "maximum"]),
        Some("integer") => integer(schema, path),
        Some("boolean") => only(schema, path, &[]),
        Some("array") => array(schema, path, deeper(path, depth)?),
        Some("object") => properties(schema, path, deeper(path, depth)?),
        Some(_) => wrong(&format!("{path}/type"), "is not a supported type"),
        None => wrong(&format!("{path}/type"), "must be one word"),
    }
}

fn deeper(path: &str, depth: usize) -> Result<usize, Wrong> {
    if depth > RESULT_SCHEMA_DEPTH_MAX {
        return wrong(path, format!("is nested deeper than {RESULT_SCHEMA_DEPTH_MAX} levels"));
    }
    Ok(depth + 1)
}

/// Refuses words outside the subset.
fn only(schema: &Node, path: &str, allowed: &[&str]) -> Result<(), Wrong> {
    let known = |word: &str| {
        word == "type"
            || ANNOTATIONS.contains(&word)
            || allowed.contains(&word)
            || (path.is_empty() && word == "$schema")
    };
    match schema.keys().find(|word| !known(word)) {
        Some(_) => wrong(path, "uses a word outside the supported subset of JSON Schema"),
        None => Ok(()),
    }
}

fn choice(schema: &Node, path: &str) -> Result<(), Wrong> {
    only(schema, path, &["enum"])?;
    let words = schema.get("enum").and_then(Value::as_array);
    let good = words.is_some_and(|words| !words.is_empty() && words.iter().all(Value::is_string));
    let of_strings = schema.get("type").is_none_or(|kind| kind == "string");
    if good && of_strings {
        return Ok(());
    }
    wrong(&format!("{path}/enum"), "must be a list of strings with at least one")
}

fn string(schema: &Node, path: &str) -> Result<(), Wrong> {
    if let Some(kind) = schema.get(RECORD_KIND) {
        only(schema, path, &[RECORD_KIND, "minLength", "maxLength"])?;
        let slug = kind.as_str().unwrap_or_default();
        if !is_identifier(slug, true, OBJECT_SLUG_CHARS_MAX) {
            return wrong(&format!("{path}/{RECORD_KIND}"), "must name a kind of record");
        }
    } else if let Some(format) = schema.get("format") {
        only(schema, path, &["format"])?;
        return if format == "date" {
            Ok(())
        } else {
            wrong(&format!("{path}/format"), "must be `date`")
        };
    } else {
        only(schema, path, &["minLength", "maxLength"])?;
    }
    let low = length(schema, path, "minLength")?;
    let high = length(schema, path, "maxLength")?;
    in_order(path, low.unwrap_or(0) <= high.unwrap_or(u64::MAX))
}

fn length(schema: &Node, path: &str, word: &str) -> Result<Option<u64>, Wrong> {
    match schema.get(word) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(length) => Ok(Some(length)),
            None => wrong(&format!("{path}/{word}"), "must be a whole number from 0"),
        },
    }
}

fn in_order(path: &str, ordered: bool) -> Result<(), Wrong> {
    if ordered { Ok(()) } else { wrong(path, "has a lower bound above the upper one") }
}

fn integer(schema: &Node, path: &str) -> Result<(), Wrong> {
    match schema.get("format") {
        None => range(schema, path, &["minimum", "maximum"]),
        Some(format) if format == "x-epoch-ms" => only(schema, path, &["format"]),
        Some(_) => wrong(&format!("{path}/format"), "must be `x-epoch-ms`"),
    }
}

fn range(schema: &Node, path: &str, words: &[&str; 2]) -> Result<(), Wrong> {
    only(schema, path, words)?;
    for word in words {
        if schema.get(*word).is_some_and(|value| !value.is_number()) {
            return wrong(&format!("{path}/{word}"), "must be a number");
        }
    }
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let low = bound(words[0]).unwrap_or(f64::NEG_INFINITY);
    in_order(path, low <= bound(words[1]).unwrap_or(f64::INFINITY))
}

fn array(schema: &Node, path: &str, depth: usize) -> Result<(), Wrong> {
    only(schema, path, &["items", "maxItems"])?;
    length(schema, path, "maxItems")?;
    match schema.get("items") {
        Some(items) => node(items, &format!("{path}/items"), depth),
        None => wrong(&format!("{path}/items"), "is required"),
    }
}

fn properties(schema: &Node, path: &str, depth: usize) -> Result<(), Wrong> {
    only(schema, path, &["properties", "required", "additionalProperties"])?;
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return wrong(&format!("{path}/additionalProperties"), "must be false");
    }
    let none = Node::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(_) => return wrong(&format!("{path}/properties"), "must be an object"),
    };
    for (name, value) in properties {
        if !is_identifier(name, false, 64) {
            return wrong(
                &format!("{path}/properties"),
                "has a name that is not a letter followed by at most 63 letters, digits and `_`",
            );
        }
        node(value, &format!("{path}/properties/{name}"), depth)?;
    }
    let listed = |value: &Value| {
        let names = value.as_array()?;
        let mut known =
            names.iter().map(|name| properties.contains_key(name.as_str()?).then_some(()));
        known.all(|known| known.is_some()).then_some(())
    };
    match schema.get("required") {
        Some(required) if listed(required).is_none() => {
            wrong(&format!("{path}/required"), "must be a list of names of properties")
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn path_of(schema: &Value) -> Option<String> {
        let error = check(&to_raw_value(schema).unwrap()).err()?;
        assert_eq!(error.details["field"], "resultSchema");
        Some(error.details.get("path").map_or("-".into(), |path| path.as_str().unwrap().into()))
    }

    fn with(property: &Value) -> Value {
        json!({"type": "object", "properties": {"p": property}, "required": ["p"], "additionalProperties": false})
    }

    /// CG-057
    #[test]
    fn everything_that_the_builder_writes_is_accepted() {
        for property in [
            json!({"type": "string", "minLength": 1, "maxLength": 5, "description": "d"}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"enum": ["a"]}),
            json!({"type": "number", "minimum": -1.5, "maximum": 2}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "boolean"}),
            json!({"type": "string", "format": "date"}),
            json!({"type": "integer", "format": "x-epoch-ms"}),
            json!({"type": "string", "x-cogover-object": "lead"}),
            json!({"type": "array", "items": {"type": "boolean"}, "maxItems": 9}),
            with(&json!({"type": "boolean"})),
        ] {
            assert_eq!(path_of(&with(&property)), None, "{property}");
        }
    }

    /// CG-056
    #[test]
    fn what_is_outside_the_subset_is_refused_with_its_place() {
        for (property, path) in [
            (json!({"type": "string", "pattern": "a"}), "/properties/p"),
            (json!({"type": "string", "minLength": 3, "maxLength": 2}), "/properties/p"),
            (json!({"type": "string", "format": "email"}), "/properties/p/format"),
            (json!({"type": ["string", "null"]}), "/properties/p/type"),
            (json!({"type": "null"}), "/properties/p/type"),
            (json!({"enum": []}), "/properties/p/enum"),
            (json!({"enum": [1]}), "/properties/p/enum"),
            (json!({"type": "number", "minimum": "1"}), "/properties/p/minimum"),
            (json!({"type": "array"}), "/properties/p/items"),
            (json!({"type": "array", "items": {"$ref": "#"}}), "/properties/p/items/type"),
            (json!({"type": "object"}), "/properties/p/additionalProperties"),
            (json!({"anyOf": []}), "/properties/p/type"),
            (json!(true), "/properties/p"),
        ] {
            assert_eq!(path_of(&with(&property)).as_deref(), Some(path), "{property}");
        }
        assert_eq!(path_of(&json!({"type": "array", "items": {}})).as_deref(), Some(""));
        assert_eq!(path_of(&json!([])).as_deref(), Some("-"));
        let unknown = json!({"type": "object", "properties": {}, "required": ["x"], "additionalProperties": false});
        assert_eq!(path_of(&unknown).as_deref(), Some("/required"));
        let named = json!({"type": "object", "properties": {"a b": {"type": "boolean"}}, "additionalProperties": false});
        assert_eq!(path_of(&named).as_deref(), Some("/properties"));
    }

    /// CG-056
    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |levels: usize| {
            (1..levels).fold(with(&json!({"type": "boolean"})), |inner, _| with(&inner))
        };
        assert_eq!(path_of(&nested(RESULT_SCHEMA_DEPTH_MAX)), None);
        assert!(path_of(&nested(RESULT_SCHEMA_DEPTH_MAX + 1)).is_some());
        let long =
            with(&json!({"type": "boolean", "description": "x".repeat(RESULT_SCHEMA_BYTES_MAX)}));
        assert_eq!(path_of(&long).as_deref(), Some("-"));
    }
}
