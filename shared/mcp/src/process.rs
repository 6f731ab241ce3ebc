//! The process of a server: it and all that it starts end when this is dropped.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use crate::command::Command;

/// A running program in a group of its own.
pub(crate) struct Process {
    child: Child,
}

/// What is written to it and read from it.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Process {
    /// Starts a program; none if it cannot be started.
    pub(crate) fn start(command: &Command) -> Option<(Self, Pipes)> {
        let mut command = command.prepare();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: a starter such as a shell or a package runner is not all that there is to end, and a signal to
        // the worker's group is not meant for it.
        let mut child = command.process_group(0).kill_on_drop(true).spawn().ok()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return None };
        Some((process, Pipes { stdin, stdout, stderr }))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without an id it has been waited for, and the number may be somebody else's.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // An error means that the group is gone already.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
