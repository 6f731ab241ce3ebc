//! Conversations over the public path: a person lists, reads, answers and decides, and nobody else does.

use anyhow::{Context as _, Result};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::agent_run::AgentResult;
use runfleet_contracts::agents::DeliverTo;
use runfleet_contracts::chat::{
    ChatAuthor, ChatDecide, ChatDecision, ChatQuietHours, ChatRead, ChatReply, ChatSaid,
    ChatSettings, HeldCall,
};
use runfleet_contracts::{Claims, ErrorCode, Operation, Reply, Request};
use runfleet_domain::{ConversationId, Name, RunId};
use runfleet_store::{
    AsksIn, Checkpoint, Claim, Claimed, MarkHow, MessageCaps, Reserve, Reserved, Store, TurnHeld,
    Wake,
};
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, project};
use serde_json::json;
use serde_json::value::to_raw_value;

const NOTE: &str = "She asked for it on Monday.";
const TEXT: &str = "Grüße 👩‍👩‍👧‍👦 e\u{301} שלום";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A client for a person, whose token says something else as well.
fn person(fleet: &Fleet, who: &str, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.user = Some(name(who));
    change(&mut claims);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

/// A message of a run of the example's agent to ada.
async fn sent(fleet: &Fleet, call: &str) -> Result<(RunId, ConversationId)> {
    let to = DeliverTo { personnel_id: "ada".into(), conversation: None, title: None };
    let options = AgentStartOptions::new("Write to her.")
        .on_result("deal_coached", &json!(7))?
        .deliver_to(to);
    let run_id = fleet.client()?.agents().start("deal-coach", options).await?.run_id.parse()?;
    let (workspace, _) = project();
    let message = Reserve {
        run_id,
        call_id: call,
        workspace: &workspace,
        agent: &name("deal-coach"),
        person: &name("ada"),
        latest: false,
        title: Some("Your deal"),
        text: TEXT,
        note: Some(NOTE),
        caps: MessageCaps::default(),
        sink_dedups: true,
        lease: BOUND,
        refused: None,
        not_before_ms: None,
        quiet_hours: None,
    };
    let Reserved::Reserved(sending) = fleet.store.reserve_message(&message).await? else {
        panic!("not reserved");
    };
    let period = message.caps.period;
    fleet.store.mark_message(run_id, call, sending.fence, MarkHow::Post, period).await?;
    Ok((run_id, sending.conversation))
}

fn read(conversation: ConversationId) -> ChatRead {
    ChatRead {
        conversation_id: conversation.to_string(),
        before: None,
        limit: None,
        mark_read: None,
    }
}

async fn held_runner() -> Result<Fleet> {
    Fleet::start(Options { without: vec!["agent-runner"], ..Options::default() }).await
}

/// CG-070, CG-076, CG-096, CG-098
#[tokio::test]
async fn a_person_lists_and_reads_their_conversations_and_never_sees_a_note() -> Result<()> {
    let fleet = held_runner().await?;
    let (run, conversation) = sent(&fleet, "c1").await?;
    let delivery = fleet.client()?.agents().get(&run.to_string()).await?.delivery;
    let delivery = delivery.context("a delivery")?;
    assert_eq!((delivery.status.as_str(), delivery.new_conversation), ("SENT", true));
    assert_eq!(delivery.conversation_id, Some(conversation.to_string()));
    assert_eq!(delivery.chat_session_id, Some(conversation.session()));

    let ada = person(&fleet, "ada", |_| ())?;
    let list = ada.chat().list(None, None).await?;
    let listed = &list.conversations[0];
    assert_eq!((list.conversations.len(), list.next), (1, None));
    assert_eq!((listed.conversation.unread, listed.last.text.as_str()), (1, TEXT));
    assert_eq!(listed.conversation.title.as_deref(), Some("Your deal"));
    let page = ada.chat().read(&read(conversation)).await?;
    assert_eq!((page.messages[0].text.as_str(), page.messages[0].from), (TEXT, ChatAuthor::Agent));
    let answers = format!("{}{}", serde_json::to_string(&list)?, serde_json::to_string(&page)?);
    assert!(answers.contains("Grüße") && !answers.contains("Monday"));
    assert_eq!(page.conversation.unread, 1);
    let seen = ChatRead { mark_read: Some(true), ..read(conversation) };
    assert_eq!(ada.chat().read(&seen).await?.conversation.unread, 0);
    assert_eq!(ada.chat().list(None, None).await?.conversations[0].conversation.unread, 0);
    fleet.remove().await
}

/// CG-077, NB-22
#[tokio::test]
async fn only_the_person_of_a_conversation_can_touch_it_and_only_by_a_token_that_may() -> Result<()>
{
    let fleet = held_runner().await?;
    let (_, conversation) = sent(&fleet, "c1").await?;
    let id = conversation.to_string();
    let ben = person(&fleet, "ben", |_| ())?;
    assert!(ben.chat().list(None, None).await?.conversations.is_empty());
    let error = ben.chat().read(&read(conversation)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let error = ben.chat().reply(&id, "Hi.").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let ada = person(&fleet, "ada", |_| ())?;
    let error = ada.chat().reply("CV00", "Hi.").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let error = fleet.client()?.chat().list(None, None).await.unwrap_err();
    assert_eq!(error.reason(), Some("USER_REQUIRED"));
    let reader = person(&fleet, "ada", |claims| claims.read_only = true)?;
    let error = reader.chat().reply(&id, "Hi.").await.unwrap_err();
    assert_eq!(error.reason(), Some("READ_ONLY"));
    let seen = ChatRead { mark_read: Some(true), ..read(conversation) };
    assert_eq!(reader.chat().read(&seen).await?.conversation.unread, 1);
    let tired = person(&fleet, "ada", |claims| claims.hops = 0)?;
    let error = tired.chat().reply(&id, "Hi.").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MaxHopExceeded));
    assert_eq!(ada.chat().read(&read(conversation)).await?.messages.len(), 1);
    fleet.remove().await
}

