//! Runs that are a turn in a conversation, or a part of one: what was said before, and what their person decides about.
//!
//! The conversation itself is changed by the ledger alone: the end of a run puts its answer there.

use runfleet_agent::{Earlier, Event, HeldCall};
use runfleet_broker::{Classify, Failure, Publisher};
use runfleet_contracts::facts::Progress;
use runfleet_domain::RunId;
use runfleet_domain::limits::CHAT_MESSAGES_AT_ONCE;
use runfleet_store::{
    AsksIn, ChatFrom, ChatMessage as Said, HOLD_BYTES_MAX, ReadConversation, RunRecord, Store,
    TurnHeld,
};
use runfleet_worker::facts;
use serde_json::{Value, json};

use crate::tools::turn_of;

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

/// Shows the person which calls of a turn, or of a part of one, wait for a decision, or that none do any more. Those that are too
/// large together to be shown wait unseen until their time is over. Whether the person has written on meanwhile is the answer:
/// then nobody decides about them.
pub(crate) async fn show(
    store: &Store,
    record: &RunRecord,
    asks_in: AsksIn,
    fence: u64,
    held: &[HeldCall],
) -> Result<bool, Failure> {
    // The person knows whom they talk to, and not whom that one has asked.
    let agent = (asks_in.turn != record.id).then_some(&record.target);
    let shown = held.iter().map(|call| {
        let HeldCall { call_id, tool, args, expires_at } = call;
        json!({"runId": record.id, "callId": call_id, "agentId": agent, "tool": tool, "args": args, "expiresAt": expires_at})
    });
    let mut shown: Vec<Value> = shown.collect();
    let mut json = Value::from(shown.clone()).to_string();
    while json.len() > HOLD_BYTES_MAX {
        shown.pop();
        json = Value::from(shown.clone()).to_string();
    }
    let calls = (!held.is_empty()).then_some(json.as_str());
    let shown = store.hold_calls(asks_in, record.id, fence, calls).await;
    let shown = shown.transient("showing held calls")?;
    if shown == TurnHeld::Full {
        tracing::warn!(run = %record.id, "a person cannot be shown more calls; these wait until their time is over");
    }
    // After `Lost`, whoever holds the run now shows what it finds.
    Ok(shown == TurnHeld::Written)
}

/// Tells a run that its person has written on instead of deciding about `call` and what is held with it.
pub(crate) async fn pass_over(store: &Store, run: RunId, call: &str) -> Result<(), Failure> {
    let id = format!("passed:{call}").parse().permanent("naming an event")?;
    let event = serde_json::to_string(&Event::PassedOver).permanent("writing an event")?;
    store.append_event(run, &id, &event).await.transient("closing held calls")?;
    Ok(())
}

/// Tells the person which calls wait.
pub(crate) fn tell_held(publisher: &Publisher, record: &RunRecord, held: Vec<HeldCall>) {
    for HeldCall { call_id, tool, .. } in held {
        let turn = turn_of(&call_id).unwrap_or_default();
        facts::progress(publisher, record, turn, Progress::Held { call_id, tool });
    }
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
