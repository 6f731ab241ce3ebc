//! Reads what scripts answer: a list that begins with a word, and records as lists of fields and values.

use std::collections::HashMap;
use std::str::FromStr;

use redis::Value;

use crate::error::StoreError;

/// The answer of one script, read from the front.
pub(crate) struct Reply {
    script: &'static str,
    items: std::vec::IntoIter<Value>,
}

impl Reply {
    /// The answer of `script`, and the word that it begins with.
    pub(crate) fn open(script: &'static str, value: Value) -> Result<(String, Self), StoreError> {
        let mut reply = Self { script, items: items(value).ok_or(unreadable(script))?.into_iter() };
        let tag = reply.text()?;
        Ok((tag, reply))
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        self.items.next().ok_or(unreadable(self.script))
    }

    /// The next item as text.
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        let script = self.script;
        text(self.next()?).ok_or(unreadable(script))
    }

    /// The next item in whatever can be read from text: a number, an id, a name.
    pub(crate) fn parsed<T: FromStr>(&mut self) -> Result<T, StoreError> {
        let script = self.script;
        self.text()?.parse().map_err(|_| unreadable(script))
    }

    /// The next item by its word.
    pub(crate) fn word<T>(
        &mut self,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let script = self.script;
        read(&self.text()?).ok_or(unreadable(script))
    }

    /// The next item, none when it is empty.
    pub(crate) fn optional<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        let script = self.script;
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| unreadable(script))
    }

    /// The next item as yes (`1`) or no.
    pub(crate) fn flag(&mut self) -> Result<bool, StoreError> {
        Ok(self.text()? == "1")
    }

    /// The next item as a list of texts.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, StoreError> {
        let script = self.script;
        let list = items(self.next()?).ok_or(unreadable(script))?;
        list.into_iter().map(|value| text(value).ok_or(unreadable(script))).collect()
    }

    /// The next item as the fields of a record.
    pub(crate) fn fields(&mut self, kind: &'static str) -> Result<Fields, StoreError> {
        Fields::new(kind, self.next()?)
    }

    /// The next item as a list of lists, each to be read like an answer without a word.
    pub(crate) fn lists(&mut self) -> Result<Vec<Self>, StoreError> {
        let script = self.script;
        let lists = items(self.next()?).ok_or(unreadable(script))?;
        let list = |value| Some(Self { script, items: items(value)?.into_iter() });
        lists.into_iter().map(|value| list(value).ok_or(unreadable(script))).collect()
    }

    /// The next item, if there is one, as a list of an id and the fields of its record.
    pub(crate) fn entry(
        &mut self,
        kind: &'static str,
    ) -> Result<Option<(String, Fields)>, StoreError> {
        let Some(value) = self.items.next() else { return Ok(None) };
        let (id, rest) = Self::open(self.script, value)?;
        Fields::new(kind, Value::Array(rest.items.collect())).map(|fields| Some((id, fields)))
    }

    /// An answer with a word that nobody knows.
    pub(crate) fn unknown<T>(&self) -> Result<T, StoreError> {
        Err(unreadable(self.script))
    }
}

fn unreadable(script: &'static str) -> StoreError {
    StoreError::Corrupt { kind: script, field: "answer" }
}

/// The elements of a list, or the keys and values of a map one after the other.
pub(crate) fn items(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) | Value::Set(items) => Some(items),
        Value::Map(pairs) => {
            Some(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
        }
        _ => None,
    }
}

/// A text, also when Redis chose to send a number.
pub(crate) fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        Value::Int(number) => Some(number.to_string()),
        Value::Okay => Some("OK".to_owned()),
        _ => None,
    }
}

/// The fields of one stored record. Fields that nobody asks for are ignored: a newer version may have written them.
pub(crate) struct Fields {
    kind: &'static str,
    values: HashMap<String, String>,
}