/// CG-077
#[tokio::test]
async fn a_reply_is_one_turn_of_that_person_however_often_it_comes_and_the_next_one_waits()
-> Result<()> {
    let fleet = held_runner().await?;
    let (first, conversation) = sent(&fleet, "c1").await?;
    let ada = person(&fleet, "ada", |_| ())?;
    let options = ChatReply { conversation_id: conversation.to_string(), text: "Why?".into() };
    let payload = to_raw_value(&options)?;
    let body = serde_json::to_vec(&Request { operation: Operation::ChatReply, payload })?;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = ada.send("reply-1".into(), body.clone()).await?;
        let Reply::Done(said) = serde_json::from_slice::<Reply<ChatSaid>>(&answer)? else {
            panic!("refused");
        };
        answers.push(said);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    let run: RunId = answers[0].run_id.parse()?;
    assert!(!answers[0].queued && answers[0].seq == 2);
    let record = fleet.store.load_run(run).await?.context("a run")?;
    assert_eq!((record.user, record.conversation), (Some(name("ada")), Some(conversation)));
    assert_eq!((record.hops, record.depth), (9, 1));
    assert_ne!(run, first);
    assert!(fleet.depth("agent-runner.interactive").await? >= 2);
    let next = ada.chat().reply(conversation.to_string(), "And?").await?;
    assert!(next.queued && next.seq == 3);
    assert_eq!(fleet.store.load_run(next.run_id.parse()?).await?, None);
    assert_eq!(ada.chat().read(&read(conversation)).await?.messages.len(), 3);
    fleet.remove().await
}

/// Takes a run and shows its person a call that it holds.
async fn hold(store: &Store, conversation: ConversationId, run: RunId) -> Result<()> {
    let Claimed::Claimed { fence, .. } = store.claim_run(run, Claim::default()).await? else {
        panic!("not claimed");
    };
    let held = HeldCall {
        run_id: run.to_string(),
        call_id: "call_1_1".into(),
        tool: "sendOffer".into(),
        args: to_raw_value(&json!({"amount": 7}))?,
        agent_id: None,
        expires_at: 9_000_000_000_000,
    };
    let calls = serde_json::to_string(&[held])?;
    let asks_in = AsksIn { conversation, turn: run };
    let held = store.hold_calls(asks_in, run, fence, Some(&calls)).await?;
    assert_eq!(held, TurnHeld::Held);
    // It waits for the decision, and anybody can take it on.
    let waiting = Checkpoint { release: true, wake: Wake::Never, ..Checkpoint::new("{}") };
    store.checkpoint_run(run, fence, &waiting).await?;
    Ok(())
}

