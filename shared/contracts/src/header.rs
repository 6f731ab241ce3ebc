//! Names of the AMQP headers that carry metadata. Everything not listed here is in a standard property.

/// W3C trace context of whoever caused the message.
pub const TRACEPARENT: &str = "traceparent";

/// Execution token of a request: who asks.
pub const AUTHORIZATION: &str = "authorization";

/// Unix milliseconds after which a request must have no effect any more.
pub const EXPIRES_AT: &str = "expires-at";

/// Which try of this message this is, from 1; absent means 1.
pub const ATTEMPT: &str = "x-attempt";

/// On parked messages: the closed reason.
pub const PARK_REASON: &str = "x-park-reason";

/// On parked messages: what happened, cut to a bound, never with data of the body.
pub const PARK_DETAIL: &str = "x-park-detail";

/// On parked messages: the queue that the message came from.
pub const PARK_QUEUE: &str = "x-park-queue";
