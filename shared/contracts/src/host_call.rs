//! Calls of scripts, routes, triggers and actions of a project: what a caller asks for, what a host is asked, and what it answers.
//!
//! A call is answered once and within its time. Nothing here decides whether it may be made.

use std::fmt;

use runfleet_domain::Name;
use runfleet_domain::limits::{BODY_BYTES_MAX, JSON_DEPTH_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{ErrorBody, ErrorCode};
use crate::json::{check_shape, check_shape_to, read};
use crate::message::Message;
use crate::projects::{is_action_key, is_call_name};
use crate::strict::{given, word};

/// What a caller gives to a call, in bytes of its JSON text.
pub const CALL_INPUT_BYTES_MAX: usize = 131_072;

/// What a call gives back, in bytes of its JSON text.
pub const CALL_RESULT_BYTES_MAX: usize = 196_608;

/// Problems that a host tells of one call.
const PROBLEMS_MAX: usize = 20;

/// Text of one problem, in characters.
const PROBLEM_CHARS_MAX: usize = 300;

/// The answer, its outcome, and a value as deep as any may be.
const ANSWER_DEPTH_MAX: usize = JSON_DEPTH_MAX + 3;

/// What of a project is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallKind {
    /// A script.
    Script,
    /// An HTTP route.
    Route,
    /// A trigger after a change.
    Trigger,
    /// An action.
    Action,
}

impl CallKind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Route => "route",
            Self::Trigger => "trigger",
            Self::Action => "action",
        }
    }
}

/// Options of `projects.call`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallProject {
    /// What is called.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "CallKind")]
    pub kind: CallKind,
    /// Its name or key, as the active version declares it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// What it gets: any JSON of at most 131,072 bytes; null unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub input: Option<Box<RawValue>>,
    /// For actions: what makes two calls one. The id of the request unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 128),
        regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._:-]*$")
    )]
    pub run_id: Option<String>,
}

impl CallProject {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        let good = match options.kind {
            CallKind::Action => is_action_key(&options.name),
            CallKind::Script | CallKind::Route | CallKind::Trigger => is_call_name(&options.name),
        };
        if !good {
            return Err(ErrorBody::field("name", "cannot be the name of what is called"));
        }
        if let Some(input) = &options.input {
            let size = input.get().len();
            if size > CALL_INPUT_BYTES_MAX {
                return Err(ErrorBody::too_large("input", "bytes", CALL_INPUT_BYTES_MAX, size));
            }
            check_shape("input", input)?;
        }
        if let Some(run_id) = &options.run_id {
            if options.kind != CallKind::Action {
                return Err(ErrorBody::field("runId", "is for actions only"));
            }
            if !is_run_id(run_id) {
                let rule = "must be 1 to 128 letters, digits, `.`, `_`, `:` and `-`, beginning with a letter or digit";
                return Err(ErrorBody::field("runId", rule));
            }
        }
        Ok(options)
    }
}

fn is_run_id(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&text.len())
        && text.bytes().all(good)
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
}

/// A call, as the hosts of the active version get it. Message id: `<callId>.<attempt>`; `reply_to` is the routing key of the
/// answer on the exchange `x.answers`. The execution token for what the handler does is in the header `authorization`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCall {
    /// Names the call; with the attempt the same on every repetition of this message. Also the execution of the token.
    #[schemars(with = "String")]
    pub call_id: Name,
    /// Counts the attempts of an action that did not end, from 1.
    pub attempt: u32,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The version that declares it.
    pub version: String,
    /// What is called.
    pub kind: CallKind,
    /// Its name or key.
    pub name: String,
    /// What it gets.
    #[schemars(with = "serde_json::Value")]
    pub input: Box<RawValue>,
    /// For actions: what makes two calls one. Else null.
    pub run_id: Option<String>,
    /// Unix milliseconds after which nobody waits for the answer. A host that takes the call later drops it.
    pub deadline: u64,
    /// What the answer has to repeat, so that nobody else can give it.
    pub answer_key: String,
    /// The person on whose behalf it is called, or null.
    #[schemars(with = "Option<String>")]
    pub user: Option<Name>,
    /// Whether the handler may only read.
    pub read_only: bool,
}

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCall").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

impl Message for HostCall {
    const KIND: &'static str = "host.call.v1";
}

/// How a call went. Message id: `answer:<callId>.<attempt>`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAnswer {
    /// The call.
    #[schemars(with = "String")]
    pub call_id: Name,
    /// The attempt.
    pub attempt: u32,
    /// The workspace, as the call said.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project, as the call said.
    #[schemars(with = "String")]
    pub project: Name,
    /// What the call said.
    pub answer_key: String,
    /// How it went.
    pub outcome: CallOutcome,
}

