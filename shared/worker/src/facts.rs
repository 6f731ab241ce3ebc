//! Facts about runs, told to whoever listens. Telling one costs no round trip, and nothing depends on it: a run whose start or end
//! nobody has heard of has started or ended all the same.

use runfleet_broker::Publisher;
use runfleet_contracts::facts::{AgentProgress, Progress, RunEnded, RunStarted};
use runfleet_domain::{Name, RunId, RunState};
use runfleet_runtime::clock::now_ms;
use runfleet_store::RunRecord;

/// Whose run it is.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project.
    pub project: &'a Name,
    /// The Process or agent.
    pub target: &'a Name,
}

impl<'a> Of<'a> {
    /// As a record says it.
    pub fn record(record: &'a RunRecord) -> Self {
        Self { workspace: &record.workspace, project: &record.project, target: &record.target }
    }
}

/// A run exists.
pub fn started(publisher: &Publisher, run_id: RunId, of: Of<'_>) {
    publisher.publish_fact(&RunStarted {
        run_id,
        workspace: of.workspace.clone(),
        project: of.project.clone(),
        target: of.target.clone(),
        at: now_ms(),
    });
}

/// A run has ended in `state`.
pub fn ended(publisher: &Publisher, run_id: RunId, of: Of<'_>, state: RunState) {
    publisher.publish_fact(&RunEnded {
        run_id,
        workspace: of.workspace.clone(),
        project: of.project.clone(),
        target: of.target.clone(),
        state: state.public(run_id.kind()).to_owned(),
        at: now_ms(),
    });
}

/// An agent got further. When a conversation waits for it, the person of it hears that, otherwise the project.
pub fn progress(publisher: &Publisher, record: &RunRecord, turn: u32, doing: Progress) {
    let conversation = record.conversation;
    publisher.publish_fact(&AgentProgress {
        run_id: record.id,
        workspace: record.workspace.clone(),
        project: record.project.clone(),
        agent: record.target.clone(),
        conversation_id: conversation.map(|conversation| conversation.to_string()),
        person: conversation.and_then(|_| record.user.clone()),
        turn,
        doing,
        at: now_ms(),
    });
}
