//! `kind: Agent`: what it is for, its model, what it is told, what it may use, and what it may use up.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use super::sink::quiet;
use super::tool::PERMISSIONS;
use super::workspace::grant;
use crate::agent::{AgentDefinition, AgentSpec, Guardrails, Parameters, Rules, ToolGrant};
use crate::bounds::{
    AGENT_SERVERS_MAX, AGENT_SKILLS_MAX, AGENT_TOOLS_MAX, CREDITS, DESCRIPTION_CHARS_MAX,
    DISPLAY_CHARS_MAX, GUARD_CHARS, MODEL_CHARS_MAX, MODEL_SECONDS, PARALLEL, PATTERN_CHARS_MAX,
    PATTERN_MEMORY_MAX, PATTERNS_MAX, PROMPT_BYTES_MAX, RUN_SECONDS, TOKENS, TOOL_BYTES,
    TOOL_CALLS, TOPICS_MAX, TURNS,
};
use crate::model::{Grant, ProcessState};
use crate::node::Value;
use crate::reader::{At, Fields};
use crate::sink::QuietRules;
use crate::template::Template;

pub(super) const STATES: &[(&str, ProcessState)] =
    &[("active", ProcessState::Active), ("inactive", ProcessState::Inactive)];

pub(super) fn read(spec: At<'_>) -> Option<AgentDefinition> {
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let description =
        fields.or("description", None, |at| at.display(DESCRIPTION_CHARS_MAX).map(Some));
    let state = fields.or("state", ProcessState::Active, |at| at.word(STATES));
    let model = fields.required("model").and_then(|at| model(&at));
    let credit_limit = fields.or("creditLimit", None, |at| at.integer(CREDITS).map(Some));
    let runs_as = fields.or("runsAs", None, |at| at.parse().map(Some));
    let spec = work(&mut fields);
    fields.finish();
    Some(AgentDefinition {
        display_name: display_name?,
        description: description?,
        state: state?,
        version: 0,
        model: model?,
        credit_limit: credit_limit?,
        runs_as: runs_as?,
        sha256: String::new(),
        spec: spec?,
    })
}

fn work(fields: &mut Fields<'_>) -> Option<AgentSpec> {
    let none = AgentSpec::default();
    let provider = fields.or("provider", None, |at| at.parse().map(Some));
    let parameters = fields.or("parameters", Parameters::default(), parameters);
    let system_prompt = fields.or("systemPrompt", String::new(), |at| prompt(&at));
    let tools = fields.or("tools", BTreeMap::new(), |at| tools(&at));
    let skills = fields.or("skills", BTreeSet::new(), |at| names(&at, AGENT_SKILLS_MAX));
    let mcp_servers = fields.or("mcpServers", BTreeSet::new(), |at| names(&at, AGENT_SERVERS_MAX));
    let record_source = fields.or("recordSource", None, |at| at.parse().map(Some));
    let mut number = |name: &str, default, range| fields.or(name, default, |at| at.integer(range));
    let max_turns = number("maxTurns", none.max_turns, TURNS);
    let tool_calls = number("toolCalls", none.tool_calls, TOOL_CALLS);
    let tool_bytes = number("toolBytes", none.tool_bytes, TOOL_BYTES);
    let parallel = number("parallel", none.parallel, PARALLEL);
    let model_seconds = number("modelTimeoutSeconds", none.model_timeout_seconds, MODEL_SECONDS);
    let token_budget = fields.or("tokenBudget", None, |at| at.integer(TOKENS).map(Some));
    let timeout = fields.or("timeoutSeconds", None, |at| at.integer(RUN_SECONDS).map(Some));
    let guardrails = fields.or("guardrails", Guardrails::default(), guardrails);
    let chat_sink = fields.or("chatSink", None, |at| at.parse().map(Some));
    let quiet_hours = fields.or("quietHours", QuietRules::default(), quiet);
    let users = fields.or("users", Grant::All, |at| grant(&at));
    Some(AgentSpec {
        provider: provider?,
        parameters: parameters?,
        system_prompt: system_prompt?,
        tools: tools?,
        skills: skills?,
        mcp_servers: mcp_servers?,
        record_source: record_source?,
        max_turns: max_turns?,
        token_budget: token_budget?,
        tool_calls: tool_calls?,
        tool_bytes: tool_bytes?,
        parallel: parallel?,
        timeout_seconds: timeout?,
        model_timeout_seconds: model_seconds?,
        guardrails: guardrails?,
        chat_sink: chat_sink?,
        quiet_hours: quiet_hours?,
        users: users?,
    })
}

