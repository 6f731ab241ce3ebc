//! Calls that are about Processes.

use runfleet_contracts::Operation;
use runfleet_contracts::processes::{ProcessGet, ProcessStart, ProcessStarted, ProcessState};
use runfleet_contracts::request::OutcomeJob;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Client, Error, written};

/// Starts Processes and asks where they stand; see [`Client::processes`].
#[derive(Clone, Copy)]
pub struct Processes<'a>(pub(crate) &'a Client);

/// Options of a start; all of them may be left out.
#[derive(Debug, Clone, Default)]
pub struct ProcessStartOptions {
    input: Option<Box<RawValue>>,
    instance_name: Option<String>,
    idempotency_key: Option<String>,
    on_complete: Option<OutcomeJob>,
}

impl ProcessStartOptions {
    /// Values of the variables marked as input: an object of at most 65,536 bytes as JSON.
    pub fn input(mut self, input: &impl Serialize) -> Result<Self, Error> {
        self.input = Some(written(input)?);
        Ok(self)
    }

    /// A name for people: 1 to 255 characters.
    #[must_use]
    pub fn instance_name(mut self, name: impl Into<String>) -> Self {
        self.instance_name = Some(name.into());
        self
    }

    /// Makes two starts one run: 1 to 128 letters, digits, `.`, `_`, `:` and `-`. Derive it from what causes the start, such
    /// as the id of the job that calls.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The job of the project that gets the outcome, and what it gets back: at most 8,192 bytes as JSON.
    pub fn on_complete(
        mut self,
        job: impl Into<String>,
        payload: &impl Serialize,
    ) -> Result<Self, Error> {
        self.on_complete = Some(OutcomeJob { job: job.into(), payload: Some(written(payload)?) });
        Ok(self)
    }
}

impl Processes<'_> {
    /// Starts a Process. Returns once the run exists; it never waits for the run to end.
    pub async fn start(
        self,
        process_info_id: impl Into<String>,
        options: ProcessStartOptions,
    ) -> Result<ProcessStarted, Error> {
        self.start_with(&ProcessStart {
            process_info_id: process_info_id.into(),
            input: options.input,
            instance_name: options.instance_name,
            idempotency_key: options.idempotency_key,
            on_complete: options.on_complete,
        })
        .await
    }

    /// [`Processes::start`] with the options as they travel.
    pub async fn start_with(self, options: &ProcessStart) -> Result<ProcessStarted, Error> {
        let payload = written(options)?;
        ProcessStart::parse(&payload)?;
        self.0.call(Operation::ProcessesStart, payload).await
    }

    /// Where a Process run of this project stands.
    pub async fn get(self, instance_id: &str) -> Result<ProcessState, Error> {
        let options = ProcessGet { instance_id: instance_id.to_owned() };
        self.0.call(Operation::ProcessesGet, written(&options)?).await
    }
}
