//! Connections to Redis: how they are made, and the slots that share them.
//!
//! A slot holds one connection for long and lends clones of it: a clone carries its command beside those of everybody else,
//! so one `fsync` of Redis serves many. The client never repairs a connection by itself; a slot whose connection has failed
//! is emptied and the next caller makes a new one. No blocking command may be sent through a slot.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use deadpool_redis::{Manager, Pool, PoolError, Runtime, Timeouts};
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, RedisResult, Value};
use secrecy::ExposeSecret;

use crate::config::StoreConfig;
use crate::error::StoreError;
use crate::url::{self, Topology};

/// Making a connection may take this long, with name resolution, TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Commands that wait for their turn to be written to one connection; callers beyond that wait outside.
const WRITE_QUEUE: usize = 512;

/// A connection that does not answer so many commands in a row is given up: the other side may be gone without a word.
const TIMEOUTS_MAX: u32 = 3;

/// Something that takes commands.
#[derive(Clone)]
pub(crate) enum Link {
    /// To one server.
    One(MultiplexedConnection),
    /// To all nodes of a cluster.
    Cluster(ClusterConnection),
}

impl Link {
    /// Sends one command and waits for its answer.
    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => Box::pin(command.query_async(connection)).await,
        }
    }
}

/// Makes connections.
enum Connector {
    Pool(Pool),
    Sentinel(Box<tokio::sync::Mutex<SentinelClient>>),
    Cluster(Box<ClusterClient>),
}

/// A connection with whatever keeps it counted by its pool.
enum Held {
    Pooled(deadpool_redis::Connection),
    Own(Link),
}

impl Held {
    fn link(&self) -> Link {
        match self {
            Self::Pooled(connection) => {
                let shared: &MultiplexedConnection = connection;
                Link::One(shared.clone())
            }
            Self::Own(link) => link.clone(),
        }
    }

    /// Ends it for good; a pool must not hand it out again.
    fn discard(self) {
        if let Self::Pooled(connection) = self {
            drop(deadpool_redis::Connection::take(connection));
        }
    }
}

fn connection_config(response_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(response_timeout))
        .set_pipeline_buffer_size(WRITE_QUEUE)
}

fn sentinel_client(
    sentinels: &[redis::ConnectionInfo],
    master: &str,
    node: &redis::ConnectionInfo,
) -> RedisResult<SentinelClient> {
    let addresses = sentinels.iter().map(|sentinel| sentinel.addr().clone());
    let settings = node.redis_settings();
    let mut builder = SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?
        .set_client_to_redis_db(settings.db())
        .set_client_to_redis_tcp_settings(url::tcp_settings())
        .set_client_to_sentinel_tcp_settings(url::tcp_settings());
    if let Some(username) = settings.username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = settings.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if matches!(node.addr(), redis::ConnectionAddr::TcpTls { .. }) {
        builder = builder.set_client_to_redis_tls_mode(redis::TlsMode::Secure);
    }
    let guard = sentinels.first().and_then(|sentinel| sentinel.redis_settings().password());
    if let Some(password) = guard {
        builder = builder.set_client_to_sentinel_password(password);
    }
    builder.build()
}

