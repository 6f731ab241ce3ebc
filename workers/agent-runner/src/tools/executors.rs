//! Who carries out which kind of call: from what an agent declares to what makes the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use runfleet_agent::FoundTool;
use runfleet_catalog::{
    AgentBlueprint, Builtin, HttpTool as Declared, Method, RecordSource, Secretly, ToolKind,
};
use runfleet_domain::Name;
use runfleet_http::{Client, Config, Service};
use runfleet_identity::AnswerKeys;
use runfleet_mcp::McpTool;
use runfleet_secrets::Secrets;
use runfleet_tools::{
    Auth, Calculate, CurrentTime, Executor, HttpSpec, HttpTool, Records, SearchSpec, ToolOutcome,
    WebSearch, texts,
};
use runfleet_worker::keys::{self, Places};
use runfleet_worker::{Fleet, Tokens, records};
use secrecy::ExposeSecret as _;

use crate::calls::Live;
use crate::config::CallConfig;
use crate::tools::servers::Servers;

/// Everybody who carries out calls.
pub(crate) struct Tools {
    service: Service,
    secrets: Secrets,
    calculate: Arc<Calculate>,
    search: Option<Arc<WebSearch>>,
    servers: Servers,
    /// Where secrets may be.
    places: Places,
    /// By which answers of hosts are known.
    keys: Option<Arc<AnswerKeys>>,
    /// What the code of projects calls the fleet with.
    tokens: Tokens,
}

impl Tools {
    pub(crate) fn new(fleet: &Fleet, config: &CallConfig) -> anyhow::Result<Self> {
        let http = Config { allow: config.tool_allow.clone(), ..Config::default() };
        let client = Client::new(http, &fleet.process.registry).context("preparing tool calls")?;
        // Without a breaker: the calls go to many places, and one that fails says nothing about the others.
        let service = client.service("tool", None);
        let secrets = Secrets::new(config.secrets.clone());
        let search = match &config.search_url {
            None => None,
            Some(url) => {
                let token = config.search_token.as_ref();
                let auth = token.map(|token| Auth::Bearer(token.expose_secret().to_owned()));
                let http = HttpSpec {
                    method: "GET".to_owned(),
                    url: url.clone(),
                    auth: auth.unwrap_or_default(),
                    ..HttpSpec::default()
                };
                let spec = SearchSpec { http, results: config.search_results.clone() };
                let search = WebSearch::new(client.service("search", None), secrets.clone(), spec);
                Some(Arc::new(search.context("reading RUNFLEET_SEARCH_URL")?))
            }
        };
        let places = config.places();
        let (commands, mcp) = (config.commands.clone(), client.service("mcp", None));
        let servers = Servers::new(mcp, commands, places.clone());
        let (calculate, keys) = (Arc::default(), config.keys.clone());
        let tokens = Tokens::open(&config.tokens)?;
        Ok(Self { service, secrets, calculate, search, servers, places, keys, tokens })
    }

    /// Who carries out a call, or what the model is told when nobody can.
    pub(super) async fn of(
        &self,
        live: &Live,
        kind: &ToolKind,
    ) -> Result<Arc<dyn Executor>, ToolOutcome> {
        let not_set_up = || ToolOutcome::failed(texts::NOT_SET_UP);
        match kind {
            ToolKind::Builtin(Builtin::Calculate) => Ok(Arc::clone(&self.calculate) as _),
            ToolKind::Builtin(Builtin::CurrentTime) => Ok(Arc::new(CurrentTime)),
            ToolKind::Builtin(Builtin::RecordQuery) => {
                let source = live.definition.blueprint().record_source.as_ref();
                let source = source.ok_or_else(not_set_up)?;
                let source =
                    self.records(&live.record.workspace, source).await.ok_or_else(not_set_up)?;
                Ok(Arc::new(Records::new(source)))
            }
            ToolKind::Builtin(Builtin::WebSearch) => {
                let search = self.search.as_ref().ok_or_else(not_set_up)?;
                Ok(Arc::clone(search) as _)
            }
            ToolKind::Http(declared) => {
                let tool =
                    self.http(&live.record.workspace, declared).await.ok_or_else(not_set_up)?;
                Ok(Arc::new(tool))
            }
            ToolKind::Mcp { server, tool } => {
                let declared = live.definition.blueprint().mcp_servers.get(server);
                let declared = declared.ok_or_else(not_set_up)?;
                let found = self.servers.of(&live.record.workspace, server, declared).await;
                Ok(Arc::new(McpTool::new(found.ok_or_else(not_set_up)?, tool.clone())))
            }
            // Nobody here carries these out.
            ToolKind::ProcessStart { .. } | ToolKind::Agent { .. } | ToolKind::Project { .. } => {
                Err(not_set_up())
            }
        }
    }

    /// The tools that the MCP servers of an agent offer now.
    pub(crate) async fn found(
        &self,
        workspace: &Name,
        blueprint: &AgentBlueprint,
    ) -> Vec<FoundTool> {
        self.servers.found(workspace, &blueprint.mcp_servers).await
    }

    /// By which answers of hosts are known.
    pub(crate) fn answer_keys(&self) -> Option<&AnswerKeys> {
        self.keys.as_deref()
    }

    /// What the code of projects calls the fleet with.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Where records are read.
    pub(crate) async fn records(
        &self,
        workspace: &Name,
        source: &RecordSource,
    ) -> Option<Arc<dyn runfleet_tools::RecordSource>> {
        records::source(source, workspace, &self.service, &self.places).await
    }

    async fn http(&self, workspace: &Name, declared: &Declared) -> Option<HttpTool> {
        let mut headers = BTreeMap::new();
        for (name, value) in &declared.headers {
            let text = match value {
                Secretly::Text(text) => text.clone(),
                place => {
                    let secret = keys::read(place, workspace, &self.places).await.ok()?;
                    // A secret is no template.
                    let secret = secret.expose_secret();
                    if secret.contains("{{") {
                        return None;
                    }
                    secret.to_owned()
                }
            };
            headers.insert(name.clone(), text);
        }
        let method = match declared.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let (method, url) = (method.to_owned(), declared.url.clone());
        let spec = HttpSpec { method, url, headers, ..HttpSpec::default() };
        let made = HttpTool::new(self.service.clone(), self.secrets.clone(), spec);
        made.inspect_err(|error| tracing::error!(%error, "an HTTP tool cannot be used")).ok()
    }
}
