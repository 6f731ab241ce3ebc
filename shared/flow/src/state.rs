//! State of a run between two slices: everything the engine needs to go on, and nothing else.
//!
//! Field names are short because every run that waits is stored in this form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::failure::FailureCode;

mod stored;

/// Id of the run itself where an instance is expected: the scope of everything that lies in no sub-process.
pub(crate) const ROOT: u64 = 0;

/// A run as it is stored. Fields unknown to this version are dropped; a higher version is refused when it is read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// Version of the stored form.
    v: u32,
    /// BPMN id of the process.
    pub(crate) process: String,
    /// How far the run is.
    pub(crate) phase: Phase,
    /// Values of the variables of the process.
    pub(crate) variables: Map<String, Json>,
    /// Elements that are active, by the id of this visit. Empty when the run has completed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) instances: BTreeMap<u64, Instance>,
    /// What it waits for, in the order in which it began to wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits: Vec<Wait>,
    /// What was sent in the last slice. It is sent again before the next one begins, in case nobody has done so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sent: Vec<Sent>,
    /// Instances whose called processes were given up in the last slice. That is told again in the same way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) dropped: Vec<u64>,
    /// Next id of an instance or a wait.
    pub(crate) next: u64,
    /// Elements executed so far.
    pub(crate) steps: u64,
    /// How often each element was entered.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) visits: BTreeMap<String, u32>,
}

/// One visit of one element.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    /// Id of the element.
    #[serde(rename = "e")]
    pub(crate) element: String,
    /// The sub-process instance that it is in, or [`ROOT`].
    #[serde(rename = "in", default, skip_serializing_if = "is_root")]
    pub(crate) scope: u64,
    /// What it is doing.
    #[serde(rename = "st", default, skip_serializing_if = "Stage::is_ready")]
    pub(crate) stage: Stage,
    /// Its own variables.
    #[serde(rename = "v", default, skip_serializing_if = "Map::is_empty")]
    pub(crate) variables: Map<String, Json>,
    /// Which item of a multi-instance activity it is, from 0. Its scope is then the instance of the whole activity.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_root(scope: &u64) -> bool {
    *scope == ROOT
}

/// What an instance is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stage {
    /// It has not been entered.
    #[default]
    Ready,
    /// Its trigger has happened: a catch or boundary event that only has to be left.
    Fired,
    /// It waits for what its entries in [`State::waits`] say.
    Waiting,
    /// It stands at a join, having come along this flow.
    Joining(String),
    /// Somebody was asked to carry it out.
    Asked(Asked),
    /// A person is to do it.
    Person(Person),
    /// Another process runs for it.
    Called { process: String },
    /// A sub-process with active elements.
    Open,
    /// A multi-instance activity with active items.
    Repeating(Repeating),
}

impl Stage {
    fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }
}

/// A task that somebody was asked to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) work: String,
    /// Number of the attempt, from 1, over all retries.
    pub(crate) attempt: u32,
    /// The attempt after which it has failed for good.
    pub(crate) last: u32,
    /// Attempts that are granted at a time.
    pub(crate) granted: u32,
    pub(crate) now: AskedNow,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum AskedNow {
    /// The answer is awaited.
    Out { expires_ms: u64 },
    /// The last attempt failed, the next one comes later.
    Pause,
    /// All attempts have failed; somebody has to look. The code is a fixed word of whoever was asked.
    Incident { code: String, since_ms: u64 },
}

/// A task of a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Person {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) assignee: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) users: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<String>,
    pub(crate) since_ms: u64,
}

/// A multi-instance activity.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Repeating {
    /// Items in all.
    pub(crate) total: u32,
    /// Items that have been begun.
    pub(crate) begun: u32,
    /// Items that have come to their end.
    pub(crate) ended: u32,
    /// Values of the items; empty when only their number is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) items: Vec<Json>,
    /// Results by item, when they are collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<Json>,
}

/// Something that the run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wait {
    /// Unique in the run. A wait that may come true again gets a new one each time.
    pub(crate) id: u64,
    /// The instance that ends it by ending; [`ROOT`] for the event sub-processes of the process.
    #[serde(rename = "of", default, skip_serializing_if = "is_root")]
    pub(crate) owner: u64,
    /// The catch event, boundary event, or start event of an event sub-process; the task itself for its own times.
    #[serde(rename = "e")]
    pub(crate) element: String,
    #[serde(rename = "for")]
    pub(crate) awaited: Awaited,
}

/// What a wait is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Awaited {
    /// The time of a timer event.
    Timer {
        due_ms: u64,
        /// For a repeating one, what it needs to be set again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cycle: Option<Cycle>,
    },
    /// A message to this name and key.
    Message { name: String, key: Option<String> },
    /// A signal of this name.
    Signal { name: String },
    /// The end of an attempt of a task.
    Expiry { due_ms: u64 },
    /// The next attempt of a task.
    Retry { due_ms: u64 },
}

impl Awaited {
    /// Unix milliseconds at which it comes true by itself.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        match self {
            Self::Timer { due_ms, .. } | Self::Expiry { due_ms } | Self::Retry { due_ms } => {
                Some(*due_ms)
            }
            Self::Message { .. } | Self::Signal { .. } => None,
        }
    }
}

/// A repeating timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cycle {
    /// ISO 8601 repeating interval.
    pub(crate) text: String,
    /// How often it has rung.
    pub(crate) fired: u32,
}

/// A message or signal that the run sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sent {
    /// The instance that sent it.
    pub(crate) by: u64,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Whether it is a signal.
    #[serde(default)]
    pub(crate) signal: bool,
    pub(crate) variables: Map<String, Json>,
}

/// How far a run is, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Phase {
    /// There is something to execute, or it waits.
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
        /// The error code of the drawing that nobody caught.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
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
    /// A run whose first instance is ready to be entered at `element`.
    pub(crate) fn at(process: &str, element: &str, variables: Map<String, Json>) -> Self {
        let mut state = Self {
            v: stored::VERSION,
            process: process.to_owned(),
            phase: Phase::Running,
            variables,
            instances: BTreeMap::new(),
            waits: Vec::new(),
            sent: Vec::new(),
            dropped: Vec::new(),
            next: 1,
            steps: 0,
            visits: BTreeMap::new(),
        };
        state.add(element, ROOT);
        state
    }

    /// BPMN id of the process this run belongs to.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// How far the run is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Values of the variables of the process; sub-processes and activities may have more.
    pub fn variables(&self) -> &Map<String, Json> {
        &self.variables
    }

    /// Elements executed so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Adds an instance that is ready to be entered.
    pub(crate) fn add(&mut self, element: &str, scope: u64) -> u64 {
        let instance = Instance {
            element: element.to_owned(),
            scope,
            stage: Stage::Ready,
            variables: Map::new(),
            item: None,
        };
        let id = self.take_id();
        self.instances.insert(id, instance);
        id
    }

    /// Gives out an id.
    pub(crate) fn take_id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }
}
