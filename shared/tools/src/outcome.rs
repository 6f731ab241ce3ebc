//! How a tool call ends. Pure. Whatever is told of a failure is a fixed text: no value, no address, no trace.

use serde_json::{Map, Value};

/// Largest result that a call can have, in bytes of JSON: it fits into an event of a run with what is written around it.
pub const RESULT_BYTES_MAX: usize = 48 * 1_024;

/// Longest place of a failure, in bytes.
const PATH_BYTES_MAX: usize = 128;

/// Stands behind what was cut off.
const CUT: &str = " … [cut]";

/// How a call has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolOutcome {
    /// The tool has answered. `{status, content}` is kept whole; anything else is a result by itself.
    Done(Value),
    /// It has not done what was asked.
    Failed {
        /// A JSON pointer to the argument that is to blame; empty when none is.
        path: String,
        /// A fixed text for the model.
        message: &'static str,
    },
    /// Nobody knows whether it was done.
    Unknown,
}

impl ToolOutcome {
    /// A failure of the call as a whole.
    pub fn failed(message: &'static str) -> Self {
        Self::Failed { path: String::new(), message }
    }

    /// A failure for which one argument is to blame. A name that is too long for a path is left out.
    pub fn argument(name: &str, message: &'static str) -> Self {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        Self::Failed {
            path: if path.len() > PATH_BYTES_MAX { String::new() } else { path },
            message,
        }
    }

    /// A result that says itself that it went well.
    pub fn success(content: Value) -> Self {
        Self::Done(status("success", content))
    }

    /// A result by which a tool says itself that it could not do what was asked.
    pub fn error(content: Value) -> Self {
        Self::Done(status("error", content))
    }

    /// Whether the model must be told that this went wrong: also when a tool has answered `{status: "error", content}`.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Done(value) => value.get("status").and_then(Value::as_str) == Some("error"),
            Self::Failed { .. } | Self::Unknown => true,
        }
    }

    /// The same with a result of at most `bytes_max` bytes of JSON. Of `{status, content}` the status stays.
    #[must_use]
    pub fn within(self, bytes_max: usize) -> Self {
        match self {
            Self::Done(value) => Self::Done(cut(value, bytes_max)),
            other => other,
        }
    }
}

fn status(status: &str, content: Value) -> Value {
    Value::Object(Map::from_iter([
        ("status".to_owned(), status.into()),
        ("content".to_owned(), content),
    ]))
}

/// A value of at most `bytes_max` bytes of JSON. What does not fit becomes a text that ends where the room does.
fn cut(value: Value, bytes_max: usize) -> Value {
    if written(&value).len() <= bytes_max {
        return value;
    }
    if let Some((said, content)) = said(&value) {
        let room = bytes_max.saturating_sub(written(&status(said, Value::Null)).len());
        return status(said, cut(content.clone(), room));
    }
    let text = match value {
        Value::String(text) => text,
        value => written(&value),
    };
    Value::String(prefix(&text, bytes_max))
}

/// The status and the content of a value that has just these two.
fn said(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 2)?;
    let status = object.get("status")?.as_str().filter(|status| status.len() <= 64)?;
    Some((status, object.get("content")?))
}

fn written(value: &Value) -> String {
    value.to_string()
}

/// As many characters as fit into `bytes_max` bytes of JSON, quotes and mark included.
fn prefix(text: &str, bytes_max: usize) -> String {
    let room = bytes_max.saturating_sub(CUT.len() + 2);
    let mut used = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        (used > room).then_some(at)
    });
    match end {
        Some(end) => format!("{}{CUT}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_that_fits_is_not_touched() {
        for value in [json!(null), json!({"status": "error", "content": [1]}), json!("x")] {
            assert_eq!(ToolOutcome::Done(value.clone()).within(100), ToolOutcome::Done(value));
        }
    }

    #[test]
    fn the_status_stays_when_the_content_is_cut() {
        let long = json!({"status": "error", "content": "x".repeat(1_000)});
        let ToolOutcome::Done(value) = ToolOutcome::Done(long).within(100) else { panic!() };
        assert_eq!(value["status"], "error");
        let content = value["content"].as_str().unwrap();
        assert!(content.starts_with("xxx") && content.ends_with("[cut]"), "{content}");
        let list = ToolOutcome::success(json!(vec!["abc"; 100])).within(100);
        let ToolOutcome::Done(value) = list else { panic!() };
        assert!(value["content"].as_str().unwrap().starts_with(r#"["abc","abc""#), "{value}");
    }

    #[test]
    fn an_error_that_a_tool_tells_itself_is_an_error() {
        assert!(ToolOutcome::error(json!("no")).is_error());
        assert!(!ToolOutcome::success(json!("yes")).is_error());
        assert!(!ToolOutcome::Done(json!("error")).is_error());
        assert!(ToolOutcome::Unknown.is_error() && ToolOutcome::failed("no").is_error());
    }

    #[test]
    fn a_path_points_to_the_argument() {
        let ToolOutcome::Failed { path, .. } = ToolOutcome::argument("a/b~c", "no") else {
            panic!()
        };
        assert_eq!(path, "/a~1b~0c");
        let ToolOutcome::Failed { path, .. } = ToolOutcome::argument(&"x".repeat(200), "no") else {
            panic!()
        };
        assert_eq!(path, "");
    }

    proptest! {
        #[test]
        fn no_result_is_larger_than_its_bound(text in "[\\x00-\\x7fäö€😀\"\\\\]{0,400}", room in 64_usize..400) {
            for value in [json!(text), json!([text]), json!({"status": "success", "content": {"a": text}})] {
                let ToolOutcome::Done(value) = ToolOutcome::Done(value).within(room) else { panic!() };
                prop_assert!(value.to_string().len() <= room, "{value}");
            }
        }
    }
}
