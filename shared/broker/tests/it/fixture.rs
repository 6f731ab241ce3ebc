//! A virtual host per test with only the queues that it needs, and the words that tests are written in.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, QueueDeclareOptions, QueuePurgeOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use prometheus::Registry;
use runfleet_broker::{
    Broker, BrokerConfig, ConsumerConfig, DecodeError, Drained, HandlerResult, Inbound, Inbox,
    LaneConfig, Management, Outgoing, Publisher, Route, Topology, TopologyAdmin,
};
use runfleet_domain::Lane;
use secrecy::{ExposeSecret, SecretString};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest wait for anything that must happen.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// The wait on every rung of the ladder.
pub(crate) const RUNG: Duration = Duration::from_millis(100);

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests have no other settings")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!("{name} is not set: run `make test`, or source the services.env of `deploy/local/services start`")
    })
}

/// A virtual host that is gone when the test ends.
pub(crate) struct Fixture {
    pub(crate) vhost: String,
    pub(crate) urls: SecretString,
    pub(crate) management: Management,
    pub(crate) topology: Topology,
    pub(crate) registry: Registry,
}

impl Fixture {
    /// With `queues`, their parking queues and the ladder.
    pub(crate) async fn new(queues: &[&str]) -> Self {
        Self::with(queues, |_| {}).await
    }

    /// The same with a change of the topology.
    pub(crate) async fn with(queues: &[&str], change: impl FnOnce(&mut Topology)) -> Self {
        let url = variable("RUNFLEET_AMQP_URL");
        let management = SecretString::from(variable("RUNFLEET_AMQP_MANAGEMENT_URL"));
        Self::at(&url, &management, queues, change).await
    }

    pub(crate) async fn at(
        url: &str,
        management: &SecretString,
        queues: &[&str],
        change: impl FnOnce(&mut Topology),
    ) -> Self {
        let management = Management::new(management).unwrap();
        let vhost = format!("test-{}-{:08x}", std::process::id(), rand::random::<u32>());
        management.put_vhost(&vhost, management.user()).await.unwrap();
        let mut topology = only(Topology::with_delays(|_| RUNG), queues);
        change(&mut topology);
        let base = url.rsplit_once('/').unwrap().0;
        let urls = SecretString::from(format!("{base}/{vhost}"));
        let fixture = Self { vhost, urls, management, topology, registry: Registry::new() };
        fixture.admin().apply().await.unwrap();
        fixture
    }

    pub(crate) fn admin(&self) -> TopologyAdmin {
        TopologyAdmin::new(self.urls.clone(), self.management.clone(), self.topology.clone())
            .unwrap()
    }

    pub(crate) fn config(&self) -> BrokerConfig {
        let mut config = BrokerConfig::new(self.urls.clone(), format!("it {}", self.vhost));
        config.required = self.topology.objects();
        config.backoff_max = Duration::from_secs(1);
        config
    }

    pub(crate) async fn broker(&self) -> Broker {
        self.broker_with(|_| {}).await
    }

    pub(crate) async fn broker_with(&self, change: impl FnOnce(&mut BrokerConfig)) -> Broker {
        let mut config = self.config();
        change(&mut config);
        let broker = Broker::start(config, &self.registry).unwrap();
        assert!(broker.wait_connected(BOUND).await, "not connected");
        broker
    }

    /// The URL with another host and port.
    pub(crate) fn url_at(&self, address: std::net::SocketAddr) -> SecretString {
        let url = self.urls.expose_secret();
        let (user, rest) = url.split_once('@').unwrap();
        let (_, vhost) = rest.split_once('/').unwrap();
        SecretString::from(format!("{user}@{address}/{vhost}"))
    }

    pub(crate) fn address(&self) -> String {
        let url = self.urls.expose_secret();
        url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned()
    }

