//! What callers ask of start-intake and what they get: `{operation, payload}` with the options of the contract.

use runfleet_domain::limits::JOB_ECHO_BYTES_MAX;
use runfleet_domain::{JobKey, RunKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::ErrorBody;
use crate::json::{check_shape, read};
use crate::refusal::outcome_option;
use crate::strict::word;

pub use crate::agents::*;
pub use crate::job::{EnqueueJob, JobEnqueued, ValidEnqueue};
pub use crate::operations::*;
pub use crate::processes::*;

/// The AMQP `type` of every request.
pub const REQUEST_KIND: &str = "request.v1";

/// The AMQP `type` of every reply.
pub const REPLY_KIND: &str = "reply.v1";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// Start a Process.
    #[serde(rename = "processes.start")]
    ProcessesStart,
    /// Where a Process run stands.
    #[serde(rename = "processes.get")]
    ProcessesGet,
    /// End a Process run.
    #[serde(rename = "processes.cancel")]
    ProcessesCancel,
    /// End a Process run as removed.
    #[serde(rename = "processes.delete")]
    ProcessesDelete,
    /// Hold a Process run.
    #[serde(rename = "processes.pause")]
    ProcessesPause,
    /// Let a Process run go on that was held.
    #[serde(rename = "processes.resume")]
    ProcessesResume,
    /// Try again what has failed for good.
    #[serde(rename = "processes.retry")]
    ProcessesRetry,
    /// Set variables of a Process run.
    #[serde(rename = "processes.set")]
    ProcessesSet,
    /// Complete a user task.
    #[serde(rename = "processes.completeTask")]
    ProcessesCompleteTask,
    /// Give a user task to a person, or to nobody.
    #[serde(rename = "processes.assignTask")]
    ProcessesAssignTask,
    /// What has happened in a Process run.
    #[serde(rename = "processes.history")]
    ProcessesHistory,
    /// Publish a message that a Process run waits for.
    #[serde(rename = "processes.message")]
    ProcessesMessage,
    /// Send a signal to all Process runs that wait for it.
    #[serde(rename = "processes.signal")]
    ProcessesSignal,
    /// Start an agent.
    #[serde(rename = "agents.start")]
    AgentsStart,
    /// Where an agent run stands.
    #[serde(rename = "agents.get")]
    AgentsGet,
    /// The conversations of a person with agents.
    #[serde(rename = "chat.list")]
    ChatList,
    /// Messages of a conversation.
    #[serde(rename = "chat.read")]
    ChatRead,
    /// Say something in a conversation.
    #[serde(rename = "chat.reply")]
    ChatReply,
    /// Decide about a call that is held.
    #[serde(rename = "chat.decide")]
    ChatDecide,
    /// Say when no messages are wanted.
    #[serde(rename = "chat.settings")]
    ChatSettings,
    /// Enqueue a background job of the project.
    #[serde(rename = "jobs.enqueue")]
    JobsEnqueue,
    /// Register a version of a project.
    #[serde(rename = "projects.register")]
    ProjectsRegister,
    /// Make a registered version the active one.
    #[serde(rename = "projects.activate")]
    ProjectsActivate,
    /// Which versions and hosts a project has.
    #[serde(rename = "projects.show")]
    ProjectsShow,
    /// Open a session of local development.
    #[serde(rename = "projects.session")]
    ProjectsSession,
    /// Call a script, route, trigger or action of a project.
    #[serde(rename = "projects.call")]
    ProjectsCall,
    /// Read a record.
    #[serde(rename = "data.get")]
    DataGet,
    /// Look for records.
    #[serde(rename = "data.query")]
    DataQuery,
    /// Change a record.
    #[serde(rename = "data.update")]
    DataUpdate,
    /// Make a record.
    #[serde(rename = "data.create")]
    DataCreate,
    /// Ask a model.
    #[serde(rename = "models.invoke")]
    ModelsInvoke,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 31] = [
        Self::ProcessesStart,
        Self::ProcessesGet,
        Self::ProcessesCancel,
        Self::ProcessesDelete,
        Self::ProcessesPause,
        Self::ProcessesResume,
        Self::ProcessesRetry,
        Self::ProcessesSet,
        Self::ProcessesCompleteTask,
        Self::ProcessesAssignTask,
        Self::ProcessesHistory,
        Self::ProcessesMessage,
        Self::ProcessesSignal,
        Self::AgentsStart,
        Self::AgentsGet,
        Self::ChatList,
        Self::ChatRead,
        Self::ChatReply,
        Self::ChatDecide,
        Self::ChatSettings,
        Self::JobsEnqueue,
        Self::ProjectsRegister,
        Self::ProjectsActivate,
        Self::ProjectsShow,
        Self::ProjectsSession,
        Self::ProjectsCall,
        Self::DataGet,
        Self::DataQuery,
        Self::DataUpdate,
        Self::DataCreate,
        Self::ModelsInvoke,
    ];

    /// What kind of run it is about. Jobs are no runs of either kind; nobody asks.
    pub const fn kind(self) -> RunKind {
        match self {
            Self::AgentsStart
            | Self::AgentsGet
            | Self::ModelsInvoke
            | Self::ChatList
            | Self::ChatRead
            | Self::ChatReply
            | Self::ChatDecide
            | Self::ChatSettings => RunKind::Agent,
            Self::ProcessesStart
            | Self::ProcessesGet
            | Self::ProcessesCancel
            | Self::ProcessesDelete
            | Self::ProcessesPause
            | Self::ProcessesResume
            | Self::ProcessesRetry
            | Self::ProcessesSet
            | Self::ProcessesCompleteTask
            | Self::ProcessesAssignTask
            | Self::ProcessesHistory
            | Self::ProcessesMessage
            | Self::ProcessesSignal
            // Not about runs: nobody asks these for their kind.
            | Self::JobsEnqueue
            | Self::ProjectsRegister
            | Self::ProjectsActivate
            | Self::ProjectsShow
            | Self::ProjectsSession
            | Self::ProjectsCall
            | Self::DataGet
            | Self::DataQuery
            | Self::DataUpdate
            | Self::DataCreate => RunKind::Process,
        }
    }

    /// The word on the wire, also used as a metric label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessesStart => "processes.start",
            Self::ProcessesGet => "processes.get",
            Self::ProcessesCancel => "processes.cancel",
            Self::ProcessesDelete => "processes.delete",
            Self::ProcessesPause => "processes.pause",
            Self::ProcessesResume => "processes.resume",
            Self::ProcessesRetry => "processes.retry",
            Self::ProcessesSet => "processes.set",
            Self::ProcessesCompleteTask => "processes.completeTask",
            Self::ProcessesAssignTask => "processes.assignTask",
            Self::ProcessesHistory => "processes.history",
            Self::ProcessesMessage => "processes.message",
            Self::ProcessesSignal => "processes.signal",
            Self::AgentsStart => "agents.start",
            Self::AgentsGet => "agents.get",
            Self::ChatList => "chat.list",
            Self::ChatRead => "chat.read",
            Self::ChatReply => "chat.reply",
            Self::ChatDecide => "chat.decide",
            Self::ChatSettings => "chat.settings",
            Self::JobsEnqueue => "jobs.enqueue",
            Self::ProjectsRegister => "projects.register",
            Self::ProjectsActivate => "projects.activate",
            Self::ProjectsShow => "projects.show",
            Self::ProjectsSession => "projects.session",
            Self::ProjectsCall => "projects.call",
            Self::DataGet => "data.get",
            Self::DataQuery => "data.query",
            Self::DataUpdate => "data.update",
            Self::DataCreate => "data.create",
            Self::ModelsInvoke => "models.invoke",
        }
    }
}

