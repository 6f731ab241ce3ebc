//! Texts with places: `{{name}}` stands for an argument, `{{secrets.NAME}}` for a secret of the workspace. Pure.
//!
//! All places are filled at once, and what was put in is not looked at again: an argument that looks like a place stays a text.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

/// Longest name of an argument, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Most places of one text.
const PLACES_MAX: usize = 64;

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Argument(String),
    Secret(String),
}

/// A text with places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

/// A text cannot be read as a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// An argument that a template needs is missing or no scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong(pub(crate) String);

/// What is put into places.
#[derive(Clone, Copy)]
pub(crate) struct Filling<'a> {
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) secrets: &'a BTreeMap<String, SecretString>,
}

impl Filling<'_> {
    /// An argument that is there; null is not.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name).filter(|value| !value.is_null())
    }
}

impl Template {
    /// Reads a text. Every `{{` must begin a place.
    pub(crate) fn read(mut text: &str) -> Result<Self, Unreadable> {
        let mut pieces = Vec::new();
        while let Some((before, rest)) = text.split_once("{{") {
            let (name, rest) = rest.split_once("}}").ok_or(Unreadable)?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(place(name.trim())?);
            text = rest;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        if pieces.len() > 2 * PLACES_MAX { Err(Unreadable) } else { Ok(Self { pieces }) }
    }

    /// The argument that the whole text stands for.
    pub(crate) fn only_argument(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The arguments that it names.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) | Piece::Secret(_) => None,
        })
    }

    /// The secrets that it names.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Secret(name) => Some(name.as_str()),
            Piece::Text(_) | Piece::Argument(_) => None,
        })
    }

    /// Whether it has no places.
    pub(crate) fn is_plain(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Whether an argument that it names is not there.
    pub(crate) fn lacks(&self, filling: Filling<'_>) -> bool {
        self.arguments().any(|name| filling.given(name).is_none())
    }

    /// The text, with `escape` applied to what is put in. Every argument must be there.
    pub(crate) fn fill(
        &self,
        filling: Filling<'_>,
        escape: fn(&str) -> String,
    ) -> Result<String, Wrong> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Argument(name) => {
                    let text = filling.given(name).and_then(scalar);
                    filled.push_str(&escape(&text.ok_or_else(|| Wrong(name.clone()))?));
                }
                Piece::Secret(name) => {
                    let secret = filling.secrets.get(name).ok_or_else(|| Wrong(String::new()))?;
                    filled.push_str(&escape(secret.expose_secret()));
                }
            }
        }
        Ok(filled)
    }
}

fn place(name: &str) -> Result<Piece, Unreadable> {
    if let Some(secret) = name.strip_prefix("secrets.") {
        let good = runfleet_secrets::is_name(secret);
        return if good { Ok(Piece::Secret(secret.to_owned())) } else { Err(Unreadable) };
    }
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(good);
    if fits { Ok(Piece::Argument(name.to_owned())) } else { Err(Unreadable) }
}

/// A scalar as text.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Percent-encoded but for what means nothing anywhere in a URL.
pub(crate) fn percent(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// As it is.
pub(crate) fn plain(text: &str) -> String {
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(text: &str, arguments: &Value) -> Result<String, Wrong> {
        let secrets = BTreeMap::from([("KEY".to_owned(), SecretString::from("k{{a}}"))]);
        let filling = Filling { arguments: arguments.as_object().unwrap(), secrets: &secrets };
        Template::read(text).unwrap().fill(filling, plain)
    }

    #[test]
    fn places_are_filled_once_and_not_looked_at_again() {
        let arguments = json!({"a": "{{secrets.KEY}}", "n": 1.5, "b": true});
        let filled = fill("<{{a}}|{{ n }}|{{b}}|{{secrets.KEY}}}>", &arguments);
        assert_eq!(filled.unwrap(), "<{{secrets.KEY}}|1.5|true|k{{a}}}>");
    }

    #[test]
    fn what_is_missing_or_no_scalar_is_told_by_name() {
        for arguments in [json!({}), json!({"a": null}), json!({"a": []}), json!({"a": {}})] {
            assert_eq!(fill("{{a}}", &arguments), Err(Wrong("a".to_owned())));
        }
        assert_eq!(fill("{{secrets.NONE}}", &json!({})), Err(Wrong(String::new())));
    }

    #[test]
    fn what_does_not_end_or_has_no_name_is_no_template() {
        for text in ["{{", "{{a", "{{}}", "{{a b}}", "{{secrets.../x}}", "{{a/b}}", "{{{a}}}"] {
            assert_eq!(Template::read(text), Err(Unreadable), "{text}");
        }
        assert!(Template::read(&"{{a}}".repeat(200)).is_err());
        assert!(Template::read("a } {b} }}").unwrap().is_plain());
    }

    #[test]
    fn everything_that_means_something_in_a_url_is_encoded() {
        assert_eq!(percent("aZ9-._~"), "aZ9-._~");
        assert_eq!(
            percent("/?#&=+%@:;\\ ü\r\n"),
            "%2F%3F%23%26%3D%2B%25%40%3A%3B%5C%20%C3%BC%0D%0A"
        );
    }
}
