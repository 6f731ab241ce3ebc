//! What does not work: servers that die, hang, talk nonsense or too much, and places that may not be called.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use runfleet_mcp::{Commands, McpFailure, Transport};
use runfleet_tools::{ToolOutcome, texts};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::fixture::{Log, QUICK, call, http, http_at, later, lives, server, soon, stdio, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_in_a_call_is_unknown_then_left_alone_then_started_again() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    assert_eq!(call(&server, "die", &json!({}), later()).await, ToolOutcome::Unknown);
    let began = Instant::now();
    let at_once = call(&server, "echo", &json!({}), later()).await;
    assert_eq!(at_once, ToolOutcome::failed(texts::UNREACHABLE));
    assert!(began.elapsed() < QUICK.first, "it is not waited for");
    assert_eq!(log.count("pid"), 1);
    while call(&server, "echo", &json!({}), later()).await.is_error() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is never started again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() >= QUICK.first / 2);
    assert_eq!(log.count("pid"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_be_used_fails_its_own_tools_and_nobody_elses() {
    let good_log = Log::new();
    let good = stdio("stdio", &good_log);
    for how in ["exits", "old", "noise", "endless"] {
        let log = Log::new();
        let bad = stdio(how, &log);
        let nothing = json!({});
        let (bad, good) = tokio::join!(
            call(&bad, "echo", &nothing, later()),
            call(&good, "echo", &nothing, later()),
        );
        assert_eq!(bad, ToolOutcome::failed(texts::UNREACHABLE), "{how}");
        assert_eq!(good, ToolOutcome::success(json!({"got": {}})), "{how}");
        let ids = log.ids("pid");
        until("the bad one has ended", || ids.iter().all(|id| !lives(*id))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_greets_costs_the_time_of_one_call() {
    let log = Log::new();
    let bad = stdio("silent", &log);
    let got = call(&bad, "echo", &json!({}), soon()).await;
    assert_eq!(got, ToolOutcome::failed(texts::UNREACHABLE), "nothing was asked");
    let began = Instant::now();
    assert_eq!(bad.tools(later()).await, Err(McpFailure::Unavailable));
    assert!(began.elapsed() < QUICK.first);
    let ids = log.ids("pid");
    until("it has ended", || ids.iter().all(|id| !lives(*id))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_reads_nothing_does_not_hold_a_call_beyond_its_time() {
    let log = Log::new();
    let bad = stdio("deaf", &log);
    // More than a pipe holds.
    let large = json!({"a": "x".repeat(60_000)});
    for _ in 0..3 {
        let began = Instant::now();
        let got = call(&bad, "echo", &large, soon()).await;
        assert!(got.is_error() && began.elapsed() < Duration::from_secs(5), "{got:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_nothing_more_is_started_again() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    server.tools(later()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(call(&server, "stall", &json!({}), soon()).await, ToolOutcome::Unknown);
    }
    let began = Instant::now();
    while call(&server, "echo", &json!({}), later()).await.is_error() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is never started again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(log.count("pid"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    let large = json!({"bytes": runfleet_mcp::MESSAGE_BYTES_MAX});
    let log = Log::new();
    let program = stdio("stdio", &log);
    let got = call(&program, "large", &large, later()).await;
    assert_eq!(got, ToolOutcome::failed(texts::TOO_LARGE));
    let log = Log::new();
    let other = http(&log).await;
    let got = call(&http_at(&other.url, "127.0.0.1"), "large", &large, later()).await;
    assert_eq!(got, ToolOutcome::failed(texts::TOO_LARGE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_not_there_is_a_server_that_is_not_available() {
    let commands = Commands::read(r#"{"x": {"command": "/no/such/program"}}"#).unwrap();
    let server = server(Transport::Stdio(commands.get("x").unwrap().clone()));
    assert_eq!(server.tools(later()).await, Err(McpFailure::Unavailable));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_place_that_may_not_be_called_is_called() {
    let log = Log::new();
    let other = http(&log).await;
    let port = other.url.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "localhost"] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}");
            let server = http_at(&url, "");
            let got = call(&server, "echo", &json!({}), later()).await;
            assert_eq!(got, ToolOutcome::failed(texts::REFUSED), "{url}");
        }
    }
    let server = http_at("https://169.254.169.254/", "");
    assert_eq!(server.tools(later()).await, Err(McpFailure::Refused));
    assert_eq!(log.count("headers"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_that_says_no_is_told_by_its_kind() {
    let log = Log::new();
    let other = http(&log).await;
    let server = http_at(&other.url, "127.0.0.1");
    let got = call(&server, "refuse", &json!({}), later()).await;
    assert_eq!(got, ToolOutcome::failed(texts::FORBIDDEN));
}

/// A server that answers the first request of each connection with these bytes.
async fn raw(bytes: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(bytes.as_bytes()).await;
                if bytes.is_empty() {
                    let _ = stream.read(&mut [0; 1]).await;
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_over_http_is_a_server_that_is_not_available() {
    const REDIRECT: &str =
        "HTTP/1.1 307 x\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    const HTML: &str = "HTTP/1.1 200 x\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi";
    const NO_JSON: &str =
        "HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\nhi";
    const OTHER: &str =
        "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ncontent-length: 7\r\n\r\ndata: 1";
    const BROKEN: &str = "HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n";
    for bytes in [REDIRECT, HTML, NO_JSON, OTHER, BROKEN, "SSH-2.0-x\r\n", ""] {
        let server = http_at(&raw(bytes).await, "127.0.0.1");
        assert_eq!(server.tools(soon()).await, Err(McpFailure::Unavailable), "{bytes}");
        assert_eq!(server.tools(later()).await, Err(McpFailure::Unavailable), "{bytes}");
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_trouble_of_a_server_is_told_once_and_nothing_that_it_says() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || writer.clone())
        .finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let log = Log::new();
    let server = stdio("stdio", &log);
    let began = Instant::now();
    while log.count("pid") < 3 {
        call(&server, "die", &json!({}), later()).await;
        assert!(began.elapsed() < Duration::from_secs(20), "it is never started again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while call(&server, "echo", &json!({}), later()).await.is_error() {
        assert!(began.elapsed() < Duration::from_secs(40), "it never works again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("is broken").count(), 1, "{text}");
    assert_eq!(text.matches("an MCP server works again").count(), 1, "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}
