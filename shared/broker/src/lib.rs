//! The only crate that speaks AMQP: connecting, publishing with confirms, consuming, requests and replies, and the
//! topology as data.
//!
//! A message is delivered at least once. The order of everything here is: effect, publish, confirm, ack; a crash between
//! two of them doubles a message and never loses one. There is no ordering between messages. What a message means is not
//! known here: bodies are bytes, and handlers decide.
//!
//! The client library logs returned messages with their payload at `WARN`. Every process that uses this crate must apply
//! [`LOG_DIRECTIVES`] to its log filter.

pub mod config;
pub mod consumer;
pub mod listener;
pub mod management;
pub mod metrics;
pub mod names;
pub mod outgoing;
pub mod publisher;
pub mod requester;
pub mod route;
pub mod session;
pub mod topology;

pub use config::{BrokerConfig, ConfigError};
pub use consumer::{
    Classify, Consumer, ConsumerConfig, ConsumerError, DecodeError, Drained, Failure, Gate,
    HandlerResult, Inbound, Inbox, LaneConfig, Verdict,
};
pub use listener::{Heard, Listener};
pub use management::{Management, ManagementError};
pub use outgoing::Outgoing;
pub use publisher::{Confirm, PublishError, Publisher, ReplyError};
pub use requester::{RequestError, Requester};
pub use route::{Line, Route};
pub use session::{Broker, BrokerError, NotAsked, QueueState};
pub use topology::{Object, Topology, TopologyAdmin, TopologyError};

/// Filter directives that every log subscriber of a process with a broker needs: without them the client library writes
/// whole payloads of returned messages into the log.
pub const LOG_DIRECTIVES: &str = "lapin=error,lapin::returned_messages=off";
