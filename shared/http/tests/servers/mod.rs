//! Servers on this machine: one answer for each connection, as bytes, so that it can be as wrong as a test wants.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a server does with one request.
type Doing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running server; ends when it is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Peer {
    /// Reads one request of each connection and then does `answer`.
    pub(crate) async fn start<F>(answer: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (counted, seen, answer) =
            (Arc::clone(&connections), Arc::clone(&requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    let request = request(&mut stream).await;
                    seen.lock().unwrap().push(request);
                    answer(stream).await;
                });
            }
        });
        Self { address, connections, requests, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
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

/// Reads a request: its head, and a body as long as the head says. What is no request is returned as far as it came.
async fn request(stream: &mut TcpStream) -> String {
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
        // The first bytes of TLS are no head and never become one.
        match stream.read(&mut part).await {
            Ok(read) if read > 0 && bytes.first() != Some(&0x16) => bytes.extend(&part[..read]),
            _ => return text,
        }
        if bytes[0] == 0x16 {
            return text;
        }
    }
}

/// Answers with a status and a body, and closes.
pub(crate) fn answer(
    status: u16,
    body: &str,
) -> impl Fn(TcpStream) -> Doing + Send + Sync + 'static {
    raw(format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// Answers with these bytes, and closes.
pub(crate) fn raw(bytes: String) -> impl Fn(TcpStream) -> Doing + Send + Sync + 'static {
    move |mut stream| {
        let bytes = bytes.clone();
        Box::pin(async move {
            let _ = stream.write_all(bytes.as_bytes()).await;
            let _ = stream.shutdown().await;
        })
    }
}

/// Says nothing until the other side has gone.
pub(crate) async fn silent(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 1]).await;
}

async fn again_and_again(mut stream: TcpStream, head: &str, part: &[u8], pause: Duration) {
    let mut sent = stream.write_all(head.as_bytes()).await;
    while sent.is_ok() {
        sent = stream.write_all(part).await;
        // The shortest sleep takes a millisecond.
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A body without an end.
pub(crate) async fn endless(stream: TcpStream) {
    again_and_again(stream, CHUNKED, b"a\r\n0123456789\r\n", Duration::ZERO).await;
}

/// Headers without an end.
pub(crate) async fn endless_head(stream: TcpStream) {
    let more = "x-more: 0123456789\r\n".repeat(1_000);
    again_and_again(stream, "HTTP/1.1 200 OK\r\n", more.as_bytes(), Duration::ZERO).await;
}

/// A byte now and then, and never all headers.
pub(crate) async fn trickling_head(stream: TcpStream) {
    again_and_again(stream, "HTTP/1.1 200 OK\r\nx: ", b"x", Duration::from_millis(20)).await;
}

/// A byte now and then, and never the whole body.
pub(crate) async fn trickling_body(stream: TcpStream) {
    again_and_again(stream, CHUNKED, b"1\r\nx\r\n", Duration::from_millis(20)).await;
}

/// A place that takes no connection.
pub(crate) struct Full {
    pub(crate) address: SocketAddr,
    _held: (std::net::TcpListener, Vec<TcpStream>),
}

/// Listens, accepts nothing, and has so many connections waiting that the next one hangs.
pub(crate) async fn full_backlog() -> Full {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap().into_std().unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..64 {
        match tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => return Full { address, _held: (listener, held) },
        }
    }
    panic!("the backlog never fills");
}
