//! What a start asks for, Process or agent alike: target, key, outcome job, and what the run keeps as its input.

use runfleet_contracts::agents::{AgentInput, AgentStart, AgentStarted, ValidAgentStart};
use runfleet_contracts::processes::{ProcessStart, ProcessStarted, ValidProcessStart};
use runfleet_contracts::request::ValidOutcomeJob;
use runfleet_contracts::{ErrorBody, Reply};
use runfleet_domain::admission::{Plan, Wish};
use runfleet_domain::{IdempotencyKey, Name, RunId, RunKind};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The checked options of a start.
#[derive(Debug)]
pub(crate) enum Asked {
    Process(ValidProcessStart),
    Agent(Box<ValidAgentStart>),
}

impl Asked {
    /// Reads and checks the options.
    pub(crate) fn parse(kind: RunKind, payload: &RawValue) -> Result<Self, ErrorBody> {
        match kind {
            RunKind::Process => ProcessStart::parse(payload).map(Self::Process),
            RunKind::Agent => AgentStart::parse(payload).map(Box::new).map(Self::Agent),
        }
    }

    pub(crate) fn kind(&self) -> RunKind {
        match self {
            Self::Process(_) => RunKind::Process,
            Self::Agent(_) => RunKind::Agent,
        }
    }

    pub(crate) fn target(&self) -> &Name {
        match self {
            Self::Process(start) => &start.process,
            Self::Agent(start) => &start.agent,
        }
    }

    pub(crate) fn key(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Process(start) => start.key.as_ref(),
            Self::Agent(start) => start.key.as_ref(),
        }
    }

    pub(crate) fn outcome(&self) -> Option<&ValidOutcomeJob> {
        match self {
            Self::Process(start) => start.on_complete.as_ref(),
            Self::Agent(start) => start.on_result.as_ref(),
        }
    }

    pub(crate) fn instance_name(&self) -> Option<&str> {
        match self {
            Self::Process(start) => start.instance_name.as_deref(),
            Self::Agent(_) => None,
        }
    }

    /// The person who may get messages.
    pub(crate) fn recipient(&self) -> Option<&Name> {
        match self {
            Self::Process(_) => None,
            Self::Agent(start) => start.recipient.as_ref(),
        }
    }

    pub(crate) fn wish(&self) -> Wish<'_> {
        let agent = match self {
            Self::Process(_) => None,
            Self::Agent(start) => Some(start.wish()),
        };
        Wish { target: self.target(), job: self.outcome().map(|(job, _)| job), agent }
    }

    /// The variables that a Process is started with.
    pub(crate) fn variables(&self) -> Result<Option<Map<String, Value>>, ErrorBody> {
        let Self::Process(ValidProcessStart { input: Some(input), .. }) = self else {
            return Ok(None);
        };
        serde_json::from_str(input.get())
            .map(Some)
            .map_err(|_| ErrorBody::field("input", "must be an object"))
    }

    /// What the run keeps as its input: the variables as they were written, or the options of an agent with every default
    /// filled in.
    pub(crate) fn input(&self, plan: &Plan) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        match self {
            Self::Process(start) => Ok(start.input.clone()),
            Self::Agent(start) => {
                to_raw_value(&AgentInput { run_as: plan.run_as, ..start.input.clone() }).map(Some)
            }
        }
    }

    /// Longest time of the run, in seconds.
    pub(crate) fn seconds(&self, plan: &Plan) -> Option<u32> {
        match self {
            Self::Process(_) => plan.deadline_seconds,
            Self::Agent(start) => Some(start.input.timeout_seconds),
        }
    }
}

/// The answer to a start.
pub(crate) fn started(run: RunId, duplicate: bool) -> Result<Box<RawValue>, serde_json::Error> {
    match run.kind() {
        RunKind::Process => {
            to_raw_value(&Reply::Done(ProcessStarted { instance_id: run.to_string(), duplicate }))
        }
        RunKind::Agent => {
            to_raw_value(&Reply::Done(AgentStarted { run_id: run.to_string(), duplicate }))
        }
    }
}
