//! Reads larger values than single words: texts of several lines, free JSON, mappings with names of the author's choice.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::{Map, Value as Json};

use crate::bounds::LINE_BYTES_MAX;
use crate::node::{Node, Value};
use crate::reader::{At, join, shown};

impl<'r> At<'r> {
    /// A text of 1 to `max` bytes that may have several lines.
    pub(crate) fn prose(&self, max: usize) -> Option<String> {
        let text = self.text()?;
        let good = |char: char| !char.is_control() || matches!(char, '\n' | '\t');
        if text.trim().is_empty() || text.len() > max || !text.chars().all(good) {
            return self.wrong(format!(
                "must have 1 to {max} bytes, not blank, and no control characters but line breaks and tabs"
            ));
        }
        Some(text.to_owned())
    }

    /// One line of 1 to 2,048 bytes.
    pub(crate) fn line(&self) -> Option<String> {
        let text = self.text()?;
        if text.trim().is_empty()
            || text.len() > LINE_BYTES_MAX
            || text.chars().any(char::is_control)
        {
            return self.wrong(format!("must be one line of 1 to {LINE_BYTES_MAX} bytes"));
        }
        Some(text.to_owned())
    }

    /// Whatever stands there, as JSON.
    pub(crate) fn json(&self) -> Option<Json> {
        json(self.node)
            .or_else(|| self.wrong("holds a number or a repeated field that JSON cannot hold"))
    }

    /// A mapping, as JSON of at most `max` bytes.
    pub(crate) fn json_object(&self, max: usize) -> Option<Map<String, Json>> {
        let Json::Object(object) = self.json()? else {
            return self.wrong("must be a mapping of fields");
        };
        let bytes = serde_json::to_string(&object).map_or(usize::MAX, |text| text.len());
        if bytes > max {
            return self.wrong(format!("must have at most {max} bytes as JSON, not {bytes}"));
        }
        Some(object)
    }

    /// The entries of a mapping whose names the author chose; at most `max`.
    pub(crate) fn entries(&self, max: usize) -> Option<Vec<(String, At<'r>)>> {
        let Value::Map(entries) = &self.node.value else {
            return self.wrong("must be a mapping");
        };
        if entries.len() > max {
            return self.wrong(format!("must have at most {max} entries, not {}", entries.len()));
        }
        let mut found = BTreeSet::new();
        let mut list = Vec::with_capacity(entries.len());
        for (key, node) in entries {
            let name = key.value.as_str();
            let at = self.child(join(&self.path, &shown(name)), node);
            if found.insert(name) {
                list.push((name.to_owned(), at));
            } else {
                at.mistake("is given twice");
            }
        }
        Some(list)
    }

    /// A number with up to three places behind the point, in thousandths.
    pub(crate) fn thousandths(&self, range: &RangeInclusive<u32>) -> Option<u32> {
        let number = match self.node.value {
            Value::Integer(number) => u32::try_from(number).ok().and_then(|n| n.checked_mul(1_000)),
            Value::Fraction(number) => whole_thousandths(number),
            Value::Null | Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
        };
        number.filter(|number| range.contains(number)).or_else(|| {
            self.wrong(format!(
                "must be a number from {} to {} with at most three places behind the point",
                range.start() / 1_000,
                range.end() / 1_000
            ))
        })
    }
}

fn whole_thousandths(number: f64) -> Option<u32> {
    // By its text: no rounding to argue about.
    let text = format!("{number:.3}");
    let exact = text.parse::<f64>().is_ok_and(|read| (read - number).abs() < 1e-9);
    text.replace('.', "").parse().ok().filter(|_| exact)
}

fn json(node: &Node) -> Option<Json> {
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Integer(number) => Json::Number(serde_json::Number::from_i128(*number)?),
        Value::Fraction(number) => Json::Number(serde_json::Number::from_f64(*number)?),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(json).collect::<Option<_>>()?),
        Value::Map(entries) => {
            let mut object = Map::new();
            for (key, node) in entries {
                if object.insert(key.value.clone(), json(node)?).is_some() {
                    return None;
                }
            }
            Json::Object(object)
        }
    })
}
