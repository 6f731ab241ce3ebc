//! What only delivery knows.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};
use runfleet_store::{Delivery, DeliveryStatus};

use crate::outcome::Outcome;
use crate::sinks::KINDS;

/// Metrics of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    messages: IntCounterVec,
    attempts: IntCounterVec,
    duration: HistogramVec,
    sent_after: HistogramVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let messages = IntCounterVec::new(
            Opts::new(
                "runfleet_delivery_messages_total",
                "Messages to people about which something was decided here, by sink and result: `sent`, `put_off`, or the code in lower case.",
            ),
            &["sink", "result"],
        )?;
        let attempts = IntCounterVec::new(
            Opts::new("runfleet_delivery_attempts_total", "Attempts of sinks, by how they ended."),
            &["sink", "result"],
        )?;
        let buckets =
            vec![0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0];
        let duration = HistogramVec::new(
            HistogramOpts::new(
                "runfleet_delivery_attempt_seconds",
                "Time of one attempt of a sink.",
            )
            .buckets(buckets),
            &["sink"],
        )?;
        let buckets = vec![0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];
        let sent_after = HistogramVec::new(
            HistogramOpts::new(
                "runfleet_delivery_sent_after_seconds",
                "From the call of the agent until its message was sent.",
            )
            .buckets(buckets),
            &["sink"],
        )?;
        registry.register(Box::new(messages.clone()))?;
        registry.register(Box::new(attempts.clone()))?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(sent_after.clone()))?;
        for sink in KINDS {
            messages.with_label_values(&[sink, "sent"]);
            messages.with_label_values(&[sink, "put_off"]);
            messages.with_label_values(&[sink, "delivery_unavailable"]);
            messages.with_label_values(&[sink, "delivery_failed"]);
            messages.with_label_values(&[sink, "recipient_rate_limited"]);
            for result in Outcome::WORDS {
                attempts.with_label_values(&[sink, result]);
            }
            duration.with_label_values(&[sink]);
            sent_after.with_label_values(&[sink]);
        }
        Ok(Self { messages, attempts, duration, sent_after })
    }

    pub(crate) fn decided(&self, sink: &str, delivery: &Delivery, since_call: Option<Duration>) {
        let code = delivery.error_code.as_deref().unwrap_or("sent").to_lowercase();
        self.messages.with_label_values(&[sink, &code]).inc();
        if let (DeliveryStatus::Sent, Some(since)) = (delivery.status, since_call) {
            self.sent_after.with_label_values(&[sink]).observe(since.as_secs_f64());
        }
    }

    /// A message waits in the ledger.
    pub(crate) fn put_off(&self, sink: &str) {
        self.messages.with_label_values(&[sink, "put_off"]).inc();
    }

    pub(crate) fn attempted(&self, sink: &str, outcome: Outcome, took: Duration) {
        self.attempts.with_label_values(&[sink, outcome.as_str()]).inc();
        self.duration.with_label_values(&[sink]).observe(took.as_secs_f64());
    }
}
