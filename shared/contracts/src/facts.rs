//! Facts: what has happened, for whoever listens at the exchange `x.facts`. They are not persistent and may be lost or come twice;
//! nothing depends on one. A fact says that there is something to read; who reads it needs the right to.

use runfleet_domain::{Name, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// Longest piece of text in a fact, in bytes; cut at a character boundary.
pub const FACT_TEXT_BYTES_MAX: usize = 8 * 1_024;

/// Largest body of a fact, in bytes of JSON.
pub const FACT_BYTES_MAX: usize = 16 * 1_024;

/// A body that is told and never waited for.
pub trait Fact: Message {
    /// The last two words of its routing key: the workspace, and a project or a person.
    fn about(&self) -> (&Name, &Name);

    /// The routing key: `<kind>.<workspace>.<project or person>`.
    fn key(&self) -> String {
        let (workspace, about) = self.about();
        format!("{}.{workspace}.{about}", Self::KIND)
    }
}

/// A fact of this kind, about its workspace and about the project or person that is taken from it.
macro_rules! fact {
    ($fact:ident, $kind:literal, |$it:ident| $about:expr) => {
        impl Message for $fact {
            const KIND: &'static str = $kind;
        }

        impl Fact for $fact {
            fn about(&self) -> (&Name, &Name) {
                let $it = self;
                (&$it.workspace, $about)
            }
        }
    };
}

/// Who has written a message of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChatFrom {
    /// The agent.
    Agent,
    /// The person.
    Person,
    /// The fleet itself.
    System,
}

/// There is a message in a conversation. Its text is read from the conversation by whoever may. Routed by the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    /// The message, unique for ever.
    pub message_id: String,
    /// The conversation.
    pub conversation_id: String,
    /// Whether the message opened it.
    pub new_conversation: bool,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The agent.
    #[schemars(with = "String")]
    pub agent: Name,
    /// The person.
    #[schemars(with = "String")]
    pub person: Name,
    /// Who has written it.
    pub from: ChatFrom,
    /// Unix milliseconds.
    pub at: u64,
}

fact!(ChatMessage, "chat.message.v1", |fact| &fact.person);

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Progress {
    /// A model was asked.
    Asking,
    /// Tools are called.
    Calling {
        /// Their names.
        tools: Vec<String>,
    },
    /// A call waits for the person.
    Held {
        /// The call.
        call_id: String,
        /// Its tool.
        tool: String,
    },
    /// A piece of the answer: at most 8,192 bytes, to be put behind the pieces before it.
    Saying {
        /// The piece.
        text: String,
    },
}

/// An agent got further. Routed by the person when a conversation waits for it, otherwise by the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentProgress {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The agent.
    #[schemars(with = "String")]
    pub agent: Name,
    /// The conversation that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The person of that conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub person: Option<Name>,
    /// Number of the question in the run, from 1.
    pub turn: u32,
    /// What it is doing.
    pub doing: Progress,
    /// Unix milliseconds.
    pub at: u64,
}

fact!(AgentProgress, "agent.progress.v1", |fact| fact.person.as_ref().unwrap_or(&fact.project));

/// A run exists. Routed by the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The run; its first two letters say whether it is a Process or an agent.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The Process or agent.
    #[schemars(with = "String")]
    pub target: Name,
    /// Unix milliseconds.
    pub at: u64,
}

fact!(RunStarted, "run.started.v1", |fact| &fact.project);

/// A run has ended. Routed by the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The workspace.
    #[schemars(with = "String")]
    pub workspace: Name,
    /// The project.
    #[schemars(with = "String")]
    pub project: Name,
    /// The Process or agent.
    #[schemars(with = "String")]
    pub target: Name,
    /// Its final state, in the words of callers.
    pub state: String,
    /// Unix milliseconds.
    pub at: u64,
}

fact!(RunEnded, "run.ended.v1", |fact| &fact.project);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::check;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn facts_keep_their_form_and_are_routed_by_workspace_and_whom_they_concern() {
        let run_id: RunId = "AG1501JDX3Z8GF0000000000000000".parse().unwrap();
        let (workspace, project, agent, person) =
            (name("acme"), name("shop"), name("deal-coach"), name("ada"));
        let at = 1_764_468_000_000;
        let message = ChatMessage {
            message_id: format!("{run_id}.call_1_1"),
            conversation_id: "CV1501JDX3Z8GF0000000000000000".into(),
            new_conversation: true,
            workspace: workspace.clone(),
            agent: agent.clone(),
            person: person.clone(),
            from: ChatFrom::Agent,
            at,
        };
        check(ChatMessage::KIND, &message);
        assert_eq!(message.key(), "chat.message.v1.acme.ada");
        let mut progress = AgentProgress {
            run_id,
            workspace: workspace.clone(),
            project: project.clone(),
            agent: agent.clone(),
            conversation_id: Some("CV1501JDX3Z8GF0000000000000000".into()),
            person: Some(person),
            turn: 2,
            doing: Progress::Saying { text: "The deal ".into() },
            at,
        };
        check(AgentProgress::KIND, &progress);
        assert_eq!(progress.key(), "agent.progress.v1.acme.ada");
        progress.person = None;
        assert_eq!(progress.key(), "agent.progress.v1.acme.shop");
        let started = RunStarted {
            run_id,
            workspace: workspace.clone(),
            project: project.clone(),
            target: agent.clone(),
            at,
        };
        check(RunStarted::KIND, &started);
        assert_eq!(started.key(), "run.started.v1.acme.shop");
        let state = "COMPLETED".into();
        let ended = RunEnded { run_id, workspace, project, target: agent, state, at };
        check(RunEnded::KIND, &ended);
        assert_eq!(ended.key(), "run.ended.v1.acme.shop");
    }

    #[test]
    fn a_key_of_the_longest_names_fits_into_a_message() {
        let long = name(&"a".repeat(64));
        let run_id: RunId = "AG1501JDX3Z8GF0000000000000000".parse().unwrap();
        let (workspace, project, target) = (long.clone(), long.clone(), long);
        let started = RunStarted { run_id, workspace, project, target, at: 0 };
        assert!(started.key().len() <= 255);
    }
}
