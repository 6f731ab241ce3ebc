//! The shape of JSON that a caller sends: how deep it is nested, whether a name comes twice, and where it is wrong. Looks at
//! nothing else and keeps every number as it was written.

use std::collections::HashSet;
use std::fmt;

use runfleet_domain::limits::JSON_DEPTH_MAX;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use crate::error::ErrorBody;
use crate::strict::Object;

/// How much of a name is told, in characters. Names of options are shorter; a longer one is something that somebody sent.
const NAME_CHARS_MAX: usize = 64;

/// Names that `serde_json` keeps for itself begin like this: it would read the text behind one as JSON that nobody has looked at.
const RESERVED: &str = "$serde_json::private::";

const TOO_DEEP: &str = "nested too deeply";
const TWICE: &str = "a name twice";
const NOT_FREE: &str = "a reserved name";

/// Reads options, which are an object, or says which field is wrong. Never repeats a value.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ErrorBody> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let Object(read) = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| problem(&place(error.path()), error.inner()))?;
    deserializer.end().map_err(|error| problem("", &error))?;
    Ok(read)
}

/// A path as it is told: short, and in one line, whatever a caller chose as a name.
fn place(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.extend(["[", &index.to_string(), "]"]),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                if !text.is_empty() {
                    text.push('.');
                }
                let printable =
                    |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
                text.extend(name.chars().take(NAME_CHARS_MAX).map(printable));
            }
            Segment::Unknown => {}
        }
    }
    text
}

/// Says what is wrong by the kind of the fault alone: the text of serde may repeat a value.
fn problem(path: &str, error: &serde_json::Error) -> ErrorBody {
    let text = error.to_string();
    if text.starts_with("unknown field") {
        return ErrorBody::field(path, "is not known");
    }
    // Only names of options come between these marks now.
    let named = text.split('`').nth(1);
    let at = |name: &str| match path {
        "" => name.to_owned(),
        path if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
        path => format!("{path}.{name}"),
    };
    match named {
        Some(name) if text.starts_with("missing field") => {
            return ErrorBody::field(&at(name), "is required");
        }
        Some(name) if text.starts_with("duplicate field") => {
            return ErrorBody::field(&at(name), "is given twice");
        }
        _ => {}
    }
    if text.starts_with("unknown variant") {
        ErrorBody::field(path, "is not one of the allowed words")
    } else if error.is_data() {
        ErrorBody::field(path, "has a value of the wrong type")
    } else {
        ErrorBody::field(path, "is not valid JSON").with("column", error.column())
    }
}

/// Refuses JSON that is nested deeper than [`JSON_DEPTH_MAX`], that gives a name twice in one object, that uses a reserved
/// name, or whose numbers no program can hold.
pub(crate) fn check_shape(field: &str, json: &RawValue) -> Result<(), ErrorBody> {
    check_shape_to(field, json, JSON_DEPTH_MAX)
}

/// The same for JSON that may be nested to `depth`, at most 120.
pub(crate) fn check_shape_to(field: &str, json: &RawValue, depth: usize) -> Result<(), ErrorBody> {
    let mut deserializer = serde_json::Deserializer::from_str(json.get());
    Shape { left: depth }.deserialize(&mut deserializer).map_err(|error| {
        let text = error.to_string();
        ErrorBody::field(
            field,
            if text.starts_with(TOO_DEEP) || text.starts_with("recursion limit") {
                "is nested too deeply"
            } else if text.starts_with(TWICE) {
                "gives a name twice"
            } else if text.starts_with(NOT_FREE) {
                "uses a reserved name"
            } else if text.starts_with("number out of range") {
                "has a number out of range"
            } else {
                "is not valid JSON"
            },
        )
    })
}

/// Walks through a value and keeps nothing of it.
#[derive(Clone, Copy)]
struct Shape {
    left: usize,
}

impl Shape {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1).ok_or_else(|| E::custom(TOO_DEEP))?;
        Ok(Self { left })
    }
}

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while items.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        let mut names = HashSet::new();
        while let Some(name) = entries.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                return Err(A::Error::custom(NOT_FREE));
            }
            if !names.insert(name) {
                return Err(A::Error::custom(TWICE));
            }
            entries.next_value_seed(inside)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(json: &str) -> String {
        match check_shape("f", &RawValue::from_string(json.to_owned()).unwrap()) {
            Ok(()) => String::new(),
            Err(error) => error.details["problem"].as_str().unwrap().to_owned(),
        }
    }

    #[test]
    fn nesting_is_bounded_and_names_are_given_once() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(shape(&nested(JSON_DEPTH_MAX)), "");
        assert_eq!(shape(&nested(JSON_DEPTH_MAX + 1)), "is nested too deeply");
        assert_eq!(shape(&nested(10_000)), "is nested too deeply");
        assert_eq!(shape(r#"{"a":1,"b":{"a":1}}"#), "");
        assert_eq!(shape(r#"{"b":{"a":1,"\u0061":2}}"#), "gives a name twice");
        assert_eq!(
            shape(r#"[{"\u0024serde_json::private::RawValue":"1"}]"#),
            "uses a reserved name"
        );
    }

    #[test]
    fn numbers_are_looked_at_and_not_changed() {
        assert_eq!(shape("9007199254740993"), "");
        assert_eq!(shape("123456789012345678901234567890.5e-3"), "");
        assert_eq!(shape("1e400"), "has a number out of range");
    }
}
