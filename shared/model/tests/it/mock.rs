//! The mock of providers: a published program that is started for a test, and stopped with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use runfleet_http::{Call, Endpoint};
use runfleet_model::{Protocol, ProviderSettings};
use secrecy::SecretString;
use serde_json::Value;

use crate::{LONG, service, settings};

/// What the mock wants to be shown.
pub(crate) const KEY: &str = "canary-key-5e1f";

/// A running mock; ends when it is dropped.
pub(crate) struct Mock {
    child: Child,
    url: String,
}

impl Mock {
    /// Installs the mock if it is missing, and starts one on a free port.
    pub(crate) fn start() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures.json");
        let mut child = Command::new("node")
            .arg(program())
            .args(["--port", "0", "--strict", "--chunk-size", "9", "--fixtures"])
            .arg(fixtures)
            .env("AIMOCK_API_KEYS", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is started");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let found = lines.by_ref().map(Result::unwrap).find_map(|line| {
            line.split_once("listening on ").map(|(_, url)| url.trim().to_owned())
        });
        // Nobody may stop reading, or the mock waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let mut mock = Self { child, url: String::new() };
        mock.url = found.expect("the mock says where it listens");
        mock
    }

    /// Settings for one of the languages that it speaks.
    pub(crate) fn settings(&self, protocol: Protocol) -> ProviderSettings {
        let path = match protocol {
            Protocol::OpenaiCompatible => "/v1",
            Protocol::Gemini => "/v1beta/",
            Protocol::Anthropic | Protocol::Ollama => "",
        };
        let key = Some(SecretString::from(KEY));
        ProviderSettings { key, ..settings(protocol, &format!("{}{path}", self.url)) }
    }

    /// The requests that it was sent, oldest first.
    pub(crate) async fn journal(&self) -> Vec<Value> {
        let url = format!("{}/__aimock/journal", self.url);
        let mut endpoint = Endpoint::new(url.parse().unwrap());
        endpoint.bearer = Some(SecretString::from(KEY));
        endpoint.answer_bytes_max = 4 * 1_024 * 1_024;
        let answer = service("127.0.0.1").call(Call::get(endpoint, LONG)).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that node is to run.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/local/model-mock");
        let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "deploy/local/model-mock says why it could not install");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}
