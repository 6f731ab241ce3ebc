//! A delivery as a handler sees it: metadata read from properties and headers, the body decoded by its kind.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use runfleet_contracts::header;
use runfleet_domain::Lane;
use secrecy::SecretString;

use super::settle::Finish;
use crate::outgoing::{LANE, TIMESTAMP_MS};

/// Timestamps above this are milliseconds already: as seconds they would be in the year 5138.
const SECONDS_MAX: u64 = 100_000_000_000;

/// The bodies that a consumer takes, usually an enum with one variant per kind.
pub trait Inbox: Sized + Send + 'static {
    /// Reads a body of a kind.
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError>;
}

/// Why a body was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// Nobody here takes this kind: parked.
    UnknownKind,
    /// A newer version of a kind, from a sender that was deployed first: tried again later.
    NewerVersion,
    /// Not what the kind promises: parked with this text, which must hold no values of the body.
    Malformed(String),
}

/// One message for a handler.
#[derive(Debug)]
pub struct Inbound<I> {
    /// The same on every repetition; empty if the sender gave none.
    pub message_id: String,
    /// The kind with its major version.
    pub kind: String,
    /// The queue it came from.
    pub queue: std::sync::Arc<str>,
    /// The exchange that it came through, which says who may have sent it; that of returns after a wait on the ladder.
    pub exchange: String,
    /// Who waits for it.
    pub lane: Lane,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whether the broker delivered this copy before. Says nothing about other copies.
    pub redelivered: bool,
    /// Where an answer goes.
    pub reply_to: Option<String>,
    /// What it is about; an answer repeats it.
    pub correlation_id: Option<String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// Execution token of a request.
    pub authorization: Option<SecretString>,
    /// Unix milliseconds after which it must have no effect.
    pub expires_at_ms: Option<u64>,
    /// First publication in Unix milliseconds; 0 if the sender did not say.
    pub timestamp_ms: u64,
    /// The body.
    pub body: I,
}

impl<I> Inbound<I> {
    /// The body, and the message without it: for a queue that carries several kinds.
    pub fn split(self) -> (I, Inbound<()>) {
        let Self {
            message_id,
            kind,
            queue,
            exchange,
            lane,
            attempt,
            redelivered,
            reply_to,
            correlation_id,
            traceparent,
            authorization,
            expires_at_ms,
            timestamp_ms,
            body,
        } = self;
        let rest = Inbound {
            message_id,
            kind,
            queue,
            exchange,
            lane,
            attempt,
            redelivered,
            reply_to,
            correlation_id,
            traceparent,
            authorization,
            expires_at_ms,
            timestamp_ms,
            body: (),
        };
        (body, rest)
    }
}

impl Inbound<()> {
    /// The message with a body.
    pub fn with<I>(self, body: I) -> Inbound<I> {
        Inbound {
            message_id: self.message_id,
            kind: self.kind,
            queue: self.queue,
            exchange: self.exchange,
            lane: self.lane,
            attempt: self.attempt,
            redelivered: self.redelivered,
            reply_to: self.reply_to,
            correlation_id: self.correlation_id,
            traceparent: self.traceparent,
            authorization: self.authorization,
            expires_at_ms: self.expires_at_ms,
            timestamp_ms: self.timestamp_ms,
            body,
        }
    }
}

/// Where a message came from and what may be taken.
pub(crate) struct Origin<'a> {
    pub(crate) queue: &'a std::sync::Arc<str>,
    pub(crate) lane: Lane,
    pub(crate) body_bytes_max: usize,
}