/// The name of a model.
pub(super) fn model(at: &At<'_>) -> Option<String> {
    let text = at.text()?;
    if is_model(text) {
        return Some(text.to_owned());
    }
    at.mistake(format!("must be 1 to {MODEL_CHARS_MAX} printable ASCII characters without spaces"));
    None
}

/// Whether a text may name a model.
pub(super) fn is_model(text: &str) -> bool {
    (1..=MODEL_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn parameters(at: At<'_>) -> Option<Parameters> {
    let mut fields = at.fields()?;
    let temperature = fields.or("temperature", None, |at| at.thousandths(&(0..=2_000)).map(Some));
    let top_p = fields.or("topP", None, |at| at.thousandths(&(0..=1_000)).map(Some));
    let max_tokens = fields.or("maxTokens", None, |at| at.integer(TOKENS).map(Some));
    fields.finish();
    Some(Parameters {
        temperature_thousandths: temperature?,
        top_p_thousandths: top_p?,
        max_tokens: max_tokens?,
    })
}

fn prompt(at: &At<'_>) -> Option<String> {
    let text = at.prose(PROMPT_BYTES_MAX)?;
    if let Err(error) = Template::parse(&text) {
        at.mistake(error.to_string());
        return None;
    }
    Some(text)
}

/// Names of tools, each by itself or with a permission.
fn tools(at: &At<'_>) -> Option<BTreeMap<Name, ToolGrant>> {
    let mut tools = BTreeMap::new();
    for item in at.items(AGENT_TOOLS_MAX)? {
        let place = At::parse::<Name>;
        let (name, grant) = if matches!(item.node.value, Value::Map(_)) {
            let mut fields = item.fields()?;
            let name = fields.required("name").and_then(|at| place(&at));
            let permission = fields.or("permission", None, |at| at.word(PERMISSIONS).map(Some));
            if let Some(name) = name.as_ref().filter(|name| tools.contains_key(*name)) {
                fields.mistake(format!("names the tool {name} again"));
            }
            fields.finish();
            (name, permission.map(|permission| ToolGrant { permission }))
        } else {
            (place(&item), Some(ToolGrant::default()))
        };
        if let (Some(name), Some(grant)) = (name, grant) {
            tools.entry(name).or_insert(grant);
        }
    }
    // A tool that is left out has left its mistakes.
    Some(tools)
}

/// A list of names; duplicates are one.
pub(super) fn names(at: &At<'_>, max: usize) -> Option<BTreeSet<Name>> {
    let items = at.items(max)?;
    let names: Vec<Option<Name>> = items.iter().map(At::parse).collect();
    names.into_iter().collect()
}

fn guardrails(at: At<'_>) -> Option<Guardrails> {
    let mut fields = at.fields()?;
    let input = fields.or("input", Rules::default(), rules);
    let output = fields.or("output", Rules::default(), rules);
    fields.finish();
    Some(Guardrails { input: input?, output: output? })
}

fn rules(at: At<'_>) -> Option<Rules> {
    let mut fields = at.fields()?;
    let patterns = fields.or("blockedPatterns", Vec::new(), |at| {
        at.items(PATTERNS_MAX)?.iter().map(pattern).collect()
    });
    let topics = fields.or("blockedTopics", Vec::new(), |at| {
        at.items(TOPICS_MAX)?.iter().map(|at| at.display(PATTERN_CHARS_MAX)).collect()
    });
    let max_chars = fields.or("maxChars", None, |at| at.integer(GUARD_CHARS).map(Some));
    fields.finish();
    Some(Rules { blocked_patterns: patterns?, blocked_topics: topics?, max_chars: max_chars? })
}

fn pattern(at: &At<'_>) -> Option<String> {
    let text = at.display(PATTERN_CHARS_MAX)?;
    let compiled = regex::RegexBuilder::new(&text).size_limit(PATTERN_MEMORY_MAX).build();
    if compiled.is_err() {
        at.mistake("is not a regular expression that can be used");
        return None;
    }
    Some(text)
}