/// What waits in the inbox of a run.
async fn inbox(store: &Store, run: RunId) -> Result<Vec<String>> {
    let Claimed::Claimed { inbox, .. } = store.claim_run(run, Claim::default()).await? else {
        panic!("not claimed");
    };
    Ok(inbox.into_iter().map(|event| event.body).collect())
}

/// NB-11, NB-12, NB-20, NB-22
#[tokio::test]
async fn a_decision_reaches_the_run_that_holds_the_call_and_a_new_message_closes_it() -> Result<()>
{
    let fleet = held_runner().await?;
    let (_, conversation) = sent(&fleet, "c1").await?;
    let ada = person(&fleet, "ada", |_| ())?;
    let said = ada.chat().reply(conversation.to_string(), "Send the offer.").await?;
    let run: RunId = said.run_id.parse()?;
    let decide = ChatDecide {
        conversation_id: conversation.to_string(),
        run_id: said.run_id.clone(),
        call_id: "call_1_1".into(),
        decision: ChatDecision::Edit,
        args: Some(to_raw_value(&json!({"amount": 6}))?),
        message: None,
    };
    let error = ada.chat().decide(&decide).await.unwrap_err();
    assert_eq!(error.reason(), Some("NOT_HELD"));
    hold(&fleet.store, conversation, run).await?;
    let page = ada.chat().read(&read(conversation)).await?;
    assert_eq!((page.held.len(), page.held[0].tool.as_str()), (1, "sendOffer"));
    assert_eq!(page.conversation.active_run_id, Some(said.run_id.clone()));
    let ben = person(&fleet, "ben", |_| ())?;
    let error = ben.chat().decide(&decide).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert_eq!(ada.chat().decide(&decide).await?.call_id, "call_1_1");
    // What the person writes next closes whatever is still held.
    assert!(ada.chat().reply(conversation.to_string(), "Wait.").await?.queued);
    let events = inbox(&fleet.store, run).await?;
    assert_eq!(events.len(), 2);
    let event: serde_json::Value = serde_json::from_str(&events[0])?;
    assert_eq!(event["kind"], "approval");
    assert_eq!(event["decision"], json!({"type": "edit", "arguments": {"amount": 6}}));
    assert_eq!(events[1], r#"{"kind":"passedOver"}"#);
    fleet.remove().await
}

/// CG-077, NB-12, NB-23
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intake_that_dies_with_a_message_or_a_decision_of_a_person_does_both_once() -> Result<()>
{
    let fail_at = Some(("start-intake", "intake.turn_committed@1".to_owned()));
    let without = vec!["agent-runner", "process-runner", "completion-dispatcher", "delivery"];
    let mut fleet = Fleet::start(Options { fail_at, without, ..Options::default() }).await?;
    let (_, conversation) = sent(&fleet, "c1").await?;
    let ada = person(&fleet, "ada", |_| ())?;
    let writer = ada.clone();
    let writing =
        tokio::spawn(async move { writer.chat().reply(conversation.to_string(), "Why?").await });
    fleet.ended("start-intake").await?;
    fleet.spawn("start-intake", Some("intake.decision_told@1"))?;
    let said = writing.await??;
    assert_eq!((said.seq, said.queued), (2, false));
    let run: RunId = said.run_id.parse()?;
    hold(&fleet.store, conversation, run).await?;
    let decide = ChatDecide {
        conversation_id: conversation.to_string(),
        run_id: said.run_id.clone(),
        call_id: "call_1_1".into(),
        decision: ChatDecision::Approve,
        args: None,
        message: None,
    };
    let decider = ada.clone();
    let deciding = tokio::spawn(async move { decider.chat().decide(&decide).await });
    fleet.ended("start-intake").await?;
    // The next one dies with the word that what was held is passed over.
    fleet.spawn("start-intake", Some("intake.decision_told@2"))?;
    assert_eq!(deciding.await??.call_id, "call_1_1");
    let writer = ada.clone();
    let writing =
        tokio::spawn(async move { writer.chat().reply(conversation.to_string(), "Wait.").await });
    fleet.ended("start-intake").await?;
    fleet.spawn("start-intake", None)?;
    let said = writing.await??;
    assert!(said.queued && said.seq == 3);
    let events = inbox(&fleet.store, run).await?;
    let kinds: Vec<serde_json::Value> =
        events.iter().map(|event| serde_json::from_str(event)).collect::<Result<_, _>>()?;
    let kinds: Vec<_> = kinds.iter().map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("approval"), Some("passedOver")]);
    assert_eq!(ada.chat().read(&read(conversation)).await?.messages.len(), 3);
    fleet.remove().await
}