/// Reads a delivery, or says what to do with it instead of handling it.
pub(crate) fn read<I: Inbox>(
    delivery: &Delivery,
    origin: &Origin<'_>,
) -> Result<Inbound<I>, Finish> {
    let unreadable = |reason, detail: &str| Finish::Unreadable(reason, detail.to_owned());
    if delivery.data.len() > origin.body_bytes_max {
        return Err(unreadable("too_large", "the body is larger than what is taken"));
    }
    let properties = &delivery.properties;
    let kind = owned(properties.kind().as_ref()).filter(|kind| !kind.is_empty());
    let kind = kind.ok_or_else(|| unreadable("no_kind", "the message has no type"))?;
    let body = I::decode(&kind, &delivery.data).map_err(|error| match error {
        DecodeError::UnknownKind => unreadable("unknown_kind", "nobody here takes this type"),
        DecodeError::NewerVersion => Finish::Newer,
        DecodeError::Malformed(detail) => Finish::Unreadable("malformed", detail),
    })?;
    let headers = properties.headers().as_ref();
    Ok(Inbound {
        message_id: owned(properties.message_id().as_ref()).unwrap_or_default(),
        kind,
        queue: std::sync::Arc::clone(origin.queue),
        exchange: delivery.exchange.as_str().to_owned(),
        lane: text(headers, LANE).and_then(|word| Lane::from_word(&word)).unwrap_or(origin.lane),
        attempt: attempt(properties),
        redelivered: delivery.redelivered,
        reply_to: owned(properties.reply_to().as_ref()),
        correlation_id: owned(properties.correlation_id().as_ref()),
        traceparent: text(headers, header::TRACEPARENT),
        authorization: text(headers, header::AUTHORIZATION).map(SecretString::from),
        expires_at_ms: number(headers, header::EXPIRES_AT),
        timestamp_ms: timestamp_ms(properties),
        body,
    })
}

/// Which attempt a message is; nonsense counts as the first.
pub(crate) fn attempt(properties: &BasicProperties) -> u32 {
    let given = number(properties.headers().as_ref(), header::ATTEMPT).unwrap_or(1);
    u32::try_from(given).unwrap_or(u32::MAX).max(1)
}

/// First publication in Unix milliseconds, or 0.
pub(crate) fn timestamp_ms(properties: &BasicProperties) -> u64 {
    let coarse = properties.timestamp().unwrap_or(0);
    let coarse = if coarse > SECONDS_MAX { coarse } else { coarse * 1_000 };
    number(properties.headers().as_ref(), TIMESTAMP_MS).unwrap_or(coarse)
}

fn owned(value: Option<&ShortString>) -> Option<String> {
    value.map(|value| value.as_str().to_owned())
}

fn text(headers: Option<&FieldTable>, name: &str) -> Option<String> {
    match headers?.inner().get(name)? {
        AMQPValue::LongString(value) => String::from_utf8(value.as_bytes().to_vec()).ok(),
        AMQPValue::ShortString(value) => Some(value.as_str().to_owned()),
        _ => None,
    }
}

