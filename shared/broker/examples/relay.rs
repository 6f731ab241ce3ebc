//! Measures one hop through the broker: publish, confirm, consume, ack, in messages a second. First through this crate, then
//! with the bare client library, both with 512-byte persistent messages in a quorum queue.
//!
//! `RUNFLEET_AMQP_URL=… RUNFLEET_AMQP_MANAGEMENT_URL=… cargo run --release --example relay -- [MESSAGES] [IN_FLIGHT]…`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement for people, which stops at the first surprise"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use prometheus::Registry;
use runfleet_broker::{
    Broker, BrokerConfig, ConsumerConfig, DecodeError, Inbound, Inbox, LaneConfig, Management,
    Outgoing, Route, Topology, TopologyAdmin, Verdict,
};
use runfleet_domain::Lane;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const ROUTE: Route = Route::Done(Lane::Backfill);
const BODY: [u8; 512] = [b' '; 512];

struct Bytes;

impl Inbox for Bytes {
    fn decode(_kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        if body.is_empty() { Err(DecodeError::UnknownKind) } else { Ok(Self) }
    }
}

/// Counts what came in, and says when it is all.
struct Target {
    left: AtomicU64,
    reached: Notify,
}

impl Target {
    fn new(messages: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(messages), reached: Notify::new() })
    }

    fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.reached.notify_one();
        }
    }
}

fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "an example has no settings")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| {
        panic!("{name} is not set: source the services.env of `deploy/local/services start`")
    })
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let messages = arguments.next().unwrap_or(20_000);
    let mut in_flight: Vec<u64> = arguments.collect();
    if in_flight.is_empty() {
        in_flight = vec![64, 256];
    }
    let management =
        Management::new(&SecretString::from(variable("RUNFLEET_AMQP_MANAGEMENT_URL"))).unwrap();
    let vhost = format!("relay-{}", std::process::id());
    management.put_vhost(&vhost, management.user()).await.unwrap();
    let url = variable("RUNFLEET_AMQP_URL");
    let urls = SecretString::from(format!("{}/{vhost}", url.rsplit_once('/').unwrap().0));
    TopologyAdmin::new(urls.clone(), management.clone(), Topology::standard())
        .unwrap()
        .apply()
        .await
        .unwrap();
    for count in in_flight {
        let prefetch = u16::try_from(count).unwrap();
        let ours = through_the_crate(&urls, messages, prefetch).await;
        report("runfleet-broker", messages, count, ours);
        let bare = through_the_library(&urls, messages, prefetch).await;
        report("bare library", messages, count, bare);
    }
    management.delete_vhost(&vhost).await.unwrap();
}

#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
fn report(what: &str, messages: u64, in_flight: u64, (took, cpu): (Duration, Duration)) {
    let rate = messages as f64 / took.as_secs_f64();
    let each = cpu.as_secs_f64() * 1e6 / messages as f64;
    println!("{what:16} {in_flight:4} in flight: {rate:6.0} messages/s, {each:4.0} µs of CPU each");
}

/// CPU time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

async fn through_the_crate(
    urls: &SecretString,
    messages: u64,
    prefetch: u16,
) -> (Duration, Duration) {
    let broker = Broker::start(BrokerConfig::new(urls.clone(), "relay"), &Registry::new()).unwrap();
    assert!(broker.wait_connected(Duration::from_secs(30)).await);
    let target = Target::new(messages);
    let shutdown = CancellationToken::new();
    let mut lane =
        ConsumerConfig::new(vec![LaneConfig::new(ROUTE.queue(), Lane::Backfill, prefetch)]);
    lane.handler_timeout = Duration::from_secs(5);
    let consuming = tokio::spawn({
        let (consumer, target, shutdown) =
            (broker.consumer(lane), Arc::clone(&target), shutdown.clone());
        let handler = move |_: Inbound<Bytes>| {
            target.hit();
            async { Ok(Verdict::Done) }
        };
        async move { consumer.run(handler, shutdown, Duration::from_secs(5)).await }
    });
    let (began, cpu_before) = (Instant::now(), cpu());
    let publisher = broker.publisher();
    stream::iter(0..messages)
        .for_each_concurrent(usize::from(prefetch), |number| {
            let publisher = publisher.clone();
            async move {
                let outgoing = Outgoing::new("relay.v1", format!("relay-{number}"), BODY.to_vec());
                publisher.publish(&ROUTE, outgoing).await.unwrap();
            }
        })
        .await;
    target.reached.notified().await;
    let took = (began.elapsed(), cpu().saturating_sub(cpu_before));
    shutdown.cancel();
    consuming.await.unwrap().unwrap();
    broker.close().await;
    took
}

async fn through_the_library(
    urls: &SecretString,
    messages: u64,
    prefetch: u16,
) -> (Duration, Duration) {
    let connect = || Connection::connect(urls.expose_secret(), ConnectionProperties::default());
    let (publish, consume) = (connect().await.unwrap(), connect().await.unwrap());
    let target = Target::new(messages);
    let channel = consume.create_channel().await.unwrap();
    channel.basic_qos(prefetch, BasicQosOptions::default()).await.unwrap();
    let (queue, options) = (ROUTE.queue().as_ref().into(), BasicConsumeOptions::default());
    let mut deliveries =
        channel.basic_consume(queue, "".into(), options, FieldTable::default()).await.unwrap();
    let consuming = tokio::spawn({
        let target = Arc::clone(&target);
        async move {
            while let Some(Ok(delivery)) = deliveries.next().await {
                target.hit();
                tokio::spawn(async move { delivery.ack(BasicAckOptions::default()).await });
            }
        }
    });
    let mut channels = Vec::new();
    for _ in 0..8 {
        let channel = publish.create_channel().await.unwrap();
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        channels.push(channel);
    }
    let (began, cpu_before) = (Instant::now(), cpu());
    stream::iter(0..messages)
        .for_each_concurrent(usize::from(prefetch), |number| {
            let channel = channels[usize::try_from(number).unwrap() % channels.len()].clone();
            async move {
                let properties = BasicProperties::default()
                    .with_delivery_mode(2)
                    .with_message_id(format!("relay-{number}").into());
                let (exchange, key) = (ROUTE.exchange().into(), ROUTE.queue().as_ref().into());
                let publishing = channel.basic_publish(
                    exchange,
                    key,
                    BasicPublishOptions::default(),
                    &BODY,
                    properties,
                );
                assert!(publishing.await.unwrap().await.unwrap().is_ack());
            }
        })
        .await;
    target.reached.notified().await;
    let took = (began.elapsed(), cpu().saturating_sub(cpu_before));
    let _ = publish.close(200, "OK".into()).await;
    let _ = consume.close(200, "OK".into()).await;
    consuming.await.unwrap();
    took
}
