//! Why a turn has no answer: a closed set of words. Nothing of what a provider wrote is kept.

use std::fmt;
use std::time::Duration;

use runfleet_http::{HttpError, Phase, Reason};
use serde::{Deserialize, Serialize};

/// Why a turn has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FailureKind {
    /// The provider wants to be asked less often.
    RateLimited {
        /// How long it wants to be left alone, a day at most.
        retry_after: Option<Duration>,
    },
    /// The provider cannot answer now: 5xx, or it says that it has too much to do.
    Unavailable {
        /// How long it wants to be left alone, a day at most.
        retry_after: Option<Duration>,
    },
    /// The time was over.
    Timeout(TimeoutPhase),
    /// No connection, or it broke before the answer was complete.
    Network,
    /// The provider does not take this request.
    Refused {
        /// The status that it gave.
        status: u16,
    },
    /// The provider does not take the key, or the key may not use the model.
    Auth,
    /// The account has nothing left.
    Quota,
    /// The conversation is too long for the model.
    ContextTooLong,
    /// The answer is not what the protocol says.
    Malformed,
    /// The answer has more in it than is taken.
    TooLarge,
    /// The caller wants no answer any more.
    Cancelled,
    /// The provider may not be called: its address is not allowed, it answers with a redirect, or the request cannot be
    /// written or is too large.
    NotAllowed,
}

/// For what was waited when the time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TimeoutPhase {
    /// The connection.
    Connect,
    /// The first byte of the answer.
    FirstByte,
    /// The next byte of the answer.
    Idle,
    /// The end of the answer.
    Total,
}

/// A turn has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// Why.
    pub kind: FailureKind,
    /// Whether the same request may go better later.
    pub retryable: bool,
}

impl From<FailureKind> for ModelFailure {
    fn from(kind: FailureKind) -> Self {
        let retryable = matches!(
            kind,
            FailureKind::RateLimited { .. }
                | FailureKind::Unavailable { .. }
                | FailureKind::Timeout(_)
                | FailureKind::Network
        );
        Self { kind, retryable }
    }
}

impl FailureKind {
    /// The kind as one word of a closed set, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Unavailable { .. } => "unavailable",
            Self::Timeout(TimeoutPhase::Connect) => "timeout_connect",
            Self::Timeout(TimeoutPhase::FirstByte) => "timeout_first_byte",
            Self::Timeout(TimeoutPhase::Idle) => "timeout_idle",
            Self::Timeout(TimeoutPhase::Total) => "timeout_total",
            Self::Network => "network",
            Self::Refused { .. } => "refused",
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::ContextTooLong => "context_too_long",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::Cancelled => "cancelled",
            Self::NotAllowed => "not_allowed",
        }
    }
}

impl ModelFailure {
    /// How long the provider wants to be left alone, a day at most.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            FailureKind::RateLimited { retry_after } | FailureKind::Unavailable { retry_after } => {
                retry_after
            }
            _ => None,
        }
    }

    /// Reads an error of a call.
    pub(crate) fn of_call(error: HttpError) -> Self {
        let kind = match error.reason() {
            Reason::Timeout => FailureKind::Timeout(match error.phase() {
                Some(Phase::Connect) => TimeoutPhase::Connect,
                Some(Phase::FirstByte) => TimeoutPhase::FirstByte,
                Some(Phase::Idle) => TimeoutPhase::Idle,
                Some(Phase::Total) | None => TimeoutPhase::Total,
            }),
            Reason::Dns | Reason::Connect | Reason::Tls | Reason::Broken => FailureKind::Network,
            Reason::OpenCircuit => FailureKind::Unavailable { retry_after: None },
            Reason::Status(status) => FailureKind::Refused { status },
            Reason::TooLarge => FailureKind::TooLarge,
            Reason::Answer => FailureKind::Malformed,
            Reason::RefusedUrl | Reason::RefusedAddress | Reason::Request | Reason::Redirect => {
                FailureKind::NotAllowed
            }
        };
        kind.into()
    }
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model gave no answer: {}", self.kind.as_str())
    }
}

impl std::error::Error for ModelFailure {}
