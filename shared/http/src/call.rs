//! What is asked and what is answered.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use secrecy::SecretString;
use serde::Serialize;

use crate::error::{HttpError, Reason};

/// Largest answer that is read where nobody says otherwise, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

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

/// An answer with a status of 2xx, read to its end.
#[derive(Clone)]
pub struct Answer {
    /// The status, 200 to 299.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, never longer than the call allowed.
    pub body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
