//! Facts: what has happened, for whoever listens at the exchange `x.facts`. They are not persistent and may be lost or come twice;
//! nothing depends on one. A fact says that there is something to read; who reads it needs the right to.

use runfleet_domain::{Name, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// Longest piece of text in a fact, in bytes; cut at a character boundary.
pub const FACT_TEXT_BYTES_MAX: usize = 8 * 1_024;

/// Longest piece of an answer in a fact, in bytes: however it is written as JSON, it fits.
pub const SAYING_BYTES_MAX: usize = 2 * 1_024;

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
    /// A piece of what the agent says to the person, while it says it. The message in the conversation is what it has said: pieces
    /// may be lost, may belong to an attempt that came to nothing, and end after 32 KiB. A piece with the number 1 begins anew, and
    /// one that does not follow the one before leaves a gap until then.
    Saying {
        /// Which attempt at the answer this is, from 1.
        attempt: u32,
        /// Number of the piece in its attempt, from 1.
        seq: u32,
        /// The piece: at most 2,048 bytes.
        text: String,
    },
    /// A tool of the project tells how far it has got.
    Writing {
        /// The call.
        call_id: String,
        /// Its tool.
        tool: String,
        /// Number of the piece among those of the call, from 1, if its host has said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u32>,
        /// The piece: at most 8,192 bytes.
        text: String,
    },
}

/// An agent got further. Routed by the person when a conversation waits for it, otherwise by the project. That a call is held is
/// told to the person who decides, also when the run is only a part of a turn of that conversation.
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
            doing: Progress::Saying { attempt: 1, seq: 3, text: "The deal ".into() },
            at,
        };
        check(AgentProgress::KIND, &progress);
        let (call_id, tool) = ("call_1_1".to_owned(), "look-up".to_owned());
        let text = "2 of 3 lines".to_owned();
        let doing = Progress::Writing { call_id, tool, seq: Some(2), text };
        let written = AgentProgress { doing, ..progress.clone() };
        check("agent.progress.v1-writing", &written);
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
    fn a_piece_of_an_answer_fits_into_a_fact_whatever_is_in_it() {
        let long = name(&"a".repeat(64));
        let progress = AgentProgress {
            run_id: "AG1501JDX3Z8GF0000000000000000".parse().unwrap(),
            workspace: long.clone(),
            project: long.clone(),
            agent: long.clone(),
            conversation_id: Some("CV1501JDX3Z8GF0000000000000000".into()),
            person: Some(long),
            turn: u32::MAX,
            doing: Progress::Saying {
                attempt: u32::MAX,
                seq: u32::MAX,
                text: "\u{1}".repeat(SAYING_BYTES_MAX),
            },
            at: u64::MAX,
        };
        assert!(serde_json::to_string(&progress).unwrap().len() <= FACT_BYTES_MAX);
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
