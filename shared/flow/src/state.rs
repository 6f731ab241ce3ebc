//! State of a run between two slices: everything the engine needs to go on, and nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value as Json};

use crate::failure::FailureCode;

/// Version of the stored form.
const VERSION: u32 = 1;

/// A run as it is stored. Fields unknown to this version are dropped; a higher version is refused when it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Version of the stored form.
    #[serde(deserialize_with = "supported_version")]
    v: u32,
    /// BPMN id of the process.
    pub(crate) process: String,
    /// How far the run is.
    pub(crate) phase: Phase,
    /// Values of the variables.
    pub(crate) variables: Map<String, Json>,
    /// Where execution stands; empty when the run has completed.
    pub(crate) tokens: Vec<Token>,
    /// Id for the next token or element instance.
    pub(crate) next_id: u64,
    /// Elements executed so far.
    pub(crate) steps: u64,
    /// How often each element was entered.
    #[serde(default)]
    pub(crate) visits: BTreeMap<String, u32>,
}

/// One place where execution stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// Id of the token, unique in the run.
    pub id: u64,
    /// Id of the BPMN element it stands on.
    pub element: String,
    /// Id of this visit of the element, unique in the run.
    pub instance: u64,
}

/// How far a run is, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Phase {
    /// There is something to execute.
    Running,
    /// It came to its end.
    Completed,
    /// It ended early.
    Failed {
        /// Why.
        code: FailureCode,
        /// Id of the element where it happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        element: Option<String>,
    },
}

/// Why a stored state could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateProblem {
    /// A newer program wrote it; let that one handle the run.
    #[error("state version {found} is newer than this program knows")]
    Newer {
        /// Version found.
        found: u64,
    },
    /// It is no state.
    #[error("the stored state cannot be read")]
    Malformed,
}

impl State {
    /// A run whose only token stands on `element`.
    pub(crate) fn at(process: &str, element: &str, variables: Map<String, Json>) -> Self {
        Self {
            v: VERSION,
            process: process.to_owned(),
            phase: Phase::Running,
            variables,
            tokens: vec![Token { id: 1, element: element.to_owned(), instance: 2 }],
            next_id: 3,
            steps: 0,
            visits: BTreeMap::new(),
        }
    }

    /// Reads a stored state and tells a newer one from a broken one.
    pub fn from_json(text: &str) -> Result<Self, StateProblem> {
        #[derive(Deserialize)]
        struct Version {
            v: u64,
        }
        let version: Version = serde_json::from_str(text).map_err(|_| StateProblem::Malformed)?;
        if version.v > u64::from(VERSION) {
            return Err(StateProblem::Newer { found: version.v });
        }
        serde_json::from_str(text).map_err(|_| StateProblem::Malformed)
    }

    /// BPMN id of the process this run belongs to.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// How far the run is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Values of the variables.
    pub fn variables(&self) -> &Map<String, Json> {
        &self.variables
    }

    /// Where execution stands.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Elements executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Gives out an id.
    pub(crate) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

fn supported_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version == VERSION {
        Ok(version)
    } else {
        Err(serde::de::Error::custom(format_args!("state version {version} is not supported")))
    }
}
