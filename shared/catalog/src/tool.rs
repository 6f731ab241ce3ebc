//! Tools, skills, and what agents reach: MCP servers, providers of models, sources of records. As they are declared.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Whether a call runs at once or needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Permission {
    /// Runs at once.
    Allow,
    /// Needs approval.
    #[default]
    Ask,
}

/// How a tool gets to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scope {
    /// Every agent has it.
    General,
    /// Agents and skills that name it have it.
    #[default]
    Specified,
    /// Agents that name it have it, with a permission of their own.
    Custom,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// A name for people; the name of the tool unless it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the model reads about it, at most 8 KiB.
    pub description: String,
    /// How it gets to an agent.
    #[serde(default)]
    pub scope: Scope,
    /// Whether its calls need approval.
    #[serde(default)]
    pub permission: Permission,
    /// JSON Schema of its arguments, an object, at most 16 KiB.
    pub input_schema: Map<String, Value>,
    /// Who does the work.
    pub kind: ToolKind,
    /// Whether a call whose outcome is unknown may be repeated.
    #[serde(default)]
    pub idempotent: bool,
    /// Longest time of one call, in seconds.
    pub timeout_seconds: u32,
}

/// Who does the work of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolKind {
    /// The fleet itself.
    Builtin(Builtin),
    /// An HTTP service.
    Http(HttpTool),
    /// A Process is started.
    ProcessStart {
        /// The Process.
        process: Name,
        /// Whether its output is awaited.
        wait: bool,
    },
    /// Another agent is started, and its answer awaited.
    Agent {
        /// The agent.
        agent: Name,
    },
    /// A function of a project.
    Project {
        /// The project.
        project: Name,
        /// Its function.
        function: Name,
    },
    /// A tool of an MCP server.
    Mcp {
        /// The server.
        server: Name,
        /// The tool, as the server names it.
        tool: String,
    },
}

/// Work that the fleet does itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Builtin {
    /// Reads records.
    RecordQuery,
    /// Evaluates a FEEL expression.
    Calculate,
    /// Tells the time.
    CurrentTime,
    /// Asks a search service several things at once.
    WebSearch,
}

impl Builtin {
    /// What the model reads about it unless the document says something else.
    pub fn description(self) -> &'static str {
        match self {
            Self::RecordQuery => "Reads records of one kind, by their ids or by a search text.",
            Self::Calculate => {
                "Evaluates a FEEL expression, such as `round half up(amount * 1.19, 2)`, with the given values."
            }
            Self::CurrentTime => "Tells the current date and time.",
            Self::WebSearch => {
                "Searches the web. Ask everything that you want to know in one call, as several queries."
            }
        }
    }

    /// Its arguments unless the document says something else.
    pub fn input_schema(self) -> Map<String, Value> {
        let properties = match self {
            Self::RecordQuery => json!({"type": "object", "properties": {
                "objectSlug": {"type": "string", "minLength": 1, "maxLength": 355},
                "recordIds": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 128}, "maxItems": 20},
                "search": {"type": "string", "maxLength": 1000},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "withActivities": {"type": "boolean", "default": false}
            }, "required": ["objectSlug"], "additionalProperties": false}),
            Self::Calculate => json!({"type": "object", "properties": {
                "expression": {"type": "string", "minLength": 1, "maxLength": 4096},
                "values": {"type": "object", "default": {}}
            }, "required": ["expression"], "additionalProperties": false}),
            Self::CurrentTime => json!({"type": "object", "properties": {
                "timeZone": {"type": "string", "maxLength": 64, "default": "UTC"}
            }, "additionalProperties": false}),
            Self::WebSearch => json!({"type": "object", "properties": {
                "queries": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 500}, "minItems": 1, "maxItems": 8},
                "resultsPerQuery": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5}
            }, "required": ["queries"], "additionalProperties": false}),
        };
        match properties {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

/// A call of an HTTP service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpTool {
    /// The method.
    pub method: Method,
    /// The address; `{{name}}` stands for an argument, percent-encoded.
    pub url: String,
    /// Header fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secretly>,
}

