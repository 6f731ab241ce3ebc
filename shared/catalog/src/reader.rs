//! Reads fields out of a tree and collects every mistake on the way: wrong types, unknown, repeated and missing fields.
//!
//! A reader gives `None` after it has recorded why. Read everything before the first `?`, so that no mistake hides
//! another.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::mistake::{Collector, Mistake};
use crate::node::{Node, Value};

/// Longest unknown field name that a mistake repeats, in characters.
const UNKNOWN_CHARS_MAX: usize = 64;

/// A value at its place in a file.
pub(crate) struct At<'r> {
    pub(crate) node: &'r Node,
    pub(crate) file: &'r str,
    pub(crate) path: String,
    collector: &'r Collector,
}

impl<'r> At<'r> {
    /// The whole of a document.
    pub(crate) fn document(node: &'r Node, file: &'r str, collector: &'r Collector) -> Self {
        Self { node, file, path: String::new(), collector }
    }

    /// Records a mistake here.
    pub(crate) fn mistake(&self, problem: impl Into<String>) {
        self.mistake_at(self.path.clone(), self.node.line, problem);
    }

    fn mistake_at(&self, path: String, line: u64, problem: impl Into<String>) {
        let line = Some(line).filter(|line| *line > 0);
        self.collector.add(Mistake {
            file: self.file.to_owned(),
            path,
            line,
            problem: problem.into(),
        });
    }

    pub(crate) fn wrong<T>(&self, problem: impl Into<String>) -> Option<T> {
        self.mistake(problem);
        None
    }

    pub(crate) fn child(&self, path: String, node: &'r Node) -> Self {
        At { node, file: self.file, path, collector: self.collector }
    }

    /// The fields of a mapping. A repeated field is a mistake; its first value counts.
    pub(crate) fn fields(self) -> Option<Fields<'r>> {
        let Value::Map(entries) = &self.node.value else {
            return self.wrong("must be a mapping of fields");
        };
        let mut fields: Vec<Field<'r>> = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            let name = key.value.as_str();
            let line = key.referenced.line();
            if fields.iter().any(|field| field.name == name) {
                self.mistake_at(join(&self.path, &shown(name)), line, "is given twice");
            } else {
                fields.push(Field { name, line, node, read: false });
            }
        }
        Some(Fields { at: self, fields })
    }

    /// The items of a list of at most `max`.
    pub(crate) fn items(&self, max: usize) -> Option<Vec<Self>> {
        let Value::List(items) = &self.node.value else {
            return self.wrong("must be a list");
        };
        if items.len() > max {
            return self.wrong(format!("must have at most {max} entries, not {}", items.len()));
        }
        let item = |(index, node)| self.child(format!("{}[{index}]", self.path), node);
        Some(items.iter().enumerate().map(item).collect())
    }

    /// A text.
    pub(crate) fn text(&self) -> Option<&'r str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            Value::Bool(_) | Value::Integer(_) | Value::Fraction(_) => {
                self.wrong("must be a text: put it in quotes")
            }
            Value::Null | Value::List(_) | Value::Map(_) => self.wrong("must be a text"),
        }
    }

    /// A text for people to read, of 1 to `max` characters without control characters.
    pub(crate) fn display(&self, max: usize) -> Option<String> {
        let text = self.text()?;
        let chars = text.chars().count();
        if chars == 0 || chars > max || text.chars().any(char::is_control) {
            return self
                .wrong(format!("must have 1 to {max} characters and no control characters"));
        }
        Some(text.to_owned())
    }

    /// A text of a type of ours, whose errors complete "`path` …" and repeat no value.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self) -> Option<T> {
        match self.text()?.parse() {
            Ok(value) => Some(value),
            Err(error) => self.wrong(error.to_string()),
        }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.or_else(|| {
            let list: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let one_of = if words.len() == 1 { "" } else { "one of " };
            self.wrong(format!("must be {one_of}{}", list.join(", ")))
        })
    }

    /// A whole number within bounds.
    pub(crate) fn integer(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let number = match self.node.value {
            Value::Integer(number) => u32::try_from(number).ok(),
            Value::Null
            | Value::Bool(_)
            | Value::Fraction(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => None,
        };
        number.filter(|number| range.contains(number)).or_else(|| {
            self.wrong(format!("must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.node.value {
            Value::Bool(value) => Some(value),
            Value::Null
            | Value::Integer(_)
            | Value::Fraction(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => self.wrong("must be true or false"),
        }
    }
}

struct Field<'r> {
    name: &'r str,
    line: u64,
    node: &'r Node,
    read: bool,
}

/// The fields of one mapping.
pub(crate) struct Fields<'r> {
    at: At<'r>,
    fields: Vec<Field<'r>>,
}

impl<'r> Fields<'r> {
    /// A field that may be absent; null counts as absent.
    pub(crate) fn optional(&mut self, name: &str) -> Option<At<'r>> {
        let field = self.fields.iter_mut().find(|field| field.name == name)?;
        field.read = true;
        let node = field.node;
        if matches!(node.value, Value::Null) {
            return None;
        }
        Some(self.at.child(join(&self.at.path, name), node))
    }

    /// A field that must be there.
    pub(crate) fn required(&mut self, name: &str) -> Option<At<'r>> {
        let found = self.optional(name);
        if found.is_none() {
            let line = self
                .fields
                .iter()
                .find(|field| field.name == name)
                .map_or(self.at.node.line, |field| field.line);
            self.at.mistake_at(join(&self.at.path, name), line, "is required");
        }
        found
    }

    /// A field with a default: `None` only when it is wrong.
    pub(crate) fn or<T>(
        &mut self,
        name: &str,
        default: T,
        read: impl FnOnce(At<'r>) -> Option<T>,
    ) -> Option<T> {
        self.optional(name).map_or(Some(default), read)
    }

    /// A mistake of the mapping as a whole.
    pub(crate) fn mistake(&self, problem: impl Into<String>) {
        self.at.mistake(problem);
    }

    /// Ends the reading: what was not read is not known.
    pub(crate) fn finish(self) {
        for field in self.fields.iter().filter(|field| !field.read) {
            self.at.mistake_at(join(&self.at.path, &shown(field.name)), field.line, "is not known");
        }
    }
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A name that we did not choose, cut and without control characters.
pub(crate) fn shown(name: &str) -> String {
    name.chars()
        .take(UNKNOWN_CHARS_MAX)
        .map(|char| if char.is_control() { '?' } else { char })
        .collect()
}
