//! Every metric of calls. The series of a purpose exist from the moment at which its service is made.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use crate::breaker::BreakerState;
use crate::error::{HttpError, Reason};

/// The metrics of one client.
#[derive(Clone)]
pub(crate) struct Metrics {
    calls: IntCounterVec,
    duration: HistogramVec,
    breaker: IntGaugeVec,
}

impl Metrics {
    /// Makes the metrics and puts them into `registry`.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let calls = IntCounterVec::new(
            Opts::new(
                "runfleet_http_calls_total",
                "HTTP calls, by purpose and result: `ok` or why there was no answer.",
            ),
            &["purpose", "result"],
        )?;
        let duration = HistogramVec::new(
            HistogramOpts::new(
                "runfleet_http_call_duration_seconds",
                "Time of one HTTP call, until its answer was read or it was given up.",
            )
            .buckets(vec![
                0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
            ]),
            &["purpose"],
        )?;
        let breaker = IntGaugeVec::new(
            Opts::new(
                "runfleet_http_breaker_state",
                "Where the breaker of a service stands: 0 closed, 1 half-open, 2 open.",
            ),
            &["purpose"],
        )?;
        registry.register(Box::new(calls.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(breaker.clone()))?;
        Ok(Self { calls, duration, breaker })
    }

    /// Makes the series of a purpose.
    pub(crate) fn declare(&self, purpose: &'static str) {
        for result in ["ok"].into_iter().chain(Reason::WORDS) {
            self.calls.with_label_values(&[purpose, result]);
        }
        self.duration.with_label_values(&[purpose]);
        self.breaker.with_label_values(&[purpose]);
    }

    /// A call has ended.
    pub(crate) fn ended(
        &self,
        purpose: &'static str,
        elapsed: Duration,
        error: Option<&HttpError>,
    ) {
        let result = error.map_or("ok", |error| error.reason().as_str());
        self.calls.with_label_values(&[purpose, result]).inc();
        if !error.is_some_and(|error| error.reason() == Reason::OpenCircuit) {
            self.duration.with_label_values(&[purpose]).observe(elapsed.as_secs_f64());
        }
    }

    /// Where the breaker of a purpose stands.
    pub(crate) fn breaker(&self, purpose: &'static str, state: BreakerState) {
        self.breaker.with_label_values(&[purpose]).set(match state {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        });
    }
}
