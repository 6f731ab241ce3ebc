//! A TCP proxy in front of the broker that can stop passing bytes, cut connections, and refuse new ones.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(crate) struct Mode {
    /// Bytes of the client wait.
    pub(crate) stall_up: bool,
    /// Bytes of the broker wait.
    pub(crate) stall_down: bool,
    /// Bytes of the broker wait on the connections with an odd number, counted from 0.
    pub(crate) deaf: bool,
    /// New connections are accepted and closed at once.
    pub(crate) refuse: bool,
    /// Changing it cuts every connection.
    pub(crate) cut: u32,
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    mode: watch::Sender<Mode>,
    target: Arc<Mutex<String>>,
}

impl Proxy {
    pub(crate) async fn new(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, modes) = watch::channel(Mode::default());
        let target = Arc::new(Mutex::new(target));
        let current = Arc::clone(&target);
        tokio::spawn(async move {
            let mut number = 0_u32;
            while let Ok((client, _)) = listener.accept().await {
                if modes.borrow().refuse {
                    continue;
                }
                let target = current.lock().unwrap().clone();
                let Ok(server) = TcpStream::connect(target).await else { continue };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (client_read, client_write) = client.into_split();
                let (server_read, server_write) = server.into_split();
                tokio::spawn(pass(client_read, server_write, modes.clone(), |mode| mode.stall_up));
                let stalled: fn(&Mode) -> bool = if number % 2 == 1 {
                    |mode| mode.stall_down || mode.deaf
                } else {
                    |mode| mode.stall_down
                };
                tokio::spawn(pass(server_read, client_write, modes.clone(), stalled));
                number += 1;
            }
        });
        Self { address, mode, target }
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Mode)) {
        self.mode.send_modify(change);
    }

    /// Of the two connections of a session the consuming one hears nothing more.
    pub(crate) fn deafen_second(&self) {
        self.set(|mode| mode.deaf = true);
    }

    pub(crate) fn hear_again(&self) {
        self.set(|mode| mode.deaf = false);
    }

    /// New connections go there.
    pub(crate) fn retarget(&self, target: String) {
        *self.target.lock().unwrap() = target;
    }

    pub(crate) fn cut(&self) {
        self.set(|mode| mode.cut += 1);
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut modes: watch::Receiver<Mode>,
    stalled: fn(&Mode) -> bool,
) {
    let cut = modes.borrow_and_update().cut;
    let mut buffer = vec![0; 16 * 1024];
    let mut cuts = modes.clone();
    let passing = async {
        loop {
            let Ok(count @ 1..) = from.read(&mut buffer).await else { return };
            if modes.wait_for(|mode| !stalled(mode)).await.is_err()
                || to.write_all(&buffer[..count]).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = passing => {}
        _ = cuts.wait_for(|mode| mode.cut != cut) => {}
    }
}
