//! The list of tools that a server gives: only what fits is taken. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Most tools of one server.
pub(crate) const TOOLS_MAX: usize = 128;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Longest description, in bytes; what is longer is cut.
const DESCRIPTION_BYTES_MAX: usize = 8_192;

/// Largest schema, in bytes of JSON.
const SCHEMA_BYTES_MAX: usize = 16 * 1_024;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// Its name: letters, digits, `_`, `-`, `.` and `/`.
    pub name: String,
    /// What the model reads about it; empty if the server says nothing.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub input_schema: Map<String, Value>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    pub(crate) tools: Vec<ToolInfo>,
    /// How many were left out since something about them does not fit.
    pub(crate) left_out: usize,
    /// Where the next page is.
    pub(crate) next: Option<String>,
}

/// Reads a page; none if it is none.
pub(crate) fn page(result: &Value) -> Option<Page> {
    let listed = result.get("tools")?.as_array()?;
    let tools: Vec<ToolInfo> = listed.iter().filter_map(tool).take(TOOLS_MAX).collect();
    let left_out = listed.len() - tools.len();
    let next = result.get("nextCursor").and_then(Value::as_str);
    let next = next.filter(|next| !next.is_empty() && next.len() <= 4_096).map(str::to_owned);
    Some(Page { tools, left_out, next })
}

fn tool(listed: &Value) -> Option<ToolInfo> {
    let name = listed.get("name")?.as_str().filter(|name| is_name(name))?;
    let description = listed.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = &description[..description.floor_char_boundary(DESCRIPTION_BYTES_MAX)];
    let schema = listed.get("inputSchema")?;
    let fits = schema.to_string().len() <= SCHEMA_BYTES_MAX;
    let input_schema = schema.as_object().filter(|_| fits)?.clone();
    Some(ToolInfo { name: name.to_owned(), description: description.to_owned(), input_schema })
}

fn is_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(good)
}

/// Adds a page to what there is; of two tools of one name the first counts. Tells how many were left out.
pub(crate) fn add(all: &mut Vec<ToolInfo>, page: Vec<ToolInfo>) -> usize {
    let mut names: BTreeSet<String> = all.iter().map(|tool| tool.name.clone()).collect();
    let mut left_out = 0;
    for tool in page {
        if all.len() < TOOLS_MAX && names.insert(tool.name.clone()) {
            all.push(tool);
        } else {
            left_out += 1;
        }
    }
    left_out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_fits_is_taken_from_a_list() {
        let schema = json!({"type": "object"});
        let large = json!({"type": "object", "x": "x".repeat(SCHEMA_BYTES_MAX)});
        let page = page(&json!({"nextCursor": "2", "tools": [
            {"name": "good", "inputSchema": schema, "description": "ü".repeat(DESCRIPTION_BYTES_MAX)},
            {"name": "bad name", "inputSchema": schema},
            {"name": "x".repeat(NAME_BYTES_MAX + 1), "inputSchema": schema},
            {"name": "no-schema"},
            {"name": "no-object", "inputSchema": true},
            {"name": "large", "inputSchema": large},
            {"inputSchema": schema},
            7,
        ]}))
        .unwrap();
        assert_eq!((page.tools.len(), page.left_out), (1, 7));
        assert_eq!(page.tools[0].description.len(), DESCRIPTION_BYTES_MAX);
        assert_eq!(page.next.as_deref(), Some("2"));
        for nothing in [json!({}), json!({"tools": {}}), json!(1)] {
            assert_eq!(super::page(&nothing), None);
        }
    }

    #[test]
    fn of_two_tools_of_one_name_the_first_counts_and_there_are_only_so_many() {
        let tool = |name: String, description: &str| ToolInfo {
            name,
            description: description.to_owned(),
            input_schema: Map::new(),
        };
        let mut all = vec![tool("a".into(), "first")];
        assert_eq!(add(&mut all, vec![tool("a".into(), "second"), tool("b".into(), "")]), 1);
        assert_eq!((all.len(), all[0].description.as_str()), (2, "first"));
        let many = (0..200).map(|n| tool(format!("t{n}"), "")).collect();
        assert_eq!(add(&mut all, many), 200 - (TOOLS_MAX - 2));
        assert_eq!(all.len(), TOOLS_MAX);
    }
}
