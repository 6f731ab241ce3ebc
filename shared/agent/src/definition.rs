//! One version of an agent, ready to be executed, and the beginning of a run.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use regex::Regex;
use runfleet_catalog::{AgentBlueprint, Rules, StoredError, Template};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::engine;
use crate::limits::{
    EARLIER_BYTES_MAX, FOUND_BYTES_MAX, FOUND_MAX, PROMPT_BYTES_MAX, RECORDS_BYTES_MAX,
};
use crate::offer;
use crate::schema;
use crate::state::{Approval, Earlier, State};
use crate::text::{clean, cut, json_bytes};

/// Memory of one compiled pattern, in bytes.
const PATTERN_MEMORY_MAX: usize = 1_048_576;

/// What is judged by a model at a time, in bytes.
pub(crate) const JUDGED_BYTES_MAX: usize = 32 * 1024;

/// The gap of a system prompt into which the records go.
const RECORDS_GAP: &str = "records";

/// One version of an agent. Never changes, so it may be kept and shared.
#[derive(Debug)]
pub struct Definition {
    pub(crate) blueprint: AgentBlueprint,
    pub(crate) schemas: BTreeMap<String, Validator>,
    pub(crate) prompt: Template,
    pub(crate) input: Vec<Regex>,
    pub(crate) output: Vec<Regex>,
}

/// Why a stored definition cannot be executed. A run of it ends with `AGENT_CONFIG_INVALID`.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It cannot be read.
    #[error(transparent)]
    Blueprint(#[from] StoredError),
    /// The schema of a tool cannot be used.
    #[error("the input schema of the tool {0} cannot be used")]
    Schema(String),
    /// The system prompt is no template.
    #[error("the system prompt cannot be used")]
    Prompt,
    /// A pattern of a guardrail cannot be used.
    #[error("a pattern of a guardrail cannot be used")]
    Pattern,
}

/// What a run begins with.
#[derive(Debug, Clone, Default)]
pub struct Begin {
    /// What the agent is to do.
    pub instruction: String,
    /// What was said in the conversation that the run goes on with, oldest first. The newest of it within 48 KiB are kept.
    pub earlier: Vec<Earlier>,
    /// Facts for the agent. Those for which the system prompt has no gap go into the first message.
    pub variables: Map<String, Value>,
    /// Records that the agent gets to see.
    pub records: Vec<RecordText>,
    /// JSON Schema that the result must fit.
    pub result_schema: Option<Value>,
    /// What happens to calls that need approval.
    pub approval: Approval,
    /// Whether there is a person whom the run may write to: then it has a tool for that, which nothing takes away.
    pub deliver: bool,
    /// Tools that the policy or the identity of the run does not allow.
    pub denied: BTreeSet<String>,
    /// Tools that MCP servers offer; the first 64 within 48 KiB.
    pub found: Vec<FoundTool>,
    /// Now, in Unix milliseconds.
    pub now_ms: u64,
    /// When the time of the run is over, in Unix milliseconds.
    pub deadline_ms: u64,
}

/// A record as the agent gets to see it.
#[derive(Debug, Clone, Default)]
pub struct RecordText {
    /// The kind of record.
    pub object_slug: String,
    /// Which one.
    pub record_id: String,
    /// Its fields and activities, as text.
    pub text: String,
}

/// A tool that an MCP server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundTool {
    /// The server.
    pub server: String,
    /// The tool, as the server names it.
    pub tool: String,
    /// What the model reads about it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
}

impl FoundTool {
    /// As the model calls it.
    pub fn name(&self) -> String {
        format!("{}__{}", self.server, self.tool)
    }
}

impl Definition {
    /// Reads a stored version of an agent.
    pub fn parse(json: &str) -> Result<Self, DefinitionError> {
        Self::new(AgentBlueprint::from_json(json)?)
    }

    /// Makes a version of an agent ready.
    pub fn new(blueprint: AgentBlueprint) -> Result<Self, DefinitionError> {
        let mut schemas = BTreeMap::new();
        for (name, tool) in &blueprint.tools {
            let validator = schema::compile(&tool.input_schema)
                .ok_or_else(|| DefinitionError::Schema(name.to_string()))?;
            schemas.insert(name.to_string(), validator);
        }
        let prompt =
            Template::parse(&blueprint.spec.system_prompt).map_err(|_| DefinitionError::Prompt)?;
        let input = patterns(&blueprint.spec.guardrails.input)?;
        let output = patterns(&blueprint.spec.guardrails.output)?;
        Ok(Self { blueprint, schemas, prompt, input, output })
    }

    /// What it was made of.
    pub fn blueprint(&self) -> &AgentBlueprint {
        &self.blueprint
    }

    /// Whether what the agent says may be shown while it says it: there is no rule that it has to be held against first.
    pub fn speaks_freely(&self) -> bool {
        self.blueprint.spec.guardrails.output == Rules::default()
    }

