//! Reads a BPMN document into a draft: what it says, with texts still texts and references still ids.
//!
//! Everything in the BPMN namespace that is not read here is refused by name. The drawing, documentation, annotations
//! and elements of other vendors do not change what is executed and are passed over.

mod document;
mod element;
mod extension;
mod process;
mod xml;

pub(crate) use document::read;

use crate::definition::ProcessKind;
use crate::variable::Variable;

/// What a document says about its process.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) nodes: Vec<DraftNode>,
    pub(crate) flows: Vec<DraftFlow>,
}

/// Settings and variables of the process, from its extension elements.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) kind: ProcessKind,
    pub(crate) deadline_seconds: Option<u32>,
    pub(crate) inputs: Vec<Variable>,
    pub(crate) outputs: Vec<Variable>,
}

/// One flow node.
#[derive(Debug)]
pub(crate) struct DraftNode {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) kind: DraftKind,
    /// Default flow, where the element may have one.
    pub(crate) default: Option<String>,
    /// Flows listed in its `incoming` and `outgoing` elements.
    pub(crate) listed: Vec<Listed>,
}

/// A flow that a node claims as its own.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) outgoing: bool,
    pub(crate) flow: String,
}

/// Kind of a flow node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DraftKind {
    Start,
    End,
    Script { expression: String, result: String },
    Exclusive,
}

/// One sequence flow.
#[derive(Debug)]
pub(crate) struct DraftFlow {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) condition: Option<String>,
}
