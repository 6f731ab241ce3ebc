//! One server: connected when it is needed, started again with growing pauses when it breaks, its trouble told once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use runfleet_http::{HeaderMap, HeaderName, HeaderValue, Service, Url};
use runfleet_tools::{Calling, Executor, ToolCall, ToolOutcome, texts};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout_at};

use crate::command::Command;
use crate::connection::{Connection, Wire};
use crate::failure::McpFailure;
use crate::http::Http;
use crate::result;
use crate::stdio::Stdio;
use crate::tools::ToolInfo;

/// Longest time for starting and greeting, whatever time a call has.
const BEGIN_WITHIN: Duration = Duration::from_secs(30);

/// How long a list of tools counts.
const LIST_FOR: Duration = Duration::from_mins(5);

/// How long to wait for noting how a question has ended.
const SETTLE_WITHIN: Duration = Duration::from_millis(100);

/// Questions in a row without an answer after which a server counts as broken.
const TIMEOUTS_MAX: u32 = 3;

/// How a server is reached.
pub enum Transport {
    /// A program of the operator.
    Stdio(Command),
    /// Streamable HTTP.
    Http {
        /// Makes the calls.
        service: Service,
        /// Where.
        url: Url,
        /// Headers, such as who calls.
        headers: BTreeMap<String, SecretString>,
    },
}

/// The pauses before a server that broke is tried again.
#[derive(Debug, Clone, Copy)]
pub struct BackOff {
    /// The first; each is twice as long as the one before.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_mins(1) }
    }
}

impl BackOff {
    fn after(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(20));
        doubled.min(self.longest)
    }
}

/// What a server is.
pub struct ServerConfig {
    /// Its name, for the log.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Tools that are offered; none means all.
    pub only: Option<BTreeSet<String>>,
    /// The pauses when it breaks.
    pub back_off: BackOff,
}

/// One server. It is shared by all its tools.
pub struct McpServer {
    config: ServerConfig,
    state: Mutex<State>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("name", &self.config.name).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    list: Option<(Arc<[ToolInfo]>, Instant)>,
    /// Since something worked.
    failures: u32,
    /// Questions without an answer, since something worked.
    timeouts: u32,
    not_before: Option<Instant>,
}

impl McpServer {
    /// A server, to which nothing is connected yet.
    pub fn new(config: ServerConfig) -> Arc<Self> {
        Arc::new(Self { config, state: Mutex::default() })
    }

    /// Its tools that are offered. The list counts for five minutes, unless the server says that it is another now.
    pub async fn tools(&self, until: Instant) -> Result<Vec<ToolInfo>, McpFailure> {
        let all = self.list(until).await?;
        Ok(all.iter().filter(|tool| self.is_offered(&tool.name)).cloned().collect())
    }

    fn is_offered(&self, tool: &str) -> bool {
        self.config.only.as_ref().is_none_or(|only| only.contains(tool))
    }

    /// Calls one tool. A tool that is not offered is not called.
    pub async fn call(&self, tool: &str, call: &ToolCall, until: Instant) -> ToolOutcome {
        if !self.is_offered(tool) {
            return ToolOutcome::failed(texts::NOT_FOUND);
        }
        let mut called = self.call_once(tool, call, until).await;
        if called == Err(McpFailure::SessionOver) {
            // Nothing was done: the session is begun again, once.
            called = self.call_once(tool, call, until).await;
        }
        called.unwrap_or_else(McpFailure::outcome)
    }

    async fn call_once(
        &self,
        tool: &str,
        call: &ToolCall,
        until: Instant,
    ) -> Result<ToolOutcome, McpFailure> {
        let connection = self.connection(until).await?;
        let called = connection.call(tool, &call.arguments, until).await;
        let called = called.and_then(|result| result::outcome(&result));
        self.settle(&connection, called.as_ref().err().copied()).await;
        called
    }

    async fn list(&self, until: Instant) -> Result<Arc<[ToolInfo]>, McpFailure> {
        let connection = self.connection(until).await?;
        let changed = connection.take_changed();
        if let Some((list, at)) = &self.state(until).await?.list
            && !changed
            && at.elapsed() < LIST_FOR
        {
            return Ok(Arc::clone(list));
        }
        let listed = connection.list(until).await;
        self.settle(&connection, listed.as_ref().err().copied()).await;
        let listed = listed?;
        if listed.left_out > 0 {
            let (server, left_out) = (&self.config.name, listed.left_out);
            tracing::warn!(server, left_out, "tools of an MCP server do not fit and are left out");
        }
        let list: Arc<[ToolInfo]> = listed.tools.into();
        self.state(until).await?.list = Some((Arc::clone(&list), Instant::now()));
        Ok(list)
    }

