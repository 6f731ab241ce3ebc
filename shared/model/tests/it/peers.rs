//! Servers on this machine that answer as wrongly as a test wants, and count what they got rid of.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// What is sent after the head and the parts.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// The connection is closed.
    Close,
    /// Nothing, until the other side has gone.
    Hang,
    /// The last part again and again, with a pause between.
    Repeat(Duration),
}

/// A running server; ends when it is dropped.
pub(crate) struct Peer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Peer {
    /// Answers each request with `head` (without its empty line, which is added) and `part`.
    pub(crate) async fn start(head: &str, part: &str, then: Then) -> Self {
        let head = format!("{head}\r\n\r\n");
        Self::bytes(if head.trim().is_empty() { String::new() } else { head }, part, then).await
    }

    async fn bytes(head: String, part: &str, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (counted, counter, seen) =
            (Arc::clone(&connections), Arc::clone(&sent), Arc::clone(&requests));
        let part = part.to_owned();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (head, part) = (head.clone(), part.clone());
                let (counter, seen) = (Arc::clone(&counter), Arc::clone(&seen));
                tokio::spawn(async move {
                    let request = request(&mut stream).await;
                    seen.lock().unwrap().push(request);
                    answer(stream, &head, &part, then, &counter).await;
                });
            }
        });
        Self { address, connections, sent, requests, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes that the network has taken.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
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

async fn answer(mut stream: TcpStream, head: &str, part: &str, then: Then, sent: &AtomicUsize) {
    let whole = [head, part].concat();
    for piece in whole.as_bytes().chunks(16 * 1_024) {
        if stream.write_all(piece).await.is_err() {
            return;
        }
        sent.fetch_add(piece.len(), Ordering::Relaxed);
    }
    match then {
        Then::Close => {
            let _ = stream.shutdown().await;
            // Closing with something unread would reset the connection and take the answer along.
            let _ = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 1])).await;
        }
        Then::Hang => {
            let _ = stream.read(&mut [0; 1]).await;
        }
        Then::Repeat(pause) => {
            while stream.write_all(part.as_bytes()).await.is_ok() {
                sent.fetch_add(part.len(), Ordering::Relaxed);
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Reads a request: its head, and a body as long as the head says.
async fn request(stream: &mut TcpStream) -> String {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
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

/// A place that takes no connection.
pub(crate) struct Full {
    pub(crate) url: String,
    _held: (std::net::TcpListener, Vec<TcpStream>),
}

/// Listens, accepts nothing, and has so many connections waiting that the next one hangs.
pub(crate) async fn full() -> Full {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap().into_std().unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..64 {
        let stream = TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(300), stream).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => break,
        }
    }
    Full { url: format!("http://{address}"), _held: (listener, held) }
}
