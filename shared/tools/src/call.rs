//! What is asked of a tool, and who carries it out.

use std::pin::Pin;
use std::time::Duration;

use runfleet_domain::Name;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::outcome::{RESULT_BYTES_MAX, ToolOutcome};

/// Largest arguments of one call, in bytes of JSON.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1_024;

/// How long an executor may take to notice that its time is over before it is left alone.
const AFTER: Duration = Duration::from_millis(250);

/// For whom a tool works. A service that knows about rights is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The workspace of the run.
    pub workspace: Name,
    /// The project that started it.
    pub project: Option<Name>,
    /// The person as whom the run acts.
    pub personnel_id: Option<Name>,
}

/// One call.
#[derive(Clone, PartialEq)]
pub struct ToolCall {
    /// The same for every repetition of this call and for no other: other systems tell repetitions by it. Printable ASCII.
    pub key: String,
    /// For whom.
    pub caller: Caller,
    /// Arguments that fit the schema of the tool, with its defaults.
    pub arguments: Map<String, Value>,
    /// The time as the run knows it, in Unix milliseconds.
    pub now_ms: u64,
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A call on its way.
pub type Calling<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// Carries out the calls of one tool.
pub trait Executor: Send + Sync {
    /// Makes one call, which ends by `deadline`. Dropping it gives it up: what was sent may have been done.
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_>;

    /// Whether nothing changes by its calls, so that one that did not end has just failed.
    fn only_reads(&self) -> bool {
        false
    }
}

/// Makes one call within all bounds, whoever carries it out.
pub async fn perform(executor: &dyn Executor, call: ToolCall, deadline: Instant) -> ToolOutcome {
    if Instant::now() >= deadline {
        return ToolOutcome::failed(texts::TIME);
    }
    let size = serde_json::to_string(&call.arguments).map_or(usize::MAX, |text| text.len());
    if size > ARGUMENTS_BYTES_MAX {
        return ToolOutcome::failed(texts::ARGUMENTS_TOO_LARGE);
    }
    let only_reads = executor.only_reads();
    let outcome = tokio::time::timeout_at(deadline + AFTER, executor.call(call, deadline)).await;
    match outcome {
        Ok(outcome) => outcome.within(RESULT_BYTES_MAX),
        Err(_) if only_reads => ToolOutcome::failed(texts::TIME),
        Err(_) => ToolOutcome::Unknown,
    }
}

/// Every text that a model can be told about a failure.
pub mod texts {
    /// There was no answer in time.
    pub const TIME: &str = "The tool did not answer in time.";
    /// The arguments are too large.
    pub const ARGUMENTS_TOO_LARGE: &str = "The arguments are too large.";
    /// An argument is missing, or of another type than it should be.
    pub const ARGUMENT: &str = "This argument is missing or has the wrong form.";
    /// The tool is not set up.
    pub const NOT_SET_UP: &str = "The tool is not set up.";
    /// Whoever the tool asks could not be asked.
    pub const UNREACHABLE: &str = "The service of the tool cannot be reached.";
    /// The address is not one that may be called.
    pub const REFUSED: &str = "The address of the tool is not allowed.";
    /// The answer is larger than what may be read.
    pub const TOO_LARGE: &str = "The tool was called, but its answer is too large.";
    /// The answer is no text and no JSON.
    pub const UNREADABLE: &str = "The tool was called, but its answer cannot be read.";
    /// The service said no.
    pub const SAID_NO: &str = "The service of the tool refused the request.";
    /// There is no such thing.
    pub const NOT_FOUND: &str = "The service of the tool did not find it.";
    /// The caller has no right to it.
    pub const FORBIDDEN: &str = "The service of the tool does not allow it.";
    /// Too many requests.
    pub const BUSY: &str = "The service of the tool has too many requests; try again later.";
    /// The service failed.
    pub const BROKEN: &str = "The service of the tool has failed.";
    /// The answer leads elsewhere.
    pub const REDIRECT: &str = "The service of the tool has moved.";
    /// The expression cannot be read.
    pub const EXPRESSION: &str =
        "The expression cannot be read, or names a value that was not given.";
    /// The values cannot be used.
    pub const VALUES: &str =
        "The values cannot be used: names are single words, and sizes are bounded.";
    /// The expression does too much.
    pub const EXPENSIVE: &str = "The expression takes too much work.";
    /// The expression has no value.
    pub const NO_VALUE: &str = "The expression has no value; check the types of what it combines.";
    /// There is no such time zone.
    pub const TIME_ZONE: &str = "This is no time zone: give a name such as Europe/Berlin, an offset such as +02:00, or UTC.";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Hangs(bool);

    impl Executor for Hangs {
        fn call(&self, _call: ToolCall, _deadline: Instant) -> Calling<'_> {
            Box::pin(std::future::pending())
        }

        fn only_reads(&self) -> bool {
            self.0
        }
    }

    struct Says(Value);

    impl Executor for Says {
        fn call(&self, _call: ToolCall, _deadline: Instant) -> Calling<'_> {
            Box::pin(async { ToolOutcome::Done(self.0.clone()) })
        }
    }

    fn call(arguments: &Value) -> ToolCall {
        crate::testing::call(arguments)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[tokio::test]
    async fn a_call_that_hangs_is_unknown_unless_it_only_reads() {
        let got = perform(&Hangs(false), call(&json!({})), soon()).await;
        assert_eq!(got, ToolOutcome::Unknown);
        let got = perform(&Hangs(true), call(&json!({})), soon()).await;
        assert_eq!(got, ToolOutcome::failed(texts::TIME));
    }

    #[tokio::test]
    async fn a_call_whose_time_is_over_is_not_made() {
        let got = perform(&Hangs(false), call(&json!({})), Instant::now()).await;
        assert_eq!(got, ToolOutcome::failed(texts::TIME));
    }

    #[tokio::test]
    async fn arguments_and_results_are_bounded() {
        let large = json!({"a": "x".repeat(ARGUMENTS_BYTES_MAX)});
        let got = perform(&Says(json!(1)), call(&large), soon()).await;
        assert_eq!(got, ToolOutcome::failed(texts::ARGUMENTS_TOO_LARGE));
        let says = Says(json!("x".repeat(RESULT_BYTES_MAX)));
        let ToolOutcome::Done(value) = perform(&says, call(&json!({})), soon()).await else {
            panic!()
        };
        let size = value.to_string().len();
        assert!(size <= RESULT_BYTES_MAX && size > RESULT_BYTES_MAX - 16, "{size}");
    }

    #[test]
    fn arguments_are_never_printed() {
        assert!(!format!("{:?}", call(&json!({"a": "s3cret"}))).contains("s3cret"));
    }
}
