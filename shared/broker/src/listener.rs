//! Hearing facts, over a queue that belongs to this connection and is gone with it.
//!
//! What is told while no connection stands, or faster than it is taken, is lost. Whoever listens looks for itself from time to time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use runfleet_contracts::facts::FACT_BYTES_MAX;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::names::FACTS_EXCHANGE;
use crate::outgoing::short;
use crate::session::{LinkError, Session, Shared};

/// Facts that wait in this process, and those that wait in the queue.
const WAITING_MAX: u16 = 256;

/// Pause before the queue is made again.
const REOPEN_WAIT: Duration = Duration::from_secs(1);

/// A fact as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The name of its kind, such as `chat.message.v1`.
    pub kind: String,
    /// Its body: JSON of at most 16 KiB.
    pub body: Vec<u8>,
}

/// Hears facts until it is dropped.
#[derive(Debug)]
pub struct Listener {
    heard: mpsc::Receiver<Heard>,
    _stop: DropGuard,
}

impl Listener {
    pub(crate) fn new(shared: &Arc<Shared>, handle: &Handle, keys: Vec<String>) -> Self {
        let (tell, heard) = mpsc::channel(usize::from(WAITING_MAX));
        let stop = CancellationToken::new();
        handle.spawn(listen(Arc::clone(shared), keys, tell, stop.clone()));
        Self { heard, _stop: stop.drop_guard() }
    }

    /// Waits for the next fact; none when the broker is gone.
    pub async fn next(&mut self) -> Option<Heard> {
        self.heard.recv().await
    }
}

async fn listen(
    shared: Arc<Shared>,
    keys: Vec<String>,
    tell: mpsc::Sender<Heard>,
    stop: CancellationToken,
) {
    let mut sessions = shared.sessions();
    let listening = async {
        loop {
            let found = sessions
                .wait_for(|session| session.as_ref().is_some_and(|session| !session.has_failed()));
            let Ok(Some(session)) = found.await.map(|session| session.clone()) else { return };
            if let Err(error) = hear(&session, &keys, &tell).await {
                tracing::warn!(%error, "facts are not heard");
            }
            sleep(REOPEN_WAIT).await;
        }
    };
    stop.run_until_cancelled(listening).await;
}

/// Hears until the channel or its session ends.
async fn hear(
    session: &Session,
    keys: &[String],
    tell: &mpsc::Sender<Heard>,
) -> Result<(), LinkError> {
    let link = &session.consume;
    let channel = link.channel().await?;
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let mut bounds = FieldTable::default();
    bounds.insert("x-max-length".into(), AMQPValue::LongInt(i32::from(WAITING_MAX)));
    let queue = link.bounded(channel.queue_declare("".into(), options, bounds)).await?;
    for key in keys {
        let Ok(key) = short(key.as_str()) else { continue };
        let (options, table) = (QueueBindOptions::default(), FieldTable::default());
        let binding =
            channel.queue_bind(queue.name().clone(), FACTS_EXCHANGE.into(), key, options, table);
        link.bounded(binding).await?;
    }
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let consuming =
        channel.basic_consume(queue.name().clone(), "".into(), options, FieldTable::default());
    let mut facts = link.bounded(consuming).await?;
    loop {
        tokio::select! {
            fact = facts.next() => match fact {
                Some(Ok(fact)) => take(tell, fact),
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            () = session.failed() => return Ok(()),
        }
    }
}

/// Gives a fact on, or drops it when it is none or nobody takes it.
fn take(tell: &mpsc::Sender<Heard>, fact: Delivery) {
    let kind = fact.properties.kind().as_ref().map(|kind| kind.as_str().to_owned());
    if let Some(kind) = kind.filter(|_| fact.data.len() <= FACT_BYTES_MAX) {
        let _ = tell.try_send(Heard { kind, body: fact.data });
    }
}
