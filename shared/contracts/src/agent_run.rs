//! Agent runs that are under way or have ended: the messages by which agent-runner calls models and tools, what the ledger
//! keeps of the end, and the payload of the job that gets it.
//!
//! A message names what a stored run asks for; what that is stands in the run. Nothing here decides what an answer does.

use runfleet_domain::{MessageId, RunId, RunState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agents::{AgentDelivery, AgentRunError};
use crate::message::Message;

/// Longest text of a run in its job, in bytes; cut at a character boundary.
pub const JOB_TEXT_BYTES_MAX: usize = 32 * 1_024;

/// Largest result of a run in its job, in bytes of JSON; a larger one is left out.
pub const JOB_RESULT_BYTES_MAX: usize = 16 * 1_024;

/// Ask the model that an agent run waits for. Message id: `turn:<run>:<turn>:<attempt>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTurn {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Number of the question in the run, from 1.
    pub turn: u32,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Unix milliseconds after which nobody waits for the answer.
    pub deadline: u64,
}

impl AgentTurn {
    /// The id of the message.
    pub fn message_id(&self) -> String {
        format!("turn:{}:{}:{}", self.run_id, self.turn, self.attempt)
    }

    /// The id under which the answer waits in the inbox of the run, so that a second one is known.
    pub fn event_id(&self) -> Option<MessageId> {
        format!("turn:{}:{}", self.turn, self.attempt).parse().ok()
    }
}

impl Message for AgentTurn {
    const KIND: &'static str = "agent.turn.v1";
}

/// Carry out a tool call that an agent run waits for. Message id: `tool:<run>:<call>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTool {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The call, unique in the run.
    pub call_id: String,
    /// Unix milliseconds after which nobody waits for the result.
    pub deadline: u64,
}

impl AgentTool {
    /// The id of the message.
    pub fn message_id(&self) -> String {
        format!("tool:{}:{}", self.run_id, self.call_id)
    }

    /// The id under which the result waits in the inbox of the run, so that a second one is known.
    pub fn event_id(&self) -> Option<MessageId> {
        format!("tool:{}", self.call_id).parse().ok()
    }

    /// The id under which it is recorded that somebody has begun to carry it out.
    pub fn began_id(&self) -> Option<MessageId> {
        format!("began:{}", self.call_id).parse().ok()
    }
}

impl Message for AgentTool {
    const KIND: &'static str = "agent.tool.v1";
}

/// What an agent run has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    /// Tokens that models have read.
    pub input_tokens: u64,
    /// Tokens that models have written.
    pub output_tokens: u64,
    /// Answers of the model.
    pub iterations: u32,
    /// From the start to the end, in milliseconds.
    pub duration_ms: u64,
}

/// What the ledger keeps as the output of an agent run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentOutput {
    /// The last answer of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The result; fits `resultSchema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// What it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<AgentUsage>,
}

impl AgentOutput {
    /// Reads a stored output. One that cannot be read is as good as none.
    pub fn read(output: Option<&str>) -> Self {
        output.and_then(|output| serde_json::from_str(output).ok()).unwrap_or_default()
    }
}

/// The payload of an agent result job.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentResult {
    /// What `onResult.payload` said, or null.
    #[schemars(with = "Value")]
    pub payload: Option<Box<RawValue>>,
    /// The ended run.
    pub agent_run: EndedAgentRun,
}

/// An agent run that has ended, as its job sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedAgentRun {
    /// The run.
    pub run_id: String,
    /// `COMPLETED`, `FAILED`, `TIMEOUT` or `CANCELLED`.
    pub status: String,
    /// The last answer of the agent, cut at 32 KiB, or null.
    pub text: Option<String>,
    /// The result; null when there is none or when it is larger than 16 KiB.
    #[schemars(with = "Value")]
    pub result: Option<Box<RawValue>>,
    /// Why it failed, or null.
    pub error: Option<AgentRunError>,
    /// What it has used; null for a run that has not begun.
    pub usage: Option<AgentUsage>,
    /// What became of the message to a person; null for runs without `deliverTo`.
    pub delivery: Option<AgentDelivery>,
}

