//! Start options of the example Process, as tests use them.

use anyhow::Result;
use runfleet_contracts::request::{OutcomeJob, ProcessStart};
use runfleet_contracts::{Operation, Request};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| unreachable!("a JSON value can be written"))
}

/// Starts "approve discount" with `input`; its outcome goes to the job `discount_decided` with an echo.
pub fn start(input: &Value) -> ProcessStart {
    ProcessStart {
        process_info_id: "approve-discount".into(),
        input: Some(raw(input)),
        instance_name: None,
        idempotency_key: None,
        on_complete: Some(OutcomeJob {
            job: "discount_decided".into(),
            payload: Some(raw(&serde_json::json!({"order": 7}))),
        }),
    }
}

/// The body of a start request.
pub fn request(start: &ProcessStart) -> Result<Vec<u8>> {
    let payload = to_raw_value(start)?;
    Ok(serde_json::to_vec(&Request { operation: Operation::ProcessesStart, payload })?)
}