    async fn state(&self, until: Instant) -> Result<MutexGuard<'_, State>, McpFailure> {
        timeout_at(until, self.state.lock()).await.map_err(|_| McpFailure::Unavailable)
    }

    /// The connection, begun now if there is none. Whoever else wants it waits; nothing was asked when this fails.
    async fn connection(&self, until: Instant) -> Result<Arc<Connection>, McpFailure> {
        let mut state = self.state(until).await?;
        if let Some(connection) = state.connection.clone() {
            if connection.is_open() {
                return Ok(connection);
            }
            // It broke while nobody was asking.
            self.broke(&mut state, McpFailure::Broken);
        }
        if state.not_before.is_some_and(|at| Instant::now() < at) {
            return Err(McpFailure::Unavailable);
        }
        let within = until.min(Instant::now() + BEGIN_WITHIN);
        let begun = match self.wire() {
            Ok(wire) => {
                let begun = timeout_at(within, Connection::begin(wire, within)).await;
                begun.unwrap_or(Err(McpFailure::Timeout))
            }
            Err(failure) => Err(failure),
        };
        match begun {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                self.broke(&mut state, failure);
                Err(match failure {
                    McpFailure::Refused | McpFailure::Forbidden => failure,
                    _ => McpFailure::Unavailable,
                })
            }
        }
    }

    fn wire(&self) -> Result<Wire, McpFailure> {
        match &self.config.transport {
            Transport::Stdio(command) => Stdio::start(command, &self.config.name).map(Wire::Stdio),
            Transport::Http { service, url, headers } => {
                let mut map = HeaderMap::new();
                for (name, value) in headers {
                    let name = HeaderName::try_from(name).map_err(|_| McpFailure::Unavailable)?;
                    let mut value = HeaderValue::from_str(value.expose_secret())
                        .map_err(|_| McpFailure::Unavailable)?;
                    value.set_sensitive(true);
                    map.insert(name, value);
                }
                Ok(Wire::Http(Http::new(service.clone(), url.clone(), map)))
            }
        }
    }

    /// Notes how a question to `connection` has ended.
    async fn settle(&self, connection: &Arc<Connection>, failure: Option<McpFailure>) {
        // Whoever holds the lock for longer begins another connection, so this one does not count any more.
        let Ok(mut state) = self.state(Instant::now() + SETTLE_WITHIN).await else { return };
        let is_current =
            state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection));
        match failure {
            _ if !is_current => {}
            Some(McpFailure::SessionOver) => (state.connection, state.list) = (None, None),
            Some(failure) if failure.ends_connection() || !connection.is_open() => {
                self.broke(&mut state, failure);
            }
            Some(McpFailure::Timeout) => {
                state.timeouts += 1;
                if state.timeouts >= TIMEOUTS_MAX {
                    self.broke(&mut state, McpFailure::Timeout);
                }
            }
            Some(_) | None => {
                if state.failures > 0 {
                    tracing::info!(server = self.config.name, "an MCP server works again");
                }
                (state.failures, state.timeouts, state.not_before) = (0, 0, None);
            }
        }
    }

    /// Gives the connection up, which ends a program, and says when the next may be begun.
    fn broke(&self, state: &mut State, failure: McpFailure) {
        (state.connection, state.list, state.timeouts) = (None, None, 0);
        state.failures = state.failures.saturating_add(1);
        let pause = self.config.back_off.after(state.failures);
        state.not_before = Some(Instant::now() + pause);
        let server = &self.config.name;
        if state.failures == 1 {
            tracing::warn!(server, %failure, "an MCP server is broken; its tools fail until it works again");
        } else {
            tracing::debug!(server, %failure, failures = state.failures, "an MCP server is still broken");
        }
    }
}

/// One tool of a server.
#[derive(Debug, Clone)]
pub struct McpTool {
    server: Arc<McpServer>,
    tool: String,
}

impl McpTool {
    /// A tool by the name that the server has for it.
    pub fn new(server: Arc<McpServer>, tool: String) -> Self {
        Self { server, tool }
    }
}

impl Executor for McpTool {
    fn call(&self, call: ToolCall, deadline: Instant) -> Calling<'_> {
        Box::pin(async move { self.server.call(&self.tool, &call, deadline).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let back_off = BackOff::default();
        let pauses: Vec<u64> = [1, 2, 3, 6, 7, 100, u32::MAX]
            .map(|failures| back_off.after(failures).as_secs())
            .into();
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60, 60]);
    }
}
