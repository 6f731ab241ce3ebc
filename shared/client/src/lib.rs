//! The Rust client: start Processes and ask where they stand, over the public path.
//!
//! A call publishes a request to start-intake and waits for the answer. Each call has one message id for all its attempts, so
//! that a request which was sent again after a reconnect is still executed once.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runfleet_broker::{Broker, Outgoing, RequestError, Requester, Route};
use runfleet_contracts::request::{
    ProcessGet, ProcessStart, ProcessStarted, ProcessState, REQUEST_KIND,
};
use runfleet_contracts::{ErrorBody, Operation, Reply, Request};
use runfleet_domain::Lane;
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ulid::Ulid;

/// Why a call gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The fleet said no, or not now. `code` and `details` are the contract.
    #[error("{} {}", .0.code.as_str(), .0.message)]
    Refused(ErrorBody),
    /// No answer in time. A start may have happened: call again with the same idempotency key.
    #[error("no answer from the fleet")]
    NoAnswer(#[source] RequestError),
    /// The answer is not one of this version of the contract.
    #[error("the answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// The options cannot be written as JSON.
    #[error("the options cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

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

    /// Starts a Process. Returns once the run exists; it never waits for the run to end.
    pub async fn start_process(&self, start: &ProcessStart) -> Result<ProcessStarted, ClientError> {
        self.call(Operation::ProcessesStart, start).await
    }

    /// Where a Process run of this project stands.
    pub async fn get_process(&self, instance_id: &str) -> Result<ProcessState, ClientError> {
        self.call(Operation::ProcessesGet, &ProcessGet { instance_id: instance_id.to_owned() })
            .await
    }

    /// Any operation: options in, answer out. `message_id` is chosen here once for all attempts.
    async fn call<T: DeserializeOwned>(
        &self,
        operation: Operation,
        options: &impl Serialize,
    ) -> Result<T, ClientError> {
        let payload = serde_json::value::to_raw_value(options).map_err(ClientError::Unwritable)?;
        let body =
            serde_json::to_vec(&Request { operation, payload }).map_err(ClientError::Unwritable)?;
        let answer = self.send(Ulid::generate().to_string(), body).await?;
        match serde_json::from_slice(&answer).map_err(ClientError::Unreadable)? {
            Reply::Done(data) => Ok(data),
            Reply::Failed(error) => Err(ClientError::Refused(error)),
        }
    }

    /// One request with a message id of the caller's choice; returns the body of the answer. For whoever forwards calls.
    pub async fn send(&self, message_id: String, body: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let mut message = Outgoing::new(REQUEST_KIND, message_id, body);
        message.lane = self.lane;
        message.authorization = Some(self.token.clone());
        message.expires_at_ms = SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|now| {
            // Nobody waits for it after that; executing it then would surprise the caller who has tried again.
            u64::try_from((now + self.deadline).as_millis()).ok()
        });
        self.requester
            .request(&Route::Start(self.lane), message, self.deadline)
            .await
            .map_err(ClientError::NoAnswer)
    }
}
