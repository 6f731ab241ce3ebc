//! Settings of calls: how many at once, what may be called, where scripts are.

use std::path::PathBuf;
use std::sync::Arc;

use runfleet_broker::{LaneConfig, Route};
use runfleet_domain::Lane;
use runfleet_http::AllowList;
use runfleet_identity::AnswerKeys;
use runfleet_mcp::Commands;
use runfleet_runtime::Env;
use runfleet_worker::TokenSettings;
use runfleet_worker::keys::Places;
use secrecy::{ExposeSecret as _, SecretString};

/// Calls at once, interactive lane.
const PREFETCH: u16 = 64;

/// Calls at once, backfill lane.
const PREFETCH_BACKFILL: u16 = 16;

/// What the part of agent-runner is told that asks others.
#[derive(Debug)]
pub(crate) struct CallConfig {
    turns: [u16; 2],
    tools: [u16; 2],
    /// Providers that may be called although they are not public.
    pub(crate) model_allow: AllowList,
    /// What tools may call although it is not public.
    pub(crate) tool_allow: AllowList,
    /// Where the secrets of workspaces are.
    pub(crate) secrets: Option<PathBuf>,
    /// Environment variables that documents may name as secrets.
    variables: Vec<String>,
    /// The search service, with places for query and limit.
    pub(crate) search_url: Option<String>,
    /// Where its answer has the results.
    pub(crate) search_results: String,
    /// Who asks it.
    pub(crate) search_token: Option<SecretString>,
    /// Programs that MCP servers may be.
    pub(crate) commands: Commands,
    /// By which answers of hosts are known.
    pub(crate) keys: Option<Arc<AnswerKeys>>,
    /// Where the scripts of scripted providers are.
    pub(crate) scripts: Option<PathBuf>,
    /// Where the key of execution tokens is.
    pub(crate) tokens: TokenSettings,
}

/// The names in a list that is separated by commas.
fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl CallConfig {
    /// Where secrets that documents name may be.
    pub(crate) fn places(&self) -> Places {
        Places { variables: self.variables.clone(), folder: self.secrets.clone() }
    }

    /// The lines of model calls with their prefetch.
    pub(crate) fn turn_lanes(&self) -> Vec<LaneConfig> {
        lanes(Route::Turn, self.turns)
    }

    /// The lines of tool calls with their prefetch.
    pub(crate) fn tool_lanes(&self) -> Vec<LaneConfig> {
        lanes(Route::Tool, self.tools)
    }

    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let prefetch = prefetch(env);
        let model_allow = env.optional::<AllowList>(
            "RUNFLEET_MODEL_ALLOW",
            "Hosts, host:port, addresses and networks at which providers of models may be called although they are not public or not https; separated by commas.",
        );
        let scripts = env.optional::<PathBuf>(
            "RUNFLEET_MODEL_SCRIPTS_DIR",
            "Folder with the files that scripted providers play, for development and tests; absent: an agent with such a provider fails.",
        );
        let tool_allow = env.optional::<AllowList>("RUNFLEET_HTTP_ALLOW", "Hosts, host:port, addresses and networks that HTTP tasks and tools may call although they are not public or not https; separated by commas.");
        let secrets = env.optional::<PathBuf>("RUNFLEET_HTTP_SECRETS_DIR", "Folder with the secrets of HTTP tasks and tools, one file WORKSPACE/NAME each; absent: what names a secret fails.");
        let variables = env.or(
            "RUNFLEET_SECRET_VARIABLES",
            String::new(),
            "Environment variables that documents may name as secrets, such as the keys of model providers; separated by commas.",
        );
        let search_url = env.optional::<String>("RUNFLEET_SEARCH_URL", "Search service of agents, with the places {{query}} and {{limit}}; absent: agents cannot search the web.");
        let search_results = env.or(
            "RUNFLEET_SEARCH_RESULTS",
            "/results".to_owned(),
            "JSON pointer to the list of results in the answer of the search service.",
        );
        let search_token =
            env.optional_secret("RUNFLEET_SEARCH_TOKEN", "Bearer token for the search service.");
        let commands = env.optional_secret(
            "RUNFLEET_MCP_COMMANDS",
            "Programs that MCP servers may be, as JSON: {\"name\": {\"command\", \"args\", \"env\"}}; documents name one of them.",
        );
        let commands = commands?.map(|text| Commands::read(text.expose_secret())).transpose();
        env.check(commands.is_ok(), "RUNFLEET_MCP_COMMANDS must be a JSON object of programs");
        let keys = env.optional_secret("RUNFLEET_ANSWER_KEYS", "Keys by which answers of hosts are known, each at least 32 characters, the newest first, separated by commas; absent: an answer is believed that names workspace and project of its run.");
        let keys = keys?.as_ref().map(AnswerKeys::new).transpose();
        env.check(
            keys.is_ok(),
            "RUNFLEET_ANSWER_KEYS must have at least 32 characters in each key",
        );
        let tokens = TokenSettings::from_env(env);
        Some(Self {
            turns: prefetch?[0],
            tools: prefetch?[1],
            model_allow: model_allow?.unwrap_or_default(),
            tool_allow: tool_allow?.unwrap_or_default(),
            secrets: secrets?,
            variables: listed(&variables?),
            search_url: search_url?,
            search_results: search_results?,
            search_token: search_token?,
            commands: commands.ok()?.unwrap_or_default(),
            keys: keys.ok()?.map(Arc::new),
            scripts: scripts?,
            tokens: tokens?,
        })
    }
}

