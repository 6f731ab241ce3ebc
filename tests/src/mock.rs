//! The published mock of model providers as a program of its own, and agents that ask it in each of its languages.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The key that the mock wants to see.
const KEY: &str = "canary-key-7c20";

/// The variable of agent-runner that holds it.
const KEY_NAME: &str = "MOCK_MODEL_KEY";

/// The languages, and where each begins.
const LANGUAGES: [(&str, &str); 4] =
    [("openai", "/v1"), ("anthropic", ""), ("gemini", "/v1beta"), ("ollama", "")];

/// How long it may take to say what it was asked.
const JOURNAL_WITHIN: Duration = Duration::from_secs(10);

/// The mock. It calls the tool `calculate` for whoever says "multiply", and tells what that said. Ends when it is dropped.
pub struct ModelMock {
    child: Child,
    url: String,
    _dir: TempDir,
}

impl ModelMock {
    /// Installs the mock if it is missing, and starts one on a free port. Blocks.
    pub fn start() -> Result<Self> {
        let program = program()?;
        let dir = tempfile::Builder::new().prefix("runfleet-mock.").tempdir()?;
        let file = dir.path().join("fixtures.json");
        std::fs::write(&file, fixtures().to_string())?;
        let mut child = Command::new("node")
            .arg(program)
            .args(["--port", "0", "--strict", "--chunk-size", "9", "--fixtures"])
            .arg(file)
            .env("AIMOCK_API_KEYS", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting node")?;
        let output = child.stdout.take().context("the mock has no output")?;
        let mut lines = BufReader::new(output).lines();
        let found = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.split_once("listening on ").map(|(_, url)| url.trim().to_owned())
        });
        // Nobody may stop reading, or the mock waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let mut mock = Self { child, url: String::new(), _dir: dir };
        mock.url = found.context("the mock does not say where it listens")?;
        Ok(mock)
    }

    /// The names of its languages; the agent `asks-NAME` speaks one.
    pub fn languages() -> [&'static str; 4] {
        LANGUAGES.map(|(name, _)| name)
    }

    /// Settings by which a fleet may call it.
    pub fn settings(&self) -> Vec<(String, String)> {
        let allowed = self.url.trim_start_matches("http://").to_owned();
        [
            ("RUNFLEET_MODEL_ALLOW", allowed),
            ("RUNFLEET_SECRET_VARIABLES", KEY_NAME.to_owned()),
            (KEY_NAME, KEY.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// A provider and an agent for each language.
    pub fn documents(&self) -> String {
        let mut text = String::new();
        for (name, path) in LANGUAGES {
            let url = &self.url;
            let _ = write!(
                text,
                r"---
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {{name: mock-{name}}}
spec: {{kind: {name}, baseUrl: '{url}{path}', keyEnv: {KEY_NAME}, models: {{mock/{name}: a-model}}}}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {{name: asks-{name}}}
spec: {{model: mock/{name}, systemPrompt: Be brief., tools: [calculate]}}
"
            );
        }
        text
    }

    /// The key, to look for it where it must not be.
    pub fn key() -> &'static str {
        KEY
    }

    /// The paths of all questions that it was asked, oldest first.
    pub async fn asked(&self) -> Result<Vec<String>> {
        let url = format!("{}/__aimock/journal", self.url);
        let client = reqwest::Client::builder().timeout(JOURNAL_WITHIN).build()?;
        let answer = client.get(url).bearer_auth(KEY).send().await?;
        ensure!(answer.status().is_success(), "the mock does not say what it was asked");
        let journal: Value = serde_json::from_str(&answer.text().await?)?;
        let entries = journal.as_array().context("the journal is no list")?.iter();
        let path = |entry: &Value| entry["path"].as_str().unwrap_or_default().to_owned();
        Ok(entries.map(path).collect())
    }
}

impl Drop for ModelMock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fixtures() -> Value {
    let usage = json!({
        "prompt_tokens": 11, "completion_tokens": 7, "input_tokens": 11, "output_tokens": 7,
        "promptTokenCount": 11, "candidatesTokenCount": 7
    });
    let call = json!({"id": "call_1", "name": "calculate", "arguments": {"expression": "6 * 7"}});
    json!({"fixtures": [
        {
            "match": {"userMessage": "multiply", "hasToolResult": false},
            "response": {"content": "Let me see.", "toolCalls": [call], "usage": usage}
        },
        {
            "match": {"userMessage": "multiply", "hasToolResult": true, "toolResultContains": "42"},
            "response": {"content": "It is 42, with a text that is longer than one piece.", "usage": usage}
        }
    ]})
}

/// The program that node is to run.
fn program() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/local/model-mock");
    let output = Command::new(script).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "deploy/local/model-mock says why it could not install");
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
