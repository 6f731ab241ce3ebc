//! The yardstick: messages that travel the same hops as a run, with bodies of the same size, through queues of the same
//! type with the same confirms, and nobody does any work. Bare client library, none of our crates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::sync::{Semaphore, mpsc};

/// Deliveries that one hop may hold unacknowledged.
const PREFETCH: u16 = 256;

/// Sizes of the bodies of one chain, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// The request.
    pub request: usize,
    /// The answer to it.
    pub reply: usize,
    /// Each further hop.
    pub hops: Vec<usize>,
}

/// What one round took.
pub(crate) struct Round {
    /// First request to last end.
    pub wall: Duration,
    /// Request to reply, each.
    pub replies: Vec<Duration>,
    /// Request to the end of the chain, each.
    pub ends: Vec<Duration>,
}

async fn connect(url: &str, name: &str) -> Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    Connection::connect(url, properties).await.context("connecting the relay")
}

/// Each round has queues of its own: one that was just deleted cannot be declared again at once.
static ROUND: AtomicUsize = AtomicUsize::new(0);

fn queue_name(hop: usize) -> String {
    format!("relay.{}.{hop}", ROUND.load(Ordering::Relaxed))
}

/// Closes a connection, and does not wait for ever for its end.
async fn close(connection: &Connection) {
    let closing = connection.close(200, ShortString::from("done"));
    let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
}

fn body(index: usize, size: usize) -> Vec<u8> {
    let mut body = format!("{index:016}").into_bytes();
    body.resize(size.max(16), b'x');
    body
}

fn index_of(body: &[u8]) -> Option<usize> {
    std::str::from_utf8(body.get(..16)?).ok()?.parse().ok()
}

/// Publishes to a queue, persistent; the confirm comes later.
async fn publish(channel: &Channel, queue: &str, body: &[u8]) -> Result<lapin::Confirmation> {
    let properties = BasicProperties::default().with_delivery_mode(2);
    let confirm = channel
        .basic_publish("".into(), queue.into(), BasicPublishOptions::default(), body, properties)
        .await?;
    Ok(confirm.await?)
}

/// One hop: consumes its queue; answers (if it is the first one) and passes the message on with a confirm, then acks.
struct Hop {
    consume: Connection,
    publish: Connection,
}

