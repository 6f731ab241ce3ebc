//! Messages of the protocol: JSON-RPC 2.0. Pure.

use serde_json::{Map, Value, json};

/// The version that is asked for.
pub(crate) const VERSION: &str = "2025-06-18";

/// Versions whose tools are understood.
pub(crate) const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// There is no such method.
const METHOD_NOT_FOUND: i64 = -32_601;

/// What a server may say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a question of ours: what it gives, or the code of an error.
    Answer { id: u64, result: Result<Value, i64> },
    /// A question, and what it is to be answered with.
    Question { answer: Value },
    /// Its tools are not what they were.
    ToolsChanged,
    /// Nothing that needs anything.
    Other,
}

/// A question.
pub(crate) fn question(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Something that is only told.
pub(crate) fn notice(method: &str, params: Option<Value>) -> Value {
    let mut notice = json!({"jsonrpc": "2.0", "method": method});
    if let (Some(params), Some(object)) = (params, notice.as_object_mut()) {
        object.insert("params".to_owned(), params);
    }
    notice
}

/// The first question of a connection. This client offers a server nothing that it could ask for.
pub(crate) fn greeting() -> Value {
    json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "runfleet", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// What a message means; none if it is no message.
pub(crate) fn read(message: Value) -> Option<Incoming> {
    let Value::Object(mut message) = message else { return None };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    let method = message.get("method").and_then(Value::as_str);
    match (method, message.get("id")) {
        (Some("notifications/tools/list_changed"), None) => Some(Incoming::ToolsChanged),
        (Some(_), None) => Some(Incoming::Other),
        (Some(method), Some(id)) => Some(Incoming::Question { answer: reply(method, id) }),
        (None, Some(id)) => {
            // Nothing of ours has another id.
            let Some(id) = id.as_u64() else { return Some(Incoming::Other) };
            let result = result(&mut message)?;
            Some(Incoming::Answer { id, result })
        }
        // An error that belongs to nothing.
        (None, None) => message.contains_key("error").then_some(Incoming::Other),
    }
}

fn result(message: &mut Map<String, Value>) -> Option<Result<Value, i64>> {
    if let Some(error) = message.get("error") {
        return Some(Err(error.get("code").and_then(Value::as_i64).unwrap_or_default()));
    }
    message.remove("result").map(Ok)
}

fn reply(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let error = json!({"code": METHOD_NOT_FOUND, "message": "Method not found"});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// The messages in a stream of server-sent events.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut data = String::new();
    for line in stream.lines().chain([""]) {
        if let Some(text) = line.strip_prefix("data:") {
            data.push_str(text.strip_prefix(' ').unwrap_or(text));
            data.push('\n');
        } else if line.is_empty() && !data.is_empty() {
            messages.extend(serde_json::from_str::<Value>(&data));
            data.clear();
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        let of = |message: Value| read(message);
        let answer = |result| Some(Incoming::Answer { id: 7, result });
        assert_eq!(
            of(json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}})),
            answer(Ok(json!({"a": 1})))
        );
        let error = json!({"code": -32_602, "message": "s3cret"});
        assert_eq!(of(json!({"jsonrpc": "2.0", "id": 7, "error": error})), answer(Err(-32_602)));
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        assert_eq!(of(changed), Some(Incoming::ToolsChanged));
        let ping = json!({"jsonrpc": "2.0", "id": "x", "method": "ping"});
        let pong = json!({"jsonrpc": "2.0", "id": "x", "result": {}});
        assert_eq!(of(ping), Some(Incoming::Question { answer: pong }));
        let sampling = json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"});
        let Some(Incoming::Question { answer }) = of(sampling) else { panic!() };
        assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
        for nothing in [json!(1), json!({}), json!({"id": 7, "result": 1}), json!([])] {
            assert_eq!(of(nothing.clone()), None, "{nothing}");
        }
        assert_eq!(of(json!({"jsonrpc": "2.0", "id": 7})), None, "neither result nor error");
    }

    #[test]
    fn events_are_read_line_by_line() {
        let stream = "event: message\r\nid: 1\r\ndata:\r\n\r\n: comment\n\ndata: {\"a\":\ndata: 1}\n\ndata:{\"b\":2}";
        assert_eq!(events(stream), [json!({"a": 1}), json!({"b": 2})]);
        assert!(events("").is_empty() && events("data: no JSON\n\n").is_empty());
    }
}
