//! Programs that may be started as MCP servers: the operator lists them, with a name for each. There is no other way to make a
//! [`Command`], so no document of a project can say what runs on the machine of a worker.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Largest list, in bytes.
const LIST_BYTES_MAX: usize = 64 * 1_024;

/// Most programs.
const COMMANDS_MAX: usize = 64;

/// Where programs are looked for when the list does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The list cannot be read. Tells nothing of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandsError {
    /// It is not JSON of the expected form.
    #[error("is not a JSON object of `{{\"command\", \"args\", \"env\"}}` by name")]
    Form,
    /// It is too long, or has too many entries.
    #[error("has more than {COMMANDS_MAX} entries or {LIST_BYTES_MAX} bytes")]
    TooLarge,
    /// An entry has no program.
    #[error("has an entry without a program")]
    NoProgram,
}

/// A program, its arguments and its whole environment.
#[derive(Clone)]
pub struct Command {
    program: String,
    args: Vec<String>,
    env: BTreeMap<String, SecretString>,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Command {
    /// The same, to be started. It gets nothing of the environment of the worker, which holds secrets.
    pub(crate) fn prepare(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).env_clear().env("PATH", PATH);
        command.envs(self.env.iter().map(|(name, value)| (name, value.expose_secret())));
        command
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, SecretString>,
}

/// The programs of the operator, by name.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    list: BTreeMap<String, Command>,
}

impl Commands {
    /// Reads `{"name": {"command": "…", "args": ["…"], "env": {"NAME": "…"}}, …}`.
    pub fn read(text: &str) -> Result<Self, CommandsError> {
        if text.len() > LIST_BYTES_MAX {
            return Err(CommandsError::TooLarge);
        }
        let entries: BTreeMap<String, Entry> =
            serde_json::from_str(text).map_err(|_| CommandsError::Form)?;
        if entries.len() > COMMANDS_MAX {
            return Err(CommandsError::TooLarge);
        }
        let mut list = BTreeMap::new();
        for (name, Entry { command, args, env }) in entries {
            if command.trim().is_empty() {
                return Err(CommandsError::NoProgram);
            }
            list.insert(name, Command { program: command, args, env });
        }
        Ok(Self { list })
    }

    /// The program of a name.
    pub fn get(&self, name: &str) -> Option<&Command> {
        self.list.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_its_environment_is_never_shown() {
        let text = r#"{"files": {"command": "x", "args": ["y"], "env": {"KEY": "s3cret"}}}"#;
        let commands = Commands::read(text).unwrap();
        assert_eq!(commands.get("files").unwrap().args, ["y"]);
        assert!(commands.get("other").is_none());
        assert!(!format!("{commands:?}").contains("s3cret"));
    }

    #[test]
    fn a_list_that_cannot_be_read_says_why_without_what_is_in_it() {
        for (text, expected) in [
            ("[]", CommandsError::Form),
            (r#"{"a": {"command": "x", "s3cret": 1}}"#, CommandsError::Form),
            (r#"{"a": {"command": " "}}"#, CommandsError::NoProgram),
            (&" ".repeat(LIST_BYTES_MAX + 1), CommandsError::TooLarge),
        ] {
            let error = Commands::read(text).err();
            assert_eq!(error, Some(expected));
            assert!(!format!("{error:?} {expected}").contains("s3cret"));
        }
    }
}
