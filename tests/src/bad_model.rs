//! A provider of models that behaves as badly as one can, in a manner that the path of its address says. It counts who asks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How the provider behaves. The agent `bad-NAME` is answered in the manner of that name.
const MANNERS: [&str; 14] = [
    "good", "slow", "hang", "trickle", "drip", "cut", "large", "frame", "garbled", "page", "loop",
    "limited", "down", "refused",
];

/// What a provider says that nobody must ever read.
pub const CANARY: &str = "canary-words-4d11";

/// How long "slow" takes.
const SLOW: Duration = Duration::from_secs(5);

/// What "limited" asks for, in seconds; longer than the runs would wait by themselves.
pub const RETRY_AFTER: u32 = 7;

/// What every answer says that is one.
pub const ANSWER: &str = "Here is the answer.";

/// Bytes of "large" and "frame".
const LARGE_BYTES: usize = 10 * 1_024 * 1_024;

/// Between the pieces of "trickle" and "drip".
const PIECE_EVERY: Duration = Duration::from_millis(200);

/// Largest request that is read, in bytes.
const REQUEST_BYTES_MAX: usize = 1_024 * 1_024;

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

#[derive(Default)]
struct Seen {
    /// When each question of a manner came.
    at: BTreeMap<String, Vec<Instant>>,
    now: usize,
    most: usize,
}

/// The provider. It stops when this is dropped.
pub struct BadModel {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl BadModel {
    /// Starts it.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { address, seen, task })
    }

    /// The address of a manner.
    pub fn url(&self, manner: &str) -> String {
        format!("http://{}/{manner}", self.address)
    }

    /// The setting by which a fleet may call it.
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![("RUNFLEET_MODEL_ALLOW".to_owned(), self.address.to_string())]
    }

    /// A provider and two agents for each manner: `bad-NAME` waits two seconds for an answer, or longer where one comes,
    /// `patient-NAME` as long as it may.
    pub fn documents(&self) -> String {
        let mut text = String::new();
        for manner in MANNERS {
            // Ten megabytes may take longer than two seconds on a busy machine.
            let seconds = if ["slow", "large", "frame"].contains(&manner) { 30 } else { 2 };
            let url = self.url(manner);
            let _ = write!(
                text,
                r"---
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {{name: bad-{manner}}}
spec: {{kind: openai, baseUrl: '{url}', models: [bad/{manner}]}}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {{name: bad-{manner}}}
spec: {{model: bad/{manner}, modelTimeoutSeconds: {seconds}, tools: [calculate]}}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {{name: patient-{manner}}}
spec: {{model: bad/{manner}}}
"
            );
        }
        text
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When each question of a manner came.
    pub fn asked(&self, manner: &str) -> Vec<Instant> {
        self.seen(|seen| seen.at.get(manner).cloned().unwrap_or_default())
    }

    /// Questions that wait for their answer.
    pub fn now(&self) -> usize {
        self.seen(|seen| seen.now)
    }

    /// Most questions that have waited at the same time.
    pub fn most(&self) -> usize {
        self.seen(|seen| seen.most)
    }
}

impl Drop for BadModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one question. Whoever asked may go away at any time.
async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    let Some((manner, question)) = question(&mut stream).await else { return };
    let times = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.now += 1;
        seen.most = seen.most.max(seen.now);
        let at = seen.at.entry(manner.clone()).or_default();
        at.push(Instant::now());
        at.len()
    };
    let _ = answer(&mut stream, &manner, times, &question).await;
    seen.lock().unwrap_or_else(PoisonError::into_inner).now -= 1;
    let _ = stream.shutdown().await;
    // Closing with something unread would reset the connection and take the answer along.
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 1])).await;
}

async fn answer(
    stream: &mut TcpStream,
    manner: &str,
    times: usize,
    question: &Value,
) -> std::io::Result<()> {
    let text = match manner {
        "hang" => {
            // It ends when whoever asked has gone.
            return stream.read(&mut [0; 1]).await.map(drop);
        }
        "trickle" => return drip(stream, STREAM, ": still there\n\n").await,
        "drip" => return drip(stream, "HTTP/1.1 200 OK\r\nx-more: ", "x").await,
        "large" => {
            let piece = format!("data: {}\n\n", said(&json!({"content": "x".repeat(60_000)})));
            return flood(stream, &piece).await;
        }
        "frame" => {
            stream.write_all(format!("{STREAM}data: \"").as_bytes()).await?;
            return flood(stream, &"x".repeat(60_000)).await;
        }
        "slow" => {
            tokio::time::sleep(SLOW).await;
            whole(&json!({"content": ANSWER}), "stop")
        }
        "cut" => format!("{STREAM}data: {}\n\n", said(&json!({"content": CANARY}))),
        "garbled" => format!("{STREAM}data: {{\"choices\": [{{ {CANARY}\n\ndata: [DONE]\n\n"),
        "page" => refusal("200 OK", "", &format!("<html>{CANARY}</html>")),
        "limited" if times == 1 => {
            refusal("429 Too Many Requests", &format!("retry-after: {RETRY_AFTER}\r\n"), CANARY)
        }
        "down" if times == 1 => refusal("503 Service Unavailable", "", CANARY),
        "refused" => refusal("400 Bad Request", "", CANARY),
        "loop" if question["tools"].is_array() => whole(
            &json!({"tool_calls": [{"index": 0, "id": format!("c{times}"), "type": "function",
                "function": {"name": "calculate", "arguments": r#"{"expression": "1 + 1"}"#}}]}),
            "tool_calls",
        ),
        _ => whole(&json!({"content": ANSWER}), "stop"),
    };
    stream.write_all(text.as_bytes()).await
}

/// Something at the beginning, and then a little again and again.
async fn drip(stream: &mut TcpStream, first: &str, piece: &str) -> std::io::Result<()> {
    stream.write_all(first.as_bytes()).await?;
    loop {
        stream.write_all(piece.as_bytes()).await?;
        tokio::time::sleep(PIECE_EVERY).await;
    }
}

/// The same piece until it is far too much.
async fn flood(stream: &mut TcpStream, piece: &str) -> std::io::Result<()> {
    if piece.starts_with("data") {
        stream.write_all(STREAM.as_bytes()).await?;
    }
    for _ in 0..=LARGE_BYTES / piece.len() {
        stream.write_all(piece.as_bytes()).await?;
    }
    Ok(())
}

fn said(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// An answer as it should be.
fn whole(delta: &Value, reason: &str) -> String {
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    format!("{STREAM}data: {}\n\ndata: {last}\n\ndata: [DONE]\n\n", said(delta))
}

fn refusal(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads a question: the manner in its path, and its body.
async fn question(stream: &mut TcpStream) -> Option<(String, Value)> {
    let (mut bytes, mut part) = (Vec::new(), vec![0; 16_384]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length?.trim().parse().ok()?;
            if let Some(body) = bytes.get(end + 4..end + 4 + length) {
                let manner = head.split('/').nth(1)?.to_owned();
                return Some((manner, serde_json::from_slice(body).ok()?));
            }
        }
        let read = stream.read(&mut part).await.ok()?;
        if read == 0 || bytes.len() > REQUEST_BYTES_MAX {
            return None;
        }
        bytes.extend_from_slice(&part[..read]);
    }
}
