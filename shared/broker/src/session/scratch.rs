//! Questions about what exists, on a channel of their own: the broker closes the channel of a question about something
//! that is missing. Asking needs no rights.

use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, ErrorKind, ExchangeKind};
use tokio::sync::Mutex;

use super::{Link, LinkError};
use crate::outgoing::short;
use crate::topology::Object;

const NOT_FOUND: u16 = 404;

/// A queue as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Messages that wait in it; those in the hands of consumers are not counted.
    pub messages: u32,
    /// Consumers that take from it.
    pub consumers: u32,
}

/// Keeps the channel from one question to the next.
#[derive(Default)]
pub(crate) struct Scratch {
    held: Mutex<Option<Channel>>,
}

impl Scratch {
    /// Whether a queue is there and somebody consumes it.
    pub(crate) async fn is_consumed(&self, link: &Link, queue: &str) -> Result<bool, LinkError> {
        Ok(self.queue(link, queue).await?.is_some_and(|queue| queue.consumers > 0))
    }

    /// A queue as it is now, or none if there is no such queue.
    pub(crate) async fn queue(
        &self,
        link: &Link,
        queue: &str,
    ) -> Result<Option<QueueState>, LinkError> {
        let Ok(name) = short(queue) else { return Ok(None) };
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = self.ask(link, async |channel: &Channel| {
            channel.queue_declare(name, options, FieldTable::default()).await
        });
        Ok(found.await?.map(|queue| QueueState {
            messages: queue.message_count(),
            consumers: queue.consumer_count(),
        }))
    }

    pub(crate) async fn exists(&self, link: &Link, object: &Object) -> Result<bool, LinkError> {
        match object {
            Object::Queue(name) => Ok(self.queue(link, name).await?.is_some()),
            Object::Exchange(name) => {
                let Ok(name) = short(name.as_str()) else { return Ok(false) };
                let options =
                    ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
                let found = self.ask(link, async |channel: &Channel| {
                    channel
                        .exchange_declare(
                            name,
                            ExchangeKind::Direct,
                            options,
                            FieldTable::default(),
                        )
                        .await
                });
                Ok(found.await?.is_some())
            }
        }
    }

    async fn ask<T>(
        &self,
        link: &Link,
        question: impl AsyncFnOnce(&Channel) -> lapin::Result<T>,
    ) -> Result<Option<T>, LinkError> {
        let mut held = self.held.lock().await;
        let channel = match held.take().filter(|channel| channel.status().connected()) {
            Some(channel) => channel,
            None => link.channel().await?,
        };
        match link.bounded(question(&channel)).await {
            Ok(answer) => {
                *held = Some(channel);
                Ok(Some(answer))
            }
            Err(LinkError::Amqp(error)) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_not_found(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == NOT_FOUND)
}
