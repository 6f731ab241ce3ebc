//! What only start-intake knows.

use prometheus::{IntCounterVec, Opts, Registry};
use runfleet_contracts::{ErrorCode, Operation};

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Requests answered, by operation and result: `ok`, `duplicate`, `waits_for_day` or an error code.
    pub(crate) requests: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let requests = IntCounterVec::new(
            Opts::new(
                "runfleet_intake_requests_total",
                "Requests answered, by operation and result.",
            ),
            &["operation", "result"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        for operation in Operation::ALL.map(Operation::as_str).into_iter().chain(["unreadable"]) {
            for result in ["ok", "duplicate", "waits_for_day"]
                .into_iter()
                .chain(ErrorCode::ALL.iter().map(|code| code.as_str()))
            {
                requests.with_label_values(&[operation, result]);
            }
        }
        Ok(Self { requests })
    }
}
