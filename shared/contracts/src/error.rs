//! What a caller is told when something did not work: `{code, message, details}` with a closed list of codes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::strict::given;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $text:literal;)*) => {
        /// Why a request was not done. The word is the contract; the text is fixed English.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The fixed English sentence.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// Arguments that can never work.
    Validation = "VALIDATION_ERROR", "The request is not valid.";
    /// The policy, the context or the person's own rights say no; `details.reason` tells which.
    PermissionDenied = "PERMISSION_DENIED", "The call is not permitted.";
    /// No such thing for this project.
    NotFound = "NOT_FOUND", "The requested object does not exist or is not active.";
    /// A count or a budget is used up.
    RateLimited = "RATE_LIMITED", "A limit for this kind of call is reached.";
    /// A passing fault; `details.writesMayHaveCompleted` says whether the run may exist.
    Retryable = "RETRYABLE", "The request could not be completed for a passing reason. Try again later with the same idempotency key.";
    /// The key belongs to another identity.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT", "The idempotency key is in use by another identity.";
    /// The automation budget is spent.
    MaxHopExceeded = "MAX_HOP_EXCEEDED", "The automation budget of this execution is used up.";
    /// Agents that start agents are nested too deeply.
    AgentDepthExceeded = "AGENT_DEPTH_EXCEEDED", "Agents that start each other are nested too deeply.";
    /// Processes are switched off here.
    ProcessesDisabled = "PROCESSES_DISABLED", "Processes are not available in this environment.";
    /// Agents are switched off here.
    AgentsDisabled = "AGENTS_DISABLED", "Agents are not available in this environment.";
    /// The operation is not available to this kind of execution.
    NotSupported = "NOT_SUPPORTED", "The operation is not available to this execution.";
    /// No credit is left.
    InsufficientCredits = "INSUFFICIENT_CREDITS", "The workspace has no AI credit left.";
    /// There is no AI plan.
    AiSubscriptionRequired = "AI_SUBSCRIPTION_REQUIRED", "The workspace has no AI subscription.";
    /// The executing person has no seat.
    AiSeatRequired = "AI_SEAT_REQUIRED", "The executing user has no AI Agent seat.";
    /// The agent has used up what it may use.
    AgentCreditLimitExceeded = "AGENT_CREDIT_LIMIT_EXCEEDED", "The credit limit of this agent is reached.";
    /// The model has no price.
    ModelNotPriced = "MODEL_NOT_PRICED", "The model of this agent has no price.";
    /// Nobody of that id.
    RecipientNotFound = "RECIPIENT_NOT_FOUND", "The recipient does not exist in this workspace.";
    /// The recipient may not use the agent.
    RecipientAccessDenied = "RECIPIENT_ACCESS_DENIED", "The recipient may not use this agent.";
    /// The recipient has no seat.
    RecipientAiSeatRequired = "RECIPIENT_AI_SEAT_REQUIRED", "The recipient has no AI Agent seat.";
    /// No message can be delivered at the moment.
    DeliveryUnavailable = "DELIVERY_UNAVAILABLE", "Messages cannot be delivered at the moment.";
    /// Jobs cannot be enqueued here.
    JobsDisabled = "JOBS_DISABLED", "Background jobs are not available in this environment.";
    /// What a project was given does not fit.
    InputInvalid = "INPUT_INVALID", "The input does not fit what is called.";
    /// What a project gave back does not fit.
    OutputInvalid = "OUTPUT_INVALID", "The result does not fit what is called, or is too large.";
    /// What was called did not answer in time.
    Timeout = "TIMEOUT", "What was called did not answer in time.";
    /// Code of a project has failed.
    ScriptError = "SCRIPT_ERROR", "The code of the project has failed.";
    /// Something is in another state.
    StateConflict = "STATE_CONFLICT", "The object is in a state that does not allow this.";
}

