//! A server for one test, and what it has seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Registry;
use runfleet_http::{Client, Config, Service};
use runfleet_mcp::{BackOff, Commands, McpServer, McpTool, ServerConfig, Transport};
use runfleet_tools::{Caller, ToolCall, ToolOutcome, perform};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::Instant;

/// Pauses that a test can wait for.
pub(crate) const QUICK: BackOff =
    BackOff { first: Duration::from_secs(1), longest: Duration::from_secs(2) };

fn script() -> String {
    format!("{}/tests/server.py", env!("CARGO_MANIFEST_DIR"))
}

/// Long enough for everything that works, on a machine that is busy.
pub(crate) fn later() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Short enough to wait for.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_millis(700)
}

/// What a server wrote down about itself.
pub(crate) struct Log {
    folder: TempDir,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How many lines have a text in them.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.lines().iter().filter(|line| line.contains(text)).count()
    }

    /// The process ids behind a word.
    pub(crate) fn ids(&self, word: &str) -> Vec<u32> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
    }
}

pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = later();
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process exists and is no zombie.
pub(crate) fn lives(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// A server that is a program.
pub(crate) fn stdio(how: &str, log: &Log) -> Arc<McpServer> {
    let file = log.file().into_os_string().into_string().unwrap();
    let list = json!({"test": {
        "command": "/usr/bin/python3",
        "args": [script(), how, file],
        "env": {"TOKEN": "s3cret"},
    }});
    let commands = Commands::read(&list.to_string()).unwrap();
    server(Transport::Stdio(commands.get("test").unwrap().clone()))
}

pub(crate) fn server(transport: Transport) -> Arc<McpServer> {
    server_with(transport, None)
}

pub(crate) fn server_with(transport: Transport, only: Option<BTreeSet<String>>) -> Arc<McpServer> {
    let name = "test".to_owned();
    McpServer::new(ServerConfig { name, transport, only, back_off: QUICK })
}

/// A guarded client that may call what is listed.
pub(crate) fn service(allow: &str) -> Service {
    let config = Config { allow: allow.parse().unwrap(), ..Config::default() };
    Client::new(config, &Registry::new()).unwrap().service("mcp", None)
}

pub(crate) fn http_at(url: &str, allow: &str) -> Arc<McpServer> {
    let headers = BTreeMap::from([("x-key".to_owned(), SecretString::from("s3cret"))]);
    let url = url.parse().unwrap();
    server(Transport::Http { service: service(allow), url, headers })
}

/// A server over HTTP; it ends with the test.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    _child: Child,
}

pub(crate) async fn http(log: &Log) -> HttpServer {
    let mut command = tokio::process::Command::new("/usr/bin/python3");
    command.arg(script()).arg("http").arg(log.file());
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).await.unwrap();
    HttpServer { url: format!("http://127.0.0.1:{}/mcp", port.trim()), _child: child }
}

pub(crate) fn tool_call(arguments: &Value) -> ToolCall {
    let caller = Caller { workspace: "acme".parse().unwrap(), project: None, personnel_id: None };
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall { key: "run:call".to_owned(), caller, arguments, now_ms: 0 }
}

pub(crate) async fn call(
    server: &Arc<McpServer>,
    tool: &str,
    arguments: &Value,
    until: Instant,
) -> ToolOutcome {
    let tool = McpTool::new(Arc::clone(server), tool.to_owned());
    perform(&tool, tool_call(arguments), until).await
}