impl fmt::Debug for CallAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallAnswer").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

impl Message for CallAnswer {
    const KIND: &'static str = "host.callanswer.v1";
}

/// How a call went.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CallOutcome {
    /// What the handler returned: any JSON of at most 196,608 bytes.
    Ok(#[schemars(with = "serde_json::Value")] Box<RawValue>),
    /// It did not return.
    Failed(CallFailure),
}

/// Why a handler did not return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallFailure {
    /// What the caller is told.
    pub code: CallCode,
    /// The code of the error that escaped the handler: capital letters, digits and `_`, at most 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_error_code: Option<String>,
    /// What was wrong with input or output; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<CallProblem>,
    /// Whether the handler has sent anything that may have changed something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes_may_have_completed: bool,
}

/// One problem of an input or output. Repeats no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallProblem {
    /// Where.
    pub path: String,
    /// What.
    pub message: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal;)*) => {
        /// Codes that a host may tell.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum CallCode {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl From<CallCode> for ErrorCode {
            fn from(code: CallCode) -> Self {
                match code { $(CallCode::$variant => Self::$variant,)* }
            }
        }
    };
}

codes! {
    /// The input does not fit.
    InputInvalid = "INPUT_INVALID";
    /// What the handler returned does not fit, or is too large.
    OutputInvalid = "OUTPUT_INVALID";
    /// The handler took too long.
    Timeout = "TIMEOUT";
    /// The handler threw.
    ScriptError = "SCRIPT_ERROR";
    /// The handler was not permitted something.
    PermissionDenied = "PERMISSION_DENIED";
    /// The handler has used up a budget.
    RateLimited = "RATE_LIMITED";
    /// No automation step was left.
    MaxHopExceeded = "MAX_HOP_EXCEEDED";
    /// A passing fault.
    Retryable = "RETRYABLE";
    /// The handler did not find something.
    NotFound = "NOT_FOUND";
    /// The handler refused its arguments.
    Validation = "VALIDATION_ERROR";
    /// Something is in another state than the handler needs.
    StateConflict = "STATE_CONFLICT";
}

impl CallAnswer {
    /// The answer to a call.
    pub fn to(call: &HostCall, outcome: CallOutcome) -> Self {
        Self {
            call_id: call.call_id.clone(),
            attempt: call.attempt,
            workspace: call.workspace.clone(),
            project: call.project.clone(),
            answer_key: call.answer_key.clone(),
            outcome,
        }
    }

    /// Reads an answer. An error names a field and never repeats a value. A result that is too large is read as a failure: the
    /// handler has run.
    pub fn parse(body: &[u8]) -> Result<Self, ErrorBody> {
        if body.len() > BODY_BYTES_MAX {
            return Err(ErrorBody::too_large("answer", "bytes", BODY_BYTES_MAX, body.len()));
        }
        let raw: &RawValue = serde_json::from_slice(body)
            .map_err(|_| ErrorBody::field("answer", "is not valid JSON"))?;
        check_shape_to("answer", raw, ANSWER_DEPTH_MAX)?;
        let mut answer: Self = read(body)?;
        match &mut answer.outcome {
            CallOutcome::Ok(value) if value.get().len() > CALL_RESULT_BYTES_MAX => {
                answer.outcome = CallOutcome::Failed(CallFailure::of(CallCode::OutputInvalid));
            }
            CallOutcome::Ok(_) => {}
            CallOutcome::Failed(failure) => failure.bound(),
        }
        Ok(answer)
    }
}

impl CallFailure {
    /// A failure with nothing but its code.
    pub fn of(code: CallCode) -> Self {
        Self {
            code,
            script_error_code: None,
            problems: Vec::new(),
            writes_may_have_completed: false,
        }
    }

    /// Cuts what a host may have made too long.
    fn bound(&mut self) {
        let good = |code: &String| {
            (1..=64).contains(&code.len())
                && code
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        };
        self.script_error_code = self.script_error_code.take().filter(good);
        self.problems.truncate(PROBLEMS_MAX);
        for problem in &mut self.problems {
            for text in [&mut problem.path, &mut problem.message] {
                *text = text
                    .chars()
                    .take(PROBLEM_CHARS_MAX)
                    .map(|char| if char.is_control() { ' ' } else { char })
                    .collect();
            }
        }
    }

    /// What the caller is told.
    pub fn told(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code.into())
            .with("writesMayHaveCompleted", self.writes_may_have_completed);
        if let Some(code) = &self.script_error_code {
            body = body.with("scriptErrorCode", code.as_str());
        }
        if !self.problems.is_empty() {
            body = body.with("problems", serde_json::json!(self.problems));
        }
        body
    }
}

#[cfg(test)]
mod tests;