    pub(crate) async fn raw(&self) -> (Connection, Channel) {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(self.urls.expose_secret(), properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        (connection, channel)
    }

    /// Publishes what no publisher of ours would.
    pub(crate) async fn publish_raw(&self, queue: &str, properties: BasicProperties, body: &[u8]) {
        let (connection, channel) = self.raw().await;
        let options = BasicPublishOptions::default();
        channel.basic_publish("".into(), queue.into(), options, body, properties).await.unwrap();
        connection.close(200, "OK".into()).await.unwrap();
    }

    /// Takes one message out of a queue, waiting for it.
    pub(crate) async fn take(&self, queue: &str) -> BasicGetMessage {
        let (connection, channel) = self.raw().await;
        let deadline = Instant::now() + BOUND;
        let options = BasicGetOptions { no_ack: true };
        loop {
            if let Some(message) = channel.basic_get(queue.into(), options).await.unwrap() {
                connection.close(200, "OK".into()).await.unwrap();
                return message;
            }
            assert!(Instant::now() < deadline, "nothing came into {queue}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Messages that are ready in a queue.
    pub(crate) async fn ready(&self, queue: &str) -> u32 {
        let (connection, channel) = self.raw().await;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found =
            channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap();
        connection.close(200, "OK".into()).await.unwrap();
        found.message_count()
    }

    /// Consumers of a queue.
    pub(crate) async fn consumers(&self, queue: &str) -> u32 {
        let (connection, channel) = self.raw().await;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found =
            channel.queue_declare(queue.into(), options, FieldTable::default()).await.unwrap();
        connection.close(200, "OK".into()).await.unwrap();
        found.consumer_count()
    }

    /// Messages that a consumer holds, as the management API counts them: some seconds late.
    pub(crate) async fn unacked(&self, queue: &str) -> u64 {
        let queues = self.management.queues(&self.vhost).await.unwrap();
        let found = queues.into_iter().find(|found| found.name == queue);
        found.unwrap().messages_unacknowledged
    }

    /// Messages that are ready in a queue, counted by taking them all out.
    pub(crate) async fn purge(&self, queue: &str) -> u32 {
        let (connection, channel) = self.raw().await;
        let purged = channel.queue_purge(queue.into(), QueuePurgeOptions::default()).await.unwrap();
        connection.close(200, "OK".into()).await.unwrap();
        purged
    }

    /// Closes every connection into this virtual host, as the broker's operator could.
    pub(crate) async fn kill_connections(&self) -> usize {
        let mut killed = 0;
        for connection in self.management.connections().await.unwrap() {
            if connection.vhost == self.vhost {
                self.management.close_connection(&connection.name).await.unwrap();
                killed += 1;
            }
        }
        killed
    }

    /// The value of a series, or 0.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text =
            prometheus::TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    pub(crate) fn settled(&self, queue: &str, result: &str) -> f64 {
        self.metric(&format!(
            "runfleet_consumer_messages_total{{queue=\"{queue}\",result=\"{result}\"}}"
        ))
    }

    pub(crate) fn reconnects(&self) -> f64 {
        self.metric("runfleet_broker_reconnects_total")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let (management, vhost) = (self.management.clone(), self.vhost.clone());
        let deleting = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                // A broker that has just come back from a crash may say no for a while: its queues elect leaders first.
                let mut tries = 0;
                while let Err(error) = management.delete_vhost(&vhost).await {
                    tries += 1;
                    assert!(tries < 40, "{error}");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            });
        });
        let deleted = deleting.join();
        assert!(deleted.is_ok() || std::thread::panicking(), "the virtual host was not deleted");
    }
}

/// The queues, their parking queues and the ladder.
fn only(mut topology: Topology, queues: &[&str]) -> Topology {
    let wanted = |name: &str| {
        queues.contains(&name)
            || name.strip_prefix("dead.").is_some_and(|work| queues.contains(&work))
            || (name.starts_with("retry.") && !queues.is_empty())
    };
    topology.queues.retain(|queue| wanted(&queue.name));
    topology.bindings.retain(|binding| wanted(&binding.queue));
    topology
}

/// Waits until `condition` holds; `what` is still missing when it does not.
pub(crate) async fn wait_until(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !condition().await {
        assert!(Instant::now() < deadline, "{what}: still missing after {BOUND:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The body of the tests, of kind `note.v1`.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct Note {
    pub(crate) text: String,
}

impl Inbox for Note {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            "note.v1" => {
                let note = serde_json::from_slice(body);
                note.map_err(|error| {
                    DecodeError::Malformed(format!("no note at {}", error.column()))
                })
            }
            "note.v2" => Err(DecodeError::NewerVersion),
            _ => Err(DecodeError::UnknownKind),
        }
    }
}

/// A note with this id.
pub(crate) fn note(id: &str) -> Outgoing {
    Outgoing::new("note.v1", id, b"{\"text\":\"hello\"}".to_vec())
}

pub(crate) async fn publish(publisher: &Publisher, route: &Route, id: &str) {
    publisher.publish(route, note(id)).await.unwrap();
}

/// What a handler saw, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(String, u32)>>>);

impl Seen {
    pub(crate) fn add(&self, message: &Inbound<Note>) {
        self.0.lock().unwrap().push((message.message_id.clone(), message.attempt));
    }

    pub(crate) fn all(&self) -> Vec<(String, u32)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.all().into_iter().map(|(id, _)| id).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) async fn wait_for(&self, count: usize) {
        wait_until(&format!("{count} messages"), async || self.count() >= count).await;
    }
}

/// A consumer that runs beside the test.
pub(crate) struct Running {
    pub(crate) shutdown: CancellationToken,
    task: JoinHandle<Drained>,
}

impl Running {
    pub(crate) async fn stop(self) -> Drained {
        self.shutdown.cancel();
        self.task.await.unwrap()
    }
}

/// One interactive lane.
pub(crate) fn lane(queue: &str, prefetch: u16) -> ConsumerConfig {
    ConsumerConfig::new(vec![LaneConfig::new(queue, Lane::Interactive, prefetch)])
}

pub(crate) fn consume<F, Fut>(
    broker: &Broker,
    config: ConsumerConfig,
    grace: Duration,
    handler: F,
) -> Running
where
    F: Fn(Inbound<Note>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult> + Send + 'static,
{
    let shutdown = CancellationToken::new();
    let consumer = broker.consumer(config);
    let task = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { consumer.run(handler, shutdown, grace).await.unwrap() }
    });
    Running { shutdown, task }
}
