//! Versions of a project: what its hosts register, which one is active, and what is told about both.
//!
//! Checks what needs nothing but the request, and tells all mistakes of a registration at once. Whether a project exists and
//! what a schedule means is decided elsewhere.

mod check;

use runfleet_domain::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::{check_shape, read};
use crate::request::named;
use crate::strict::{given, given_object, given_word, objects, word};

pub use self::check::is_version;
pub(crate) use self::check::{is_action_key, is_call_name};

/// Options of `projects.register`: everything that a version declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterVersion {
    /// The version: 1 to 64 letters, digits, `.`, `_`, `+` and `-`. What was registered once does not change.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._+-]+$"))]
    pub version: String,
    /// Its background jobs, at most 50; no two keys are equal when case is ignored.
    #[serde(default, deserialize_with = "objects", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub jobs: Vec<JobDeclared>,
    /// The names of its scripts, at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub scripts: Vec<String>,
    /// The names of its HTTP routes, at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub routes: Vec<String>,
    /// Its triggers after a change, at most 200.
    #[serde(default, deserialize_with = "objects", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub triggers: Vec<TriggerDeclared>,
    /// Its actions, at most 50.
    #[serde(default, deserialize_with = "objects", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub actions: Vec<ActionDeclared>,
    /// Its tools for agents, at most 64.
    #[serde(default, deserialize_with = "objects", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tools: Vec<ToolDeclared>,
}

/// A background job of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobDeclared {
    /// Its key.
    #[schemars(length(min = 1, max = 100), regex(pattern = "^[A-Za-z][A-Za-z0-9_]*$"))]
    pub key: String,
    /// A name for people, 1 to 250 characters; the key unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 250))]
    pub name: Option<String>,
    /// One attempt, in milliseconds; 30,000 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1_000, max = 60_000))]
    pub timeout_ms: Option<u32>,
    /// Attempts, the first included; 5 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 10))]
    pub max_attempts: Option<u32>,
    /// When it runs by itself.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ScheduleDeclared")]
    pub schedule: Option<ScheduleDeclared>,
}

/// When a job runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleDeclared {
    /// Five fields: minute, hour, day of the month, month, day of the week. At most 128 characters.
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// The IANA time zone; UTC unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub time_zone: Option<String>,
}

/// A trigger after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerDeclared {
    /// Its key.
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    /// One call, in milliseconds; 2,000 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 100, max = 3_000))]
    pub timeout_ms: Option<u32>,
}

/// Whether an action may change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// It only reads.
    Read,
    /// It may write.
    Write,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionDeclared {
    /// Its key.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z][a-z0-9_]*$"))]
    pub key: String,
    /// Whether it may change anything.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "Access")]
    pub access: Access,
    /// One call, in milliseconds; 8,000 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1_000, max = 8_000))]
    pub timeout_ms: Option<u32>,
}

/// Whether calls of a tool run at once or need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ToolPermission {
    /// They run at once.
    Allow,
    /// They need approval.
    Ask,
}

/// How a tool gets to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ToolScope {
    /// Every agent has it.
    General,
    /// Agents and skills that name it have it.
    Specified,
    /// Agents that name it have it, with a permission of their own.
    Custom,
}

/// A tool for agents, carried out by the hosts of the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolDeclared {
    /// Its name, by which agents and skills name it.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// A name for people, 1 to 250 characters.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 250))]
    pub title: Option<String>,
    /// What the model reads about it: 1 to 8,192 bytes.
    #[schemars(length(min = 1, max = 8_192))]
    pub description: String,
    /// JSON Schema of its arguments, an object of at most 16,384 bytes; any object unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub schema: Option<Map<String, Value>>,
    /// Whether its calls need approval; they do unless it is given.
    #[serde(default, deserialize_with = "given_word", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolPermission")]
    pub permission: Option<ToolPermission>,
    /// How it gets to an agent; `SPECIFIED` unless it is given.
    #[serde(default, deserialize_with = "given_word", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolScope")]
    pub scope: Option<ToolScope>,
    /// Whether a call whose outcome is unknown may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Longest time of one call, in seconds; 60 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 600))]
    pub timeout_seconds: Option<u32>,
}

/// Answer to `projects.register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionRegistered {
    /// The version.
    pub version: String,
    /// Whether it is new; false when the same was registered before.
    pub created: bool,
}

/// Options of `projects.activate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActivateVersion {
    /// A version that is registered.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._+-]+$"))]
    pub version: String,
}

/// Answer to `projects.activate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionActivated {
    /// The version that is active now.
    pub version: String,
    /// The registered version that was active before, or null.
    pub previous: Option<String>,
}

/// Options of `projects.show`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShowProject {
    /// The host that asks, as a sign of life.
    #[serde(default, deserialize_with = "given_object", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostSeen")]
    pub host: Option<HostSeen>,
}

/// A host and the version that it has loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostSeen {
    /// What tells it from other hosts of the project: 1 to 64 letters, digits, `_` and `-`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub id: String,
    /// The version that it has loaded.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._+-]+$"))]
    pub version: String,
}

/// Answer to `projects.show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectShown {
    /// The registered version that is active, or null.
    pub active: Option<String>,
    /// What is registered, the newest first.
    pub versions: Vec<VersionShown>,
    /// Hosts that have given a sign of life in the last minute, the latest first.
    pub hosts: Vec<HostShown>,
}

/// A registered version, and how much of everything it declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionShown {
    /// The version.
    pub version: String,
    /// Unix milliseconds.
    pub registered_at: u64,
    /// Whether it is active.
    pub active: bool,
    /// Background jobs.
    pub jobs: usize,
    /// Scripts.
    pub scripts: usize,
    /// HTTP routes.
    pub routes: usize,
    /// Triggers.
    pub triggers: usize,
    /// Actions.
    pub actions: usize,
    /// Tools.
    pub tools: usize,
}

/// A host that was seen lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostShown {
    /// What tells it from other hosts of the project.
    pub id: String,
    /// The version that it has loaded.
    pub version: String,
    /// Unix milliseconds of its last sign of life.
    pub seen_at: u64,
}

/// Options of `projects.session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenSession {
    /// Whether the session may only read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Answer to `projects.session`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    /// An execution token of the source `development`.
    pub token: String,
    /// Unix milliseconds until which it is valid.
    pub expires_at: u64,
}

impl std::fmt::Debug for SessionOpened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOpened")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl RegisterVersion {
    /// Reads and checks what a version declares. The error tells the first mistake as `field` and `problem`, and in `problems`
    /// at most 20 of all. Never repeats a value.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        check_shape("payload", payload)?;
        let declared: Self = read(payload.get().as_bytes())?;
        declared.check()?;
        Ok(declared)
    }
}

fn version(field: &str, text: &str) -> Result<(), ErrorBody> {
    if is_version(text) { Ok(()) } else { Err(ErrorBody::field(field, check::VERSION)) }
}

impl ActivateVersion {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        version("version", &options.version)?;
        Ok(options)
    }
}

impl ShowProject {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        if let Some(host) = &options.host {
            named::<Name>("host.id", &host.id)?;
            version("host.version", &host.version)?;
        }
        Ok(options)
    }
}

impl OpenSession {
    /// Reads the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        read(payload.get().as_bytes())
    }
}
