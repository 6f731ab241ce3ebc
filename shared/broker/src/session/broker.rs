//! The handle that everything else starts from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::types::ShortString;
use lapin::uri::AMQPUri;
use prometheus::Registry;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{QueueState, Session, supervisor};
use crate::config::{BrokerConfig, ConfigError};
use crate::consumer::{Consumer, ConsumerConfig};
use crate::listener::Listener;
use crate::metrics::Metrics;
use crate::outgoing::short;
use crate::publisher::{Publisher, facts};
use crate::requester::Requester;

/// Longest wait of [`Broker::close`].
const CLOSE_BOUND: Duration = Duration::from_secs(3);

/// Why a broker could not be started. A broker that does not answer is none of these: connecting goes on by itself.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The configuration can never work.
    #[error("broker configuration: {0}")]
    Config(#[from] ConfigError),
    /// The name does not fit into a message.
    #[error("the name of the broker connection has more than 255 bytes")]
    Name,
    /// The metrics are registered already.
    #[error("registering the metrics of the broker")]
    Metrics(#[from] prometheus::Error),
    /// No thread for the connections.
    #[error("starting the broker thread")]
    Thread(#[from] std::io::Error),
}

/// There is no session, or it ended while the broker was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the broker could not be asked")]
pub struct NotAsked;

pub(crate) struct Shared {
    pub(crate) config: BrokerConfig,
    pub(crate) endpoints: Vec<AMQPUri>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: CancellationToken,
    sessions: watch::Sender<Option<Arc<Session>>>,
    connected: watch::Sender<bool>,
    had_session: AtomicBool,
}

impl Shared {
    pub(crate) fn sessions(&self) -> watch::Receiver<Option<Arc<Session>>> {
        self.sessions.subscribe()
    }

    pub(super) fn up(&self, session: &Arc<Session>) {
        tracing::info!("connected to the broker");
        if self.had_session.swap(true, Ordering::Relaxed) {
            self.metrics.reconnects.inc();
        }
        self.metrics.connected.set(1);
        self.sessions.send_replace(Some(Arc::clone(session)));
        self.connected.send_replace(true);
    }

    pub(super) fn down(&self) {
        self.metrics.connected.set(0);
        self.sessions.send_replace(None);
        self.connected.send_replace(false);
    }
}

/// A handle of the connection to the broker. Clones share it.
///
/// The connections live on a thread of their own, so that heartbeats go out while the workers' threads compute.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    publisher: Publisher,
    runtime: Option<Runtime>,
    handle: Handle,
    ended: watch::Receiver<bool>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            // Dropping a runtime inside another one panics; this does not wait.
            runtime.shutdown_background();
        }
    }
}

impl Broker {
    /// Starts connecting and returns at once; see [`Broker::connected`].
    pub fn start(config: BrokerConfig, registry: &Registry) -> Result<Self, BrokerError> {
        let endpoints = config.check()?;
        let app_id: ShortString = short(config.name.as_str()).map_err(|_| BrokerError::Name)?;
        let metrics = Metrics::register(registry)?;
        let shared = Arc::new(Shared {
            config,
            endpoints,
            metrics,
            stop: CancellationToken::new(),
            sessions: watch::Sender::new(None),
            connected: watch::Sender::new(false),
            had_session: AtomicBool::new(false),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("amqp")
            .enable_all()
            .build()?;
        let (end, ended) = watch::channel(false);
        let supervised = Arc::clone(&shared);
        runtime.spawn(async move {
            supervisor::run(supervised).await;
            end.send_replace(true);
        });
        let (facts, waiting) = facts::way();
        runtime.spawn(facts::run(Arc::clone(&shared), app_id.clone(), waiting));
        let publisher = Publisher::new(Arc::clone(&shared), app_id, facts);
        let handle = runtime.handle().clone();
        Ok(Self {
            inner: Arc::new(Inner { shared, publisher, runtime: Some(runtime), handle, ended }),
        })
    }

    /// Whether a session stands, now and as it changes.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.inner.shared.connected.subscribe()
    }

    /// Waits until a session stands, for at most `bound`. True if one does.
    pub async fn wait_connected(&self, bound: Duration) -> bool {
        timeout(bound, self.connected().wait_for(|up| *up)).await.is_ok_and(|up| up.is_ok())
    }

    /// Resolves when there has been no session for `lost_after`; never after [`Broker::close`]. The process then ends and
    /// is started anew.
    pub async fn lost(&self) {
        let stop = &self.inner.shared.stop;
        let lost = self.unconnected_for(self.inner.shared.config.lost_after);
        if stop.run_until_cancelled(lost).await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    async fn unconnected_for(&self, bound: Duration) {
        let mut connected = self.connected();
        // The sender is in `self`, so waiting for a value fails only by the timeout.
        while timeout(bound, connected.wait_for(|up| *up)).await.is_ok() {
            let _ = connected.wait_for(|up| !*up).await;
        }
    }

    /// A queue as it is now, or none if there is no such queue. Bounded by the time of one call; needs no rights.
    pub async fn queue(&self, queue: &str) -> Result<Option<QueueState>, NotAsked> {
        let session = self.inner.shared.sessions().borrow().clone();
        session.ok_or(NotAsked)?.queue(queue).await.map_err(|_| NotAsked)
    }

    /// The publisher of this process. Clones share the bounds of what is in flight.
    pub fn publisher(&self) -> Publisher {
        self.inner.publisher.clone()
    }

    /// A consumer; nothing happens before [`Consumer::run`].
    pub fn consumer(&self, config: ConsumerConfig) -> Consumer {
        Consumer::new(Arc::clone(&self.inner.shared), self.publisher(), config)
    }

    /// Somebody who asks and waits for answers. One for each process is enough.
    pub fn requester(&self) -> Requester {
        Requester::new(&self.inner.shared, self.publisher(), &self.inner.handle)
    }

    /// Somebody who hears the facts with these routing keys, in which `*` is one word and `#` any number of them. Needs the right to
    /// make a queue.
    pub fn listen(&self, keys: Vec<String>) -> Listener {
        Listener::new(&self.inner.shared, &self.inner.handle, keys)
    }

    /// Closes both connections, within about two seconds. Publishes afterwards fail.
    pub async fn close(&self) {
        self.inner.shared.stop.cancel();
        let mut ended = self.inner.ended.clone();
        let _ = timeout(CLOSE_BOUND, ended.wait_for(|ended| *ended)).await;
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("name", &self.inner.shared.config.name)
            .finish_non_exhaustive()
    }
}