/// TLS needs a provider of cryptography for the whole process. Whoever has chosen one before is left alone.
fn prepare_tls(info: &redis::ConnectionInfo) {
    if matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn connector(config: &StoreConfig) -> Result<Connector, StoreError> {
    let wrong = |_| StoreError::Config("the redis URL describes no client");
    match url::parse(config.url.expose_secret())? {
        Topology::Single(info) => {
            prepare_tls(&info);
            let manager =
                Manager::new_with_config(*info, connection_config(config.response_timeout))
                    .map_err(wrong)?;
            let timeouts = Timeouts {
                wait: Some(CONNECT_TIMEOUT),
                create: Some(CONNECT_TIMEOUT),
                recycle: Some(CONNECT_TIMEOUT),
            };
            Pool::builder(manager)
                .max_size(config.connections)
                .timeouts(timeouts)
                .runtime(Runtime::Tokio1)
                .build()
                .map(Connector::Pool)
                .map_err(|_| StoreError::Config("the pool of redis connections cannot be built"))
        }
        Topology::Sentinel { sentinels, master, node } => {
            prepare_tls(&node);
            let client = sentinel_client(&sentinels, &master, &node).map_err(wrong)?;
            Ok(Connector::Sentinel(Box::new(tokio::sync::Mutex::new(client))))
        }
        // The pool's own cluster manager knows neither timeouts nor socket settings.
        Topology::Cluster { nodes } => {
            nodes.iter().for_each(prepare_tls);
            ClusterClientBuilder::new(nodes)
                .connection_timeout(CONNECT_TIMEOUT)
                .response_timeout(config.response_timeout)
                .tcp_settings(url::tcp_settings())
                .retries(2)
                .build()
                .map(|client| Connector::Cluster(Box::new(client)))
                .map_err(wrong)
        }
    }
}

/// The connection in a slot.
struct Current {
    held: Held,
    generation: u64,
}

/// An attempt to connect that failed, for all who waited for it.
struct Failure {
    at: Instant,
    error: RedisError,
}

/// One shared connection, or the place for it.
#[derive(Default)]
struct Slot {
    current: RwLock<Option<Current>>,
    /// Held while somebody connects; remembers the last failure.
    connecting: tokio::sync::Mutex<Option<Failure>>,
    timeouts: AtomicU32,
}

/// A clone of a slot's connection, with what it takes to report back how it did.
pub(crate) struct Loan {
    pub(crate) link: Link,
    slot: usize,
    generation: u64,
}

/// All shared connections of one store.
pub(crate) struct Slots {
    connector: Connector,
    places: Vec<Slot>,
    next: AtomicUsize,
    generations: AtomicU64,
    response_timeout: Duration,
}

impl Slots {
    /// Prepares the connections. Makes none yet.
    pub(crate) fn new(config: &StoreConfig) -> Result<Self, StoreError> {
        Ok(Self {
            connector: connector(config)?,
            places: (0..config.connections).map(|_| Slot::default()).collect(),
            next: AtomicUsize::new(0),
            generations: AtomicU64::new(1),
            response_timeout: config.response_timeout,
        })
    }

    async fn connect(&self) -> RedisResult<Held> {
        match &self.connector {
            Connector::Pool(pool) => {
                pool.get().await.map(Held::Pooled).map_err(|error| match error {
                    PoolError::Backend(error) => error,
                    PoolError::Timeout(_) => {
                        std::io::Error::from(std::io::ErrorKind::TimedOut).into()
                    }
                    _ => RedisError::from((ErrorKind::Client, "the pool of connections is closed")),
                })
            }
            Connector::Sentinel(client) => {
                let config = connection_config(self.response_timeout);
                let mut client = client.lock().await;
                let connection = client.get_async_connection_with_config(&config).await?;
                Ok(Held::Own(Link::One(connection)))
            }
            Connector::Cluster(client) => {
                client.get_async_connection().await.map(|link| Held::Own(Link::Cluster(link)))
            }
        }
    }

    fn lend(slot: &Slot, index: usize) -> Option<Loan> {
        let current = slot.current.read().unwrap_or_else(PoisonError::into_inner);
        let current = current.as_ref()?;
        Some(Loan { link: current.held.link(), slot: index, generation: current.generation })
    }

    /// The next connection in turn; makes it if there is none. One caller connects, the others of the slot wait for it and
    /// share its failure too: a server that is down is not run over by those who miss it.
    pub(crate) async fn get(&self) -> RedisResult<Loan> {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.places.len();
        let Some(slot) = self.places.get(index) else {
            return Err(RedisError::from((ErrorKind::Client, "there are no connections")));
        };
        if let Some(loan) = Self::lend(slot, index) {
            return Ok(loan);
        }
        // Rare and large: it must not make the future of every operation large.
        Box::pin(self.fill(slot, index)).await
    }

    async fn fill(&self, slot: &Slot, index: usize) -> RedisResult<Loan> {
        let asked_at = Instant::now();
        let mut last_failure = slot.connecting.lock().await;
        if let Some(loan) = Self::lend(slot, index) {
            return Ok(loan);
        }
        if let Some(failure) = last_failure.as_ref().filter(|failure| failure.at >= asked_at) {
            return Err(failure.error.clone());
        }
        let held = match self.connect().await {
            Ok(held) => held,
            Err(error) => {
                *last_failure = Some(Failure { at: Instant::now(), error: error.clone() });
                return Err(error);
            }
        };
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let loan = Loan { link: held.link(), slot: index, generation };
        slot.timeouts.store(0, Ordering::Relaxed);
        *slot.current.write().unwrap_or_else(PoisonError::into_inner) =
            Some(Current { held, generation });
        Ok(loan)
    }

    /// The connection has answered.
    pub(crate) fn answered(&self, loan: &Loan) {
        if let Some(slot) = self.places.get(loan.slot)
            && slot.timeouts.load(Ordering::Relaxed) != 0
        {
            slot.timeouts.store(0, Ordering::Relaxed);
        }
    }

    /// The connection has not answered in time. Too often in a row, and it is given up.
    pub(crate) fn timed_out(&self, loan: &Loan) {
        if let Some(slot) = self.places.get(loan.slot)
            && slot.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS_MAX
        {
            self.discard(loan);
        }
    }

    /// The connection is of no use any more. Does nothing if it has been replaced already.
    pub(crate) fn discard(&self, loan: &Loan) {
        let Some(slot) = self.places.get(loan.slot) else { return };
        let mut current = slot.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| current.generation == loan.generation)
            && let Some(current) = current.take()
        {
            current.held.discard();
        }
    }
}
