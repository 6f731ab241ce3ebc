//! The admin server: `/live`, `/ready` and `/metrics` over HTTP/1.1, GET only, for probes and Prometheus.
//!
//! It says what is, and changes nothing. Everything is bounded: connections, header bytes, time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::{Encoder, TextEncoder};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::process::Process;

/// Connections at once; more wait in the backlog.
const CONNECTIONS_MAX: usize = 64;

/// Bytes of request line and headers.
const HEAD_BYTES_MAX: usize = 16_384;

/// How long a client may take to send its request line and headers.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);

/// How long one connection may live.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause after a failure to accept, which is a shortage of file descriptors that passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers until it is dropped. One request per connection.
pub(crate) async fn serve(listener: TcpListener, process: Process) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The semaphore is never closed, so the loop ends only with the process.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let process = process.clone();
                tokio::spawn(async move {
                    // A client that is too slow or sends nonsense is its own concern.
                    let _ =
                        tokio::time::timeout(CONNECTION_TIMEOUT, connection(stream, process)).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "admin connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Tells a parent process where the server listens: whole or not at all, so that no half address is ever read.
pub(crate) fn announce(file: &Path, addr: SocketAddr) -> std::io::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(format!(".{}", std::process::id()));
    std::fs::write(&part, format!("{addr}\n"))?;
    std::fs::rename(&part, file)
}

async fn connection(stream: TcpStream, process: Process) -> hyper::Result<()> {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &process);
        async move { Ok::<_, Infallible>(answer) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(method: &Method, path: &str, process: &Process) -> Response<Full<Bytes>> {
    if method != Method::GET {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    match path {
        "/live" => text(StatusCode::OK, "live\n"),
        "/ready" => ready(process),
        "/metrics" => metrics(process),
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    }
}

fn ready(process: &Process) -> Response<Full<Bytes>> {
    let failing = process.readiness.failing();
    let status = if failing.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    // Names are plain words of this code, for which the Debug form is the JSON form.
    let body = format!("{{\"ready\":{},\"failing\":{failing:?}}}\n", failing.is_empty());
    respond(status, "application/json", body)
}

fn metrics(process: &Process) -> Response<Full<Bytes>> {
    let encoder = TextEncoder::new();
    let mut body = Vec::new();
    match encoder.encode(&process.registry.gather(), &mut body) {
        Ok(()) => respond(StatusCode::OK, prometheus::TEXT_FORMAT, body),
        Err(error) => {
            tracing::error!(%error, "metrics not encoded");
            text(StatusCode::INTERNAL_SERVER_ERROR, "metrics not encoded\n")
        }
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", body)
}

fn respond(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn send(addr: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // A server that closes on an oversized request may reset what is still unread.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    async fn started() -> (SocketAddr, Process) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let process = Process::new("delivery", Duration::from_secs(1));
        tokio::spawn(serve(listener, process.clone()));
        (addr, process)
    }

    async fn get(addr: SocketAddr, path: &str) -> (u16, String) {
        let answer = send(addr, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let status = answer[9..12].parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    #[tokio::test]
    async fn ready_follows_the_conditions_and_live_does_not() {
        let (addr, process) = started().await;
        process.readiness.declare(&["broker", "ledger"]);
        let expected = "{\"ready\":false,\"failing\":[\"broker\", \"ledger\"]}\n";
        assert_eq!(get(addr, "/ready").await, (503, expected.to_owned()));
        process.readiness.set("broker", true);
        process.readiness.set("ledger", true);
        assert_eq!(
            get(addr, "/ready").await,
            (200, "{\"ready\":true,\"failing\":[]}\n".to_owned())
        );
        process.shutdown.cancel();
        assert_eq!(get(addr, "/ready").await.0, 503);
        assert_eq!(get(addr, "/live").await.0, 200);
    }

    #[tokio::test]
    async fn only_get_of_a_known_path_is_answered() {
        let (addr, _process) = started().await;
        assert_eq!(get(addr, "/").await.0, 404);
        assert_eq!(get(addr, "/live?a=b").await.0, 200);
        let refused =
            send(addr, "POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("allow: GET"), "{refused}");
    }

    #[tokio::test]
    async fn headers_without_end_are_cut_off() {
        let (addr, _process) = started().await;
        let head =
            format!("GET /live HTTP/1.1\r\nHost: {}\r\n\r\n", "a".repeat(2 * HEAD_BYTES_MAX));
        assert!(!send(addr, &head).await.starts_with("HTTP/1.1 200"));
        assert_eq!(get(addr, "/live").await.0, 200, "others are still served");
    }

    #[tokio::test]
    async fn more_silent_clients_than_permits_only_delay_a_probe() {
        let (addr, _process) = started().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(addr).await.unwrap());
        }
        let probe = tokio::time::timeout(HEAD_TIMEOUT * 5, get(addr, "/live")).await;
        assert_eq!(probe.unwrap().0, 200);
    }

    #[test]
    fn the_address_appears_in_its_file_whole_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("admin");
        std::fs::write(&file, "old").unwrap();
        announce(&file, SocketAddr::from(([127, 0, 0, 1], 9464))).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "127.0.0.1:9464\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
