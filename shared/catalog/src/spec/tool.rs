//! `kind: Tool` and `kind: Skill`.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;
use serde_json::{Map, Value as Json};

use super::agent::names;
use crate::bounds::{
    AGENT_SKILLS_MAX, CALL_SECONDS, CALL_SECONDS_DEFAULT, DESCRIPTION_CHARS_MAX, DISPLAY_CHARS_MAX,
    HEADERS_MAX, PROMPT_BYTES_MAX, TOOL_DESCRIPTION_BYTES_MAX, TOOL_SCHEMA_BYTES_MAX,
};
use crate::reader::{At, Fields};
use crate::schema::schema_problem;
use crate::template::Template;
use crate::tool::{
    Builtin, HttpTool, Method, Permission, Scope, Secretly, SkillDefinition, ToolDefinition,
    ToolKind,
};

pub(super) const PERMISSIONS: &[(&str, Permission)] =
    &[("ALLOW", Permission::Allow), ("ASK", Permission::Ask)];

const SCOPES: &[(&str, Scope)] =
    &[("GENERAL", Scope::General), ("SPECIFIED", Scope::Specified), ("CUSTOM", Scope::Custom)];

const BUILTINS: &[(&str, Builtin)] = &[
    ("recordQuery", Builtin::RecordQuery),
    ("calculate", Builtin::Calculate),
    ("currentTime", Builtin::CurrentTime),
    ("webSearch", Builtin::WebSearch),
];

const METHODS: &[(&str, Method)] = &[
    ("GET", Method::Get),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("PATCH", Method::Patch),
    ("DELETE", Method::Delete),
];

/// Who does the work of a tool, as the document says it: exactly one of these fields.
const KINDS: [&str; 6] = ["builtin", "http", "processStart", "agent", "project", "mcp"];

