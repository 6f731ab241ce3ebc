//! Why a call was not done: the error classes of the contract.

use runfleet_contracts::{ErrorBody, ErrorCode};
use serde_json::Value;

/// Why a call was not done. Each variant is a class of the contract; [`Error::body`] has code and details of all but the
/// last.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments that can never work; [`Error::field`] names the one. May have been found before anything was sent.
    #[error("{}", text(.0))]
    Validation(ErrorBody),
    /// Policy, context or the person's own rights say no; [`Error::reason`] tells which.
    #[error("{}", text(.0))]
    PermissionDenied(ErrorBody),
    /// No such Process or agent, or no such run of this project.
    #[error("{}", text(.0))]
    NotFound(ErrorBody),
    /// A count is used up. With [`Error::budget`] it stays so for this execution.
    #[error("{}", text(.0))]
    RateLimited(ErrorBody),
    /// A passing fault: call again later, with the same idempotency key. [`Error::writes_may_have_completed`] says whether
    /// the run may exist. Also when no answer came in time.
    #[error("{}", text(.0))]
    Retryable(ErrorBody),
    /// Any other code, such as `IDEMPOTENCY_CONFLICT`, `MAX_HOP_EXCEEDED` or those about billing and recipients.
    #[error("{}", text(.0))]
    Api(ErrorBody),
    /// Something could not be written as JSON, or the answer is not one of this version of the contract.
    #[error("the request or its answer is not of this version of the contract")]
    Protocol(#[source] serde_json::Error),
}

fn text(body: &ErrorBody) -> String {
    let fact = |name: &str| body.details.get(name).and_then(Value::as_str);
    let facts: Vec<_> = ["field", "problem", "reason"]
        .into_iter()
        .filter_map(fact)
        .filter(|fact| !fact.is_empty())
        .collect();
    let code = body.code.as_str();
    if facts.is_empty() {
        format!("{code}: {}", body.message)
    } else {
        format!("{code}: {} ({})", body.message, facts.join(" "))
    }
}

impl From<ErrorBody> for Error {
    fn from(body: ErrorBody) -> Self {
        match body.code {
            ErrorCode::Validation => Self::Validation(body),
            ErrorCode::PermissionDenied => Self::PermissionDenied(body),
            ErrorCode::NotFound => Self::NotFound(body),
            ErrorCode::RateLimited => Self::RateLimited(body),
            ErrorCode::Retryable => Self::Retryable(body),
            _ => Self::Api(body),
        }
    }
}

impl Error {
    /// Code, message and details as they travel.
    pub fn body(&self) -> Option<&ErrorBody> {
        match self {
            Self::Validation(body)
            | Self::PermissionDenied(body)
            | Self::NotFound(body)
            | Self::RateLimited(body)
            | Self::Retryable(body)
            | Self::Api(body) => Some(body),
            Self::Protocol(_) => None,
        }
    }

    /// The code of the contract.
    pub fn code(&self) -> Option<ErrorCode> {
        self.body().map(|body| body.code)
    }

    fn fact(&self, name: &str) -> Option<&Value> {
        self.body()?.details.get(name)
    }

    /// The option that is wrong.
    pub fn field(&self) -> Option<&str> {
        self.fact("field")?.as_str()
    }

    /// Why it is not permitted.
    pub fn reason(&self) -> Option<&str> {
        self.fact("reason")?.as_str()
    }

    /// The budget of the execution that is used up.
    pub fn budget(&self) -> Option<&str> {
        self.fact("budget")?.as_str()
    }

    /// Whether a run may exist because of this call. False also means that nothing was started.
    pub fn writes_may_have_completed(&self) -> bool {
        self.fact("writesMayHaveCompleted") == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_an_error_of_its_class_and_keeps_its_body() {
        for code in ErrorCode::ALL {
            let error = Error::from(ErrorBody::new(*code).with("reason", "R"));
            assert_eq!(error.code(), Some(*code));
            assert_eq!(error.reason(), Some("R"));
            assert!(error.to_string().starts_with(code.as_str()));
            let special = matches!(error, Error::Api(_));
            let classes = [
                ErrorCode::Validation,
                ErrorCode::PermissionDenied,
                ErrorCode::NotFound,
                ErrorCode::RateLimited,
                ErrorCode::Retryable,
            ];
            assert_eq!(special, !classes.contains(code));
        }
    }

    /// CG-126
    #[test]
    fn a_passing_fault_says_whether_the_run_may_exist() {
        assert!(Error::from(ErrorBody::retryable(true)).writes_may_have_completed());
        assert!(!Error::from(ErrorBody::retryable(false)).writes_may_have_completed());
    }
}