impl EndedAgentRun {
    /// What a job is told of a run that has ended with `output`.
    pub fn new(
        run_id: RunId,
        ended: RunState,
        output: AgentOutput,
        error: Option<AgentRunError>,
        delivery: Option<AgentDelivery>,
    ) -> Self {
        let AgentOutput { text, result, usage } = output;
        let cut = |mut text: String| {
            text.truncate(text.floor_char_boundary(JOB_TEXT_BYTES_MAX));
            text
        };
        Self {
            run_id: run_id.to_string(),
            status: ended.public(run_id.kind()).to_owned(),
            text: text.map(cut),
            result: result.filter(|result| result.get().len() <= JOB_RESULT_BYTES_MAX),
            error: error_of(ended, error),
            usage,
            delivery,
        }
    }
}

/// The error that callers see. The ledger knows ends that no runner has decided about: their codes are those of the contract.
pub fn error_of(ended: RunState, error: Option<AgentRunError>) -> Option<AgentRunError> {
    let told = |code: &str, message: &str| AgentRunError {
        code: code.to_owned(),
        message: message.to_owned(),
    };
    match (ended, error) {
        (RunState::Canceled | RunState::Deleted, _) => {
            Some(told("CANCELLED", "The run was cancelled."))
        }
        (RunState::TimedOut, None) => {
            Some(told("TIMEOUT", "The time of the run was over before the agent had finished."))
        }
        (_, error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::check;

    const RUN: &str = "AG1501JDX3Z8GF0000000000000000";

    fn ended(output: AgentOutput) -> EndedAgentRun {
        EndedAgentRun::new(RUN.parse().unwrap(), RunState::Completed, output, None, None)
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn result(bytes: usize) -> Box<RawValue> {
        raw(&format!("\"{}\"", "x".repeat(bytes - 2)))
    }

    /// CG-102
    #[test]
    fn the_text_of_a_job_is_cut_at_a_character_boundary() {
        let text = Some(format!("x{}", "é".repeat(JOB_TEXT_BYTES_MAX / 2)));
        let run = ended(AgentOutput { text, ..AgentOutput::default() });
        assert_eq!(run.text.unwrap().len(), JOB_TEXT_BYTES_MAX - 1);
    }

    /// CG-103
    #[test]
    fn a_result_that_is_too_large_for_a_job_is_left_out_and_never_cut() {
        let of = |bytes| {
            ended(AgentOutput { result: Some(result(bytes)), ..AgentOutput::default() }).result
        };
        assert!(of(JOB_RESULT_BYTES_MAX).is_some());
        assert!(of(JOB_RESULT_BYTES_MAX + 1).is_none());
    }

    #[test]
    fn ends_that_no_runner_has_decided_about_have_a_code_of_the_contract() {
        assert_eq!(error_of(RunState::Canceled, None).unwrap().code, "CANCELLED");
        assert_eq!(error_of(RunState::TimedOut, None).unwrap().code, "TIMEOUT");
        assert_eq!(error_of(RunState::Completed, None), None);
    }

    #[test]
    fn an_output_that_cannot_be_read_is_none() {
        assert!(AgentOutput::read(Some("nonsense")).text.is_none());
        assert!(AgentOutput::read(None).usage.is_none());
    }

    #[test]
    fn what_agent_runs_ask_for_keeps_its_form() {
        let run_id = RUN.parse().unwrap();
        let deadline = 1_764_468_030_000;
        let turn = AgentTurn { run_id, turn: 3, attempt: 2, deadline };
        assert_eq!(turn.event_id().unwrap().as_str(), "turn:3:2");
        check("agent.turn.v1", &turn);
        let tool = AgentTool { run_id, call_id: "call_3_1".into(), deadline };
        assert_eq!(tool.event_id().unwrap().as_str(), "tool:call_3_1");
        check("agent.tool.v1", &tool);
    }

    /// CG-101, CG-104
    #[test]
    fn what_a_project_gets_of_an_agent_run_keeps_its_form() {
        let usage =
            AgentUsage { input_tokens: 120, output_tokens: 30, iterations: 2, duration_ms: 4_200 };
        let output = AgentOutput {
            text: Some("Done.".into()),
            result: Some(raw("{\"score\":7}")),
            usage: Some(usage),
        };
        let run_id = RUN.parse().unwrap();
        let agent_run = EndedAgentRun::new(run_id, RunState::Completed, output, None, None);
        check("agent-result", &AgentResult { payload: Some(raw("{\"deal\":7}")), agent_run });
    }
}
