//! The pages about agents and tools: their documents are applied as they stand there, their scripts are played, and each start ends
//! with what stands below it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use runfleet_contracts::HostOutcome;
use runfleet_testkit::{Doing, TestHost};
use runfleet_tests::{Fleet, Options, Web, WebAnswer, WebRequest, code, ended, project};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The secret that the services want to see.
const BEARER: &str = "Bearer pages-s3cret";

/// What is in one page.
struct Page {
    /// All documents, as one file.
    documents: String,
    /// Scripts: file names and texts.
    scripts: Vec<(String, String)>,
    /// Words of a start, and how it ends.
    starts: Vec<(Vec<String>, String)>,
}

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/example")
}

impl Page {
    fn read(name: &str) -> Result<Self> {
        let text = std::fs::read_to_string(example().join(name))?;
        let mut page = Self { documents: String::new(), scripts: Vec::new(), starts: Vec::new() };
        for fenced in text.split("\n```").collect::<Vec<_>>().chunks(2) {
            let [_, block] = fenced else { break };
            let (kind, block) = block.split_once('\n').context("an empty block")?;
            match kind {
                "yaml" => page.take_yaml(block)?,
                "sh" => page.take_starts(block)?,
                "text" => {}
                other => anyhow::bail!("a block of kind {other:?}, which nobody runs"),
            }
        }
        Ok(page)
    }

    fn take_yaml(&mut self, block: &str) -> Result<()> {
        if let Some(rest) = block.strip_prefix("# scripts/") {
            let end = rest.find(".yaml").context("a script without a name")? + ".yaml".len();
            self.scripts.push((rest[..end].to_owned(), block.to_owned()));
        } else {
            ensure!(block.starts_with("apiVersion:"), "neither a document nor a script: {block}");
            self.documents += &["---\n", block, "\n"].concat();
        }
        Ok(())
    }

    fn take_starts(&mut self, block: &str) -> Result<()> {
        let lines: Vec<&str> = block.lines().filter(|line| !line.is_empty()).collect();
        for pair in lines.chunks(2) {
            let [start, end] = pair else { anyhow::bail!("a start without an end") };
            let start = start.strip_prefix("target/debug/runfleet ").context("another program")?;
            let end = end.strip_prefix("# ").context("a start whose end is not told")?;
            self.starts.push((words(start), end.to_owned()));
        }
        Ok(())
    }

    /// A folder with its scripts.
    fn scripts(&self) -> Result<TempDir> {
        let dir = tempfile::tempdir()?;
        for (name, text) in &self.scripts {
            std::fs::write(dir.path().join(name), text)?;
        }
        Ok(dir)
    }

    /// Makes each start as it stands there and compares its end.
    async fn run(&self, fleet: &Fleet) -> Result<()> {
        ensure!(!self.starts.is_empty(), "the page starts nothing");
        let client = fleet.client()?;
        for (words, expected) in &self.starts {
            let said: Value = serde_json::from_str(&said(fleet, words).await?)?;
            let run = said["runId"].as_str().context("no id of a run")?;
            let state = ended(&client, run).await?;
            let word = code(&state).or(state.text.as_deref()).unwrap_or_default();
            assert_eq!(format!("{}: {word}", state.status), *expected, "{words:?}");
        }
        Ok(())
    }
}

/// The words of a line, as a shell takes it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
            }
            _ => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// What the command line says to these words.
async fn said(fleet: &Fleet, words: &[String]) -> Result<String> {
    let test = std::env::current_exe()?;
    let program = test.ancestors().nth(2).context("a target directory")?.join("runfleet");
    let token = fleet.token(&fleet.claims())?;
    let mut command = Command::new(program);
    command
        .args(words)
        .env("RUNFLEET_AMQP_URL", fleet.namespace.amqp.expose_secret())
        .env("RUNFLEET_TOKEN", token.expose_secret());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(said)
}

fn setting(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A folder with one secret of the workspace.
fn secrets(name: &str) -> Result<TempDir> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir(dir.path().join("demo"))?;
    std::fs::write(dir.path().join("demo").join(name), format!("{BEARER}\n"))?;
    Ok(dir)
}

