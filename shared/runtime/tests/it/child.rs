//! Starts the example worker as a child process and talks to it. A child that a test leaves behind is killed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes longer, even on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

pub(crate) struct Worker {
    child: Child,
    dir: tempfile::TempDir,
}

pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<serde_json::Value>,
}

impl Ended {
    pub(crate) fn line(&self, message: &str) -> &serde_json::Value {
        let found = self.lines.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("no line {message:?} in {:#?}", self.lines))
    }
}

pub(crate) fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < BOUND, "still waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn example() -> PathBuf {
    // target/<profile>/deps/it-<hash> beside target/<profile>/examples/
    let test = std::env::current_exe().unwrap();
    let path =
        test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/smallest_worker");
    assert!(path.exists(), "build the examples of this crate first: {}", path.display());
    path
}

impl Worker {
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new(example())
            .env_clear()
            .env("RUNFLEET_ADMIN_ADDR", "127.0.0.1:0")
            .env("RUNFLEET_ADMIN_FILE", dir.path().join("admin"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(dir.path().join("stdout")).unwrap())
            .stderr(std::fs::File::create(dir.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        Self { child, dir }
    }

    pub(crate) fn started(ending: &str, variables: &[(&str, &str)]) -> Self {
        let mut all = vec![
            ("RUNFLEET_EXAMPLE_URL", "amqp://u:s3cret@host"),
            ("RUNFLEET_EXAMPLE_ENDING", ending),
        ];
        all.extend_from_slice(variables);
        Self::start(&all)
    }

    /// The address that the worker announces.
    pub(crate) fn admin(&self) -> SocketAddr {
        let file = self.dir.path().join("admin");
        wait_for("the admin file", || std::fs::read_to_string(&file).ok()).trim().parse().unwrap()
    }

    /// Status and body of a path of the admin server; none when nobody answers.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.admin()).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body = answer.split_once("\r\n\r\n")?.1.to_owned();
        Some((answer.get(9..12)?.parse().ok()?, body))
    }

    pub(crate) fn wait_until_ready(&self) {
        wait_for("readiness", || self.get("/ready").filter(|(status, _)| *status == 200));
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn wait_until_logged(&self, message: &str) {
        let file = self.dir.path().join("stdout");
        wait_for(message, || std::fs::read_to_string(&file).ok()?.contains(message).then_some(()));
    }

    /// Waits for the end. Every line on standard output must be JSON, and standard error empty.
    pub(crate) fn ended(mut self) -> Ended {
        let status = wait_for("the end of the worker", || self.child.try_wait().unwrap());
        let read = |name| std::fs::read_to_string(self.dir.path().join(name)).unwrap();
        assert_eq!(read("stderr"), "");
        assert!(!read("stdout").contains("s3cret"), "a secret was logged");
        let lines =
            read("stdout").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Ended { code: status.code(), lines }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
