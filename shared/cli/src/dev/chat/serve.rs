//! The server of the page: HTTP/1.1, one request for each connection. Everything is bounded: connections, bytes, time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, SET_COOKIE};
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::Shared;
use super::answer::{Answer, Content, content, fixed, refused};
use super::calls::Call;

/// Connections at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 64;

/// Bytes of request line and headers.
const HEAD_BYTES_MAX: usize = 16_384;

/// Bytes of a body: the longest message in the longest form of its letters, with room for the rest.
const BODY_BYTES_MAX: usize = 128 * 1_024;

/// How long a client may take to send its request line and headers, and how long for the body.
const SENT_WITHIN: Duration = Duration::from_secs(5);

/// How long one connection may live: a little longer than a page listens.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(11);

/// Pause after a failure to accept, and after a wrong code.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = tokio::task::JoinSet::new();
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    // A client that is too slow or sends nonsense is its own concern.
                    let _ = timeout(CONNECTION_TIMEOUT, connection(stream, shared)).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the chat page was not accepted");
                sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SENT_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method, head.uri.path());
    if let Err(status) = shared.gate.admits(&method, &head.headers) {
        return refused(status, "this is not a request of the page");
    }
    match (&method, path) {
        (&Method::GET, "/") => {
            return fixed("text/html; charset=utf-8", include_str!("page/chat.html"));
        }
        (&Method::GET, "/chat.css") => {
            return fixed("text/css; charset=utf-8", include_str!("page/chat.css"));
        }
        (&Method::GET, "/chat.js") => {
            return fixed("text/javascript; charset=utf-8", include_str!("page/chat.js"));
        }
        (&Method::POST, "/login") => return login(shared, body).await,
        _ => {}
    }
    if !shared.gate.knows(&head.headers) {
        return refused(StatusCode::UNAUTHORIZED, "the code is missing");
    }
    match (&method, path, Call::at(path)) {
        (&Method::GET, "/api/events", _) => shared.events.stream(),
        (&Method::POST, _, Some(call)) => match (read(body).await, shared.client()) {
            (Ok(body), Ok(client)) => call.make(&client, &body).await,
            (Err(status), _) => refused(status, "the body is too large or too slow"),
            (_, Err(_)) => refused(StatusCode::INTERNAL_SERVER_ERROR, "there is no token"),
        },
        _ => refused(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

async fn read(body: Incoming) -> Result<Bytes, StatusCode> {
    let whole = timeout(SENT_WITHIN, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let whole = whole.map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
    Ok(whole.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?.to_bytes())
}

/// What the form of the page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: String,
}

async fn login(shared: &Shared, body: Incoming) -> Answer {
    let body = match read(body).await {
        Ok(body) => body,
        Err(status) => return refused(status, "the body is too large or too slow"),
    };
    let Ok(Login { code }) = serde_json::from_slice(&body) else {
        return refused(StatusCode::BAD_REQUEST, "there is no code");
    };
    let Ok(let_in) = shared.gate.open(&code) else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "there is no randomness");
    };
    let Some(let_in) = let_in else {
        sleep(PAUSE).await;
        return refused(StatusCode::UNAUTHORIZED, "this is not the code that was printed last");
    };
    (shared.told)(&let_in.next);
    let nothing = Content::Whole(Full::new(Bytes::new()));
    let mut answer = content(StatusCode::NO_CONTENT, "text/plain", nothing);
    if let Ok(cookie) = HeaderValue::from_str(&let_in.cookie) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}
