//! What to do with a schema that an answer should fit. Pure.

use serde_json::Value;

use crate::turn::TurnRequest;

/// Words that providers take where they promise to keep a schema.
const STRICT: [&str; 10] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
];

/// Whether a schema is of an object.
pub(super) fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Whether a schema has the narrow form that providers promise to keep: every object is closed and wants all its properties.
pub(super) fn is_strict(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    if fields.keys().any(|word| !STRICT.contains(&word.as_str())) {
        return false;
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    let closed = !is_object(schema)
        || fields.get("additionalProperties") == Some(&Value::Bool(false))
            && properties.is_some_and(|properties| wants_all(fields.get("required"), properties));
    let inner = properties.into_iter().flat_map(|all| all.values()).chain(fields.get("items"));
    let choices = fields.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    closed && inner.chain(choices).all(is_strict)
}

fn wants_all(required: Option<&Value>, properties: &serde_json::Map<String, Value>) -> bool {
    let required = required.and_then(Value::as_array);
    properties.keys().all(|name| {
        required.is_some_and(|names| names.iter().any(|wanted| wanted.as_str() == Some(name)))
    })
}

/// What the model is told first, with the schema in words, for providers that cannot be given one.
pub(super) fn system_with_schema(request: &TurnRequest, schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return request.system.clone() };
    let blank = if request.system.is_empty() { "" } else { "\n\n" };
    format!(
        "{}{blank}Your final answer must be a single JSON value that fits the JSON Schema below, with no other text and no code \
         fence around it.\n{schema}",
        request.system
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_strict_when_all_of_it_is_closed() {
        let closed = json!({"type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}});
        assert!(is_strict(&closed));
        for (pointer, value) in [
            ("/additionalProperties", json!(true)),
            ("/required", json!([])),
            ("/properties/a/items", json!({"type": "object", "properties": {}})),
            ("/properties/a/items", json!({"type": "string", "format": "email"})),
            ("/properties/a", json!(true)),
        ] {
            let mut open = closed.clone();
            *open.pointer_mut(pointer).unwrap() = value;
            assert!(!is_strict(&open), "{pointer}");
        }
    }
}