impl Fields {
    /// Reads the answer of `HGETALL`.
    pub(crate) fn new(kind: &'static str, value: Value) -> Result<Self, StoreError> {
        let corrupt = StoreError::Corrupt { kind, field: "text" };
        let texts: Option<Vec<String>> =
            items(value).and_then(|items| items.into_iter().map(text).collect());
        let Some(texts) = texts else { return Err(corrupt) };
        let mut values = HashMap::with_capacity(texts.len() / 2);
        let mut texts = texts.into_iter();
        while let (Some(field), Some(value)) = (texts.next(), texts.next()) {
            values.insert(field, value);
        }
        Ok(Self { kind, values })
    }

    /// The same with fields that the caller knows.
    pub(crate) fn with<const N: usize>(mut self, known: [(&'static str, String); N]) -> Self {
        self.values.extend(known.map(|(field, value)| (field.to_owned(), value)));
        self
    }

    /// Whether the key did not exist.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn corrupt(&self, field: &'static str) -> StoreError {
        StoreError::Corrupt { kind: self.kind, field }
    }

    /// Refuses a record of a version above `newest`.
    pub(crate) fn check_version(&mut self, newest: u64) -> Result<(), StoreError> {
        match self.or("v", 1)? {
            version if version > newest => Err(StoreError::Newer { kind: self.kind, version }),
            _ => Ok(()),
        }
    }

    /// The text of a field that may be missing.
    pub(crate) fn text(&mut self, field: &'static str) -> Option<String> {
        self.values.remove(field)
    }

    /// A field that may be missing.
    pub(crate) fn maybe<T: FromStr>(
        &mut self,
        field: &'static str,
    ) -> Result<Option<T>, StoreError> {
        match self.text(field) {
            Some(text) => text.parse().map(Some).map_err(|_| self.corrupt(field)),
            None => Ok(None),
        }
    }

    /// A field that must be there.
    pub(crate) fn must<T: FromStr>(&mut self, field: &'static str) -> Result<T, StoreError> {
        self.maybe(field)?.ok_or_else(|| self.corrupt(field))
    }

    /// A field with a value for when it is missing.
    pub(crate) fn or<T: FromStr>(
        &mut self,
        field: &'static str,
        default: T,
    ) -> Result<T, StoreError> {
        Ok(self.maybe(field)?.unwrap_or(default))
    }

    /// A field that is a word out of a fixed set.
    pub(crate) fn word<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        self.text(field).as_deref().and_then(read).ok_or_else(|| self.corrupt(field))
    }
}

/// The fields of a golden file: one `field=value` a line.
#[cfg(test)]
pub(crate) fn golden(kind: &'static str, text: &str) -> Fields {
    let values = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(field, value)| (field.to_owned(), value.to_owned()))
        .collect();
    Fields { kind, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn an_answer_is_read_item_by_item() {
        let answer = Value::Array(vec![
            bulk("tag"),
            bulk("7"),
            bulk(""),
            bulk("1"),
            Value::Array(vec![bulk("a"), bulk("b")]),
            Value::Map(vec![(bulk("n"), Value::Int(3))]),
        ]);
        let (tag, mut reply) = Reply::open("script", answer).unwrap();
        assert_eq!(tag, "tag");
        assert_eq!(reply.parsed::<u32>().unwrap(), 7);
        assert_eq!(reply.optional::<u32>().unwrap(), None);
        assert!(reply.flag().unwrap());
        assert_eq!(reply.texts().unwrap(), ["a", "b"]);
        assert_eq!(reply.fields("record").unwrap().must::<u8>("n").unwrap(), 3);
        assert!(reply.text().is_err());
    }

    #[test]
    fn an_answer_of_another_shape_is_corrupt() {
        for answer in [
            Value::Nil,
            Value::Int(1),
            Value::Array(vec![]),
            Value::Array(vec![Value::BulkString(vec![0xff])]),
        ] {
            let error = Reply::open("script", answer).err().unwrap();
            assert!(matches!(error, StoreError::Corrupt { kind: "script", .. }), "{error}");
        }
        let (_, mut reply) =
            Reply::open("script", Value::Array(vec![bulk("t"), bulk("x")])).unwrap();
        assert!(reply.parsed::<u32>().is_err());
    }
}
