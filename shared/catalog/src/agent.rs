//! Agents as they are declared: the model, what it is told, what it may use, and what bounds it.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;
use serde::{Deserialize, Serialize};

use crate::model::{Grant, ProcessState};
use crate::sink::QuietRules;
use crate::tool::Permission;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// A name for people, 1 to 250 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is for, 1 to 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it can be started.
    pub state: ProcessState,
    /// Counts the definitions that were applied and differed, from 1.
    pub version: u32,
    /// The model, as the price table names it.
    pub model: String,
    /// Credits that the agent may use in all; none means no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_limit: Option<u32>,
    /// The person as whom it acts when nobody started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_as: Option<Name>,
    /// SHA-256 of the stored definition of this version, in lower-case hexadecimal; empty until it is merged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// How it works.
    #[serde(default, skip_serializing_if = "AgentSpec::is_default")]
    pub spec: AgentSpec,
}

impl AgentDefinition {
    /// Whether it can be started; to callers an inactive agent does not exist.
    pub fn is_active(&self) -> bool {
        self.state == ProcessState::Active
    }
}

/// How an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSpec {
    /// Where the model is reached; none means the provider of the workspace that lists the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Name>,
    /// Settings of the model.
    #[serde(skip_serializing_if = "Parameters::is_default")]
    pub parameters: Parameters,
    /// What the model is told first, a template, at most 16 KiB.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_prompt: String,
    /// Tools that it names; at most 64.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, ToolGrant>,
    /// Skills that it names; at most 32.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub skills: BTreeSet<Name>,
    /// MCP servers whose tools it may use; at most 8.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub mcp_servers: BTreeSet<Name>,
    /// Where the records are fetched that are given at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_source: Option<Name>,
    /// Answers of the model, without the last summary and without repairs of a result.
    pub max_turns: u32,
    /// Tokens that the model may read and write in one run; none means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u32>,
    /// Tool calls of one run.
    pub tool_calls: u32,
    /// Bytes of tool results of one run.
    pub tool_bytes: u32,
    /// Tool calls of one answer that run at a time.
    pub parallel: u32,
    /// Longest time of a run whose start does not say, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Longest time of one model call, in seconds.
    pub model_timeout_seconds: u32,
    /// What may go in and come out.
    #[serde(skip_serializing_if = "Guardrails::is_default")]
    pub guardrails: Guardrails,
    /// Where its messages to people go; none means the conversation in the ledger and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_sink: Option<Name>,
    /// How it treats the hours in which people are left alone.
    #[serde(skip_serializing_if = "QuietRules::is_default")]
    pub quiet_hours: QuietRules,
    /// Who may use it, on top of what each person may.
    #[serde(skip_serializing_if = "is_all")]
    pub users: Grant,
}

fn is_all(grant: &Grant) -> bool {
    *grant == Grant::All
}

impl AgentSpec {
    /// What an agent may use up that does not say.
    const DEFAULT: (u32, u32, u32, u32, u32) = (16, 64, 1_048_576, 4, 120);

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for AgentSpec {
    fn default() -> Self {
        let (max_turns, tool_calls, tool_bytes, parallel, model_timeout_seconds) = Self::DEFAULT;
        Self {
            provider: None,
            parameters: Parameters::default(),
            system_prompt: String::new(),
            tools: BTreeMap::new(),
            skills: BTreeSet::new(),
            mcp_servers: BTreeSet::new(),
            record_source: None,
            max_turns,
            token_budget: None,
            tool_calls,
            tool_bytes,
            parallel,
            timeout_seconds: None,
            model_timeout_seconds,
            guardrails: Guardrails::default(),
            chat_sink: None,
            quiet_hours: QuietRules::default(),
            users: Grant::All,
        }
    }
}

/// Settings of a model. Fractions are whole thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parameters {
    /// 0 to 2,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_thousandths: Option<u32>,
    /// 0 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p_thousandths: Option<u32>,
    /// Tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl Parameters {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What an agent says about a tool that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolGrant {
    /// Counts for tools of scope CUSTOM; none means what the tool says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
}

/// What may go into an agent and come out of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Guardrails {
    /// For the instruction and the variables.
    #[serde(skip_serializing_if = "Rules::is_default")]
    pub input: Rules,
    /// For the last text and the result.
    #[serde(skip_serializing_if = "Rules::is_default")]
    pub output: Rules,
}

impl Guardrails {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Rules for one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rules {
    /// Regular expressions that must not match; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_patterns: Vec<String>,
    /// Topics that a model is asked about; at most 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_topics: Vec<String>,
    /// Characters in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u32>,
}

impl Rules {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
