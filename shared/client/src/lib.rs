//! The Rust client: start Processes and agents, ask where they stand, and act on Process runs, over the public path.
//!
//! ```no_run
//! use runfleet_client::{Broker, BrokerConfig, Client, Error, ProcessStartOptions, Registry, SecretString};
//! use serde_json::json;
//!
//! # async fn example(token: SecretString) -> Result<(), Box<dyn std::error::Error>> {
//! let url = SecretString::from("amqp://user:password@127.0.0.1:5672/%2f");
//! let broker = Broker::start(BrokerConfig::new(url, "my-program"), &Registry::new())?;
//! let client = Client::new(&broker, token);
//! let options = ProcessStartOptions::default()
//!     .input(&json!({"amount": 120}))?
//!     .idempotency_key("order:7")
//!     .on_complete("discount_decided", &json!({"order": 7}))?;
//! match client.processes().start("approve-discount", options).await {
//!     Ok(started) => println!("{}", started.instance_id),
//!     // The run may exist: the same start with the same key finds it.
//!     Err(error) if error.writes_may_have_completed() => println!("try again: {error}"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A call publishes a request to start-intake and waits for the answer, at most for the client's deadline. Each call has one
//! message id for all its attempts, so that a request which was sent again after a reconnect is still executed once. Options
//! are checked here, by the same code as in the fleet, before anything is sent.

mod agents;
mod chat;
mod data;
mod error;
mod jobs;
mod operations;
mod processes;
mod projects;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use prometheus::Registry;
pub use runfleet_broker::{Broker, BrokerConfig};
pub use secrecy::SecretString;

use runfleet_broker::{Outgoing, RequestError, Requester, Route};
use runfleet_contracts::request::REQUEST_KIND;
use runfleet_contracts::{ErrorBody, Operation, Reply, Request};
use runfleet_domain::Lane;
use runfleet_domain::limits::BODY_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use ulid::Ulid;

pub use crate::agents::{AgentStartOptions, Agents};
pub use crate::chat::Chat;
pub use crate::data::Data;
pub use crate::error::Error;
pub use crate::jobs::{Job, Jobs};
pub use crate::operations::Message;
pub use crate::processes::{ProcessStartOptions, Processes};
pub use crate::projects::{CallKind, Projects};

/// Makes calls with one execution token. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    requester: Requester,
    token: SecretString,
    lane: Lane,
    deadline: Duration,
}

impl Client {
    /// A client for interactive calls that wait ten seconds at most.
    pub fn new(broker: &Broker, token: SecretString) -> Self {
        Self {
            requester: broker.requester(),
            token,
            lane: Lane::Interactive,
            deadline: Duration::from_secs(10),
        }
    }

    /// The same client in another lane.
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The same client with another bound on waiting.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same connection with another token.
    #[must_use]
    pub fn token(mut self, token: SecretString) -> Self {
        self.token = token;
        self
    }

    /// Calls that are about Processes.
    pub fn processes(&self) -> Processes<'_> {
        Processes(self)
    }

    /// Calls that are about agents.
    pub fn agents(&self) -> Agents<'_> {
        Agents(self)
    }

    /// Calls that are about the conversations of the token's user with agents.
    pub fn chat(&self) -> Chat<'_> {
        Chat(self)
    }

    /// Calls that are about background jobs.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs(self)
    }

    /// Calls that are about the project itself.
    pub fn projects(&self) -> Projects<'_> {
        Projects(self)
    }

    /// Records of the workspace.
    pub fn data(&self) -> Data<'_> {
        Data(self)
    }

    /// Any operation: options in, answer out. The message id is chosen here once for all attempts.
    async fn call<T: DeserializeOwned>(
        &self,
        operation: Operation,
        payload: Box<RawValue>,
    ) -> Result<T, Error> {
        let body = serde_json::to_vec(&Request { operation, payload }).map_err(Error::Protocol)?;
        let answer = self.send(Ulid::generate().to_string(), body).await?;
        match serde_json::from_slice(&answer).map_err(Error::Protocol)? {
            Reply::Done(data) => Ok(data),
            Reply::Failed(error) => Err(error.into()),
        }
    }

    /// One request with a message id of the caller's choice; returns the body of the answer. For whoever forwards calls.
    pub async fn send(&self, message_id: String, body: Vec<u8>) -> Result<Vec<u8>, Error> {
        let size = body.len();
        if size > BODY_BYTES_MAX {
            return Err(ErrorBody::too_large("", "bytes", BODY_BYTES_MAX, size).into());
        }
        let mut message = Outgoing::new(REQUEST_KIND, message_id, body);
        message.lane = self.lane;
        message.authorization = Some(self.token.clone());
        message.expires_at_ms = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| {
            // Nobody waits for it after that; executing it then would surprise the caller who has tried again.
            u64::try_from((now + self.deadline).as_millis()).ok()
        });
        let sent = self.requester.request(&Route::Start(self.lane), message, self.deadline).await;
        sent.map_err(|error| match error {
            RequestError::TimedOut => ErrorBody::retryable(true).into(),
            RequestError::NotConnected | RequestError::Refused => {
                ErrorBody::retryable(false).into()
            }
            RequestError::TooLarge => {
                ErrorBody::too_large("", "bytes", BODY_BYTES_MAX, size).into()
            }
        })
    }
}

/// Options as they travel.
fn written(options: &impl Serialize) -> Result<Box<RawValue>, Error> {
    to_raw_value(options).map_err(Error::Protocol)
}
