//! What this crate reports, registered into a registry that is passed in. Every series is there at zero from the start.
//! Depths of queues are not here: the broker reports them itself.

use std::sync::Arc;

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

use crate::names::queue_label;
use crate::route::Target;

/// How a message was settled, as the `result` label says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Completed,
    Duplicate,
    Dropped,
    Snoozed,
    Moved,
    Retried,
    ParkedExhausted,
    ParkedRejected,
    ParkedUnreadable,
    Requeued,
    Unsettled,
}

impl Settled {
    const ALL: [Self; 11] = [
        Self::Completed,
        Self::Duplicate,
        Self::Dropped,
        Self::Snoozed,
        Self::Moved,
        Self::Retried,
        Self::ParkedExhausted,
        Self::ParkedRejected,
        Self::ParkedUnreadable,
        Self::Requeued,
        Self::Unsettled,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Duplicate => "duplicate",
            Self::Dropped => "dropped",
            Self::Snoozed => "snoozed",
            Self::Moved => "moved",
            Self::Retried => "retried",
            Self::ParkedExhausted => "parked_exhausted",
            Self::ParkedRejected => "parked_rejected",
            Self::ParkedUnreadable => "parked_unreadable",
            Self::Requeued => "requeued",
            Self::Unsettled => "unsettled",
        }
    }
}

/// How a publish ended, as the `result` label says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    Confirmed,
    Refused,
    Unconfirmed,
    NotConnected,
    NoSuchQueue,
    TooLarge,
}

impl Published {
    const ALL: [Self; 6] = [
        Self::Confirmed,
        Self::Refused,
        Self::Unconfirmed,
        Self::NotConnected,
        Self::NoSuchQueue,
        Self::TooLarge,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refused => "refused",
            Self::Unconfirmed => "unconfirmed",
            Self::NotConnected => "not_connected",
            Self::NoSuchQueue => "no_such_queue",
            Self::TooLarge => "too_large",
        }
    }
}

/// From a loopback handler to a model call of five minutes, about three steps a decade.
const HANDLER_SECONDS: &[f64] =
    &[0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];

/// Interactive work is seconds old; a backfill may be hours old, and that is no alert.
const AGE_SECONDS: &[f64] =
    &[0.01, 0.05, 0.25, 1.0, 2.5, 10.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0];

