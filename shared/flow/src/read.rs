//! Reads a BPMN document into a draft: every element understood and its expressions compiled, while flows, hosts and
//! defaults are still ids.
//!
//! Everything in the BPMN namespace and in the namespace of the modeler that is not read here is refused by name. The
//! drawing, documentation, annotations, lanes, data objects and elements of other vendors do not change what is executed
//! and are passed over.

mod context;
mod document;
mod element;
mod events;
mod gateways;
mod job;
mod mapping;
mod modeler;
mod names;
mod own;
mod process;
mod repeat;
mod roots;
mod tasks;
mod timing;
mod xml;

pub(crate) use document::read;

use std::collections::HashSet;

use crate::definition::{Mapping, NodeKind, OnFailure, ProcessKind, Repeat, Trigger};
use crate::feel::Expression;
use crate::variable::Variable;

/// What a document says about its process.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) settings: Settings,
    /// Owner of each scope; the process, which is the first, has none.
    pub(crate) scopes: Vec<Option<usize>>,
    pub(crate) nodes: Vec<DraftNode>,
    pub(crate) flows: Vec<DraftFlow>,
    /// Ids of elements that are not run. What leads to them has been told with them.
    pub(crate) refused: HashSet<String>,
    /// Whether no expression in it can take long.
    pub(crate) quick: bool,
}

/// Settings and variables of the process, from its extension elements.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) kind: ProcessKind,
    pub(crate) on_failure: OnFailure,
    pub(crate) deadline_seconds: Option<u32>,
    pub(crate) inputs: Vec<Variable>,
    pub(crate) outputs: Vec<Variable>,
}

/// One flow node.
#[derive(Debug)]
pub(crate) struct DraftNode {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// Index of the scope that it lies in.
    pub(crate) scope: usize,
    pub(crate) role: Role,
    /// None when a problem in it has been told.
    pub(crate) kind: Option<DraftKind>,
    /// Id of the host of a boundary event, also when the rest of it is wrong.
    pub(crate) host: Option<String>,
    /// Default flow, where the element may have one.
    pub(crate) default: Option<String>,
    /// Flows listed in its `incoming` and `outgoing` elements.
    pub(crate) listed: Vec<Listed>,
    pub(crate) inputs: Vec<Mapping>,
    pub(crate) outputs: Vec<Mapping>,
    pub(crate) repeat: Option<Repeat>,
}

/// What a flow node does, as far as it can be said before the other nodes are known.
#[derive(Debug)]
pub(crate) enum DraftKind {
    Ready(NodeKind),
    /// A boundary event; its host is still to be found.
    Boundary {
        trigger: Trigger,
        interrupting: bool,
    },
}

/// What the rules of shape need to know about a node, also when the rest of it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Start,
    End,
    Activity,
    /// A receive task: an activity that may also follow an event-based gateway.
    Receive,
    Sub {
        scope: usize,
    },
    EventSub {
        scope: usize,
    },
    Exclusive,
    Parallel,
    Inclusive,
    EventBased,
    Catch,
    Throw,
    Boundary,
}

impl Role {
    /// Tasks, call activities and embedded sub-processes: what may have boundary events, conditions and a default flow.
    pub(crate) fn is_activity(self) -> bool {
        matches!(self, Self::Activity | Self::Receive | Self::Sub { .. })
    }
}

/// A flow that a node claims as its own.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) outgoing: bool,
    pub(crate) flow: String,
}

/// One sequence flow.
#[derive(Debug)]
pub(crate) struct DraftFlow {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// Index of the scope that it lies in.
    pub(crate) scope: usize,
    pub(crate) source: String,
    pub(crate) target: String,
    /// Whether it has a condition, also when that is wrong.
    pub(crate) conditional: bool,
    pub(crate) condition: Option<Expression>,
}