/// An error as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// The fixed English sentence of the code.
    pub message: String,
    /// Facts that a program can use: field, limit, size, reason. Never a value that the caller sent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl ErrorBody {
    /// An error with the fixed sentence of its code and no details.
    pub fn new(code: ErrorCode) -> Self {
        Self { code, message: code.text().to_owned(), details: Map::new() }
    }

    /// Adds one fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Bad arguments: which field, and what is expected of it.
    pub fn field(field: &str, problem: impl Into<String>) -> Self {
        Self::new(ErrorCode::Validation).with("field", field).with("problem", problem.into())
    }

    /// A value that is larger than it may be. `unit` is `bytes`, `characters`, `entries` and the like.
    pub fn too_large(field: &str, unit: &str, limit: usize, size: usize) -> Self {
        Self::field(field, format!("is too large: {size} {unit}, at most {limit} are allowed"))
            .with("limit", limit)
            .with("size", size)
    }

    /// A passing fault, and whether something may exist because of the request.
    pub fn retryable(writes_may_have_completed: bool) -> Self {
        Self::new(ErrorCode::Retryable).with("writesMayHaveCompleted", writes_may_have_completed)
    }
}

/// The answer to a request: `{ok: true, data}` or `{ok: false, error}`.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<T> {
    /// It was done.
    Done(T),
    /// It was not.
    Failed(ErrorBody),
}

#[derive(Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct ReplyBody<T> {
    ok: bool,
    // What is done may have nothing to tell: null is data.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    data: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

impl<T: JsonSchema> JsonSchema for Reply<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ReplyOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (data, error) =
            (generator.subschema_for::<T>(), generator.subschema_for::<ErrorBody>());
        json_schema!({
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"ok": {"const": true}, "data": data},
                    "required": ["ok", "data"],
                },
                {
                    "type": "object",
                    "properties": {"ok": {"const": false}, "error": error},
                    "required": ["ok", "error"],
                },
            ],
        })
    }
}

impl<T: Serialize> Serialize for Reply<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Done(data) => ReplyBody { ok: true, data: Some(data), error: None },
            Self::Failed(error) => ReplyBody { ok: false, data: None, error: Some(error.clone()) },
        }
        .serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reply<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match ReplyBody::deserialize(deserializer)? {
            ReplyBody { ok: true, data: Some(data), .. } => Ok(Self::Done(data)),
            ReplyBody { ok: false, error: Some(error), .. } => Ok(Self::Failed(error)),
            _ => Err(serde::de::Error::custom("neither `data` nor `error` where `ok` wants it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CG-160
    #[test]
    fn every_code_has_a_sentence_and_is_read_back() {
        for code in ErrorCode::ALL {
            assert!(code.text().ends_with('.') && code.text().len() > 10, "{code:?}");
            let word = serde_json::to_string(code).unwrap();
            assert_eq!(word, format!("\"{}\"", code.as_str()));
            assert_eq!(serde_json::from_str::<ErrorCode>(&word).unwrap(), *code);
        }
    }

    #[test]
    fn a_reply_is_data_or_error_and_nothing_else() {
        let done: Reply<u32> = serde_json::from_str(r#"{"ok":true,"data":7}"#).unwrap();
        assert_eq!(done, Reply::Done(7));
        let failed: Reply<u32> = Reply::Failed(ErrorBody::field("input", "must be an object"));
        let text = serde_json::to_string(&failed).unwrap();
        assert_eq!(serde_json::from_str::<Reply<u32>>(&text).unwrap(), failed);
        let nothing: Reply<Value> = serde_json::from_str(r#"{"ok":true,"data":null}"#).unwrap();
        assert_eq!(nothing, Reply::Done(Value::Null));
        assert!(serde_json::from_str::<Reply<u32>>(r#"{"ok":true}"#).is_err());
        assert!(serde_json::from_str::<Reply<Value>>(r#"{"ok":true}"#).is_err());
        assert!(serde_json::from_str::<Reply<u32>>(r#"{"ok":false,"data":7}"#).is_err());
    }
}