/// A confirm takes a millisecond or a few; its deadline is five seconds.
const CONFIRM_SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// Every metric of the crate.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) connected: IntGauge,
    pub(crate) reconnects: IntCounter,
    pub(crate) confirm_duration: Histogram,
    published: Vec<IntCounter>,
    facts: [IntCounter; 2],
    messages: IntCounterVec,
    in_flight: IntGaugeVec,
    duration: HistogramVec,
    age: HistogramVec,
    last_receive: GaugeVec,
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> Result<Arc<Self>, prometheus::Error> {
        let published = IntCounterVec::new(
            Opts::new("runfleet_publisher_messages_total", "Publishes by how they ended."),
            &["target", "result"],
        )?;
        let pairs = Target::ALL
            .into_iter()
            .flat_map(|target| Published::ALL.map(|result| (target, result)));
        let metrics = Self {
            connected: IntGauge::new(
                "runfleet_broker_connected",
                "1 while a session with the broker stands.",
            )?,
            reconnects: IntCounter::new(
                "runfleet_broker_reconnects_total",
                "Sessions after the first one.",
            )?,
            confirm_duration: Histogram::with_opts(
                HistogramOpts::new(
                    "runfleet_publisher_confirm_duration_seconds",
                    "From the call to the confirm.",
                )
                .buckets(CONFIRM_SECONDS.to_vec()),
            )?,
            published: pairs
                .map(|(target, result)| {
                    published.get_metric_with_label_values(&[target.label(), result.label()])
                })
                .collect::<Result<_, _>>()?,
            facts: fact_counters(registry)?,
            messages: IntCounterVec::new(
                Opts::new(
                    "runfleet_consumer_messages_total",
                    "Deliveries by how they were settled.",
                ),
                &["queue", "result"],
            )?,
            in_flight: IntGaugeVec::new(
                Opts::new("runfleet_consumer_messages_in_flight", "Handlers that run."),
                &["queue"],
            )?,
            duration: HistogramVec::new(
                HistogramOpts::new(
                    "runfleet_consumer_handler_duration_seconds",
                    "Time of a handler.",
                )
                .buckets(HANDLER_SECONDS.to_vec()),
                &["queue"],
            )?,
            age: HistogramVec::new(
                HistogramOpts::new(
                    "runfleet_consumer_message_age_seconds",
                    "From the first publication to the start of the handler.",
                )
                .buckets(AGE_SECONDS.to_vec()),
                &["queue"],
            )?,
            last_receive: GaugeVec::new(
                Opts::new(
                    "runfleet_consumer_last_receive_timestamp_seconds",
                    "When a message last came in.",
                ),
                &["queue"],
            )?,
        };
        registry.register(Box::new(published))?;
        metrics.register_all(registry)?;
        Ok(Arc::new(metrics))
    }

    fn register_all(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        registry.register(Box::new(self.connected.clone()))?;
        registry.register(Box::new(self.reconnects.clone()))?;
        registry.register(Box::new(self.confirm_duration.clone()))?;
        registry.register(Box::new(self.messages.clone()))?;
        registry.register(Box::new(self.in_flight.clone()))?;
        registry.register(Box::new(self.duration.clone()))?;
        registry.register(Box::new(self.age.clone()))?;
        registry.register(Box::new(self.last_receive.clone()))
    }

    pub(crate) fn published(&self, target: Target, result: Published) {
        if let Some(counter) =
            self.published.get(target as usize * Published::ALL.len() + result as usize)
        {
            counter.inc();
        }
    }

    /// Counts a fact.
    pub(crate) fn fact(&self, written: bool) {
        let [told, gone] = &self.facts;
        if written { told.inc() } else { gone.inc() }
    }

    /// The series of one queue, looked up once.
    pub(crate) fn lane(&self, queue: &str) -> LaneMetrics {
        let label = queue_label(queue);
        LaneMetrics {
            settled: Settled::ALL
                .map(|result| self.messages.with_label_values(&[label, result.label()])),
            in_flight: self.in_flight.with_label_values(&[label]),
            duration: self.duration.with_label_values(&[label]),
            age: self.age.with_label_values(&[label]),
            last_receive: self.last_receive.with_label_values(&[label]),
        }
    }
}

fn fact_counters(registry: &Registry) -> Result<[IntCounter; 2], prometheus::Error> {
    let about = "Facts that were written to the broker, or were gone.";
    let facts = IntCounterVec::new(Opts::new("runfleet_facts_total", about), &["result"])?;
    registry.register(Box::new(facts.clone()))?;
    Ok(["written", "gone"].map(|result| facts.with_label_values(&[result])))
}

/// What one lane of a consumer reports.
#[derive(Debug, Clone)]
pub(crate) struct LaneMetrics {
    settled: [IntCounter; Settled::ALL.len()],
    pub(crate) in_flight: IntGauge,
    pub(crate) duration: Histogram,
    pub(crate) age: Histogram,
    pub(crate) last_receive: Gauge,
}

impl LaneMetrics {
    pub(crate) fn settled(&self, result: Settled) {
        if let Some(counter) = self.settled.get(result as usize) {
            counter.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_labels_has_its_own_counter() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry).unwrap();
        metrics.published(Target::Dead, Published::TooLarge);
        metrics.published(Target::Start, Published::Confirmed);
        let lane = metrics.lane("jobs.a.b");
        lane.settled(Settled::Unsettled);
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for line in [
            "runfleet_publisher_messages_total{result=\"too_large\",target=\"dead\"} 1",
            "runfleet_publisher_messages_total{result=\"confirmed\",target=\"start\"} 1",
            "runfleet_publisher_messages_total{result=\"refused\",target=\"job\"} 0",
            "runfleet_consumer_messages_total{queue=\"jobs\",result=\"unsettled\"} 1",
            "runfleet_consumer_messages_total{queue=\"jobs\",result=\"completed\"} 0",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn a_registry_takes_one_broker() {
        let registry = Registry::new();
        Metrics::register(&registry).unwrap();
        assert!(Metrics::register(&registry).is_err());
    }
}
