//! One AMQP connection whose socket can be cut.
//!
//! The client library cannot give up a connection that is blocked or whose handshake stalls: its thread waits on the socket
//! for ever. So a second handle of the socket is kept, and shutting it down ends that thread. Its own recovery stays off:
//! after it, delivery tags mean something else, and errors of single channels are not covered.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_rs::TokioRuntime;
use lapin::options::{BasicQosOptions, ConfirmSelectOptions};
use lapin::tcp::{AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::timeout;

/// Why something did not work. Holds no secrets: the library's errors are protocol texts and I/O errors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("no answer in time")]
    TimedOut,
    #[error("{0}")]
    Amqp(#[from] lapin::Error),
}

/// A second handle of the socket. It cuts when this side is dropped, not when the last reference is: the library's thread
/// holds the other one for as long as it lives.
#[derive(Default)]
struct Cutter(Arc<Mutex<Option<TcpStream>>>);

fn hold(held: &Mutex<Option<TcpStream>>, socket: &impl AsFd) -> std::io::Result<()> {
    let socket = TcpStream::from(socket.as_fd().try_clone_to_owned()?);
    *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    Ok(())
}

impl Drop for Cutter {
    fn drop(&mut self) {
        if let Some(socket) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // An error means that it is closed already, which is what is wanted.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// One connection.
pub(crate) struct Link {
    connection: Connection,
    rpc_timeout: Duration,
    // After the connection, so that it is dropped last.
    _cutter: Cutter,
}

impl Link {
    pub(crate) async fn connect(
        uri: AMQPUri,
        name: &str,
        runtime: TokioRuntime,
        connect_timeout: Duration,
        rpc_timeout: Duration,
    ) -> Result<Self, LinkError> {
        let cutter = Cutter::default();
        let held = Arc::clone(&cutter.0);
        let dial = async move |uri: AMQPUri, runtime: TokioRuntime| -> lapin::Result<_> {
            let address = runtime.to_socket_addrs((uri.authority.host.clone(), uri.authority.port));
            let stream = AsyncTcpStream::connect(&runtime, address).await?;
            if let AsyncTcpStream::Plain(plain) = &stream {
                hold(&held, plain.get_ref())?;
            }
            match uri.scheme {
                AMQPScheme::AMQP => Ok(stream),
                AMQPScheme::AMQPS => Ok(stream
                    .into_tls(&uri.authority.host, OwnedTLSConfig::default().as_ref())
                    .await?),
            }
        };
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let connecting = Connection::connector(uri, runtime, dial, properties);
        let connection =
            timeout(connect_timeout, connecting).await.map_err(|_| LinkError::TimedOut)??;
        Ok(Self { connection, rpc_timeout, _cutter: cutter })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn is_up(&self) -> bool {
        self.connection.status().connected()
    }

    pub(crate) async fn channel(&self) -> Result<Channel, LinkError> {
        self.bounded(self.connection.create_channel()).await
    }

    pub(crate) async fn confirm_channel(&self) -> Result<Channel, LinkError> {
        let channel = self.channel().await?;
        self.bounded(channel.confirm_select(ConfirmSelectOptions::default())).await?;
        Ok(channel)
    }

    pub(crate) async fn consume_channel(&self, prefetch: u16) -> Result<Channel, LinkError> {
        let channel = self.channel().await?;
        self.bounded(channel.basic_qos(prefetch, BasicQosOptions::default())).await?;
        Ok(channel)
    }

    /// One question to the broker, with the bound of all questions.
    pub(crate) async fn bounded<T>(
        &self,
        question: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, LinkError> {
        Ok(timeout(self.rpc_timeout, question).await.map_err(|_| LinkError::TimedOut)??)
    }

    /// Says goodbye if the broker listens; dropping the link afterwards cuts the socket.
    pub(crate) async fn close(&self, bound: Duration) {
        let _ = timeout(bound, self.connection.close(200, "OK".into())).await;
    }
}
