//! What the JSON Schema of a tool's arguments must be.

use serde_json::Value;

/// The word of JSON Schema that says where else to look: nothing outside of the schema may be named.
const REFERENCE: &str = "$ref";

/// What is wrong with the schema of a tool, as a phrase that completes "`field` …".
pub(crate) fn schema_problem(schema: &Value) -> Option<String> {
    if schema.get("type") != Some(&Value::from("object")) {
        return Some("must have the type `object` at its root".to_owned());
    }
    if let Err(problem) = jsonschema::meta::validate(schema) {
        let place: String = problem.instance_path().as_str().chars().take(200).collect();
        return Some(format!("is not a JSON Schema (at {place})"));
    }
    names_another(schema).then(|| {
        "must not name another schema: only `$ref` within it, beginning with `#`".to_owned()
    })
}

fn names_another(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let outside =
                name == REFERENCE && value.as_str().is_some_and(|to| !to.starts_with('#'));
            outside || names_another(value)
        }),
        Value::Array(items) => items.iter().any(names_another),
        _ => false,
    }
}
