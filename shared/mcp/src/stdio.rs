//! A connection to a server that is a program: one message on each line of its standard input and output.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::MESSAGE_BYTES_MAX;
use crate::command::Command;
use crate::failure::McpFailure;
use crate::process::{Pipes, Process};
use crate::protocol::{self, Incoming};

/// How long a server may take to read what it is told beside a question.
const TELL_WITHIN: Duration = Duration::from_millis(200);

/// Most bytes of one line of its standard error that go into the log.
const ERROR_LINE_BYTES_MAX: usize = 512;

/// Most lines of its standard error that go into the log.
const ERROR_LINES_MAX: usize = 100;

/// Most lines in a row that are no message: some servers greet before they speak the protocol.
const NOISE_MAX: usize = 64;

/// An answer on its way.
type Waiting = HashMap<u64, oneshot::Sender<Result<Value, McpFailure>>>;

/// A connection. The program ends when it is dropped.
pub(crate) struct Stdio {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
    _process: Process,
}

struct Shared {
    stdin: tokio::sync::Mutex<ChildStdin>,
    waiting: Mutex<Waiting>,
    open: AtomicBool,
    changed: AtomicBool,
}

impl Stdio {
    /// Starts the program. `server` is its name for the log.
    pub(crate) fn start(command: &Command, server: &str) -> Result<Self, McpFailure> {
        let (process, pipes) = Process::start(command).ok_or(McpFailure::Unavailable)?;
        let Pipes { stdin, stdout, stderr } = pipes;
        let shared = Arc::new(Shared {
            stdin: tokio::sync::Mutex::new(stdin),
            waiting: Mutex::default(),
            open: AtomicBool::new(true),
            changed: AtomicBool::new(false),
        });
        let reading = tokio::spawn(read(Arc::clone(&shared), stdout));
        let listening = tokio::spawn(listen(stderr, server.to_owned()));
        Ok(Self { shared, tasks: [reading, listening], _process: process })
    }

    /// Asks a question and waits for its answer.
    pub(crate) async fn ask(
        &self,
        id: u64,
        question: &Value,
        until: Instant,
    ) -> Result<Value, McpFailure> {
        let (sender, answer) = oneshot::channel();
        self.shared.waiting().insert(id, sender);
        let _forget = Forget { shared: &self.shared, id };
        if !self.is_open() {
            return Err(McpFailure::Unavailable);
        }
        let written = timeout_at(until, self.shared.write(question)).await;
        written.unwrap_or(Err(McpFailure::Timeout))?;
        if let Ok(answer) = timeout_at(until, answer).await {
            return answer.unwrap_or(Err(McpFailure::Broken));
        }
        let reason = json!({"requestId": id, "reason": "no answer in time"});
        self.tell(&protocol::notice("notifications/cancelled", Some(reason))).await;
        Err(McpFailure::Timeout)
    }

    /// Tells something that has no answer.
    pub(crate) async fn tell(&self, notice: &Value) {
        self.shared.tell(notice).await;
    }

    /// Whether questions can still be asked.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.open.load(Ordering::Acquire)
    }

    /// Whether the server has said that its tools are others now, since this was asked last.
    pub(crate) fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Takes a question off the list when nobody waits for its answer any more.
struct Forget<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.waiting().remove(&self.id);
    }
}

/// A line that was not written to its end.
struct Half<'a>(&'a Shared);

impl Drop for Half<'_> {
    fn drop(&mut self) {
        self.0.close(McpFailure::Broken);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one line. When it is given up in the middle, nothing behind it would be understood: the connection is closed.
    async fn write(&self, message: &Value) -> Result<(), McpFailure> {
        let line = format!("{message}\n");
        let mut stdin = self.stdin.lock().await;
        let half = Half(self);
        stdin.write_all(line.as_bytes()).await.map_err(|_| McpFailure::Broken)?;
        stdin.flush().await.map_err(|_| McpFailure::Broken)?;
        std::mem::forget(half);
        Ok(())
    }

    async fn tell(&self, notice: &Value) {
        // When this fails, the connection is closed, and that is what matters.
        let _ = timeout(TELL_WITHIN, self.write(notice)).await;
    }

    /// Nothing is asked any more, and whoever waits is told why.
    fn close(&self, failure: McpFailure) {
        self.open.store(false, Ordering::Release);
        for (_, waiting) in self.waiting().drain() {
            // Whoever waited may be gone.
            let _ = waiting.send(Err(failure));
        }
    }

    async fn take(&self, incoming: Incoming) {
        match incoming {
            Incoming::Answer { id, result } => {
                let waiting = self.waiting().remove(&id);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(result.map_err(|code| McpFailure::Error { code }));
                }
            }
            Incoming::Question { answer } => self.tell(&answer).await,
            Incoming::ToolsChanged => self.changed.store(true, Ordering::Release),
            Incoming::Other => {}
        }
    }
}

async fn read(shared: Arc<Shared>, stdout: ChildStdout) {
    let mut lines = BufReader::new(stdout);
    let mut noise = 0;
    let failure = loop {
        let line = match line(&mut lines, MESSAGE_BYTES_MAX).await {
            Line::Whole(line) => line,
            Line::TooLong => break McpFailure::TooLarge,
            Line::End => break McpFailure::Broken,
        };
        match serde_json::from_slice(&line).ok().and_then(protocol::read) {
            Some(incoming) => {
                noise = 0;
                shared.take(incoming).await;
            }
            None if noise < NOISE_MAX => noise += 1,
            None => break McpFailure::Protocol,
        }
    };
    shared.close(failure);
}

/// A line, if it is not too long.
enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

async fn line(input: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> Line {
    let mut line = Vec::new();
    loop {
        let Ok(part) = input.fill_buf().await else { return Line::End };
        if part.is_empty() {
            return Line::End;
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(part.len());
        if line.len() + taken > bytes_max {
            return Line::TooLong;
        }
        line.extend_from_slice(&part[..taken]);
        input.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Line::Whole(line);
        }
    }
}

/// Reads all of the standard error, so that the server never waits for a reader, and logs the beginning of it.
async fn listen(stderr: impl AsyncRead + Unpin, server: String) {
    let mut lines = BufReader::new(stderr);
    let mut logged = 0;
    let mut begun = Vec::new();
    loop {
        let Ok(part) = lines.fill_buf().await else { return };
        if part.is_empty() {
            return;
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(part.len());
        let room = ERROR_LINE_BYTES_MAX.saturating_sub(begun.len());
        begun.extend_from_slice(&part[..taken.min(room)]);
        lines.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            if logged < ERROR_LINES_MAX {
                let text = String::from_utf8_lossy(&begun);
                tracing::debug!(server, text = ?text, "an MCP server wrote to its standard error");
                logged += 1;
            }
            begun.clear();
        }
    }
}
