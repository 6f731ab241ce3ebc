//! What strangers do on the wire: publish things that no client of ours would, look into queues, empty them.

use anyhow::{Context, Result};
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
    QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

/// A bare connection to the broker.
pub struct Wire {
    channel: Channel,
    _connection: Connection,
}

impl Wire {
    /// Connects.
    pub async fn connect(url: &str) -> Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self { channel, _connection: connection })
    }

    /// Messages that are ready in a queue.
    pub async fn depth(&self, queue: &str) -> Result<u32> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        Ok(self
            .channel
            .queue_declare(queue.into(), passive, FieldTable::default())
            .await?
            .message_count())
    }

    /// Who consumes a queue.
    pub async fn consumers(&self, queue: &str) -> Result<u32> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = self.channel.queue_declare(queue.into(), passive, FieldTable::default());
        Ok(found.await?.consumer_count())
    }

    /// Removes them.
    pub async fn purge(&self, queue: &str) -> Result<()> {
        self.channel.queue_purge(queue.into(), QueuePurgeOptions::default()).await?;
        Ok(())
    }

    /// Publishes anything to a queue, with a confirm.
    pub async fn publish(
        &self,
        exchange: &str,
        queue: &str,
        kind: Option<&str>,
        body: &[u8],
    ) -> Result<()> {
        let mut properties = BasicProperties::default().with_delivery_mode(2);
        if let Some(kind) = kind {
            properties = properties.with_type(kind.into()).with_message_id("stranger".into());
        }
        let options = BasicPublishOptions::default();
        self.channel
            .basic_publish(exchange.into(), queue.into(), options, body, properties)
            .await?
            .await?;
        Ok(())
    }

    /// Takes one message out of a queue: its parking reason and its body.
    pub async fn take(&self, queue: &str) -> Result<Option<(String, Vec<u8>)>> {
        let options = BasicGetOptions { no_ack: true };
        let Some(message) = self.channel.basic_get(queue.into(), options).await? else {
            return Ok(None);
        };
        let headers = message.delivery.properties.headers().as_ref().context("no headers")?;
        let reason = match headers.inner().get("x-park-reason") {
            Some(AMQPValue::LongString(reason)) => reason.to_string(),
            other => format!("{other:?}"),
        };
        Ok(Some((reason, message.delivery.data)))
    }
}
