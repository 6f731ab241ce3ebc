//! A connection to a server over HTTP: each message is a POST, whose answer is one message or a stream of events that ends with
//! the answer. Every call goes through the guarded client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runfleet_http::header::{ACCEPT, CONTENT_TYPE};
use runfleet_http::{
    Answer, Call, Endpoint, HeaderMap, HeaderName, HeaderValue, HttpError, Method, Reason, Service,
    Url,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::MESSAGE_BYTES_MAX;
use crate::failure::McpFailure;
use crate::protocol::{self, Incoming};

/// The header with the session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header with the version that was agreed on.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Longest session id, in bytes.
const SESSION_BYTES_MAX: usize = 512;

/// How long a server may take to hear what has no answer.
const TELL_WITHIN: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) struct Http {
    service: Service,
    url: Url,
    headers: HeaderMap,
    agreed: Mutex<Agreed>,
    changed: AtomicBool,
}

/// What the first answer has settled.
#[derive(Default, Clone)]
struct Agreed {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Http {
    pub(crate) fn new(service: Service, url: Url, headers: HeaderMap) -> Self {
        Self { service, url, headers, agreed: Mutex::default(), changed: AtomicBool::new(false) }
    }

    /// Asks a question and waits for its answer.
    pub(crate) async fn ask(
        &self,
        id: u64,
        question: &Value,
        until: Instant,
    ) -> Result<Value, McpFailure> {
        let within = until.saturating_duration_since(Instant::now());
        let answer = self.post(question, within).await.map_err(failure)?;
        if !(200..300).contains(&answer.status) {
            return Err(self.said_no(answer.status));
        }
        self.keep_session(&answer);
        for message in messages(&answer)? {
            match protocol::read(message) {
                Some(Incoming::Answer { id: of, result }) if of == id => {
                    return result.map_err(|code| McpFailure::Error { code });
                }
                Some(Incoming::ToolsChanged) => self.changed.store(true, Ordering::Release),
                // A question inside the stream is over when the stream is.
                Some(Incoming::Answer { .. } | Incoming::Question { .. } | Incoming::Other)
                | None => {}
            }
        }
        Err(McpFailure::Protocol)
    }

    /// Tells something that has no answer.
    pub(crate) async fn tell(&self, notice: &Value) {
        // What comes back says nothing that matters here.
        let _ = self.post(notice, TELL_WITHIN).await;
    }

    /// Which version was agreed on: every later message says it.
    pub(crate) fn agree(&self, version: &str) {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner).version =
            HeaderValue::from_str(version).ok();
    }

    /// Whether the server has said that its tools are others now, since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    async fn post(&self, message: &Value, within: Duration) -> Result<Answer, HttpError> {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.extend(agreed.session.map(|session| (SESSION, session)));
        headers.extend(agreed.version.map(|version| (VERSION, version)));
        let endpoint =
            Endpoint { answer_bytes_max: MESSAGE_BYTES_MAX, ..Endpoint::new(self.url.clone()) };
        let body = message.to_string().into_bytes().into();
        self.service.exchange(Call { method: Method::POST, endpoint, headers, body, within }).await
    }

    fn keep_session(&self, answer: &Answer) {
        let session = answer.headers.get(SESSION);
        if let Some(session) = session.filter(|session| session.len() <= SESSION_BYTES_MAX) {
            let mut session = session.clone();
            session.set_sensitive(true);
            self.agreed.lock().unwrap_or_else(PoisonError::into_inner).session = Some(session);
        }
    }

    fn said_no(&self, status: u16) -> McpFailure {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            404 if agreed.session.is_some() => McpFailure::SessionOver,
            401 | 403 => McpFailure::Forbidden,
            502 | 504 => McpFailure::Broken,
            _ => McpFailure::Unavailable,
        }
    }
}

fn failure(error: HttpError) -> McpFailure {
    match error.reason() {
        Reason::RefusedUrl | Reason::RefusedAddress => McpFailure::Refused,
        Reason::TooLarge => McpFailure::TooLarge,
        Reason::Redirect | Reason::Answer => McpFailure::Protocol,
        Reason::Timeout if error.maybe_sent() => McpFailure::Timeout,
        Reason::Broken if error.maybe_sent() => McpFailure::Broken,
        Reason::Timeout
        | Reason::Broken
        | Reason::Request
        | Reason::Dns
        | Reason::Connect
        | Reason::Tls
        | Reason::Status(_)
        | Reason::OpenCircuit => McpFailure::Unavailable,
    }
}

/// The messages of an answer, as JSON or as events.
fn messages(answer: &Answer) -> Result<Vec<Value>, McpFailure> {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let text = std::str::from_utf8(&answer.body).map_err(|_| McpFailure::Protocol)?;
    match kind.split(';').next().unwrap_or_default().trim() {
        "text/event-stream" => Ok(protocol::events(text)),
        "application/json" => match serde_json::from_str(text) {
            Ok(Value::Array(messages)) => Ok(messages),
            Ok(message) => Ok(vec![message]),
            Err(_) => Err(McpFailure::Protocol),
        },
        _ => Err(McpFailure::Protocol),
    }
}