    /// The state of a run that begins; it may have ended at once.
    pub fn begin(&self, begin: Begin) -> State {
        let mut state = State::new(begin.now_ms, begin.deadline_ms);
        state.approval = begin.approval;
        state.result_schema = begin.result_schema;
        state.found = found(begin.found, &begin.denied);
        state.allowed = offer::all(self, &state.found)
            .into_iter()
            .filter(|name| !begin.denied.contains(name))
            .chain(begin.deliver.then(|| offer::SEND_MESSAGE.to_owned()))
            .collect();
        state.deliver = begin.deliver;
        let records = records(&begin.records);
        let taken: BTreeSet<&str> = self.prompt.names().collect();
        let variable = |name: &str| begin.variables.get(name).map(plain);
        state.system = clean_whole(&self.prompt.fill(|name| match name {
            RECORDS_GAP => Some(records.clone()),
            name => variable(name),
        }));
        if !records.is_empty() && !taken.contains(RECORDS_GAP) {
            let system = format!("{}\n\nRecords:\n{records}", state.system);
            system.trim().clone_into(&mut state.system);
        }
        let rest: Map<String, Value> = begin
            .variables
            .iter()
            .filter(|(name, _)| !taken.contains(name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        state.earlier = earlier(begin.earlier);
        state.first = clean_whole(&begin.instruction);
        if !rest.is_empty() {
            let json = Value::Object(rest);
            state.first = clean_whole(&format!("{}\n\nVariables: {json}", state.first));
        }
        let given: Vec<String> =
            std::iter::once(begin.instruction).chain(begin.variables.values().map(plain)).collect();
        self.judge(&mut state, &given.join("\n"));
        let prompt = json_bytes(&state.system) + json_bytes(&state.first);
        if state.end().is_none() && prompt + json_bytes(&state.earlier) > PROMPT_BYTES_MAX {
            engine::end(&mut state, begin.now_ms, Some(ErrorCode::AgentConfigInvalid), None, None);
        }
        state
    }

    /// Holds what came in against the rules that need no model.
    fn judge(&self, state: &mut State, given: &str) {
        let rules = &self.blueprint.spec.guardrails.input;
        if breaks(rules, &self.input, given) {
            let now = state.begun_ms;
            engine::end(state, now, Some(ErrorCode::GuardrailRejected), None, None);
        } else if !rules.blocked_topics.is_empty() {
            state.judged = clean(given, JUDGED_BYTES_MAX);
        }
    }
}

/// Whether a text breaks a rule that needs no model.
pub(crate) fn breaks(rules: &Rules, patterns: &[Regex], text: &str) -> bool {
    let too_long = rules
        .max_chars
        .is_some_and(|max| text.chars().count() > usize::try_from(max).unwrap_or(usize::MAX));
    too_long || patterns.iter().any(|pattern| pattern.is_match(text))
}

fn patterns(rules: &Rules) -> Result<Vec<Regex>, DefinitionError> {
    let compile = |pattern: &String| {
        regex::RegexBuilder::new(pattern)
            .size_limit(PATTERN_MEMORY_MAX)
            .build()
            .map_err(|_| DefinitionError::Pattern)
    };
    rules.blocked_patterns.iter().map(compile).collect()
}

fn found(tools: Vec<FoundTool>, denied: &BTreeSet<String>) -> Vec<FoundTool> {
    let mut left = FOUND_BYTES_MAX;
    let mut seen = BTreeSet::new();
    tools
        .into_iter()
        .filter(|tool| {
            let name = tool.name();
            !denied.contains(&name) && offer::is_name(&name) && seen.insert(name)
        })
        .take(FOUND_MAX)
        .take_while(|tool| {
            let bytes = json_bytes(tool);
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        })
        .collect()
}

/// The newest of what was said, within its bound.
fn earlier(said: Vec<Earlier>) -> Vec<Earlier> {
    let mut left = EARLIER_BYTES_MAX;
    let newest = said.into_iter().rev().map(|said| Earlier {
        text: clean(&said.text, EARLIER_BYTES_MAX / 4),
        note: said.note.map(|note| clean_whole(&note)),
        ..said
    });
    let mut kept: Vec<Earlier> = newest
        .take_while(|said| {
            let bytes = json_bytes(said);
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        })
        .collect();
    kept.reverse();
    kept
}

/// All records as one text, each within its share of the room.
fn records(records: &[RecordText]) -> String {
    let share = RECORDS_BYTES_MAX / records.len().max(1);
    let texts = records.iter().map(|record| {
        let head = format!("## {} {}\n", record.object_slug, record.record_id);
        let text = format!("{head}{}", record.text);
        clean(cut(&text, share), share)
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A value as it stands in a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn clean_whole(text: &str) -> String {
    clean(text, usize::MAX)
}