/// Applies the documents of a page, whose hosts are all `web`.
async fn apply(fleet: &Fleet, page: &Page, hosts: &[&str], web: &Web) -> Result<()> {
    let mut documents = page.documents.clone();
    for host in hosts {
        ensure!(documents.contains(host), "the page does not say {host}");
        documents = documents.replace(host, &web.url(""));
    }
    fleet.apply_documents("page", &documents).await
}

fn records(request: &WebRequest, _: usize) -> WebAnswer {
    let ids = request.body["recordIds"].as_array().cloned().unwrap_or_default();
    let kind = &request.body["objectSlug"];
    let record = |id| json!({"objectSlug": kind, "recordId": id, "fields": {"amount": 18_500}});
    WebAnswer::new(200, json!({"records": ids.into_iter().map(record).collect::<Vec<_>>()}))
}

#[tokio::test]
async fn the_page_about_agents_is_applied_and_run_as_it_stands() -> Result<()> {
    let page = Page::read("AGENTS.md")?;
    let (scripts, web) = (page.scripts()?, Web::start(records).await?);
    let secrets = secrets("RECORDS_TOKEN")?;
    let settings = vec![
        web.allowed(),
        setting("RUNFLEET_MODEL_SCRIPTS_DIR", &scripts.path().display().to_string()),
        setting("RUNFLEET_HTTP_SECRETS_DIR", &secrets.path().display().to_string()),
    ];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    apply(&fleet, &page, &["https://records.example.com"], &web).await?;
    page.run(&fleet).await?;
    let asked = web.requests("/query");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].authorization, BEARER);
    let question = json!({"workspace": "demo", "project": "shop", "personnelId": null, "objectSlug": "deal",
        "recordIds": ["7"], "search": null, "limit": 1, "withActivities": true});
    assert_eq!(asked[0].body, question);
    assert!(!fleet.logs().contains("s3cret"));
    fleet.remove().await
}

/// Orders, a search service and a server of prices.
fn services(request: &WebRequest, _: usize) -> WebAnswer {
    if request.path == "/search" {
        let results = json!([{"title": "A page about pens", "url": "https://example.com", "snippet": "Pens."}]);
        return WebAnswer::new(200, json!({"results": results}));
    }
    if request.path == "/orders/17" {
        return WebAnswer::new(200, json!({"order": 17, "where": "on the road"}));
    }
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let result = match request.body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "prices", "version": "1"}}),
        "tools/list" => json!({"tools": [tool("getPrice"), tool("setPrice")]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "2.50"}]}),
        _ => return WebAnswer::new(202, Value::Null),
    };
    WebAnswer::new(200, json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}))
}

#[tokio::test]
async fn the_page_about_tools_is_applied_and_a_tool_of_each_kind_does_its_work() -> Result<()> {
    let page = Page::read("TOOLS.md")?;
    let (scripts, web) = (page.scripts()?, Web::start(services).await?);
    let secrets = secrets("ORDERS_TOKEN")?;
    let notes = example().join("mcp/notes.py").display().to_string();
    let programs = json!({"notes": {"command": "python3", "args": [notes]}}).to_string();
    let settings = vec![
        web.allowed(),
        setting("RUNFLEET_MODEL_SCRIPTS_DIR", &scripts.path().display().to_string()),
        setting("RUNFLEET_HTTP_SECRETS_DIR", &secrets.path().display().to_string()),
        setting("RUNFLEET_MCP_COMMANDS", &programs),
        setting("RUNFLEET_SEARCH_URL", &web.url("/search?q={{query}}&n={{limit}}")),
    ];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    let hosts = ["https://orders.example.com", "https://prices.example.com"];
    apply(&fleet, &page, &hosts, &web).await?;
    let (workspace, name) = project();
    let host = TestHost::start(&fleet.broker, workspace, name, |_| {
        let done = json!({"place": "shelf 4"});
        Doing::Answer(HostOutcome::Ok(done.as_object().cloned().unwrap_or_default()))
    });
    page.run(&fleet).await?;
    let orders = web.requests("/orders/17");
    assert_eq!(orders.len(), 1);
    assert_eq!(orders[0].authorization, BEARER);
    assert_eq!(web.requests("/search").len(), 2, "each query is asked by itself");
    let calls = web.requests("/mcp");
    let calls = calls.iter().filter(|request| request.body["method"] == "tools/call").count();
    assert_eq!((calls, host.requests().len()), (1, 1));
    assert!(!fleet.logs().contains("s3cret"));
    fleet.remove().await
}