#[tokio::test]
async fn a_person_says_when_no_messages_are_wanted() -> Result<()> {
    let fleet = held_runner().await?;
    let ada = person(&fleet, "ada", |_| ())?;
    let nothing = ChatSettings { opt_out: None, quiet_hours: None };
    let now = ada.chat().settings(&nothing).await?;
    assert!(!now.opt_out && now.quiet_hours.is_none());
    let hours = ChatQuietHours {
        from: "22:00".into(),
        to: "07:30".into(),
        time_zone: "Europe/Berlin".into(),
    };
    let wanted = ChatSettings { opt_out: Some(true), quiet_hours: Some(Some(hours.clone())) };
    let now = ada.chat().settings(&wanted).await?;
    assert_eq!((now.opt_out, now.quiet_hours), (true, Some(hours)));
    let (workspace, _) = project();
    assert!(fleet.store.chat_settings(&workspace, &name("ada")).await?.opt_out);
    let cleared = ChatSettings { opt_out: Some(false), quiet_hours: Some(None) };
    ada.chat().settings(&cleared).await?;
    let reader = person(&fleet, "ada", |claims| claims.read_only = true)?;
    let now = reader.chat().settings(&nothing).await?;
    assert!(!now.opt_out && now.quiet_hours.is_none());
    let error = reader.chat().settings(&wanted).await.unwrap_err();
    assert_eq!(error.reason(), Some("READ_ONLY"));
    fleet.remove().await
}

/// CG-077
#[tokio::test]
async fn what_a_person_writes_is_answered_in_the_conversation_one_turn_after_the_other()
-> Result<()> {
    let mut fleet = held_runner().await?;
    let (_, conversation) = sent(&fleet, "c1").await?;
    fleet.spawn("agent-runner", None)?;
    fleet.ready("agent-runner").await?;
    let ada = person(&fleet, "ada", |_| ())?;
    let mut runs = Vec::new();
    for text in ["Why?", "What now?", "And then?"] {
        runs.push(ada.chat().reply(conversation.to_string(), text).await?.run_id);
    }
    let page = wait_until("all three are answered", BOUND, || async {
        let page = ada.chat().read(&read(conversation)).await?;
        let answers = page.messages.iter().filter(|entry| entry.from == ChatAuthor::Agent);
        Ok((answers.count() == 4).then_some(page))
    })
    .await?;
    assert_eq!(page.conversation.active_run_id, None);
    let answered: Vec<String> = page
        .messages
        .iter()
        .filter(|entry| entry.from == ChatAuthor::Agent)
        .skip(1)
        .filter_map(|entry| entry.run_id.clone())
        .collect();
    assert_eq!(answered, runs);
    fleet.remove().await
}

/// CG-096, CG-105
#[tokio::test]
async fn the_job_of_a_run_gets_the_delivery_that_asking_tells() -> Result<()> {
    let mut fleet = held_runner().await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let (run, conversation) = sent(&fleet, "c1").await?;
    fleet.spawn("agent-runner", None)?;
    fleet.ready("agent-runner").await?;
    let job = jobs.wait(run.outcome_job(), BOUND).await?;
    let result: AgentResult = serde_json::from_str(job.payload.get())?;
    let delivery = result.agent_run.delivery.context("a delivery")?;
    assert_eq!((delivery.status.as_str(), &delivery.error_code), ("SENT", &None));
    assert_eq!(delivery.conversation_id, Some(conversation.to_string()));
    let state = fleet.client()?.agents().get(&run.to_string()).await?;
    assert_eq!((state.status.as_str(), state.delivery), ("COMPLETED", Some(delivery)));
    fleet.remove().await
}
