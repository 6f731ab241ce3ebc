//! What the tests of tools share: calls, and servers on this machine that say what a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::Registry;
use runfleet_http::{Client, Config, Lookup, Lookups, Service};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::call::{Caller, ToolCall};

/// A call of somebody in the workspace `acme`, on the last day of November 2026.
pub(crate) fn call(arguments: &Value) -> ToolCall {
    let caller = Caller {
        workspace: "acme".parse().unwrap(),
        project: Some("crm".parse().unwrap()),
        personnel_id: Some("p-1".parse().unwrap()),
    };
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall { key: "run:call".to_owned(), caller, arguments, now_ms: 1_796_033_696_789 }
}

/// Long enough for everything that works, on a machine that is busy.
pub(crate) fn later() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Short enough to wait for.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_millis(300)
}

/// A guarded client that may call what is listed.
pub(crate) fn service(allow: &str) -> Service {
    let config = Config { allow: allow.parse().unwrap(), ..Config::default() };
    Client::new(config, &Registry::new()).unwrap().service("tool", None)
}

/// A guarded client for which every name has these addresses.
pub(crate) fn service_where_names_are(allow: &str, addresses: &'static str) -> Service {
    struct Names(&'static str);
    impl Lookup for Names {
        fn lookup(&self, _name: &str) -> Lookups {
            let found = self.0.split(' ').map(|address| address.parse().unwrap()).collect();
            Box::pin(async move { Ok(found) })
        }
    }
    let config = Config { allow: allow.parse().unwrap(), ..Config::default() };
    let lookup: Arc<dyn Lookup> = Arc::new(Names(addresses));
    Client::with_lookup(config, &Registry::new(), &lookup).unwrap().service("tool", None)
}

/// A server that reads one request of each connection, answers with bytes that depend on it, and closes. Without bytes it says
/// nothing until the other side has gone.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Peer {
    pub(crate) async fn start(
        answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let request = read(&mut stream).await;
                    let bytes = answer(&request);
                    seen.lock().unwrap().push(request);
                    match bytes {
                        Some(bytes) => {
                            let _ = stream.write_all(bytes.as_bytes()).await;
                        }
                        None => {
                            while matches!(stream.read(&mut [0; 64]).await, Ok(read) if read > 0) {}
                        }
                    }
                });
            }
        });
        Self { address, requests, task }
    }

    /// Answers every request in the same way.
    pub(crate) async fn saying(status: u16, kind: &str, body: &str) -> Self {
        let bytes = answer(status, kind, body);
        Self::start(move |_| Some(bytes.clone())).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The bytes of an answer.
pub(crate) fn answer(status: u16, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Reads a request: its head, and a body as long as the head says.
async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        match stream.read(&mut part).await {
            Ok(read) if read > 0 => bytes.extend(&part[..read]),
            _ => return text,
        }
    }
}
