//! MCP servers that agents name: connected when they are first needed, and kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use runfleet_agent::FoundTool;
use runfleet_catalog::{McpServer as Declared, McpTransport};
use runfleet_domain::Name;
use runfleet_http::{Service, Url};
use runfleet_mcp::{BackOff, Commands, McpServer, ServerConfig, Transport};
use runfleet_worker::keys::{self, Places};
use tokio::time::Instant;

/// Servers kept; when full, all are dropped and connected again when needed.
const KEPT_MAX: usize = 100;

/// How long a server may take to list its tools when a run begins, well within a lease.
const LIST_WITHIN: Duration = Duration::from_secs(10);

/// All servers.
pub(super) struct Servers {
    service: Service,
    commands: Commands,
    /// Where secrets may be.
    places: Places,
    /// By what they are: a document that has changed is another server.
    kept: Mutex<HashMap<String, Arc<McpServer>>>,
}

impl Servers {
    pub(super) fn new(service: Service, commands: Commands, places: Places) -> Self {
        Self { service, commands, places, kept: Mutex::default() }
    }

    /// The server of a document; none when it cannot be reached from here.
    pub(super) async fn of(
        &self,
        workspace: &Name,
        name: &Name,
        declared: &Declared,
    ) -> Option<Arc<McpServer>> {
        let key = format!("{workspace}:{name}:{}", serde_json::to_string(declared).ok()?);
        if let Some(known) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Some(Arc::clone(known));
        }
        let transport = self.transport(workspace, name, declared).await?;
        let (name, only) = (name.to_string(), declared.only.clone());
        let back_off = BackOff::default();
        let server = McpServer::new(ServerConfig { name, transport, only, back_off });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        Some(Arc::clone(kept.entry(key).or_insert(server)))
    }

    async fn transport(
        &self,
        workspace: &Name,
        name: &Name,
        declared: &Declared,
    ) -> Option<Transport> {
        match &declared.transport {
            // What runs on this machine is for its operator to say: a document names it.
            McpTransport::Stdio { command } => {
                let known = self.commands.get(command).cloned();
                if known.is_none() {
                    tracing::error!(server = %name, "the program of an MCP server is not in RUNFLEET_MCP_COMMANDS");
                }
                known.map(Transport::Stdio)
            }
            McpTransport::Http { url, headers } => {
                let mut found = BTreeMap::new();
                for (header, place) in headers {
                    found.insert(
                        header.clone(),
                        keys::read(place, workspace, &self.places).await.ok()?,
                    );
                }
                let url = Url::parse(url).ok()?;
                Some(Transport::Http { service: self.service.clone(), url, headers: found })
            }
        }
    }

    /// The tools that servers offer now. A server that is broken has none, and takes nothing from the others.
    pub(super) async fn found(
        &self,
        workspace: &Name,
        declared: &BTreeMap<Name, Declared>,
    ) -> Vec<FoundTool> {
        let until = Instant::now() + LIST_WITHIN;
        let lists = declared.iter().map(|(name, declared)| async move {
            let server = self.of(workspace, name, declared).await?;
            match server.tools(until).await {
                Ok(tools) => Some((name, tools)),
                Err(failure) => {
                    tracing::warn!(server = %name, %failure, "the tools of an MCP server are left out");
                    None
                }
            }
        });
        let found = join_all(lists).await.into_iter().flatten();
        found
            .flat_map(|(name, tools)| {
                tools.into_iter().map(move |tool| FoundTool {
                    server: name.to_string(),
                    tool: tool.name,
                    description: tool.description,
                    input_schema: tool.input_schema,
                })
            })
            .collect()
    }
}
