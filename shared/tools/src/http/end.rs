//! From the end of an HTTP call to an outcome. Pure. Of an answer that says no only its kind is told; of a failure a fixed text.

use runfleet_http::{Answer, HttpError, Reason};
use serde_json::Value;

use crate::call::texts;
use crate::outcome::ToolOutcome;

/// The body of an answer of 2xx, or how the call has ended instead.
pub(super) fn read(
    end: &Result<Answer, HttpError>,
    only_reads: bool,
) -> Result<Value, ToolOutcome> {
    match end {
        Err(error) => Err(failure(*error, only_reads)),
        Ok(answer) if (200..300).contains(&answer.status) => {
            answer.value().ok_or_else(|| ToolOutcome::failed(texts::UNREADABLE))
        }
        Ok(answer) => Err(said_no(answer.status, only_reads)),
    }
}

/// What an answer that says no means. A gateway that gave up does not know what the service behind it did.
pub fn said_no(status: u16, only_reads: bool) -> ToolOutcome {
    match status {
        502 | 504 if !only_reads => ToolOutcome::Unknown,
        401 | 403 => ToolOutcome::failed(texts::FORBIDDEN),
        404 | 410 => ToolOutcome::failed(texts::NOT_FOUND),
        429 => ToolOutcome::failed(texts::BUSY),
        408 | 425 | 500.. => ToolOutcome::failed(texts::BROKEN),
        _ => ToolOutcome::failed(texts::SAID_NO),
    }
}

/// What a call without an answer means: unknown when the other side may have done what was asked.
pub fn failure(error: HttpError, only_reads: bool) -> ToolOutcome {
    let text = match error.reason() {
        Reason::RefusedUrl | Reason::RefusedAddress => texts::REFUSED,
        Reason::Request => texts::ARGUMENTS_TOO_LARGE,
        Reason::Redirect => texts::REDIRECT,
        Reason::TooLarge => texts::TOO_LARGE,
        Reason::Answer => texts::UNREADABLE,
        Reason::Status(status) => return said_no(status, only_reads),
        Reason::Timeout | Reason::Broken if error.maybe_sent() && !only_reads => {
            return ToolOutcome::Unknown;
        }
        Reason::Timeout => texts::TIME,
        Reason::Dns | Reason::Connect | Reason::Tls | Reason::Broken | Reason::OpenCircuit => {
            texts::UNREACHABLE
        }
    };
    ToolOutcome::failed(text)
}
