//! What a person writes: it becomes a turn of the conversation, which is an agent run as that person. The run that has sent the
//! message which is answered has no part in it.

use std::time::{Duration, Instant};

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_contracts::ErrorBody;
use runfleet_contracts::agents::{AgentInput, ApprovalPolicy};
use runfleet_contracts::chat::{ChatReply, ChatSaid};
use runfleet_contracts::facts::{ChatFrom, ChatMessage};
use runfleet_domain::admission::{self, AgentWish, Refusal, RunAs, Turn, Wish};
use runfleet_domain::limits::AGENT_TIMEOUT_SECONDS;
use runfleet_domain::{Name, RunId, RunKind};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{Conversation, Said, StartTurn};
use ulid::Ulid;

use super::{Chatting, missing};
use crate::admission::credits_used;
use crate::facts::About;
use crate::handler::patience;
use crate::operate::{Done, Trouble, Written, answer};

/// Why a run is woken that has just been made.
const BEGUN: &str = "turn";

/// Longest time of a turn, in seconds: a person who is asked about a call needs some.
const TURN_SECONDS: u32 = *AGENT_TIMEOUT_SECONDS.end();

fn wish(agent: &Name) -> Wish<'_> {
    let agent_wish = AgentWish { run_as: Some(RunAs::Caller), ..AgentWish::default() };
    Wish { target: agent, job: None, agent: Some(agent_wish) }
}

impl Chatting<'_> {
    pub(super) async fn reply(&self, options: &ChatReply) -> Result<Done, Trouble> {
        let Some(page) = self.named(&options.conversation_id).await? else {
            return Ok(Done::Refused(missing(&options.conversation_id)));
        };
        let conversation = page.conversation;
        let turn = match self.admit(&conversation.agent).await.before_writing()? {
            Ok(turn) => turn,
            Err(error) => return Ok(Done::Refused(error)),
        };
        let said = self.say(&conversation, turn, &options.text).await?;
        let (run, seq, active, held) = match said {
            Said::Said { run, seq, active, held } => (run, seq, active, held),
            Said::Full => return Ok(Done::no_room("TURNS_FULL", "waiting for a turn to end")),
            Said::Missing => return Ok(Done::Refused(missing(&options.conversation_id))),
        };
        runfleet_faults::point("intake.turn_committed");
        self.told(&conversation, seq);
        if active == Some(run) {
            self.wake(run, BEGUN).await.after_writing()?;
        } else if let Some(turn) = active.filter(|_| held) {
            self.close_held(&options.conversation_id, turn).await?;
        }
        let queued = active.is_some_and(|active| active != run);
        answer(ChatSaid { seq, run_id: run.to_string(), queued })
    }

    /// Tells listeners that there is a message.
    fn told(&self, conversation: &Conversation, seq: u64) {
        self.deps.publisher.publish_fact(&ChatMessage {
            message_id: format!("{}.{seq}", conversation.id),
            conversation_id: conversation.id.to_string(),
            new_conversation: false,
            workspace: conversation.workspace.clone(),
            agent: conversation.agent.clone(),
            person: self.person.clone(),
            from: ChatFrom::Person,
            at: now_ms(),
        });
    }

    /// Whether the agent answers this person.
    async fn admit(&self, agent: &Name) -> Result<Result<Turn, ErrorBody>, Failure> {
        let claims = self.claims();
        let (deps, wish) = (self.deps, wish(agent));
        let caller = claims.caller(self.asks.expired);
        let rules = |snapshot: &Snapshot| {
            let enabled = deps.offered.agents;
            let rules = snapshot.rules(&claims.project, None, &wish, None, enabled);
            (rules.limits, rules.target)
        };
        let snapshot =
            deps.catalog.get(&claims.workspace).await.transient("loading the catalog")?;
        let Some(snapshot) = snapshot else {
            return Ok(Err(Refusal::TargetNotFound(RunKind::Agent).into()));
        };
        let about = About {
            workspace: &claims.workspace,
            project: &claims.project,
            user: Some(self.person),
            wish: &wish,
            model: snapshot.agent(agent).map(|agent| agent.model.as_str()),
        };
        let until = Instant::now() + patience(self.message);
        let used = credits_used(deps, RunKind::Agent, agent, &claims.workspace, &snapshot).await?;
        let known = snapshot.facts(Some(self.person), &wish, used);
        let facts = deps.facts.ask(&about, known, until).await?;
        let (limits, target) = rules(&snapshot);
        let rules = admission::Rules {
            enabled: deps.offered.agents,
            policy: None,
            limits,
            job_declared: true,
            target,
        };
        Ok(admission::turn(&caller, &rules, &facts).map_err(ErrorBody::from))
    }

    async fn say(
        &self,
        conversation: &Conversation,
        turn: Turn,
        text: &str,
    ) -> Result<Said, Trouble> {
        let claims = self.claims();
        let input = AgentInput {
            instruction: text.to_owned(),
            variables: None,
            records: Vec::new(),
            result_schema: None,
            run_as: RunAs::Caller,
            approval_policy: ApprovalPolicy::Deny,
            timeout_seconds: TURN_SECONDS,
            deliver_to: None,
        };
        let input =
            serde_json::to_string(&input).permanent("writing the input").before_writing()?;
        let turn = StartTurn {
            conversation: conversation.id,
            workspace: &claims.workspace,
            person: self.person,
            message_id: &self.id,
            text,
            run_id: RunId::new(RunKind::Agent, conversation.id.shard(), Ulid::generate()),
            project: &conversation.project,
            agent: &conversation.agent,
            agent_version: turn.version,
            execution: &claims.execution,
            hops: turn.hops,
            input: &input,
            time: Duration::from_secs(TURN_SECONDS.into()),
            traceparent: self.message.traceparent.as_deref(),
        };
        let said = self.deps.store.reply_in_conversation(&turn).await;
        said.transient("putting a message into a conversation").after_writing()
    }
}