/// Methods of HTTP tools. Arguments that the address does not name go into the query of GET and DELETE, and into the JSON
/// body of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the methods of HTTP")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A value that is written down, or the place where a secret is found. The secret itself is never in a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Secretly {
    /// The value itself.
    Text(String),
    /// The environment variable of the worker that holds it.
    Env(String),
    /// The file on the worker's machine that holds it.
    File(String),
}

/// A guide for the model that also unlocks tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillDefinition {
    /// The model picks it by this, 1 to 2,000 characters.
    pub description: String,
    /// How it gets to an agent; CUSTOM is as good as SPECIFIED.
    #[serde(default)]
    pub scope: Scope,
    /// The guide, at most 16 KiB.
    pub instructions: String,
    /// Tools that are hidden until it is loaded; at most 32.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<Name>,
}

/// A server of tools that speaks the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// How it is reached.
    pub transport: McpTransport,
    /// Whether calls need approval; none means that it goes by the names of the tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// Tools for which something else counts; at most 128.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_permissions: BTreeMap<String, Permission>,
    /// Tools that are offered; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<BTreeSet<String>>,
    /// Tools whose calls may be repeated.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub idempotent: BTreeSet<String>,
    /// Longest time of one call, in seconds.
    pub timeout_seconds: u32,
}

impl McpServer {
    /// Whether calls of a tool need approval. Where the document does not say, a tool whose name begins with `get` runs at
    /// once. What a server says about its own tools counts for nothing.
    pub fn permission_of(&self, tool: &str) -> Permission {
        let named = self.tool_permissions.get(tool).copied().or(self.permission);
        let by_name = || if tool.starts_with("get") { Permission::Allow } else { Permission::Ask };
        named.unwrap_or_else(by_name)
    }
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum McpTransport {
    /// A program that is started and spoken to over its standard input and output.
    Stdio {
        /// The name that the operator has given to the program, its arguments and its environment.
        command: String,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Header fields.
        headers: BTreeMap<String, Secretly>,
    },
}

/// Where models are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelProvider {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Its address; none means the usual one of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where its key is found: never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secretly>,
    /// The file of answers of a scripted provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The models that agents may name, each with the name that the provider knows.
    pub models: BTreeMap<String, String>,
}

/// What a provider of models speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of protocols")]
pub enum ProviderKind {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    /// Plays answers from a file. For development and tests.
    Scripted,
}

/// Where records are fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordSource {
    /// An HTTP service.
    Http {
        /// Its address.
        url: String,
        /// Header fields.
        headers: BTreeMap<String, Secretly>,
        /// Longest time of one call, in seconds.
        timeout_seconds: u32,
    },
    /// Records that are written down. For development.
    Documents {
        /// At most 200.
        records: Vec<DocumentRecord>,
    },
}

/// A record that is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentRecord {
    /// The kind of record.
    pub object_slug: String,
    /// Which one.
    pub record_id: String,
    /// Its fields.
    pub fields: Map<String, Value>,
    /// What happened to it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NB-41
    #[test]
    fn a_tool_of_a_server_runs_at_once_when_its_document_says_so_or_its_name_begins_with_get() {
        let transport = McpTransport::Http { url: String::new(), headers: BTreeMap::new() };
        let mut server = McpServer {
            transport,
            permission: None,
            tool_permissions: [("getAll".to_owned(), Permission::Ask)].into(),
            only: None,
            idempotent: BTreeSet::new(),
            timeout_seconds: 60,
        };
        let of = |server: &McpServer| {
            ["get", "getWeather", "getAll", "forget", "Get"].map(|tool| server.permission_of(tool))
        };
        let (allow, ask) = (Permission::Allow, Permission::Ask);
        assert_eq!(of(&server), [allow, allow, ask, ask, ask]);
        server.permission = Some(ask);
        assert_eq!(of(&server), [ask; 5]);
        server.permission = Some(allow);
        assert_eq!(of(&server), [allow, allow, ask, allow, allow]);
    }
}
