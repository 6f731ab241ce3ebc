//! From the result of a call to an outcome. Pure.

use runfleet_tools::ToolOutcome;
use serde_json::{Value, json};

use crate::failure::McpFailure;

/// What a call gave: `{status, content}`, with the structured content if there is some, else its texts.
pub(crate) fn outcome(result: &Value) -> Result<ToolOutcome, McpFailure> {
    let failed = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let listed = match result.get("content") {
        Some(Value::Array(listed)) => listed.as_slice(),
        None if result.is_object() => &[],
        _ => return Err(McpFailure::Protocol),
    };
    let structured = result.get("structuredContent").filter(|value| value.is_object() && !failed);
    let content = match (structured, listed) {
        (Some(structured), _) => structured.clone(),
        (None, []) => Value::Null,
        (None, [only]) => part(only),
        (None, listed) => Value::Array(listed.iter().map(part).collect()),
    };
    Ok(if failed { ToolOutcome::error(content) } else { ToolOutcome::success(content) })
}

/// A part of the content: a text as it is, an address by its name. Pictures and sounds are told by their kind only.
fn part(part: &Value) -> Value {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match kind {
        "text" => Value::String(text(part, "text")),
        "resource" => match part.get("resource") {
            Some(resource) if resource.get("text").is_some() => {
                json!({"uri": text(resource, "uri"), "text": text(resource, "text")})
            }
            Some(resource) => json!({"uri": text(resource, "uri"), "left out": "bytes"}),
            None => Value::Null,
        },
        "resource_link" => json!({"uri": text(part, "uri"), "name": text(part, "name")}),
        "image" | "audio" => json!({"left out": kind}),
        _ => json!({"left out": "unknown"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_handed_on_and_pictures_are_not() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, expected) in [
            (json!({"content": [text("a")]}), ToolOutcome::success(json!("a"))),
            (json!({"content": [text("a"), text("b")]}), ToolOutcome::success(json!(["a", "b"]))),
            (json!({"content": []}), ToolOutcome::success(Value::Null)),
            (json!({}), ToolOutcome::success(Value::Null)),
            (
                json!({"content": [text("{}")], "structuredContent": {"n": 1}}),
                ToolOutcome::success(json!({"n": 1})),
            ),
            (json!({"content": [text("no")], "isError": true}), ToolOutcome::error(json!("no"))),
            (
                json!({"content": [{"type": "image", "data": "AAAA"}]}),
                ToolOutcome::success(json!({"left out": "image"})),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}),
                ToolOutcome::success(json!({"uri": "u", "text": "t"})),
            ),
        ] {
            assert_eq!(outcome(&result), Ok(expected), "{result}");
        }
        for nothing in [json!([]), json!("x"), json!({"content": "x"})] {
            assert_eq!(outcome(&nothing), Err(McpFailure::Protocol), "{nothing}");
        }
    }
}
