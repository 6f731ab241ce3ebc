//! What a person writes in a conversation: it becomes a turn, which is an agent run of its own, as that person. There is one
//! turn at a time in a conversation; the others wait in order and begin with the end of the one before.

use std::time::Duration;

use runfleet_domain::limits::{
    CHAT_MESSAGE_CHARS_MAX, CHAT_TURNS_WAITING_MAX, INPUT_BYTES_MAX, MESSAGE_ID_MEMORY,
};
use runfleet_domain::{ConversationId, Lane, MessageId, Name, RunId, RunKind};

use crate::chat::check_chars;
use crate::digest::Digest;
use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::record::{AsksIn, OutcomeState, RUN_VERSION};
use crate::reply::Reply;
use crate::runs::ALARM_WAKE;
use crate::store::{Args, Store, check_shard, check_size};

/// Largest list of held calls of one run, in bytes of JSON.
pub const HOLD_BYTES_MAX: usize = 65_536;

/// Held calls of all runs below one turn together, in bytes as they are stored.
const HOLD_BELOW_BYTES_MAX: usize = 131_072;

/// A message of a person, with the run that answers it.
#[derive(Debug, Clone, Copy)]
pub struct StartTurn<'a> {
    /// The conversation.
    pub conversation: ConversationId,
    /// The workspace that it must be of.
    pub workspace: &'a Name,
    /// The person who must be its person. The run is theirs.
    pub person: &'a Name,
    /// The request. A second one with the same id in the same conversation is the same message.
    pub message_id: &'a MessageId,
    /// What the person says, 1 to 8,000 characters.
    pub text: &'a str,
    /// The id that the run gets. Fresh, of an agent, in the shard of the workspace.
    pub run_id: RunId,
    /// The project of the run: that of the conversation.
    pub project: &'a Name,
    /// The agent: that of the conversation.
    pub agent: &'a Name,
    /// Its active version.
    pub agent_version: u32,
    /// The execution that brings the message.
    pub execution: &'a Name,
    /// Automation steps that the run carries.
    pub hops: u32,
    /// Input as JSON, at most 128 KiB.
    pub input: &'a str,
    /// Longest time of the run, from the moment when it is its turn.
    pub time: Duration,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

/// What became of a message of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is in the conversation.
    Said {
        /// The run that answers it, or has answered it when the same message had come before.
        run: RunId,
        /// The number of the message.
        seq: u64,
        /// The run whose turn it is. If that is `run`, the caller publishes its wake-up; its alarm stands in for it.
        active: Option<RunId>,
        /// Whether that run shows calls that wait for a decision: the person has passed them over by this message.
        held: bool,
    },
    /// As many messages wait as may. Passing.
    Full,
    /// There is no such conversation of that workspace and person.
    Missing,
}

/// What became of the wish to show calls to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnHeld {
    /// They are shown.
    Held,
    /// So many calls of runs below the turn are shown already that there is no room for them.
    Full,
    /// The person has written on before they could be shown: nobody will decide about them.
    Written,
    /// The run is no longer the caller's, or its turn not the active one.
    Lost,
}

impl StartTurn<'_> {
    fn check(&self) -> Result<(), StoreError> {
        check_shard(self.run_id.shard(), self.workspace.as_str())?;
        check_shard(self.conversation.shard(), self.workspace.as_str())?;
        if self.run_id.kind() != RunKind::Agent {
            return Err(StoreError::Invalid("a turn is a run of an agent"));
        }
        check_chars(self.text, CHAT_MESSAGE_CHARS_MAX, "a message has 1 to 8,000 characters")?;
        check_size(Some(self.input), 2 * INPUT_BYTES_MAX, "the input is larger than 128 KiB")?;
        check_size(self.traceparent, 128, "the trace context is too long")
    }

    fn fields(&self, args: Args) -> Args {
        args.field("v", RUN_VERSION)
            .field("workspace", self.workspace)
            .field("project", self.project)
            .field("kind", RunKind::Agent)
            .field("lane", Lane::Interactive)
            .field("message", self.message_id)
            .field("identity", format_args!("user:{}", self.person))
            .field("target", self.agent)
            .field("target_version", self.agent_version)
            .field("execution", self.execution)
            .field("user", self.person)
            .field("hops", self.hops)
            .field("depth", 1)
            .field("chain", 0)
            .field("outcome", OutcomeState::NONE)
            .field("conversation", self.conversation)
            .field("input", self.input)
            .field_if("trace", self.traceparent)
    }
}

impl Store {
    /// Puts a message of a person into a conversation, once for its id, and makes it a turn.
    ///
    /// # Errors
    /// After [`StoreError::Unavailable`] with `maybe_written` the message may be there; the same call again finds it.
    pub async fn reply_in_conversation(&self, turn: &StartTurn<'_>) -> Result<Said, StoreError> {
        turn.check()?;
        let (keys, shard) = (self.keys(), turn.conversation.shard());
        let conversation = turn.conversation.to_string();
        let digest =
            Digest::of(&["reply", &conversation, turn.person.as_str(), turn.message_id.as_str()]);
        let names = [keys.reply(shard, &digest), keys.alarms(shard, AlarmSet::Agent)];
        let args = Args::default()
            .with(conversation)
            .with(turn.workspace)
            .with(turn.person)
            .with(self.conversation_bounds())
            .millis(MESSAGE_ID_MEMORY)
            .with(CHAT_TURNS_WAITING_MAX)
            .millis(ALARM_WAKE)
            .with(turn.text)
            .with(turn.run_id)
            .millis(turn.time);
        let (lua, args) = (&self.scripts().chat_reply, turn.fields(args));
        let value = self.run_script(Operation::ReplyInConversation, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("chat_reply", value)?;
        Ok(match tag.as_str() {
            "said" => Said::Said {
                run: reply.parsed()?,
                seq: reply.parsed()?,
                active: reply.optional()?,
                held: reply.flag()?,
            },
            "full" => Said::Full,
            "missing" => Said::Missing,
            _ => return reply.unknown(),
        })
    }

    /// Shows the person of a conversation which calls of a run wait for a decision, as JSON of at most 64 KiB; none when none do
    /// any more. With the end of the run or of its turn they are gone. Only for the holder of the run, which is the active turn or
    /// a part of it.
    pub async fn hold_calls(
        &self,
        asks_in: AsksIn,
        run: RunId,
        fence: u64,
        calls: Option<&str>,
    ) -> Result<TurnHeld, StoreError> {
        check_size(calls, HOLD_BYTES_MAX, "the held calls are larger than 64 KiB")?;
        let AsksIn { conversation, turn } = asks_in;
        if conversation.shard() != run.shard() {
            return Err(StoreError::Invalid("the conversation is in another shard than the run"));
        }
        let names = [self.keys().run(run), self.keys().conversation(conversation)];
        let args = Args::default()
            .with(run)
            .with(fence)
            .with(calls.unwrap_or_default())
            .with(turn)
            .with(HOLD_BELOW_BYTES_MAX);
        let lua = &self.scripts().chat_hold;
        let value = self.run_script(Operation::HoldCalls, lua, &names, args).await?;
        let (tag, reply) = Reply::open("chat_hold", value)?;
        match tag.as_str() {
            "held" => Ok(TurnHeld::Held),
            "full" => Ok(TurnHeld::Full),
            "written" => Ok(TurnHeld::Written),
            "lost" => Ok(TurnHeld::Lost),
            _ => reply.unknown(),
        }
    }
}