/// A request before its payload is looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What is asked.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "Operation")]
    pub operation: Operation,
    /// The options of that operation.
    #[schemars(with = "serde_json::Value")]
    pub payload: Box<RawValue>,
}

impl Request {
    /// Reads a request body, or says which field is wrong. Never repeats a value.
    pub fn parse(body: &[u8]) -> Result<Self, ErrorBody> {
        read(body)
    }
}

/// A name, or which field holds none.
pub(crate) fn named<T: std::str::FromStr<Err = runfleet_domain::NameError>>(
    field: &str,
    text: &str,
) -> Result<T, ErrorBody> {
    text.parse()
        .map_err(|error: runfleet_domain::NameError| ErrorBody::field(field, error.to_string()))
}

/// A text between one and `limit` characters.
pub(crate) fn sized(field: &str, text: &str, limit: usize) -> Result<(), ErrorBody> {
    let size = text.chars().count();
    if size > limit {
        return Err(ErrorBody::too_large(field, "characters", limit, size));
    }
    if size == 0 { Err(ErrorBody::field(field, "must not be empty")) } else { Ok(()) }
}

/// JSON of at most `limit` bytes that is an object.
pub(crate) fn object(field: &str, json: &RawValue, limit: usize) -> Result<(), ErrorBody> {
    let size = json.get().len();
    if size > limit {
        return Err(ErrorBody::too_large(field, "bytes", limit, size));
    }
    if !json.get().trim_start().starts_with('{') {
        return Err(ErrorBody::field(field, "must be an object"));
    }
    check_shape(field, json)
}

/// The job that gets the outcome.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeJob {
    /// A job that the active version of the project declares.
    #[schemars(length(min = 1, max = 100), regex(pattern = "^[A-Za-z][A-Za-z0-9_]*$"))]
    pub job: String,
    /// Given back to the job unchanged: JSON of at most 8,192 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub payload: Option<Box<RawValue>>,
}

impl OutcomeJob {
    pub(crate) fn check(self, kind: RunKind) -> Result<ValidOutcomeJob, ErrorBody> {
        let option = outcome_option(kind);
        let job = named(&format!("{option}.job"), &self.job)?;
        if let Some(payload) = &self.payload {
            let field = format!("{option}.payload");
            let size = payload.get().len();
            if size > JOB_ECHO_BYTES_MAX {
                return Err(ErrorBody::too_large(&field, "bytes", JOB_ECHO_BYTES_MAX, size));
            }
            check_shape(&field, payload)?;
        }
        Ok((job, self.payload))
    }
}

/// The job that gets the outcome and what it gets back, after every check that needs nothing but the request.
pub type ValidOutcomeJob = (JobKey, Option<Box<RawValue>>);
