//! From the end of an HTTP call to what its run is told. Pure. Of an answer that says no only the status goes on; of a failure
//! only a fixed word.

use std::time::SystemTime;

use runfleet_contracts::{AskId, RunEvent};
use runfleet_http::{Answer, HeaderMap, HttpError, Reason};
use serde_json::{Map, Value, json};

/// The headers of an answer that a Process sees, where they are there.
const HEADERS: [&str; 10] = [
    "content-type",
    "content-language",
    "date",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "x-request-id",
    "x-correlation-id",
];

/// Longest value of a header that goes on, in bytes; longer ones are left out.
const HEADER_BYTES_MAX: usize = 1_024;

/// The answer has more bytes than a run can take in.
const TOO_LARGE: &str = "HTTP_ANSWER_TOO_LARGE";

/// The answer is no text, or JSON that no variable can hold.
const UNREADABLE: &str = "HTTP_ANSWER_UNREADABLE";

/// What the run is told: always an event that its inbox takes.
pub(crate) fn event(ask: AskId, end: &Result<Answer, HttpError>, now: SystemTime) -> RunEvent {
    let answer = match end {
        Ok(answer) => answer,
        Err(error) => {
            let (code, retry) = failure(error.reason());
            return failed(ask, code, retry);
        }
    };
    if !(200..300).contains(&answer.status) {
        return refused(ask, answer, now);
    }
    let Some(body) = answer.value() else { return failed(ask, UNREADABLE, false) };
    let answer = json!({
        "status": answer.status,
        "headers": headers(&answer.headers),
        "body": body,
    });
    let done = RunEvent::TaskDone { task: ask.instance, attempt: ask.attempt, answer };
    match done.to_body() {
        Ok(_) => done,
        Err(error) if error.details.contains_key("limit") => failed(ask, TOO_LARGE, false),
        Err(_) => failed(ask, UNREADABLE, false),
    }
}

/// The attempt has failed for a reason of a closed set.
pub(crate) fn failed(ask: AskId, code: impl Into<String>, retry: bool) -> RunEvent {
    RunEvent::TaskFailed {
        task: ask.instance,
        attempt: ask.attempt,
        code: code.into(),
        retry,
        retry_after_ms: None,
    }
}

fn refused(ask: AskId, answer: &Answer, now: SystemTime) -> RunEvent {
    let retry = matches!(answer.status, 408 | 425 | 429 | 500..);
    let wait = answer.retry_after(now).filter(|_| retry);
    RunEvent::TaskFailed {
        task: ask.instance,
        attempt: ask.attempt,
        code: format!("HTTP_STATUS_{}", answer.status),
        retry,
        retry_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    }
}

fn failure(reason: Reason) -> (&'static str, bool) {
    match reason {
        Reason::RefusedUrl | Reason::RefusedAddress => ("HTTP_REFUSED", false),
        Reason::Request => ("HTTP_REQUEST_INVALID", false),
        Reason::Timeout => ("HTTP_TIMEOUT", true),
        Reason::Dns
        | Reason::Connect
        | Reason::Tls
        | Reason::Broken
        | Reason::Status(_)
        | Reason::OpenCircuit => ("HTTP_UNREACHABLE", true),
        Reason::Redirect => ("HTTP_REDIRECT", false),
        Reason::TooLarge => (TOO_LARGE, false),
        Reason::Answer => (UNREADABLE, false),
    }
}

fn headers(headers: &HeaderMap) -> Map<String, Value> {
    let told = HEADERS.iter().filter_map(|name| {
        let value = headers.get(*name)?.to_str().ok()?;
        (value.len() <= HEADER_BYTES_MAX).then(|| ((*name).to_owned(), value.into()))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use runfleet_domain::limits::INBOX_EVENT_BYTES_MAX;
    use runfleet_http::{HeaderName, HeaderValue};

    use super::*;

    fn ask() -> AskId {
        "PI1501JDX3Z8GF0000000000000000:7:2".parse().unwrap()
    }

    fn told(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Value {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap())
        });
        let headers = headers.collect();
        let answer = Answer { status, headers, body: body.to_vec().into() };
        let event = event(ask(), &Ok(answer), SystemTime::UNIX_EPOCH);
        serde_json::from_str(&event.to_body().unwrap()).unwrap()
    }

    #[test]
    fn a_body_is_json_or_text_and_few_headers_go_on() {
        let json = ("content-type", "application/problem+json; charset=utf-8");
        let got = told(201, &[json, ("set-cookie", "s3cret"), ("etag", "e")], b"{\"n\":0.1}");
        assert_eq!(
            got,
            json!({"kind": "taskDone", "task": 7, "attempt": 2, "answer": {
                "status": 201,
                "headers": {"content-type": json.1, "etag": "e"},
                "body": {"n": 0.1},
            }})
        );
        let json = ("content-type", "Application/JSON");
        for (headers, body, expected) in [
            (&[json][..], &b"{\"n\":"[..], json!("{\"n\":")),
            (&[json], b"", Value::Null),
            (&[], b"{}", json!("{}")),
            (&[("content-type", "text/html")], "ü".as_bytes(), json!("ü")),
        ] {
            assert_eq!(told(200, headers, body)["answer"]["body"], expected, "{body:?}");
        }
        assert_eq!(told(200, &[], b"\xff")["code"], UNREADABLE);
        let deep = ["[".repeat(100), "]".repeat(100)].concat();
        assert_eq!(told(200, &[json], deep.as_bytes())["code"], UNREADABLE);
        // A text of control characters grows six times when it is written as JSON.
        assert_eq!(told(200, &[], &vec![1; INBOX_EVENT_BYTES_MAX / 2])["code"], TOO_LARGE);
    }

    #[test]
    fn a_status_that_says_no_is_told_with_whether_another_attempt_can_help() {
        for (status, retry) in [
            (400, false),
            (401, false),
            (404, false),
            (408, true),
            (409, false),
            (422, false),
            (425, true),
            (429, true),
            (500, true),
            (503, true),
            (599, true),
        ] {
            let got = told(status, &[("retry-after", "3")], b"s3cret");
            assert_eq!(got["code"], format!("HTTP_STATUS_{status}"));
            assert_eq!(got["retry"], retry, "{status}");
            let wait = if retry { json!(3_000) } else { Value::Null };
            assert_eq!(got["retryAfterMs"], wait, "{status}");
            assert!(!got.to_string().contains("s3cret"));
        }
        assert_eq!(told(503, &[("retry-after", "soon")], b"")["retryAfterMs"], Value::Null);
    }

    #[test]
    fn every_failure_has_a_code_that_an_event_may_have() {
        for reason in [
            Reason::RefusedUrl,
            Reason::RefusedAddress,
            Reason::Request,
            Reason::Dns,
            Reason::Connect,
            Reason::Tls,
            Reason::Timeout,
            Reason::Broken,
            Reason::Redirect,
            Reason::Status(599),
            Reason::TooLarge,
            Reason::Answer,
            Reason::OpenCircuit,
        ] {
            let (code, retry) = failure(reason);
            failed(ask(), code, retry).to_body().unwrap();
            let passing =
                ["timeout", "dns", "connect", "tls", "broken", "status_5xx", "open_circuit"];
            assert_eq!(retry, passing.contains(&reason.as_str()), "{reason:?}");
        }
    }
}
