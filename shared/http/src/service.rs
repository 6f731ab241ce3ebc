//! Something that is called for one purpose: its calls are counted, and a breaker stands in front of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::breaker::{Breaker, BreakerConfig, BreakerState, Permit, Verdict};
use crate::call::{Answer, Call, Endpoint};
use crate::client::Client;
use crate::error::{HttpError, Reason};
use crate::follow::{Pace, Sink};
use crate::metrics::Metrics;

/// Something that is called for one purpose. Cheap to clone; clones share the breaker.
#[derive(Debug, Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    purpose: &'static str,
    breaker: Option<Breaker>,
    metrics: Metrics,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(
        client: Client,
        purpose: &'static str,
        breaker: Option<BreakerConfig>,
        metrics: &Metrics,
    ) -> Self {
        let metrics = metrics.clone();
        metrics.declare(purpose);
        let breaker = breaker.map(Breaker::new);
        Self { inner: Arc::new(Inner { client, purpose, breaker, metrics }) }
    }

    /// Makes one call. An answer has a status of 2xx and was read to its end.
    pub async fn call(&self, call: Call) -> Result<Answer, HttpError> {
        self.inner.call(call, Ok).await
    }

    /// Makes one call for an answer of any status but 3xx. Metrics and breaker take a status of 4xx or 5xx as
    /// [`Service::call`] does.
    pub async fn exchange(&self, call: Call) -> Result<Answer, HttpError> {
        self.inner.any(self.inner.client.call_for_any(call)).await
    }

    /// Makes one call and hands the body of an answer of 2xx to `sink` as it comes; the answer that is returned has an empty
    /// one. An answer of 4xx or 5xx is returned as by [`Service::exchange`], and its body is not handed to the sink.
    pub async fn follow(
        &self,
        call: Call,
        pace: Pace,
        sink: &mut (dyn Sink + '_),
    ) -> Result<Answer, HttpError> {
        self.inner.any(self.inner.client.follow(call, pace, sink)).await
    }

    /// Posts JSON and reads JSON; an answer of another form is an error, and a failure of the service.
    pub async fn post_json<Q, A>(
        &self,
        endpoint: &Endpoint,
        question: &Q,
        within: Duration,
    ) -> Result<A, HttpError>
    where
        Q: Serialize + ?Sized,
        A: DeserializeOwned,
    {
        let call = Call::post_json(endpoint.clone(), question, within)?;
        let read =
            |answer: Answer| serde_json::from_slice(&answer.body).map_err(|_| HttpError::answer());
        self.inner.call(call, read).await
    }

    /// Where the breaker stands; none without one.
    pub fn breaker(&self) -> Option<BreakerState> {
        self.inner.breaker.as_ref().map(Breaker::state)
    }
}

impl Inner {
    async fn call<T>(
        &self,
        call: Call,
        read: impl FnOnce(Answer) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let began = Instant::now();
        let _shown = Shown(self);
        let result = match self.admit() {
            Ok(permit) => {
                self.show();
                let result = self.client.call(call).await.and_then(read);
                if let Some(permit) = permit {
                    permit.ended(verdict(result.as_ref().err()));
                }
                result
            }
            Err(error) => Err(error),
        };
        self.metrics.ended(self.purpose, began.elapsed(), result.as_ref().err());
        result
    }

    /// Makes a call that counts as failed also when its answer says no.
    async fn any(
        &self,
        exchange: impl Future<Output = Result<Answer, HttpError>>,
    ) -> Result<Answer, HttpError> {
        let began = Instant::now();
        let _shown = Shown(self);
        let result = match self.admit() {
            Ok(permit) => {
                self.show();
                let result = exchange.await;
                if let Some(permit) = permit {
                    permit.ended(verdict(failure(&result).as_ref()));
                }
                result
            }
            Err(error) => Err(error),
        };
        self.metrics.ended(self.purpose, began.elapsed(), failure(&result).as_ref());
        result
    }

    fn admit(&self) -> Result<Option<Permit<'_>>, HttpError> {
        let Some(breaker) = &self.breaker else { return Ok(None) };
        match breaker.admit() {
            Some(permit) => Ok(Some(permit)),
            None => Err(HttpError::unsent(Reason::OpenCircuit)),
        }
    }

    fn show(&self) {
        if let Some(breaker) = &self.breaker {
            self.metrics.breaker(self.purpose, breaker.state());
        }
    }
}

/// What there is to complain about, if an answer that says no is a complaint.
fn failure(result: &Result<Answer, HttpError>) -> Option<HttpError> {
    match result {
        Ok(answer) if answer.status >= 400 => {
            Some(HttpError::maybe_sent_if(true, Reason::Status(answer.status)))
        }
        Ok(_) => None,
        Err(error) => Some(*error),
    }
}

/// Shows where the breaker stands when a call is over, also when nobody waited for its end.
struct Shown<'a>(&'a Inner);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.show();
    }
}

/// Whether a service has failed by the way a call ended. What it refuses (4xx) it has answered, unless it says that it has too
/// much to do or gave up waiting.
fn verdict(error: Option<&HttpError>) -> Verdict {
    let Some(error) = error else { return Verdict::Works };
    match error.reason() {
        Reason::Status(408 | 429) => Verdict::Failed,
        Reason::Status(400..=499) | Reason::Redirect => Verdict::Works,
        Reason::RefusedUrl | Reason::RefusedAddress | Reason::Request | Reason::OpenCircuit => {
            Verdict::Unknown
        }
        Reason::Dns
        | Reason::Connect
        | Reason::Tls
        | Reason::Timeout
        | Reason::Broken
        | Reason::Status(_)
        | Reason::TooLarge
        | Reason::Answer => Verdict::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_fails_when_it_cannot_answer_and_not_when_it_says_no() {
        let of = |reason| verdict(Some(&HttpError::maybe_sent_if(true, reason)));
        assert_eq!(verdict(None), Verdict::Works);
        for status in [400, 401, 403, 404, 409, 422] {
            assert_eq!(of(Reason::Status(status)), Verdict::Works, "{status}");
        }
        for status in [408, 429, 500, 502, 503, 504, 999] {
            assert_eq!(of(Reason::Status(status)), Verdict::Failed, "{status}");
        }
        for reason in [Reason::Dns, Reason::Connect, Reason::Timeout, Reason::Answer] {
            assert_eq!(of(reason), Verdict::Failed, "{reason:?}");
        }
        assert_eq!(of(Reason::RefusedAddress), Verdict::Unknown);
    }
}
