//! Why a server gave no answer: a closed set, with nothing in it of what was said.

use runfleet_tools::{ToolOutcome, texts};

/// Why a server gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum McpFailure {
    /// It cannot be reached, or was broken a moment ago. Nothing was asked.
    #[error("the server is not available")]
    Unavailable,
    /// The connection broke after something was asked.
    #[error("the server broke off")]
    Broken,
    /// It did not answer in time.
    #[error("the server did not answer in time")]
    Timeout,
    /// What came is not the protocol, or none of its versions that are known here.
    #[error("the server does not speak the protocol")]
    Protocol,
    /// The answer is larger than what is read.
    #[error("the answer of the server is too large")]
    TooLarge,
    /// Its address may not be called.
    #[error("the address of the server is not allowed")]
    Refused,
    /// It does not let us in.
    #[error("the server does not allow it")]
    Forbidden,
    /// It has forgotten the session. Nothing was done.
    #[error("the session is over")]
    SessionOver,
    /// It answered that it cannot do what was asked.
    #[error("the server answered with an error")]
    Error {
        /// The code of JSON-RPC.
        code: i64,
    },
}

/// The code of JSON-RPC for parameters that make no sense.
const INVALID_PARAMS: i64 = -32_602;

impl McpFailure {
    /// How a call has ended that failed so.
    pub(crate) fn outcome(self) -> ToolOutcome {
        match self {
            Self::Broken | Self::Timeout => ToolOutcome::Unknown,
            Self::Unavailable | Self::SessionOver => ToolOutcome::failed(texts::UNREACHABLE),
            Self::Protocol => ToolOutcome::failed(texts::UNREADABLE),
            Self::TooLarge => ToolOutcome::failed(texts::TOO_LARGE),
            Self::Refused => ToolOutcome::failed(texts::REFUSED),
            Self::Forbidden => ToolOutcome::failed(texts::FORBIDDEN),
            Self::Error { code: INVALID_PARAMS } => ToolOutcome::failed(texts::SAID_NO),
            Self::Error { .. } => ToolOutcome::failed(texts::BROKEN),
        }
    }

    /// Whether the connection is of no more use.
    pub(crate) fn ends_connection(self) -> bool {
        match self {
            Self::Timeout | Self::Error { .. } => false,
            Self::Unavailable
            | Self::Broken
            | Self::Protocol
            | Self::TooLarge
            | Self::Refused
            | Self::Forbidden
            | Self::SessionOver => true,
        }
    }
}
