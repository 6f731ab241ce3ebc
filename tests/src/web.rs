//! A server that HTTP tasks call. It remembers every request and answers what a test wants.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that has come.
#[derive(Debug, Clone)]
pub struct WebRequest {
    /// Path of its URL.
    pub path: String,
    /// Its `Idempotency-Key`; empty if it has none.
    pub key: String,
    /// Its `Authorization`; empty if it has none.
    pub authorization: String,
    /// Its other headers.
    pub headers: BTreeMap<String, String>,
    /// Its body as it came.
    pub raw: Bytes,
    /// Its body as JSON; null if it is none.
    pub body: Value,
    /// When it came.
    pub at: Instant,
}

/// What is answered.
#[derive(Debug, Clone, Default)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// Seconds of `Retry-After`, if any.
    pub retry_after: Option<u32>,
    /// How long it takes.
    pub after: Duration,
    /// The body.
    pub body: Value,
}

impl WebAnswer {
    /// A status with a body.
    pub fn new(status: u16, body: Value) -> Self {
        Self { status, body, ..Self::default() }
    }
}

/// All requests, and how many there are of each path.
#[derive(Default)]
struct Log {
    requests: Vec<WebRequest>,
    counts: BTreeMap<String, usize>,
}

type Seen = Arc<Mutex<Log>>;

/// The server. It stops when this is dropped.
pub struct Web {
    address: SocketAddr,
    seen: Seen,
    task: JoinHandle<()>,
}

impl Web {
    /// Starts it. `answers` gets each request, and how many have come with the same path, this one included.
    pub async fn start(
        answers: impl Fn(&WebRequest, usize) -> WebAnswer + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (seen, answers) = (Seen::default(), Arc::new(answers));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answers) = (Arc::clone(&shared), Arc::clone(&answers));
                let service = service_fn(move |request| {
                    let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
                    async move {
                        let request = read(request).await;
                        let before = {
                            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                            seen.requests.push(request.clone());
                            let count = seen.counts.entry(request.path.clone()).or_default();
                            *count += 1;
                            *count
                        };
                        let answer = answers(&request, before);
                        tokio::time::sleep(answer.after).await;
                        Ok::<_, Infallible>(write(&answer))
                    }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { address, seen, task })
    }

    /// The URL of a path, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The setting that lets tasks call it.
    pub fn allowed(&self) -> (String, String) {
        ("RUNFLEET_HTTP_ALLOW".to_owned(), self.address.to_string())
    }

    /// The requests of a path so far.
    pub fn requests(&self, path: &str) -> Vec<WebRequest> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.requests.iter().filter(|request| request.path == path).cloned().collect()
    }

    /// How many requests of a path there are so far.
    pub fn count(&self, path: &str) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.counts.get(path).copied().unwrap_or(0)
    }

    /// Forgets what has come so far, to make room.
    pub fn forget(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Log::default();
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(request: Request<Incoming>) -> WebRequest {
    let header = |name: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (key, authorization) = (header("idempotency-key"), header("authorization"));
    let path = request.uri().path().to_owned();
    let text = |value: &hyper::header::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    let raw = body.unwrap_or_default();
    let body = serde_json::from_slice(&raw).unwrap_or_default();
    WebRequest { path, key, authorization, headers, raw, body, at: Instant::now() }
}

fn write(answer: &WebAnswer) -> Response<Full<Bytes>> {
    let mut response =
        Response::builder().status(answer.status).header("content-type", "application/json");
    if let Some(seconds) = answer.retry_after {
        response = response.header("retry-after", seconds);
    }
    let body = Full::new(Bytes::from(answer.body.to_string()));
    response.body(body).unwrap_or_else(|_| Response::default())
}
