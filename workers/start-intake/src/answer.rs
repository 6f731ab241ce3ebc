//! Answers to callers, and what happens to a request that nobody waits for.

use runfleet_broker::{Failure, Publisher, Verdict};
use runfleet_contracts::request::REPLY_KIND;
use runfleet_contracts::{ErrorBody, Reply};
use serde::Serialize;
use serde_json::Value;

/// Who gets the answer.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The address and the name of the request, when somebody waits.
    reply: Option<(String, String)>,
}

impl Caller {
    pub(crate) fn new(
        reply_to: Option<&str>,
        correlation_id: Option<&str>,
        message_id: &str,
    ) -> Self {
        let reply =
            reply_to.map(|to| (to.to_owned(), correlation_id.unwrap_or(message_id).to_owned()));
        Self { reply }
    }

    /// Whoever waits at this address.
    pub(crate) fn to(address: String, correlation: String) -> Self {
        Self { reply: Some((address, correlation)) }
    }

    /// Whether anybody waits for an answer.
    pub(crate) fn waits(&self) -> bool {
        self.reply.is_some()
    }

    /// Sends an answer. It may be lost: the caller asks again with the same message id and gets the same answer.
    pub(crate) async fn tell<T: Serialize>(&self, publisher: &Publisher, answer: &Reply<T>) {
        match serde_json::to_vec(answer) {
            Ok(body) => self.send(publisher, &body).await,
            Err(error) => tracing::error!(%error, "an answer could not be written"),
        }
    }

    /// Sends an answer that has been written already.
    pub(crate) async fn send(&self, publisher: &Publisher, body: &[u8]) {
        let Some((to, correlation)) = &self.reply else { return };
        if let Err(error) = publisher.reply(REPLY_KIND, to, correlation, body).await {
            tracing::debug!(%error, "an answer could not be sent");
        }
    }

    /// Ends a request that is refused for good. Without a caller it is parked, so that nothing pushed in bulk is lost
    /// without a trace.
    pub(crate) async fn refuse(&self, publisher: &Publisher, error: ErrorBody) -> Verdict {
        if self.waits() {
            self.tell(publisher, &Reply::<()>::Failed(error)).await;
            return Verdict::Done;
        }
        let field = error.details.get("field").and_then(|field| field.as_str()).unwrap_or_default();
        Verdict::Park("refused", format!("{} {field}", error.code.as_str()))
    }

    /// Ends a request that met a passing fault: the caller is told `error` and tries again; without a caller the message waits on
    /// the retry ladder.
    pub(crate) async fn postpone(
        &self,
        publisher: &Publisher,
        error: ErrorBody,
        failure: Failure,
    ) -> Result<Verdict, Failure> {
        if !self.waits() {
            return Err(failure);
        }
        let maybe_written = error.details.get("writesMayHaveCompleted").and_then(Value::as_bool);
        tracing::warn!(error = %what(&failure), maybe_written, "a request met a passing fault");
        self.tell(publisher, &Reply::<()>::Failed(error)).await;
        Ok(Verdict::Done)
    }
}

/// The text of a failure of either kind.
fn what(failure: &Failure) -> String {
    match failure {
        Failure::Transient(trouble) | Failure::Permanent(trouble) => trouble.to_string(),
    }
}
