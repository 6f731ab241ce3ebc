//! The file of a script: what it may say, read and checked once.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::turn::{Stop, Usage};

/// Most bytes of a script.
const FILE_BYTES_MAX: u64 = 1_024 * 1_024;

/// Longest delay of an answer, and longest time of saying it.
const DELAY_MAX: Duration = Duration::from_mins(15);

/// A script cannot be used. Says the file, and the place in it.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{file}: cannot be read")]
    Read {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("{file}: has more than {FILE_BYTES_MAX} bytes")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The file is no YAML.
    #[error("{file}: is not YAML: {problem}")]
    Yaml {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// The file says something that a script cannot say.
    #[error("{file}: {path}: {problem}")]
    Content {
        /// The file.
        file: String,
        /// The place in it, like `rules[2].answer.toolCalls[0]`.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// A script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) rules: Vec<Rule>,
}

/// What is played when.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(default)]
    pub(super) when: When,
    #[serde(default)]
    pub(super) delay_ms: u64,
    pub(super) answer: Option<Said>,
    pub(super) failure: Option<Failed>,
}

/// All that is given must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    pub(super) model: Option<String>,
    pub(super) turn: Option<u32>,
    pub(super) attempt: Option<u32>,
    pub(super) system: Option<String>,
    pub(super) user: Option<String>,
    pub(super) earlier: Option<String>,
    pub(super) tool: Option<ToolSaid>,
}

/// A tool has just said something.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolSaid {
    pub(super) name: Option<String>,
    pub(super) contains: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Said {
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) word_ms: u64,
    #[serde(default)]
    pub(super) tool_calls: Vec<Called>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<Stop>,
}

impl Said {
    /// The text in the pieces in which it is said.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let whole = self.word_ms == 0;
        self.text.split_inclusive(move |letter: char| !whole && letter.is_whitespace())
    }

    /// How long saying it takes.
    fn takes(&self) -> Duration {
        let words = u64::try_from(self.words().count()).unwrap_or(u64::MAX);
        Duration::from_millis(self.word_ms.saturating_mul(words))
    }
}

/// A call of a tool. Arguments that are a text are taken as they are, whatever is in them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Called {
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

/// A failure.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Failed {
    RateLimited {
        retry_after_ms: Option<u64>,
    },
    Unavailable {
        retry_after_ms: Option<u64>,
    },
    Refused {
        status: u16,
    },
    Auth,
    Quota,
    ContextTooLong,
    Malformed,
    TooLarge,
    /// Nothing comes until the time is over.
    Hang,
    /// The connection breaks.
    Cut,
}

/// Reads a script.
pub(super) fn read(path: &Path) -> Result<Script, ScriptError> {
    let file = path.display().to_string();
    let source = |source| ScriptError::Read { file: file.clone(), source };
    let length = std::fs::metadata(path).map_err(source)?.len();
    if length > FILE_BYTES_MAX {
        return Err(ScriptError::TooLarge { file });
    }
    parse(&file, &std::fs::read_to_string(path).map_err(source)?)
}

/// Reads a script from a text; `file` is for errors.
pub(super) fn parse(file: &str, text: &str) -> Result<Script, ScriptError> {
    let content = |path: String, problem: String| {
        let path = if path == "." { "the document".to_owned() } else { path };
        ScriptError::Content { file: file.to_owned(), path, problem }
    };
    let document: Value = serde_saphyr::from_str(text).map_err(|error| {
        let problem = error.to_string().lines().next().unwrap_or_default().to_owned();
        ScriptError::Yaml { file: file.to_owned(), problem }
    })?;
    let script: Script = serde_path_to_error::deserialize(document)
        .map_err(|error| content(error.path().to_string(), error.inner().to_string()))?;
    if script.rules.is_empty() {
        return Err(content("rules".to_owned(), "has no rule".to_owned()));
    }
    for (index, rule) in script.rules.iter().enumerate() {
        let wrong = |field: &str, problem: &str| {
            Err(content(format!("rules[{index}]{field}"), problem.to_owned()))
        };
        if rule.answer.is_some() == rule.failure.is_some() {
            return wrong("", "has to have either `answer` or `failure`");
        }
        if Duration::from_millis(rule.delay_ms) > DELAY_MAX {
            return wrong(".delayMs", "is more than 15 minutes");
        }
        if rule.answer.as_ref().is_some_and(|said| said.takes() > DELAY_MAX) {
            return wrong(".answer.wordMs", "makes an answer of more than 15 minutes");
        }
    }
    Ok(script)
}
