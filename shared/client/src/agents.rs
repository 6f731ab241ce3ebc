//! Calls that are about agents.

use runfleet_contracts::Operation;
use runfleet_contracts::agents::{
    AgentGet, AgentRecord, AgentRunState, AgentStart, AgentStarted, ApprovalPolicy, DeliverTo,
};
use runfleet_contracts::models::InvokeModel;
use runfleet_contracts::request::OutcomeJob;
use runfleet_domain::admission::RunAs;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Client, Error, written};

/// Starts agents and asks where their runs stand; see [`Client::agents`].
#[derive(Clone, Copy)]
pub struct Agents<'a>(pub(crate) &'a Client);

/// Options of a start. Only the instruction is required.
#[derive(Debug, Clone)]
pub struct AgentStartOptions {
    instruction: String,
    variables: Option<Box<RawValue>>,
    records: Option<Vec<AgentRecord>>,
    result_schema: Option<Box<RawValue>>,
    run_as: Option<RunAs>,
    approval_policy: Option<ApprovalPolicy>,
    timeout_seconds: Option<u32>,
    idempotency_key: Option<String>,
    on_result: Option<OutcomeJob>,
    deliver_to: Option<DeliverTo>,
}

impl AgentStartOptions {
    /// What the agent is to do: 1 to 10,000 characters, not blank.
    pub fn new(instruction: impl Into<String>) -> Self {
        Self {
            instruction: instruction.into(),
            variables: None,
            records: None,
            result_schema: None,
            run_as: None,
            approval_policy: None,
            timeout_seconds: None,
            idempotency_key: None,
            on_result: None,
            deliver_to: None,
        }
    }

    /// Facts for the agent: an object of at most 50 strings, numbers and booleans, 65,536 bytes as JSON.
    pub fn variables(mut self, variables: &impl Serialize) -> Result<Self, Error> {
        self.variables = Some(written(variables)?);
        Ok(self)
    }

    /// Records that the agent gets to see: at most 20, each once.
    #[must_use]
    pub fn records(mut self, records: Vec<AgentRecord>) -> Self {
        self.records = Some(records);
        self
    }

    /// JSON Schema that the result must fit: an object, at most 16,384 bytes, 8 levels deep.
    pub fn result_schema(mut self, schema: &impl Serialize) -> Result<Self, Error> {
        self.result_schema = Some(written(schema)?);
        Ok(self)
    }

    /// As whom the agent acts; the caller unless the execution has no user.
    #[must_use]
    pub fn run_as(mut self, run_as: RunAs) -> Self {
        self.run_as = Some(run_as);
        self
    }

    /// What happens to tool calls that want a person's approval; they are refused unless it is said.
    #[must_use]
    pub fn approval_policy(mut self, policy: ApprovalPolicy) -> Self {
        self.approval_policy = Some(policy);
        self
    }

    /// Longest time of the run, in seconds: 10 to 1,800; 300 unless it is said.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }

    /// Makes two starts one run: 1 to 128 letters, digits, `.`, `_`, `:` and `-`.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The job of the project that gets the outcome, and what it gets back: at most 8,192 bytes as JSON.
    pub fn on_result(
        mut self,
        job: impl Into<String>,
        payload: &impl Serialize,
    ) -> Result<Self, Error> {
        self.on_result = Some(OutcomeJob { job: job.into(), payload: Some(written(payload)?) });
        Ok(self)
    }

    /// The person who may get a message.
    #[must_use]
    pub fn deliver_to(mut self, to: DeliverTo) -> Self {
        self.deliver_to = Some(to);
        self
    }
}

impl Agents<'_> {
    /// Starts an agent. Returns once the run exists; it never waits for the run to end.
    pub async fn start(
        self,
        agent_id: impl Into<String>,
        options: AgentStartOptions,
    ) -> Result<AgentStarted, Error> {
        self.start_with(&AgentStart {
            agent_id: agent_id.into(),
            instruction: options.instruction,
            variables: options.variables,
            records: options.records,
            result_schema: options.result_schema,
            run_as: options.run_as,
            approval_policy: options.approval_policy,
            timeout_seconds: options.timeout_seconds,
            idempotency_key: options.idempotency_key,
            on_result: options.on_result,
            deliver_to: options.deliver_to,
        })
        .await
    }

    /// [`Agents::start`] with the options as they travel.
    pub async fn start_with(self, options: &AgentStart) -> Result<AgentStarted, Error> {
        let payload = written(options)?;
        AgentStart::parse(&payload)?;
        self.0.call(Operation::AgentsStart, payload).await
    }

    /// Asks a model: starts a run that answers once. Its text is the answer; see [`Agents::get`].
    pub async fn invoke_model(self, options: &InvokeModel) -> Result<AgentStarted, Error> {
        let payload = written(options)?;
        InvokeModel::parse(&payload)?;
        self.0.call(Operation::ModelsInvoke, payload).await
    }

    /// Where an agent run of this project stands.
    pub async fn get(self, run_id: &str) -> Result<AgentRunState, Error> {
        let options = AgentGet { run_id: run_id.to_owned() };
        self.0.call(Operation::AgentsGet, written(&options)?).await
    }
}