/// Calls at once: of models and of tools, each in both lanes.
fn prefetch(env: &mut Env) -> Option<[[u16; 2]; 2]> {
    let turns = env.or(
        "RUNFLEET_PREFETCH_TURNS",
        PREFETCH,
        "Model calls of agents at once, interactive lane.",
    );
    let turns_backfill = env.or(
        "RUNFLEET_PREFETCH_TURNS_BACKFILL",
        PREFETCH_BACKFILL,
        "Model calls of agents at once, backfill lane.",
    );
    let tools = env.or(
        "RUNFLEET_PREFETCH_TOOLS",
        PREFETCH,
        "Tool calls of agents at once, interactive lane.",
    );
    let tools_backfill = env.or(
        "RUNFLEET_PREFETCH_TOOLS_BACKFILL",
        PREFETCH_BACKFILL,
        "Tool calls of agents at once, backfill lane.",
    );
    for (name, prefetch) in [
        ("RUNFLEET_PREFETCH_TURNS", turns),
        ("RUNFLEET_PREFETCH_TURNS_BACKFILL", turns_backfill),
        ("RUNFLEET_PREFETCH_TOOLS", tools),
        ("RUNFLEET_PREFETCH_TOOLS_BACKFILL", tools_backfill),
    ] {
        let good = prefetch.is_none_or(|prefetch| (1..=2_000).contains(&prefetch));
        env.check(good, format!("{name} must be 1 to 2000"));
    }
    Some([[turns?, turns_backfill?], [tools?, tools_backfill?]])
}

fn lanes(route: fn(Lane) -> Route, prefetch: [u16; 2]) -> Vec<LaneConfig> {
    [Lane::Interactive, Lane::Backfill]
        .into_iter()
        .zip(prefetch)
        .map(|(lane, prefetch)| LaneConfig::new(route(lane).queue(), lane, prefetch))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once_and_nothing_has_to_be_set() {
        let mut env = Env::from_map([
            ("RUNFLEET_PREFETCH_TURNS", "0"),
            ("RUNFLEET_PREFETCH_TOOLS_BACKFILL", "2001"),
            ("RUNFLEET_MODEL_ALLOW", "s3cret/x"),
        ]);
        assert!(CallConfig::from_env(&mut env).is_none());
        let mistakes = env.finish().unwrap_err().mistakes;
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| !mistake.contains("s3cret")), "{mistakes:?}");
        let config = CallConfig::from_env(&mut Env::from_map([("", ""); 0])).unwrap();
        assert_eq!(config.turn_lanes().len() + config.tool_lanes().len(), 4);
    }
}