/// Reads a tool. `description` is the text of its `description.md`, which counts instead of the field.
pub(super) fn read(spec: At<'_>, description: Option<&str>) -> Option<ToolDefinition> {
    let mut fields = spec.fields()?;
    let title = fields.or("title", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let kind = kind(&mut fields);
    let own = fields.or("description", None, |at| at.prose(TOOL_DESCRIPTION_BYTES_MAX).map(Some));
    let scope = fields.or("scope", Scope::default(), |at| at.word(SCOPES));
    let permission = fields.or("permission", Permission::default(), |at| at.word(PERMISSIONS));
    let schema = fields.or("inputSchema", None, |at| schema(&at).map(Some));
    let idempotent = fields.or("idempotent", false, |at| at.boolean());
    let timeout = fields.or("timeoutSeconds", CALL_SECONDS_DEFAULT, |at| at.integer(CALL_SECONDS));
    let builtin = match kind {
        Some(ToolKind::Builtin(builtin)) => Some(builtin),
        _ => None,
    };
    let text = description
        .map(str::to_owned)
        .or(own.clone().flatten())
        .or_else(|| builtin.map(|builtin| builtin.description().to_owned()));
    if text.is_none() && own.is_some() && kind.is_some() {
        fields.mistake("has no description: the model would not know what it is for");
    }
    fields.finish();
    own?;
    let kind = kind?;
    let input_schema = schema?.unwrap_or_else(|| default_schema(&kind));
    Some(ToolDefinition {
        title: title?,
        description: text?,
        scope: scope?,
        permission: permission?,
        input_schema,
        // The built-ins change nothing.
        idempotent: idempotent? || builtin.is_some(),
        kind,
        timeout_seconds: timeout?,
    })
}

fn default_schema(kind: &ToolKind) -> Map<String, Json> {
    let schema = match kind {
        ToolKind::Builtin(builtin) => return builtin.input_schema(),
        ToolKind::Agent { .. } => serde_json::json!({
            "type": "object",
            "properties": {"instruction": {"type": "string", "minLength": 1, "maxLength": 10_000}},
            "required": ["instruction"],
            "additionalProperties": false
        }),
        ToolKind::Http(_)
        | ToolKind::ProcessStart { .. }
        | ToolKind::Project { .. }
        | ToolKind::Mcp { .. } => serde_json::json!({"type": "object"}),
    };
    match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn kind(fields: &mut Fields<'_>) -> Option<ToolKind> {
    let mut given: Vec<(&str, At<'_>)> =
        KINDS.iter().filter_map(|name| Some((*name, fields.optional(name)?))).collect();
    if given.len() > 1 {
        fields.mistake(format!("must have one of {} only", KINDS.join(", ")));
        return None;
    }
    let Some((name, at)) = given.pop() else {
        fields.mistake(format!("must have one of {}", KINDS.join(", ")));
        return None;
    };
    match name {
        "builtin" => at.word(BUILTINS).map(ToolKind::Builtin),
        "http" => http(at).map(ToolKind::Http),
        "agent" => at.parse().map(|agent| ToolKind::Agent { agent }),
        "processStart" => {
            let mut fields = at.fields()?;
            let process = fields.required("process").and_then(|at| at.parse());
            let wait = fields.or("wait", true, |at| at.boolean());
            fields.finish();
            Some(ToolKind::ProcessStart { process: process?, wait: wait? })
        }
        "project" => {
            let mut fields = at.fields()?;
            let project = fields.required("project").and_then(|at| at.parse());
            let function = fields.required("function").and_then(|at| at.parse());
            fields.finish();
            Some(ToolKind::Project { project: project?, function: function? })
        }
        _ => {
            let mut fields = at.fields()?;
            let server = fields.required("server").and_then(|at| at.parse());
            let tool = fields.required("tool").and_then(|at| at.line());
            fields.finish();
            Some(ToolKind::Mcp { server: server?, tool: tool? })
        }
    }
}
fn http(at: At<'_>) -> Option<HttpTool> {
    let mut fields = at.fields()?;
    let method = fields.or("method", Method::Post, |at| at.word(METHODS));
    let url = fields.required("url").and_then(|at| {
        let url = address(&at)?;
        if let Err(error) = Template::parse(&url) {
            at.mistake(error.to_string());
            return None;
        }
        // Whom it talks to is not for the model to choose.
        let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
        if host.is_some_and(|host| host.contains("{{")) {
            at.mistake("must not have a gap in its host");
            return None;
        }
        Some(url)
    });
    let headers = fields.or("headers", BTreeMap::new(), |at| headers(&at));
    fields.finish();
    Some(HttpTool { method: method?, url: url?, headers: headers? })
}

/// An HTTP address. Which hosts may be called is decided when it is called.
pub(super) fn address(at: &At<'_>) -> Option<String> {
    let url = at.line()?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if host.is_empty() || host.contains('@') || url.chars().any(char::is_whitespace) {
        at.mistake("must be an http or https address without a user name");
        return None;
    }
    Some(url)
}

/// Header fields, or variables of an environment.
pub(super) fn headers(at: &At<'_>) -> Option<BTreeMap<String, Secretly>> {
    let mut headers = BTreeMap::new();
    for (name, at) in at.entries(HEADERS_MAX)? {
        let good = !name.is_empty()
            && name.len() <= 128
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !good {
            at.mistake("has a name that is not 1 to 128 letters, digits, `-`, `_` and `.`");
            continue;
        }
        headers.extend(secretly(at).map(|value| (name, value)));
    }
    // A value that is left out has left its mistakes.
    Some(headers)
}

/// A text, `{env: NAME}` or `{file: PATH}`.
fn secretly(at: At<'_>) -> Option<Secretly> {
    if !matches!(at.node.value, crate::node::Value::Map(_)) {
        return at.line().map(Secretly::Text);
    }
    let mut fields = at.fields()?;
    let found = place(&mut fields, "env", "file");
    if found.is_none() {
        fields.mistake("must have one of env, file");
    }
    fields.finish();
    found
}

/// The place of a secret, given by one of two fields.
pub(super) fn place(fields: &mut Fields<'_>, env: &str, file: &str) -> Option<Secretly> {
    let env = fields.optional(env).and_then(|at| at.line());
    let file = fields.optional(file).and_then(|at| at.line());
    match (env, file) {
        (Some(env), None) => Some(Secretly::Env(env)),
        (None, Some(file)) => Some(Secretly::File(file)),
        (Some(_), Some(_)) => {
            fields.mistake("names two places of one secret");
            None
        }
        (None, None) => None,
    }
}

fn schema(at: &At<'_>) -> Option<Map<String, Json>> {
    let whole = Json::Object(at.json_object(TOOL_SCHEMA_BYTES_MAX)?);
    if let Some(problem) = schema_problem(&whole) {
        at.mistake(problem);
        return None;
    }
    match whole {
        Json::Object(schema) => Some(schema),
        _ => None,
    }
}

/// Reads a skill.
pub(super) fn skill(spec: At<'_>) -> Option<SkillDefinition> {
    let mut fields = spec.fields()?;
    let description =
        fields.required("description").and_then(|at| at.display(DESCRIPTION_CHARS_MAX));
    let scope = fields.or("scope", Scope::default(), |at| at.word(SCOPES));
    let instructions = fields.required("instructions").and_then(|at| at.prose(PROMPT_BYTES_MAX));
    let tools: Option<BTreeSet<Name>> =
        fields.or("tools", BTreeSet::new(), |at| names(&at, AGENT_SKILLS_MAX));
    fields.finish();
    Some(SkillDefinition {
        description: description?,
        scope: scope?,
        instructions: instructions?,
        tools: tools?,
    })
}
