//! Facts about runs, told to whoever listens. Telling one costs no round trip, and nothing depends on it: a run whose start or end
//! nobody has heard of has started or ended all the same.

use runfleet_broker::Publisher;
use runfleet_contracts::facts::{
    AgentProgress, ChatFrom as Author, ChatMessage, Progress, RunEnded, RunStarted,
};
use runfleet_domain::{Name, RunId, RunState};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{ChatFrom, RunRecord};

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

/// An agent got further. When a conversation waits for it, the person of it hears that, otherwise the project; of a call that is
/// held the person who decides about it.
pub fn progress(publisher: &Publisher, record: &RunRecord, turn: u32, doing: Progress) {
    let decides = matches!(doing, Progress::Held { .. });
    let asked = record.asks_in.filter(|_| decides).map(|asks_in| asks_in.conversation);
    let conversation = record.conversation.or(asked);
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

/// There is something in a conversation because its turn has ended: the answer, or why there is none.
pub fn turn_ended(publisher: &Publisher, record: &RunRecord, from: ChatFrom) {
    let (Some(conversation), Some(person)) = (record.conversation, &record.user) else { return };
    publisher.publish_fact(&ChatMessage {
        message_id: record.id.to_string(),
        conversation_id: conversation.to_string(),
        new_conversation: false,
        workspace: record.workspace.clone(),
        agent: record.target.clone(),
        person: person.clone(),
        from: match from {
            ChatFrom::Agent => Author::Agent,
            ChatFrom::Person => Author::Person,
            ChatFrom::System => Author::System,
        },
        at: now_ms(),
    });
}
