//! The golden requests, and every place in them where a stranger can put something else.

use serde_json::{Map, Value, json};

/// Stands where a text will be put.
const HOLE: &str = "\"#hole#\"";

/// A request with a hole in it.
pub(crate) struct Place {
    /// JSON Pointer to the hole; empty for the whole request.
    pub(crate) pointer: String,
    /// What the golden request has there.
    pub(crate) value: Value,
    before: String,
    after: String,
}

impl Place {
    /// The request with this text in its hole.
    pub(crate) fn filled(&self, text: impl AsRef<[u8]>) -> Vec<u8> {
        [self.before.as_bytes(), text.as_ref(), self.after.as_bytes()].concat()
    }
}

fn golden(name: &str) -> Value {
    let path = format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The golden request of each operation.
pub(crate) fn requests() -> Vec<Value> {
    runfleet_contracts::Operation::ALL
        .map(runfleet_contracts::Operation::as_str)
        .map(|operation| json!({"operation": operation, "payload": golden(operation)}))
        .into()
}

/// Every place of every golden request: the whole, and each value in it.
pub(crate) fn places() -> Vec<Place> {
    let mut found = Vec::new();
    for request in requests() {
        for pointer in pointers(&request) {
            found.push(place(&request, pointer));
        }
    }
    found
}

/// One place of the golden request of an operation.
pub(crate) fn place_of(operation: &str, pointer: &str) -> Place {
    let request = requests().into_iter().find(|request| request["operation"] == operation);
    place(&request.unwrap(), pointer.to_owned())
}

fn place(request: &Value, pointer: String) -> Place {
    let mut holed = request.clone();
    let hole = holed.pointer_mut(&pointer).unwrap();
    let value = std::mem::replace(hole, serde_json::from_str(HOLE).unwrap());
    let text = holed.to_string();
    let (before, after) = text.split_once(HOLE).unwrap();
    Place { pointer, value, before: before.to_owned(), after: after.to_owned() }
}

fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let below: Vec<(String, &Value)> = match value {
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in below {
        found.extend(pointers(value).into_iter().map(|rest| format!("/{name}{rest}")));
    }
    found
}

/// An object as text with one of its names given twice, the second time as `spelt`.
pub(crate) fn twice(object: &Map<String, Value>, name: &str, spelt: &str) -> String {
    let text = serde_json::to_string(object).unwrap();
    let value = &object[name];
    format!("{},\"{spelt}\":{value}}}", &text[..text.len() - 1])
}
