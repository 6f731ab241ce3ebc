//! A document as a tree of values with their lines. Knows YAML and JSON, and nothing about what documents mean.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Spanned};

use crate::bounds::{DEPTH_MAX, DOCUMENTS_MAX, FILE_BYTES_MAX, NODES_MAX};

/// A value and the line on which it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: u64,
    pub(crate) value: Value,
}

/// What stands there. Mappings keep repeated keys, so that every repetition can be told.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number with a fraction or an exponent.
    Fraction(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

/// The documents of a file, or the line and the reason why they cannot be read.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, (Option<u64>, String)> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: DOCUMENTS_MAX,
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_total_scalar_bytes: FILE_BYTES_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        strict_booleans: true,
        with_snippet: false,
    };
    let documents: Vec<Spanned<Value>> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| {
            let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
            (line, error.without_snippet().to_string())
        })?;
    Ok(documents.into_iter().map(Node::from).collect())
}

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Self { line: spanned.referenced.line(), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u128<E>(self, _: u128) -> Result<Value, E> {
        // Beyond every bound of every field.
        Ok(Value::Integer(i128::MAX))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Fraction(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            list.push(item.into());
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Spanned<Value>>()? {
            map.push((key, value.into()));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let documents = parse("a: 1\n---\n# comment\nb:\n  - x\n  - c: true\n").unwrap();
        let Value::Map(entries) = &documents[1].value else { panic!("{documents:?}") };
        assert_eq!((entries[0].0.value.as_str(), entries[0].0.referenced.line()), ("b", 4));
        let Value::List(items) = &entries[0].1.value else { panic!("{documents:?}") };
        assert_eq!((items[0].line, items[1].line), (5, 6));
    }

    #[test]
    fn json_is_read_as_well_and_repeated_keys_are_kept() {
        let documents = parse("{\n\t\"a\": [1, -2, 1.5, null, \"t\"],\n\t\"a\": {}\n}").unwrap();
        let Value::Map(entries) = &documents[0].value else { panic!("{documents:?}") };
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1].0.referenced.line(), 3);
        let Value::List(items) = &entries[0].1.value else { panic!("{documents:?}") };
        assert!(
            matches!(items[1].value, Value::Integer(-2))
                && matches!(items[2].value, Value::Fraction(_))
        );
        assert!(matches!(items[3].value, Value::Null));
    }

    #[test]
    fn words_that_only_old_yaml_takes_for_booleans_are_texts() {
        let documents = parse("[no, on, yes, true]").unwrap();
        let Value::List(items) = &documents[0].value else { panic!("{documents:?}") };
        assert!(matches!(&items[0].value, Value::Text(text) if text == "no"));
        assert!(matches!(items[3].value, Value::Bool(true)));
    }

    #[test]
    fn empty_documents_are_no_documents() {
        assert_eq!(parse("").unwrap().len(), 0);
        assert_eq!(parse("# only a comment\n").unwrap().len(), 0);
        let documents = parse("---\na: 1\n---\n").unwrap();
        assert!(documents.iter().filter(|node| !matches!(node.value, Value::Null)).count() == 1);
    }

    #[test]
    fn a_file_that_is_no_yaml_is_refused_with_its_line_and_without_its_text() {
        let (line, problem) = parse("a: 1\nb: [s3cret\nc: }\n").unwrap_err();
        assert!(line.is_some(), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
    }

    #[test]
    fn a_file_cannot_grow_by_nesting_or_by_repeating_itself() {
        assert!(
            parse(&format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1))).is_err()
        );
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for n in 1..9 {
            let list = vec![format!("*a{}", n - 1); 10].join(",");
            writeln!(bomb, "a{n}: &a{n} [{list}]").unwrap();
        }
        assert!(parse(&bomb).is_err());
    }
}
