//! Runs that are a turn in a conversation: what was said before, what their person decides about, and what listeners are told.
//!
//! The conversation itself is changed by the ledger alone: the end of a run puts its answer there.

use runfleet_agent::{Earlier, Effect, HeldCall, State};
use runfleet_broker::{Classify, Failure, Publisher};
use runfleet_contracts::facts::{
    AgentProgress, ChatFrom as Author, ChatMessage, FACT_TEXT_BYTES_MAX, Progress,
};
use runfleet_domain::ConversationId;
use runfleet_domain::limits::CHAT_MESSAGES_AT_ONCE;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{ChatFrom, HOLD_BYTES_MAX, ReadConversation, RunRecord, Store};
use serde_json::{Value, json};

/// What was said before the turn, oldest first. The message that the turn answers is not part of it, nor is what came after.
pub(crate) async fn earlier(store: &Store, record: &RunRecord) -> Result<Vec<Earlier>, Failure> {
    let Some(conversation) = record.conversation else { return Ok(Vec::new()) };
    let read = ReadConversation {
        conversation,
        workspace: &record.workspace,
        person: None,
        before: None,
        limit: CHAT_MESSAGES_AT_ONCE,
        seen: false,
    };
    let page = store.read_conversation(&read).await.transient("reading a conversation")?;
    let messages = page.map(|page| page.messages).unwrap_or_default();
    let before = messages
        .into_iter()
        .take_while(|said| said.run != Some(record.id) || said.from != ChatFrom::Person);
    // What the fleet has noted there is for people.
    let spoken = before.filter(|said| said.from != ChatFrom::System);
    let earlier = |said: runfleet_store::ChatMessage| Earlier {
        agent: said.from == ChatFrom::Agent,
        text: said.text,
        note: said.note,
    };
    Ok(spoken.map(earlier).collect())
}

/// Shows the person which calls wait for a decision, or that none do any more. Those that are too large together to be shown wait
/// unseen until their time is over.
pub(crate) async fn show(
    store: &Store,
    record: &RunRecord,
    conversation: ConversationId,
    fence: u64,
    held: &[HeldCall],
) -> Result<(), Failure> {
    let shown = held.iter().map(|call| {
        let HeldCall { call_id, tool, args, expires_at } = call;
        json!({"runId": record.id.to_string(), "callId": call_id, "tool": tool, "args": args, "expiresAt": expires_at})
    });
    let mut shown: Vec<Value> = shown.collect();
    let mut json = Value::from(shown.clone()).to_string();
    while json.len() > HOLD_BYTES_MAX {
        shown.pop();
        json = Value::from(shown.clone()).to_string();
    }
    let calls = (!held.is_empty()).then_some(json.as_str());
    // Whoever holds the run now shows what it finds.
    store
        .hold_calls(conversation, record.id, fence, calls)
        .await
        .transient("showing held calls")?;
    Ok(())
}

/// Tells what a turn is doing from now on.
pub(crate) fn tell_progress(
    publisher: &Publisher,
    record: &RunRecord,
    state: &State,
    wanted: &[Effect],
) {
    let calls: Vec<String> = wanted.iter().filter_map(tool).collect();
    let asked = wanted.iter().find_map(|effect| match effect {
        Effect::AskModel { turn, .. } => Some(*turn),
        _ => None,
    });
    if asked.is_some() {
        tell(publisher, record, asked.unwrap_or_default(), Progress::Asking);
    }
    if !calls.is_empty() {
        tell(publisher, record, 0, Progress::Calling { tools: calls });
    }
    for HeldCall { call_id, tool, .. } in state.held() {
        tell(publisher, record, 0, Progress::Held { call_id, tool });
    }
}

fn tool(effect: &Effect) -> Option<String> {
    match effect {
        Effect::CallTool { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Tells what the agent says, in pieces.
pub(crate) fn tell_saying(publisher: &Publisher, record: &RunRecord, turn: u32, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(FACT_TEXT_BYTES_MAX));
        tell(publisher, record, turn, Progress::Saying { text: piece.to_owned() });
        rest = more;
    }
}

fn tell(publisher: &Publisher, record: &RunRecord, turn: u32, doing: Progress) {
    publisher.publish_fact(&AgentProgress {
        run_id: record.id,
        workspace: record.workspace.clone(),
        project: record.project.clone(),
        agent: record.target.clone(),
        conversation_id: record.conversation.map(|id| id.to_string()),
        person: record.conversation.and(record.user.clone()),
        turn,
        doing,
        at: now_ms(),
    });
}

/// Tells that the answer of a turn is in its conversation.
pub(crate) fn tell_answer(publisher: &Publisher, record: &RunRecord) {
    let (Some(conversation), Some(person)) = (record.conversation, &record.user) else { return };
    publisher.publish_fact(&ChatMessage {
        message_id: record.id.to_string(),
        conversation_id: conversation.to_string(),
        new_conversation: false,
        workspace: record.workspace.clone(),
        agent: record.target.clone(),
        person: person.clone(),
        from: Author::Agent,
        at: now_ms(),
    });
}