/// Clients of other languages choose the width of a number themselves, and some send numbers as text.
fn number(headers: Option<&FieldTable>, name: &str) -> Option<u64> {
    match headers?.inner().get(name)? {
        AMQPValue::LongLongInt(value) => u64::try_from(*value).ok(),
        AMQPValue::LongInt(value) => u64::try_from(*value).ok(),
        AMQPValue::LongUInt(value) => Some(u64::from(*value)),
        AMQPValue::ShortInt(value) => u64::try_from(*value).ok(),
        AMQPValue::ShortUInt(value) => Some(u64::from(*value)),
        AMQPValue::ShortShortInt(value) => u64::try_from(*value).ok(),
        AMQPValue::ShortShortUInt(value) => Some(u64::from(*value)),
        AMQPValue::Timestamp(value) => Some(*value),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the range is checked"
        )]
        AMQPValue::Double(value) if *value >= 0.0 => Some(*value as u64),
        AMQPValue::LongString(value) => std::str::from_utf8(value.as_bytes()).ok()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::outgoing::{Outgoing, short};

    #[derive(Debug, PartialEq)]
    struct Text(String);

    impl Inbox for Text {
        fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
            match kind {
                "text.v1" => String::from_utf8(body.to_vec())
                    .map(Self)
                    .map_err(|_| DecodeError::Malformed("no text".to_owned())),
                "text.v2" => Err(DecodeError::NewerVersion),
                _ => Err(DecodeError::UnknownKind),
            }
        }
    }

    fn delivery(properties: BasicProperties, data: &[u8]) -> Delivery {
        let mut delivery = Delivery::mock(1, "x".into(), "k".into(), false, data.to_vec());
        delivery.properties = properties;
        delivery
    }

    fn read_text(properties: BasicProperties, data: &[u8]) -> Result<Inbound<Text>, Finish> {
        let queue = Arc::from("q");
        read(
            &delivery(properties, data),
            &Origin { queue: &queue, lane: Lane::Interactive, body_bytes_max: 10 },
        )
    }

    fn reason(properties: BasicProperties, data: &[u8]) -> &'static str {
        match read_text(properties, data) {
            Err(Finish::Unreadable(reason, _)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_goes_out_comes_in() {
        let mut outgoing =
            Outgoing::new("text.v1", "m1", b"hello".to_vec()).in_lane(Lane::Backfill).about("run");
        outgoing.attempt = 3;
        outgoing.reply_to = Some("amq.gen-1".to_owned());
        outgoing.expires_at_ms = Some(9_007_199_254_740_993);
        outgoing.traceparent = Some("00-1-1-01".to_owned());
        outgoing.authorization = Some(SecretString::from("token"));
        let (properties, body) = outgoing.into_parts(&"app".into()).unwrap();
        let inbound = read_text(properties, &body).unwrap();
        let (text, inbound) = inbound.split();
        let inbound = inbound.with(text);
        assert_eq!((inbound.body, inbound.kind.as_str()), (Text("hello".to_owned()), "text.v1"));
        assert_eq!((&*inbound.queue, inbound.exchange.as_str()), ("q", "x"));
        assert_eq!((inbound.message_id.as_str(), inbound.attempt), ("m1", 3));
        assert_eq!(
            (inbound.lane, inbound.expires_at_ms),
            (Lane::Backfill, Some(9_007_199_254_740_993))
        );
        assert_eq!(inbound.correlation_id.as_deref(), Some("run"));
        assert_eq!(inbound.reply_to.as_deref(), Some("amq.gen-1"));
        assert_eq!(inbound.traceparent.as_deref(), Some("00-1-1-01"));
        assert!(inbound.authorization.is_some() && inbound.timestamp_ms > 1_600_000_000_000);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let kind = |kind: &str| BasicProperties::default().with_type(short(kind).unwrap());
        assert_eq!(reason(BasicProperties::default(), b"x"), "no_kind");
        assert_eq!(reason(kind(""), b"x"), "no_kind");
        assert_eq!(reason(kind("text.v1"), b"more than ten"), "too_large");
        assert_eq!(reason(kind("text.v1"), b"\xff"), "malformed");
        assert_eq!(reason(kind("other.v1"), b"x"), "unknown_kind");
        assert!(matches!(read_text(kind("text.v2"), b"x"), Err(Finish::Newer)));
    }

    #[test]
    fn attempts_are_read_from_any_width_and_nonsense_is_the_first() {
        let with = |value: AMQPValue| {
            let mut headers = FieldTable::default();
            headers.insert(header::ATTEMPT.into(), value);
            attempt(&BasicProperties::default().with_headers(headers))
        };
        assert_eq!(with(AMQPValue::ShortShortInt(4)), 4);
        assert_eq!(with(AMQPValue::LongUInt(4)), 4);
        assert_eq!(with(AMQPValue::LongString("4".into())), 4);
        assert_eq!(with(AMQPValue::Double(4.0)), 4);
        assert_eq!(with(AMQPValue::LongLongInt(-4)), 1);
        assert_eq!(with(AMQPValue::LongLongInt(i64::MAX)), u32::MAX);
        assert_eq!(with(AMQPValue::Boolean(true)), 1);
    }

    #[test]
    fn a_timestamp_in_seconds_or_milliseconds_is_understood() {
        let at = |value| timestamp_ms(&BasicProperties::default().with_timestamp(value));
        assert_eq!(at(1_700_000_000), 1_700_000_000_000);
        assert_eq!(at(1_700_000_000_123), 1_700_000_000_123);
        assert_eq!(timestamp_ms(&BasicProperties::default()), 0);
    }
}
