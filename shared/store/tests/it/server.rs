//! Redis servers of a test's own: one that is killed, a cluster, a primary with a replica and a Sentinel.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use ulid::Ulid;

use crate::world::connect;

/// Writes reach the disk before they are acknowledged.
pub(crate) const DURABLE: &str = "appendonly yes\nappendfsync always\nsave \"\"";

/// A `redis-server` process; killed and removed with this value.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    directory: TempDir,
    sentinel: bool,
}

/// Below the ports of outgoing connections: one of those could take the place of a server that is down for a while.
fn free_port() -> u16 {
    (0..1_000)
        .map(|_| {
            20_000 + u16::try_from(Ulid::generate().random() % 10_000).expect("a small number")
        })
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

fn spawn(configuration: &PathBuf, sentinel: bool) -> Child {
    let mut command = Command::new("redis-server");
    command.arg(configuration).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if sentinel {
        command.arg("--sentinel");
    }
    command.spawn().expect("redis-server")
}

impl Server {
    /// Starts a server with these lines of configuration and waits until it answers.
    pub(crate) async fn start(configuration: &str) -> Self {
        Self::launch(configuration, false).await
    }

    /// Starts a Sentinel.
    pub(crate) async fn sentinel(configuration: &str) -> Self {
        Self::launch(configuration, true).await
    }

    async fn launch(configuration: &str, sentinel: bool) -> Self {
        for _ in 0..10 {
            let directory = tempfile::tempdir().expect("a directory");
            let port = free_port();
            let file = directory.path().join("redis.conf");
            let common = format!(
                "bind 127.0.0.1\nport {port}\ndir {}\nlogfile redis.log\n",
                directory.path().display()
            );
            std::fs::write(&file, format!("{common}{configuration}\n")).expect("a configuration");
            let mut server = Self { child: spawn(&file, sentinel), port, directory, sentinel };
            if server.answers().await {
                return server;
            }
        }
        panic!("no server stays");
    }

    /// Waits until it answers. False if it has ended: somebody else was faster with its port, or has the one of its cluster bus,
    /// which is 10,000 higher and may be an outgoing connection's.
    async fn answers(&mut self) -> bool {
        let begun = Instant::now();
        // A complaint about the password is an answer too.
        while self.command(&["PING"]).await.is_err_and(|error| error.is_io_error()) {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "a server that answers");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Whoever answers at this port is this one only if it still runs.
        self.child.try_wait().expect("a child").is_none()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends one command, without the password that the server may have.
    pub(crate) async fn command(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut connection = connect(&self.url()).await?;
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was, with the data that it has stored.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&self.directory.path().join("redis.conf"), self.sentinel);
        assert!(self.answers().await, "it starts again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
