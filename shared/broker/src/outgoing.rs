//! A message on its way out: the body, and its metadata as AMQP properties and headers. Read back in `inbound`.

use std::time::{SystemTime, UNIX_EPOCH};

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use runfleet_contracts::{Message, header};
use runfleet_domain::Lane;
use secrecy::{ExposeSecret, SecretString};

use crate::publisher::PublishError;

/// Header with the lane of a message; absent means interactive.
pub const LANE: &str = "x-lane";

/// Header with the time of the first publication in Unix milliseconds, in the name that RabbitMQ's own interceptor uses:
/// the standard property has whole seconds only.
pub const TIMESTAMP_MS: &str = "timestamp_in_ms";

const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;

/// A message before it is published.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The kind with its major version, sent as the AMQP `type`.
    pub kind: &'static str,
    /// The same for every repetition of this message; receivers drop what they have seen. At most 255 bytes.
    pub message_id: String,
    /// What it is about, usually a run. At most 255 bytes.
    pub correlation_id: Option<String>,
    /// Who waits for it.
    pub lane: Lane,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// Where an answer goes. At most 255 bytes.
    pub reply_to: Option<String>,
    /// Unix milliseconds after which it must have no effect any more.
    pub expires_at_ms: Option<u64>,
    /// W3C trace context of the cause.
    pub traceparent: Option<String>,
    /// Execution token of a request.
    pub authorization: Option<SecretString>,
    /// JSON.
    pub body: Vec<u8>,
    /// Further headers, each name at most 255 bytes.
    pub headers: Vec<(&'static str, String)>,
}

impl Outgoing {
    /// A first attempt in the interactive lane, with nothing optional.
    pub fn new(kind: &'static str, message_id: impl Into<String>, body: Vec<u8>) -> Self {
        Self {
            kind,
            message_id: message_id.into(),
            correlation_id: None,
            lane: Lane::Interactive,
            attempt: 1,
            reply_to: None,
            expires_at_ms: None,
            traceparent: None,
            authorization: None,
            body,
            headers: Vec::new(),
        }
    }

    /// A message of the fleet with its kind.
    pub fn message<M: Message>(
        message_id: impl Into<String>,
        message: &M,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self::new(M::KIND, message_id, serde_json::to_vec(message)?))
    }

    /// The same in a lane.
    #[must_use]
    pub fn in_lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The same with what it is about.
    #[must_use]
    pub fn about(mut self, correlation_id: impl Into<String>) -> Self {
        self.correlation_id = Some(correlation_id.into());
        self
    }

    pub(crate) fn into_parts(
        self,
        app_id: &ShortString,
    ) -> Result<(BasicProperties, Vec<u8>), PublishError> {
        let now = now_ms();
        let mut headers = FieldTable::default();
        headers.insert(TIMESTAMP_MS.into(), AMQPValue::LongLongInt(now.cast_signed()));
        if self.attempt > 1 {
            headers.insert(header::ATTEMPT.into(), AMQPValue::LongLongInt(i64::from(self.attempt)));
        }
        if self.lane != Lane::Interactive {
            headers.insert(LANE.into(), text(self.lane.as_str()));
        }
        if let Some(time) = self.expires_at_ms {
            headers.insert(header::EXPIRES_AT.into(), AMQPValue::LongLongInt(time.cast_signed()));
        }
        if let Some(traceparent) = &self.traceparent {
            headers.insert(header::TRACEPARENT.into(), text(traceparent));
        }
        if let Some(token) = &self.authorization {
            headers.insert(header::AUTHORIZATION.into(), text(token.expose_secret()));
        }
        for (name, value) in &self.headers {
            headers.insert(short(*name)?, text(value));
        }
        let mut properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
            .with_type(short(self.kind)?)
            .with_message_id(short(self.message_id)?)
            .with_app_id(app_id.clone())
            .with_timestamp(now / 1_000)
            .with_headers(headers);
        if let Some(id) = self.correlation_id {
            properties = properties.with_correlation_id(short(id)?);
        }
        if let Some(address) = self.reply_to {
            properties = properties.with_reply_to(short(address)?);
        }
        Ok((properties, self.body))
    }
}

/// Properties of an answer: it lives only as long as somebody waits for it.
pub(crate) fn reply_properties(
    kind: &str,
    correlation_id: &str,
) -> Result<BasicProperties, PublishError> {
    Ok(BasicProperties::default()
        .with_delivery_mode(TRANSIENT)
        .with_content_type("application/json".into())
        .with_type(short(kind)?)
        .with_correlation_id(short(correlation_id)?))
}

/// Properties of a fact: it is worth nothing after a restart of the broker.
pub(crate) fn fact_properties(kind: ShortString, app_id: ShortString) -> BasicProperties {
    let now = now_ms();
    let mut headers = FieldTable::default();
    headers.insert(TIMESTAMP_MS.into(), AMQPValue::LongLongInt(now.cast_signed()));
    BasicProperties::default()
        .with_delivery_mode(TRANSIENT)
        .with_content_type("application/json".into())
        .with_type(kind)
        .with_app_id(app_id)
        .with_timestamp(now / 1_000)
        .with_headers(headers)
}

/// A property of AMQP, which has at most 255 bytes. The library's own conversion panics.
pub(crate) fn short(value: impl Into<String>) -> Result<ShortString, PublishError> {
    ShortString::try_new(value).map_err(|_| PublishError::TooLarge)
}

pub(crate) fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.as_bytes().into())
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_does_not_fit_is_an_error_and_no_panic() {
        let outgoing = Outgoing::new("a.v1", "x".repeat(256), vec![]);
        assert!(matches!(outgoing.into_parts(&"app".into()), Err(PublishError::TooLarge)));
    }

    #[test]
    fn the_token_is_not_in_the_debug_text() {
        let mut outgoing = Outgoing::new("a.v1", "m", vec![]);
        outgoing.authorization = Some(SecretString::from("s3cret"));
        assert!(!format!("{outgoing:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_default_takes_no_room() {
        let (properties, _) = Outgoing::new("a.v1", "m", vec![]).into_parts(&"app".into()).unwrap();
        let headers = properties.headers().as_ref().unwrap();
        assert_eq!(
            headers.inner().keys().map(ShortString::as_str).collect::<Vec<_>>(),
            [TIMESTAMP_MS]
        );
        assert_eq!(*properties.delivery_mode(), Some(PERSISTENT));
    }
}
