//! A loopback proxy in front of Redis that can cut connections and hold back answers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Default)]
struct Shared {
    stalled: AtomicBool,
    made: AtomicUsize,
    open: Mutex<Vec<JoinHandle<()>>>,
}

/// Forwards to one address until it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn before(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, target, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Connections made so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.made.load(Ordering::Relaxed)
    }

    /// Closes all connections; new ones are taken. What was held back is lost for certain.
    pub(crate) async fn cut(&self) {
        let open = std::mem::take(&mut *self.shared.open.lock().expect("a list"));
        for connection in open {
            connection.abort();
            let _ = connection.await;
        }
    }

    /// Whether answers are held back. Requests still reach Redis.
    pub(crate) fn stall(&self, stalled: bool) {
        self.shared.stalled.store(stalled, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: String, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        shared.made.fetch_add(1, Ordering::Relaxed);
        let (target, of_connection) = (target.clone(), Arc::clone(&shared));
        let connection =
            tokio::spawn(async move { forward(client, &target, &of_connection).await });
        shared.open.lock().expect("a list").push(connection);
    }
}

async fn forward(client: TcpStream, target: &str, shared: &Shared) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    };
    let answers = async {
        let mut buffer = vec![0; 16_384];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            while shared.stalled.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        () = answers => {}
    }
}
