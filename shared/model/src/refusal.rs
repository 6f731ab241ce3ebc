//! What a provider means when it says no. Pure.
//!
//! Providers say by a status, or by an error in the middle of an answer. Their words are looked at for a few that are known, and
//! are forgotten.

use std::time::Duration;

use crate::failure::FailureKind;

/// Words for a conversation that is too long.
const CONTEXT: [&str; 7] = [
    "context_length_exceeded",
    "context length",
    "context window",
    "prompt is too long",
    "input token count",
    "request_too_large",
    "too many tokens",
];

/// Words for an account that has nothing left.
const QUOTA: [&str; 4] = [
    "insufficient_quota",
    "credit balance is too low",
    "billing_hard_limit",
    "insufficient credits",
];

/// Words for a key that is not taken, where the status does not say it.
const KEY: [&str; 5] = [
    "api_key_invalid",
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "unauthenticated",
];

/// Words for being asked too often.
const RATE: [&str; 3] = ["rate_limit", "resource_exhausted", "too many requests"];

/// Words for a request that is wrong.
const WRONG: [&str; 3] = ["invalid_request", "invalid_argument", "not_found"];

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Reads an answer of 4xx or 5xx.
pub(crate) fn of_status(status: u16, body: &[u8], retry_after: Option<Duration>) -> FailureKind {
    let text = String::from_utf8_lossy(body).to_lowercase();
    match status {
        402 => FailureKind::Quota,
        400 | 429 if has(&text, &QUOTA) => FailureKind::Quota,
        400 | 422 if has(&text, &CONTEXT) => FailureKind::ContextTooLong,
        413 => FailureKind::ContextTooLong,
        401 | 403 => FailureKind::Auth,
        400 if has(&text, &KEY) => FailureKind::Auth,
        429 => FailureKind::RateLimited { retry_after },
        408 | 425 | 500.. => FailureKind::Unavailable { retry_after },
        status => FailureKind::Refused { status },
    }
}

/// Reads an error that has come in place of an answer, or in the middle of one.
pub(crate) fn of_error(text: &str) -> FailureKind {
    let code = serde_json::from_str::<serde_json::Value>(text).ok();
    let code = code.as_ref().and_then(|error| error.get("code")?.as_u64());
    if let Some(status @ 400..=599) = code.and_then(|code| u16::try_from(code).ok()) {
        return of_status(status, text.as_bytes(), None);
    }
    let text = text.to_lowercase();
    if has(&text, &QUOTA) {
        FailureKind::Quota
    } else if has(&text, &CONTEXT) {
        FailureKind::ContextTooLong
    } else if has(&text, &KEY) {
        FailureKind::Auth
    } else if has(&text, &RATE) {
        FailureKind::RateLimited { retry_after: None }
    } else if has(&text, &WRONG) {
        FailureKind::Refused { status: 400 }
    } else {
        FailureKind::Unavailable { retry_after: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_no_has_its_kind() {
        let wait = Some(Duration::from_secs(3));
        for (status, body, expected) in [
            (400, "", FailureKind::Refused { status: 400 }),
            (404, "context length", FailureKind::Refused { status: 404 }),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, FailureKind::ContextTooLong),
            (400, "Prompt is too long: 9 > 8", FailureKind::ContextTooLong),
            (413, "", FailureKind::ContextTooLong),
            (400, r#"{"reason":"API_KEY_INVALID"}"#, FailureKind::Auth),
            (401, "", FailureKind::Auth),
            (403, "", FailureKind::Auth),
            (402, "", FailureKind::Quota),
            (429, r#"{"code":"insufficient_quota"}"#, FailureKind::Quota),
            (429, "", FailureKind::RateLimited { retry_after: wait }),
            (408, "", FailureKind::Unavailable { retry_after: wait }),
            (500, "", FailureKind::Unavailable { retry_after: wait }),
            (529, "", FailureKind::Unavailable { retry_after: wait }),
        ] {
            assert_eq!(of_status(status, body.as_bytes(), wait), expected, "{status} {body}");
        }
    }

    #[test]
    fn each_error_in_an_answer_has_its_kind() {
        for (text, expected) in [
            (r#"{"type":"overloaded_error"}"#, FailureKind::Unavailable { retry_after: None }),
            (r#"{"type":"rate_limit_error"}"#, FailureKind::RateLimited { retry_after: None }),
            (
                r#"{"code":503,"status":"UNAVAILABLE"}"#,
                FailureKind::Unavailable { retry_after: None },
            ),
            (r#"{"code":401}"#, FailureKind::Auth),
            (r#"{"type":"invalid_request_error"}"#, FailureKind::Refused { status: 400 }),
            (
                r#"{"type":"invalid_request_error","message":"prompt is too long"}"#,
                FailureKind::ContextTooLong,
            ),
            (r#""out of memory""#, FailureKind::Unavailable { retry_after: None }),
        ] {
            assert_eq!(of_error(text), expected, "{text}");
        }
    }
}
