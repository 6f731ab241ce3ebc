//! Why a run failed: the words of the contract, each with its one sentence. Nothing else about a failure leaves a run.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal, $message:literal;)*) => {
        /// A word of the contract for the failure of an agent run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[doc = $doc])* #[serde(rename = $word)] $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Its fixed sentence.
            pub fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

codes! {
    /// The result could not be made to fit.
    ResultSchemaMismatch = "RESULT_SCHEMA_MISMATCH", "The agent did not give a result that fits the schema.";
    /// The run's time was over.
    Timeout = "TIMEOUT", "The time of the run was over before the agent had finished.";
    /// Whoever waited for the run has given up.
    CallerTimeout = "CALLER_TIMEOUT", "The caller no longer waits for the run.";
    /// Somebody cancelled it.
    Cancelled = "CANCELLED", "The run was cancelled.";
    /// Turns, tool calls, tokens or bytes of the definition are used up, or the agent repeated itself.
    MaxTurns = "MAX_TURNS", "The agent reached the limit of its work before it had finished.";
    /// A rule of the agent refused what went in or came out.
    GuardrailRejected = "GUARDRAIL_REJECTED", "A rule of the agent does not allow this content.";
    /// It could not go on without tools that need approval.
    ApprovalDenied = "APPROVAL_DENIED", "The agent could not go on without a tool call that was not approved.";
    /// A call that must not be repeated was cut off.
    ServerRestarted = "SERVER_RESTARTED", "The service restarted while the agent was doing something that must not be repeated.";
    /// Reserved for conversations.
    SessionBusy = "SESSION_BUSY", "The session of the agent is busy.";
    /// Reserved for conversations.
    SessionEvicted = "SESSION_EVICTED", "The session of the agent no longer exists.";
    /// It was switched off after the start.
    AgentInactive = "AGENT_INACTIVE", "The agent is not active.";
    /// The identity of the run lost the right to use it.
    AgentAccessDenied = "AGENT_ACCESS_DENIED", "The identity of the run may not use the agent.";
    /// Its definition cannot be executed.
    AgentConfigInvalid = "AGENT_CONFIG_INVALID", "The definition of the agent cannot be used.";
    /// Its definition, provider, key or records could not be loaded.
    ConfigLoadFailed = "CONFIG_LOAD_FAILED", "The definition of the agent or something that it needs could not be loaded.";
    /// The model refused the request or was not available.
    LlmHttpError = "LLM_HTTP_ERROR", "The model provider answered with an error.";
    /// The model could not be reached, or did not answer in time.
    LlmNetwork = "LLM_NETWORK", "The model provider could not be reached or did not answer in time.";
    /// The model broke off, gave nothing, or gave too much.
    LlmResponseFailed = "LLM_RESPONSE_FAILED", "The model did not give a usable answer.";
    /// What the model answered could not be read.
    LlmParse = "LLM_PARSE", "The answer of the model could not be read.";
    /// The answer was cut off at the token limit of one answer.
    OutputTruncated = "OUTPUT_TRUNCATED", "The answer of the model was cut off at its length limit.";
    /// A fault of ours.
    InternalError = "INTERNAL_ERROR", "The run failed because of an internal error.";
    /// The workspace has no credits left.
    InsufficientCredits = "INSUFFICIENT_CREDITS", "The workspace has no AI credits left.";
    /// The workspace has no plan.
    AiSubscriptionRequired = "AI_SUBSCRIPTION_REQUIRED", "The workspace has no AI plan.";
    /// The person has no seat.
    AiSeatRequired = "AI_SEAT_REQUIRED", "The user of the run has no AI Agent seat.";
    /// The agent's own limit is reached.
    AgentCreditLimitExceeded = "AGENT_CREDIT_LIMIT_EXCEEDED", "The credit limit of the agent is reached.";
    /// The model has no price.
    ModelNotPriced = "MODEL_NOT_PRICED", "The model of the agent has no price.";
    /// Everything else.
    AgentError = "AGENT_ERROR", "The agent failed.";
}

/// The word of a run that has ended, as callers read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// It did what it was asked.
    Completed,
    /// It did not.
    Failed,
    /// Its time was over.
    Timeout,
    /// It was cancelled.
    Cancelled,
}

impl ErrorCode {
    /// How a run ends with it.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Timeout | Self::CallerTimeout => Outcome::Timeout,
            Self::Cancelled => Outcome::Cancelled,
            _ => Outcome::Failed,
        }
    }

    /// Why nothing sets it yet; none when something does.
    pub fn reserved(self) -> Option<&'static str> {
        match self {
            Self::SessionBusy | Self::SessionEvicted => {
                Some("each run has a session of its own, which nobody else uses and nothing evicts")
            }
            Self::AgentError => Some("every failure that is known has a word of its own"),
            _ => None,
        }
    }
}
