//! A process as the engine runs it: elements by index, expressions compiled. Built once, then only read.

mod build;
mod node;
mod shape;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

pub(crate) use node::{
    Call, End, Flow, Mapping, Message, Node, NodeKind, OnFailure, Repeat, Scope, Task, TaskResult,
    Text, Throw, Timer, Trigger, UserTask,
};

use crate::input::{self, InputProblem};
use crate::problem::{Problem, Problems};
use crate::read;
use crate::state::State;
use crate::variable::{Variable, VariableType};

/// A process that can be run. It is immutable and is meant to be shared behind an `Arc`.
#[derive(Debug)]
pub struct Definition {
    pub(crate) summary: Summary,
    pub(crate) nodes: Vec<Node>,
    pub(crate) flows: Vec<Flow>,
    /// The process itself, which is the first, and every sub-process.
    pub(crate) scopes: Vec<Scope>,
    /// Index of each node by its id.
    pub(crate) index: HashMap<String, usize>,
    /// Declared variables with their types.
    pub(crate) variables: BTreeMap<String, VariableType>,
    /// What becomes of a run when a task fails for good.
    pub(crate) on_failure: OnFailure,
    /// Whether no expression in it can take long.
    quick: bool,
}

/// What a catalog keeps about a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// BPMN id of the process.
    pub id: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What starts it.
    pub kind: ProcessKind,
    /// Declared inputs, in the order of the document.
    pub inputs: Vec<Variable>,
    /// Declared outputs, in the order of the document.
    pub outputs: Vec<Variable>,
    /// Longest time a run may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u32>,
}

/// What starts a process. The engine runs all kinds alike; callers decide which may be started how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ProcessKind {
    /// A caller starts it.
    Normal,
    /// An event starts it.
    Event,
    /// Another process starts it.
    Sub,
}

impl ProcessKind {
    /// The kind as it is written in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Event => "event",
            Self::Sub => "sub",
        }
    }

    pub(crate) fn named(text: &str) -> Option<Self> {
        [Self::Normal, Self::Event, Self::Sub].into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Definition {
    /// Reads a BPMN 2.0 document, or tells everything that is wrong with it. The list of problems is never empty.
    pub fn parse(xml: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let definition =
            read::read(xml, &mut problems).and_then(|draft| build::build(draft, &mut problems));
        match definition {
            Some(definition) if problems.is_empty() => Ok(definition),
            _ => Err(problems.into_vec()),
        }
    }

    /// Whether no expression of it repeats anything, so that a short slice over small variables takes next to no time.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// What a catalog keeps about the process.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Checks the input and gives the first state of a run. Nothing has been executed yet.
    pub fn start(&self, input: Map<String, Json>) -> Result<State, InputProblem> {
        input::check(&self.summary.inputs, &input)?;
        Ok(State::at(&self.summary.id, &self.nodes[self.scopes[0].start].id, input))
    }

    /// Type of a variable; what nobody declared holds anything.
    pub(crate) fn type_of(&self, variable: &str) -> VariableType {
        self.variables.get(variable).copied().unwrap_or(VariableType::Any)
    }
}