async fn hop(url: &str, number: usize, reply: Option<usize>, next: Option<usize>) -> Result<Hop> {
    let consume = connect(url, "relay consume").await?;
    let publishing = connect(url, "relay publish").await?;
    let out = publishing.create_channel().await?;
    out.confirm_select(ConfirmSelectOptions::default()).await?;
    let replies = publishing.create_channel().await?;
    let channel = consume.create_channel().await?;
    channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
    let queue = queue_name(number);
    let mut deliveries = channel
        .basic_consume(
            queue.as_str().into(),
            "relay".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    tokio::spawn(async move {
        // The last handle of a channel closes it.
        let _channel = channel;
        while let Some(Ok(delivery)) = deliveries.next().await {
            let (out, replies) = (out.clone(), replies.clone());
            tokio::spawn(pass_on(delivery, out, replies, number, reply, next));
        }
    });
    Ok(Hop { consume, publish: publishing })
}

async fn pass_on(
    delivery: Delivery,
    out: Channel,
    replies: Channel,
    number: usize,
    reply: Option<usize>,
    next: Option<usize>,
) -> Result<()> {
    let index = index_of(&delivery.data).context("a body of the relay has no index")?;
    let pass = async {
        if let Some(size) = next {
            publish(&out, &queue_name(number + 1), &body(index, size)).await?;
        }
        anyhow::Ok(())
    };
    let answer = async {
        if let (Some(size), Some(to)) = (reply, delivery.properties.reply_to()) {
            let properties = BasicProperties::default();
            let text = body(index, size);
            replies
                .basic_publish(
                    "".into(),
                    to.clone(),
                    BasicPublishOptions::default(),
                    &text,
                    properties,
                )
                .await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(pass, answer)?;
    delivery.ack(BasicAckOptions::default()).await?;
    Ok(())
}

/// Runs `count` chains with `in_flight` requests waiting for their reply at any time.
pub(crate) async fn run(url: &str, shape: &Shape, count: usize, in_flight: usize) -> Result<Round> {
    ROUND.fetch_add(1, Ordering::Relaxed);
    let setup = connect(url, "relay setup").await?;
    let channel = setup.create_channel().await?;
    let hops = shape.hops.len();
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    for number in 0..=hops {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel
            .queue_declare(queue_name(number).as_str().into(), options, arguments.clone())
            .await?;
    }
    let mut workers = Vec::new();
    for number in 0..hops {
        let reply = (number == 0).then_some(shape.reply);
        workers.push(hop(url, number, reply, shape.hops.get(number).copied()).await?);
    }
    if hops == 0 {
        workers.push(hop(url, 0, Some(shape.reply), None).await?);
    }
    let round = drive(url, shape, count, in_flight).await.context("driving the relay");
    for worker in workers {
        // Its channels close at the same time as their tasks end; who is first does not matter.
        close(&worker.consume).await;
        close(&worker.publish).await;
    }
    for number in 0..=hops {
        channel
            .queue_delete(queue_name(number).as_str().into(), QueueDeleteOptions::default())
            .await?;
    }
    close(&setup).await;
    round
}

/// The client and the end of the chain.
async fn drive(url: &str, shape: &Shape, count: usize, in_flight: usize) -> Result<Round> {
    let client = connect(url, "relay client").await?;
    let channel = client.create_channel().await?;
    let no_ack = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let mut answers = channel
        .basic_consume(
            "amq.rabbitmq.reply-to".into(),
            "replies".into(),
            no_ack,
            FieldTable::default(),
        )
        .await?;
    let permits = Arc::new(Semaphore::new(in_flight));
    let began: Vec<_> =
        (0..count).map(|_| Arc::new(std::sync::OnceLock::<Instant>::new())).collect();

    let (reply_times, reply_began, reply_permits) =
        (began.clone(), began.clone(), Arc::clone(&permits));
    let replies = tokio::spawn(async move {
        let mut taken = Vec::with_capacity(reply_times.len());
        while taken.len() < reply_times.len() {
            let Some(Ok(answer)) = answers.next().await else { break };
            reply_permits.add_permits(1);
            if let Some(start) = index_of(&answer.data).and_then(|index| reply_began[index].get()) {
                taken.push(start.elapsed());
            }
        }
        taken
    });
    let ends = if shape.hops.is_empty() {
        None
    } else {
        Some(collect_ends(url, shape.hops.len(), &began).await?)
    };

    let first = Instant::now();
    for (index, began) in began.iter().enumerate() {
        permits.acquire().await?.forget();
        let _ = began.set(Instant::now());
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_reply_to("amq.rabbitmq.reply-to".into());
        let text = body(index, shape.request);
        let queue = queue_name(0);
        let options = BasicPublishOptions::default();
        channel.basic_publish("".into(), queue.as_str().into(), options, &text, properties).await?;
    }
    let replies = replies.await?;
    let ends = match ends {
        Some(mut ends) => ends.recv().await.context("the end of the relay went away")?,
        None => Vec::new(),
    };
    let wall = first.elapsed();
    close(&client).await;
    Ok(Round { wall, replies, ends })
}

/// Consumes the last queue; sends all durations when the last chain has ended.
async fn collect_ends(
    url: &str,
    number: usize,
    began: &[Arc<std::sync::OnceLock<Instant>>],
) -> Result<mpsc::Receiver<Vec<Duration>>> {
    let connection = connect(url, "relay end").await?;
    let channel = connection.create_channel().await?;
    channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
    let queue = queue_name(number);
    let mut deliveries = channel
        .basic_consume(
            queue.as_str().into(),
            "end".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    let (send, receive) = mpsc::channel(1);
    let (began, seen) = (began.to_vec(), AtomicUsize::new(0));
    tokio::spawn(async move {
        let _channel = channel;
        let mut taken = Vec::with_capacity(began.len());
        while seen.fetch_add(1, Ordering::Relaxed) < began.len() {
            let Some(Ok(delivery)) = deliveries.next().await else { break };
            if let Some(start) = index_of(&delivery.data).and_then(|index| began[index].get()) {
                taken.push(start.elapsed());
            }
            let _ = delivery.ack(BasicAckOptions::default()).await;
        }
        let _ = send.send(taken).await;
        close(&connection).await;
    });
    Ok(receive)
}
