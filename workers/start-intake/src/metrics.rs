//! What only start-intake knows.

use prometheus::{IntCounterVec, Opts, Registry};
use runfleet_contracts::{ErrorCode, Operation};

/// Counters of this worker.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// Requests answered, by operation and result: `ok`, `duplicate`, `waits_for_day` or an error code.
    pub(crate) requests: IntCounterVec,
    /// Calls of code of projects that have ended, by result: `ok`, `failed` or `timeout`.
    pub(crate) calls: IntCounterVec,
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
        let calls = IntCounterVec::new(
            Opts::new(
                "runfleet_intake_calls_ended_total",
                "Calls of code of projects that have ended, by result.",
            ),
            &["result"],
        )?;
        registry.register(Box::new(calls.clone()))?;
        for result in ["ok", "failed", "timeout"] {
            calls.with_label_values(&[result]);
        }
        Ok(Self { requests, calls })
    }
}
