//! What is asked and what is answered.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Url};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value;

use crate::error::{HttpError, Reason};

/// Largest answer that is read where nobody says otherwise, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// Longest wait that a peer can ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// A place that answers, and who calls there.
#[derive(Clone)]
pub struct Endpoint {
    /// Where.
    pub url: Url,
    /// Goes into the `authorization` header as a bearer token.
    pub bearer: Option<SecretString>,
    /// Largest answer that is read, in bytes.
    pub answer_bytes_max: usize,
}

impl Endpoint {
    /// Without a token, and with answers of 64 KiB at most.
    pub fn new(url: Url) -> Self {
        Self { url, bearer: None, answer_bytes_max: ANSWER_BYTES_MAX }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// One call.
#[derive(Clone)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Where, and who calls.
    pub endpoint: Endpoint,
    /// Headers beside `authorization` and `content-length`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Bound of everything: name, connection, request and the whole answer.
    pub within: Duration,
}

impl Call {
    /// A call without a body.
    pub fn get(endpoint: Endpoint, within: Duration) -> Self {
        Self {
            method: Method::GET,
            endpoint,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            within,
        }
    }

    /// Posts JSON and expects JSON.
    pub fn post_json<Q: Serialize + ?Sized>(
        endpoint: Endpoint,
        question: &Q,
        within: Duration,
    ) -> Result<Self, HttpError> {
        let body =
            serde_json::to_vec(question).map_err(|_| HttpError::unsent(Reason::Request))?.into();
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
        Ok(Self { method: Method::POST, endpoint, headers, body, within })
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("endpoint", &self.endpoint)
            .field("body_bytes", &self.body.len())
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// An answer.
#[derive(Clone)]
pub struct Answer {
    /// The status: 200 to 299 from [`Service::call`](crate::Service::call), anything but 3xx from
    /// [`Service::exchange`](crate::Service::exchange).
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, never longer than the call allowed. Of a status of 4xx or 5xx empty when it was longer or broke off.
    pub body: Bytes,
}

impl Answer {
    /// How long the peer asks to be left alone, from the header `retry-after`: seconds, or a date compared with `now`. At
    /// most a day.
    pub fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let wait = if digits {
            Duration::from_secs(text.parse().unwrap_or(u64::MAX))
        } else {
            httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
        };
        Some(wait.min(RETRY_AFTER_MAX))
    }

    /// What the body holds: JSON if it says so and is, otherwise a text, null when it is empty; `None` when it is no text.
    pub fn value(&self) -> Option<Value> {
        if self.body.is_empty() {
            return Some(Value::Null);
        }
        let text = std::str::from_utf8(&self.body).ok()?;
        let kind = self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_json = kind == "application/json" || kind.ends_with("+json");
        if is_json && let Ok(value) = serde_json::from_str(text) {
            return Some(value);
        }
        Some(Value::String(text.to_owned()))
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_json_where_it_says_so_and_is_and_otherwise_a_text() {
        let value = |kind: &str, body: &'static [u8]| {
            let headers = [(CONTENT_TYPE, HeaderValue::try_from(kind).unwrap())];
            let headers = headers.into_iter().collect();
            Answer { status: 200, headers, body: Bytes::from_static(body) }.value()
        };
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/x+json"] {
            assert_eq!(value(kind, b"[1]"), Some(json!([1])), "{kind}");
            assert_eq!(value(kind, b"[1"), Some(json!("[1")), "{kind}");
        }
        assert_eq!(value("text/plain", b"[1]"), Some(json!("[1]")));
        assert_eq!(value("text/plain", b""), Some(Value::Null));
        assert_eq!(value("application/json", b"\xff"), None);
    }

    #[test]
    fn a_wait_is_read_from_seconds_and_from_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(490_130);
        let wait = |text: &str| {
            let headers = [(RETRY_AFTER, HeaderValue::try_from(text).unwrap())];
            let headers = headers.into_iter().collect();
            Answer { status: 503, headers, body: Bytes::new() }.retry_after(now)
        };
        assert_eq!(wait(" 120 "), Some(Duration::from_mins(2)));
        assert_eq!(wait("Sun, 30 Nov 2025 02:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("Sun, 30 Nov 2025 01:00:00 GMT"), Some(Duration::ZERO));
        for long in ["86401", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(wait(long), Some(RETRY_AFTER_MAX), "{long}");
        }
        for nonsense in ["", "-1", "1.5", "soon", "+5"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
        let none = Answer { status: 503, headers: HeaderMap::new(), body: Bytes::new() };
        assert_eq!(none.retry_after(now), None);
    }
}
