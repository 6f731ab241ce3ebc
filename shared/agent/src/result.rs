//! Whether an answer is a result that fits `resultSchema`: the subset of JSON Schema that a start may give.

use serde_json::{Map, Value};

use crate::limits::{PROBLEMS_MAX, RESULT_BYTES_MAX};
use crate::schema::Problem;

/// Characters of a string for which the schema sets no bound.
const CHARS_MAX: u64 = 10_000;
/// Items of an array for which the schema sets no bound.
const ITEMS_MAX: u64 = 1_000;
/// Largest whole number that every program can hold.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Reads a result out of an answer: all of it, what stands in its code fence, or from its first brace to its last.
pub(crate) fn read(schema: &Value, text: &str) -> Result<Value, Vec<Problem>> {
    let trimmed = text.trim();
    let fenced =
        trimmed.split("```").nth(1).map(|block| block.strip_prefix("json").unwrap_or(block));
    let braced =
        trimmed.find('{').zip(trimmed.rfind('}')).and_then(|(from, to)| trimmed.get(from..=to));
    let parsed = [Some(trimmed), fenced, braced]
        .into_iter()
        .flatten()
        .find_map(|text| serde_json::from_str::<Value>(text).ok());
    let Some(value) = parsed else {
        return Err(vec![Problem::new("", "is not valid JSON")]);
    };
    check(schema, value)
}

/// Checks a value; an optional property that is null is dropped.
fn check(schema: &Value, mut value: Value) -> Result<Value, Vec<Problem>> {
    let mut problems = Vec::new();
    node(schema, &mut value, "", &mut problems);
    if crate::text::json_bytes(&value) > RESULT_BYTES_MAX {
        problems.push(Problem::new("", &format!("must have at most {RESULT_BYTES_MAX} bytes")));
    }
    problems.truncate(PROBLEMS_MAX);
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

fn node(schema: &Value, value: &mut Value, path: &str, problems: &mut Vec<Problem>) {
    if problems.len() >= PROBLEMS_MAX {
        return;
    }
    let mut wrong = |message: &str| problems.push(Problem::new(path, message));
    if let Some(Value::Array(words)) = schema.get("enum") {
        if !words.contains(value) {
            wrong("is not one of the allowed values");
        }
        return;
    }
    match (schema.get("type").and_then(Value::as_str).unwrap_or_default(), value) {
        ("string", Value::String(text)) => string(schema, text, &mut wrong),
        ("number", Value::Number(number)) => range(schema, number.as_f64(), &mut wrong),
        ("integer", Value::Number(number)) => {
            let number = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= SAFE_INTEGER);
            range(schema, number, &mut wrong);
        }
        ("boolean", Value::Bool(_)) => {}
        ("array", Value::Array(items)) => {
            let max = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(ITEMS_MAX);
            if items.len() as u64 > max {
                return wrong(&format!("must have at most {max} items"));
            }
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                node(schema, item, &format!("{path}/{index}"), problems);
            }
        }
        ("object", Value::Object(fields)) => object(schema, fields, path, problems),
        (kind, _) => wrong(&format!("must be of type {kind}")),
    }
}

fn string(schema: &Value, text: &str, wrong: &mut impl FnMut(&str)) {
    if schema.get("format").is_some() {
        if !is_date(text) {
            wrong("must be a calendar day, YYYY-MM-DD");
        }
        return;
    }
    let record = schema.get("x-cogover-object").is_some();
    let bound = |word: &str| schema.get(word).and_then(Value::as_u64);
    let min = bound("minLength").unwrap_or(u64::from(record));
    let max = bound("maxLength").unwrap_or(if record { 128 } else { CHARS_MAX });
    let chars = text.chars().count() as u64;
    if chars < min || chars > max {
        wrong(&format!("must have {min} to {max} characters"));
    } else if record && text.trim().is_empty() {
        wrong("must not be blank");
    }
}

fn range(schema: &Value, number: Option<f64>, wrong: &mut impl FnMut(&str)) {
    let Some(number) = number.filter(|number| number.is_finite()) else {
        return wrong("must be a whole number that every program can hold");
    };
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    if let Some(min) = bound("minimum").filter(|min| number < *min) {
        wrong(&format!("must be at least {min}"));
    }
    if let Some(max) = bound("maximum").filter(|max| number > *max) {
        wrong(&format!("must be at most {max}"));
    }
}

fn object(
    schema: &Value,
    fields: &mut Map<String, Value>,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    fields.retain(|name, value| {
        !value.is_null() || required.contains(&name.as_str()) || !properties.contains_key(name)
    });
    if fields.keys().any(|name| !properties.contains_key(name)) {
        problems.push(Problem::new(path, "has a property that is not known"));
    }
    for name in required.iter().filter(|name| !fields.contains_key(**name)) {
        problems.push(Problem::new(&format!("{path}/{name}"), "is required"));
    }
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            node(schema, value, &format!("{path}/{name}"), problems);
        }
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let part = |from: usize, to: usize| {
        text.get(from..to)
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?
            .parse::<u32>()
            .ok()
    };
    let (Some(year), Some(month), Some(day)) = (part(0, 4), part(5, 7), part(8, 10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "s": {"type": "string", "maxLength": 3}, "d": {"type": "string", "format": "date"},
            "e": {"enum": ["a", "b"]}, "n": {"type": "number", "minimum": 0}, "i": {"type": "integer"},
            "l": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
            "r": {"type": "string", "x-cogover-object": "deal"}
        }, "required": ["s"], "additionalProperties": false})
    }

    fn problems(text: &str) -> Vec<(String, String)> {
        let problems = read(&schema(), text).err().unwrap_or_default();
        problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
    }

    /// CG-057
    #[test]
    fn a_result_is_found_in_the_answer_and_nulls_of_optional_properties_are_dropped() {
        for text in [
            r#"{"s":"x","n":null}"#,
            "```json\n{\"s\":\"x\"}\n```",
            "Here it is: {\"s\": \"x\"}. Done.",
        ] {
            assert_eq!(read(&schema(), text), Ok(json!({"s": "x"})), "{text}");
        }
        let all = r#"{"s":"äöü","d":"2024-02-29","e":"a","n":0.5,"i":3,"l":[true],"r":"7"}"#;
        assert!(read(&schema(), all).is_ok());
    }

    #[test]
    fn each_mistake_is_told_by_its_place_and_never_with_the_value() {
        let text = r#"{"d":"2023-02-29","e":"s3cret","n":-1,"i":1.5,"l":[1],"r":" ","x":"s3cret"}"#;
        let found = problems(text);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["", "/s", "/d", "/e", "/n", "/i", "/l/0", "/r"]);
        assert!(!format!("{found:?}").contains("s3cret"));
        assert_eq!(problems(r#"{"s":null}"#)[0].0, "/s");
        assert_eq!(problems(r#"{"s":"abcd"}"#)[0].1, "must have 0 to 3 characters");
        assert_eq!(problems(r#"{"s":"x","l":[true,true,true]}"#)[0].0, "/l");
        assert_eq!(problems("no"), [(String::new(), "is not valid JSON".to_owned())]);
    }
}
