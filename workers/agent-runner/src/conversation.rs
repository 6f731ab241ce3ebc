//! Runs that are a turn in a conversation: what was said before, what their person decides about, and what listeners are told.
//!
//! The conversation itself is changed by the ledger alone: the end of a run puts its answer there.

use runfleet_agent::{Earlier, Effect, HeldCall, State};
use runfleet_broker::{Classify, Failure, Publisher};
use runfleet_contracts::facts::{
    AgentProgress, ChatFrom as Author, ChatMessage, FACT_TEXT_BYTES_MAX, Progress,
};
use runfleet_domain::limits::CHAT_MESSAGES_AT_ONCE;
use runfleet_domain::{ConversationId, RunId};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{
    ChatFrom, ChatMessage as Said, HOLD_BYTES_MAX, ReadConversation, RunRecord, Store,
};
use serde_json::{Value, json};

/// What was said before the turn: each question with its answers, oldest first. The message that the turn answers is not part of it,
/// nor is what the person has written after it.
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
    let earlier = |said: Said| Earlier {
        agent: said.from == ChatFrom::Agent,
        text: said.text,
        note: said.note,
    };
    Ok(before(messages, record.id).into_iter().map(earlier).collect())
}

/// What was said before the turn of `run`, out of the newest messages of its conversation. The person may have written on before
/// earlier turns were over: their answers come later in the conversation, but were given before this turn.
fn before(messages: Vec<Said>, run: RunId) -> Vec<Said> {
    let is_asked = |said: &Said| said.from == ChatFrom::Person && said.run == Some(run);
    let asked = messages.iter().position(is_asked).unwrap_or(messages.len());
    let known = messages.into_iter().enumerate().filter(|(place, said)| match said.from {
        ChatFrom::Person => *place < asked,
        ChatFrom::Agent => said.run != Some(run),
        // What the fleet has noted there is for people.
        ChatFrom::System => false,
    });
    let (questions, answers): (Vec<_>, Vec<_>) =
        known.map(|(_, said)| said).partition(|said| said.from == ChatFrom::Person);
    let question = |answer: &Said| {
        let same = |asked: &&Said| asked.run.is_some() && asked.run == answer.run;
        questions.iter().find(same).map_or(answer.seq, |question| question.seq)
    };
    let mut all: Vec<_> = answers.into_iter().map(|answer| (question(&answer), answer)).collect();
    all.extend(questions.into_iter().map(|question| (question.seq, question)));
    all.sort_by_key(|(place, said)| (*place, said.seq));
    all.into_iter().map(|(_, said)| said).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_came_while_the_person_wrote_on_stand_behind_their_questions() {
        let run =
            |end: char| format!("AG1501JDX3Z8GF000000000000000{end}").parse::<RunId>().unwrap();
        let said = |seq: u64, from: ChatFrom, of: char| Said {
            seq,
            at_ms: seq,
            from,
            text: seq.to_string(),
            note: None,
            run: Some(run(of)),
        };
        let (agent, person, system) = (ChatFrom::Agent, ChatFrom::Person, ChatFrom::System);
        let all = vec![
            said(1, agent, '9'),
            said(2, person, '1'),
            said(3, person, '2'),
            said(4, person, '3'),
            said(5, person, '4'),
            said(6, agent, '1'),
            said(7, system, '2'),
            said(8, agent, '8'),
            said(9, agent, '2'),
        ];
        let seen =
            |of| before(all.clone(), run(of)).iter().map(|said| said.seq).collect::<Vec<_>>();
        assert_eq!(seen('3'), [1, 2, 6, 3, 9, 8]);
        assert_eq!(seen('1'), [1, 8, 9], "a turn does not see what its person wrote later");
    }
}
