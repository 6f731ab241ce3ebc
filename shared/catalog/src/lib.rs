//! What a workspace administrator approves: people, projects with their jobs, policies and limits, Processes, and agents
//! with their tools.
//!
//! Documents (YAML or JSON) are read and validated as a whole into a [`Bundle`]; a bundle is merged into the
//! [`Snapshot`] that is stored and cached by the workers. Only [`load`] touches files. Nothing here stores anything, knows
//! the Process engine or decides about a single start beyond answering questions about what was declared.

mod admission;
mod agent;
mod approval;
mod blueprint;
mod bounds;
mod bundle;
mod digest;
mod load;
mod merge;
mod mistake;
mod model;
mod node;
mod reader;
mod registered;
mod rights;
mod schedule;
mod schema;
mod sink;
mod snapshot;
mod spec;
mod stored;
mod summary;
mod template;
mod tool;
mod values;

pub use agent::{AgentDefinition, AgentSpec, Guardrails, Parameters, Rules, ToolGrant};
pub use blueprint::{AgentBlueprint, BLUEPRINT_FORMAT};
pub use bounds::{DOCUMENTS_MAX, FILE_BYTES_MAX, JOBS_MAX};
pub use bundle::{Bundle, BundleProcess};
pub use load::load;
pub use merge::{AgentVersion, Change, Changed, Changes, Definition, MergeError, Merged};
pub use mistake::{Mistake, Mistakes};
pub use model::{
    ApprovedPolicy, Billing, CapabilityCalls, Grant, Job, Limits, Person, Price, ProcessDefinition,
    ProcessState, Project, Workspace,
};
pub use registered::{ActivateError, Callable, Declared, Registered};
pub use rights::{Acting, Withdrawn};
pub use schedule::{Clock, Schedule, ScheduleError};
pub use sink::{
    BUILTIN_SINK, ChatSink, QuietHours, QuietPolicy, QuietRules, SinkKind, SmtpSecurity,
    SmtpServer, minute_of,
};
pub use snapshot::{FORMAT, Snapshot};
pub use stored::StoredError;
pub use summary::{
    InputProblem, ProcessCheck, ProcessKind, ProcessProblem, ProcessSummary, Variable, VariableType,
};
pub use template::{Template, TemplateError};
pub use tool::{
    Builtin, DocumentRecord, HttpTool, McpServer, McpTransport, Method, ModelProvider, Permission,
    ProviderKind, RecordSource, Scope, Secretly, SkillDefinition, ToolDefinition, ToolKind,
};
