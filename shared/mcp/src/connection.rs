//! A connection that has begun: the greeting, the list of tools, and calls, whatever lies below.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::failure::McpFailure;
use crate::http::Http;
use crate::protocol::{self, VERSIONS};
use crate::stdio::Stdio;
use crate::tools::{self, ToolInfo};

/// Most pages of a list.
const PAGES_MAX: usize = 16;

/// How messages go there and come back.
pub(crate) enum Wire {
    Stdio(Stdio),
    Http(Http),
}

/// A connection that has begun.
pub(crate) struct Connection {
    wire: Wire,
    next: AtomicU64,
}

/// A list of tools, and how many were left out of it.
pub(crate) struct Listed {
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) left_out: usize,
}

impl Connection {
    /// Greets the server and agrees on a version.
    pub(crate) async fn begin(wire: Wire, until: Instant) -> Result<Self, McpFailure> {
        let connection = Self { wire, next: AtomicU64::new(1) };
        let greeted = connection.ask("initialize", &protocol::greeting(), until).await?;
        let version = greeted.get("protocolVersion").and_then(Value::as_str);
        let version = version.filter(|version| VERSIONS.contains(version));
        let version = version.ok_or(McpFailure::Protocol)?;
        if let Wire::Http(http) = &connection.wire {
            http.agree(version);
        }
        connection.tell(&protocol::notice("notifications/initialized", None)).await;
        Ok(connection)
    }

    /// The tools of the server.
    pub(crate) async fn list(&self, until: Instant) -> Result<Listed, McpFailure> {
        // What changes from now on is not in the list.
        let _ = self.take_changed();
        let mut listed = Listed { tools: Vec::new(), left_out: 0 };
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let params = cursor.as_ref().map_or(json!({}), |cursor| json!({"cursor": cursor}));
            let page = self.ask("tools/list", &params, until).await?;
            let page = tools::page(&page).ok_or(McpFailure::Protocol)?;
            listed.left_out += page.left_out + tools::add(&mut listed.tools, page.tools);
            match page.next {
                Some(next) if listed.tools.len() < tools::TOOLS_MAX => cursor = Some(next),
                _ => break,
            }
        }
        Ok(listed)
    }

    /// Calls a tool.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        until: Instant,
    ) -> Result<Value, McpFailure> {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", &params, until).await
    }

    /// Whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.is_open(),
            Wire::Http(_) => true,
        }
    }

    /// Whether the server has said that its tools are others now, since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.take_changed(),
            Wire::Http(http) => http.take_changed(),
        }
    }

    async fn ask(&self, method: &str, params: &Value, until: Instant) -> Result<Value, McpFailure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let question = protocol::question(id, method, params);
        match &self.wire {
            Wire::Stdio(stdio) => stdio.ask(id, &question, until).await,
            Wire::Http(http) => http.ask(id, &question, until).await,
        }
    }

    async fn tell(&self, notice: &Value) {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.tell(notice).await,
            Wire::Http(http) => http.tell(notice).await,
        }
    }
}
