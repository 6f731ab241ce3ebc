//! Turns of conversations through the whole fleet: an agent writes, its person answers, and decides about what the agent wants
//! to do then.

use anyhow::{Context as _, Result};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::agents::DeliverTo;
use runfleet_contracts::chat::{
    ChatAuthor, ChatDecide, ChatDecision, ChatPage, ChatRead, HeldCall,
};
use runfleet_contracts::facts::{ChatFrom, Progress};
use runfleet_contracts::{ErrorCode, HostOutcome};
use runfleet_testkit::{Doing, TestHost, wait_until};
use runfleet_tests::{BOUND, Fleet, Hearing, Options, Told, ended, project};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// An agent that writes to people, with two tools of its project of which one asks, and one that asks a clerk, who has the tool that
/// asks; and an agent whose answers are held against a rule.
const DOCUMENTS: &str = r"
apiVersion: runfleet/v1
kind: ModelProvider
metadata: {name: talking}
spec: {kind: scripted, script: turns.yaml, models: [talking/one]}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: offer}
spec: {description: Sends an offer., project: {project: shop, function: offer}, permission: ASK,
  inputSchema: {type: object, properties: {amount: {type: number}}, required: [amount]}}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: look-up}
spec: {description: Looks something up., project: {project: shop, function: look_up}, permission: ALLOW,
  inputSchema: {type: object, properties: {what: {type: string}}}}
---
apiVersion: runfleet/v1
kind: Tool
metadata: {name: ask-clerk}
spec: {description: Asks the clerk., agent: clerk, permission: ALLOW}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: clerk}
spec: {model: talking/one, tools: [offer]}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: seller}
spec: {model: talking/one, tools: [offer, look-up, ask-clerk]}
---
apiVersion: runfleet/v1
kind: Agent
metadata: {name: careful}
spec: {model: talking/one, guardrails: {output: {blockedPatterns: [s3cret]}}}
";

/// A fleet with a conversation that the agent has begun.
struct Talk {
    fleet: Fleet,
    host: TestHost,
    ada: Client,
    /// The conversation.
    id: String,
}

fn person(fleet: &Fleet, who: &str) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.user = Some(who.parse()?);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

/// Has an agent write to ada; gives the conversation.
async fn written(fleet: &Fleet, agent: &str) -> Result<String> {
    let to = DeliverTo { personnel_id: "ada".into(), conversation: None, title: None };
    let options = AgentStartOptions::new("write to her").deliver_to(to);
    let client = fleet.client()?;
    let run = client.agents().start(agent, options).await?.run_id;
    let state = ended(&client, &run).await?;
    let delivery = state.delivery.context("a delivery")?;
    assert_eq!((state.text.as_deref(), delivery.status.as_str()), (Some("Written."), "SENT"));
    delivery.conversation_id.context("a conversation")
}

impl Talk {
    async fn begin() -> Result<Self> {
        let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
        let settings = vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)];
        let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
        fleet.apply_documents("talk", DOCUMENTS).await?;
        let (workspace, name) = project();
        let host = TestHost::start(&fleet.broker, workspace, name, |request| {
            let said = if request.name == "offer" { "It was sent." } else { "blue" };
            let found = json!({"status": "success", "content": {"said": said}});
            Doing::Answer(HostOutcome::Ok(found.as_object().cloned().unwrap_or_default()))
        });
        let id = written(&fleet, "seller").await?;
        let ada = person(&fleet, "ada")?;
        Ok(Self { fleet, host, ada, id })
    }

    async fn page(&self) -> Result<ChatPage> {
        let options = ChatRead {
            conversation_id: self.id.clone(),
            before: None,
            limit: None,
            mark_read: None,
        };
        // Each look is an execution of its own: none has a budget for as many as there may be.
        Ok(person(&self.fleet, "ada")?.chat().read(&options).await?)
    }

    /// Everything that was said, once the last of it is this, and no turn goes on.
    async fn until_said(&self, last: &str) -> Result<Vec<String>> {
        wait_until("the agent has answered", BOUND, || async {
            let page = self.page().await?;
            let texts: Vec<_> = page.messages.into_iter().map(|entry| entry.text).collect();
            let over = page.conversation.active_run_id.is_none()
                && texts.last().is_some_and(|text| text == last);
            Ok(over.then_some(texts))
        })
        .await
    }

    /// The calls that wait, once there are so many.
    async fn held(&self, count: usize) -> Result<Vec<HeldCall>> {
        wait_until("calls wait for a decision", BOUND, || async {
            let held = self.page().await?.held;
            Ok((held.len() == count).then_some(held))
        })
        .await
    }

    fn about(&self, call: &HeldCall, decision: ChatDecision) -> ChatDecide {
        ChatDecide {
            conversation_id: self.id.clone(),
            run_id: call.run_id.clone(),
            call_id: call.call_id.clone(),
            decision,
            args: None,
            message: None,
        }
    }

    /// What the host was asked: functions with what they got.
    fn carried_out(&self) -> Vec<(String, Value)> {
        let requests = self.host.requests().into_iter();
        let mut found: Vec<_> = requests
            .map(|request| (request.name.clone(), Value::Object(request.variables)))
            .collect();
        found.sort_by_key(|(name, variables)| format!("{name}{variables}"));
        found
    }
}

/// CG-076, CG-077, CG-096
#[tokio::test]
async fn an_agent_writes_and_answers_later_with_what_was_said_and_with_its_note() -> Result<()> {
    let talk = Talk::begin().await?;
    let listed = talk.ada.chat().list(None, None).await?;
    assert_eq!(listed.conversations.len(), 1);
    assert_eq!(listed.conversations[0].conversation.unread, 1);
    let said = talk.ada.chat().reply(talk.id.as_str(), "do you remember?").await?;
    let record = talk.fleet.store.load_run(said.run_id.parse()?).await?.context("a run")?;
    assert_eq!(record.user, "ada".parse().ok());
    talk.until_said("I asked whether I shall help.").await?;
    talk.ada.chat().reply(talk.id.as_str(), "and before that?").await?;
    let texts = talk.until_said("You asked whether I remember.").await?;
    let expected = [
        "Your deal is stuck. Shall I help?",
        "do you remember?",
        "I asked whether I shall help.",
        "and before that?",
        "You asked whether I remember.",
    ];
    assert_eq!(texts, expected);
    assert_eq!(talk.page().await?.conversation.unread, 3);
    talk.fleet.remove().await
}

/// NB-07, NB-10, NB-11, NB-12, NB-22
#[tokio::test]
async fn calls_that_ask_wait_for_their_person_and_are_approved_edited_and_rejected() -> Result<()> {
    let talk = Talk::begin().await?;
    talk.ada.chat().reply(talk.id.as_str(), "send three offers").await?;
    let held = talk.held(3).await?;
    let amounts: Vec<_> = held.iter().map(|call| call.args.get()).collect();
    assert_eq!(amounts, [r#"{"amount":1}"#, r#"{"amount":2}"#, r#"{"amount":3}"#]);
    assert!(held.iter().all(|call| call.tool == "offer"));
    assert_eq!(talk.carried_out(), [], "nothing of a message runs before all is decided");

    let approve = talk.about(&held[0], ChatDecision::Approve);
    let error = person(&talk.fleet, "ben")?.chat().decide(&approve).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    talk.ada.chat().decide(&approve).await?;
    talk.held(2).await?;
    let again = talk.ada.chat().decide(&talk.about(&held[0], ChatDecision::Reject)).await;
    assert_eq!(again.unwrap_err().reason(), Some("NOT_HELD"));
    assert_eq!(talk.carried_out(), [], "nothing of a message runs before all is decided");

    let args = Some(to_raw_value(&json!({"amount": 20}))?);
    let edit = ChatDecide { args, ..talk.about(&held[1], ChatDecision::Edit) };
    talk.ada.chat().decide(&edit).await?;
    let message = Some("That is too much.".to_owned());
    let reject = ChatDecide { message, ..talk.about(&held[2], ChatDecision::Reject) };
    talk.ada.chat().decide(&reject).await?;
    let texts = talk.until_said("Two offers are out, one is not.").await?;
    assert_eq!(texts.len(), 3);
    let expected = [
        ("look_up".to_owned(), json!({"what": "colour"})),
        ("offer".to_owned(), json!({"amount": 1})),
        ("offer".to_owned(), json!({"amount": 20})),
    ];
    assert_eq!(talk.carried_out(), expected);
    let late = talk.ada.chat().decide(&approve).await.unwrap_err();
    assert_eq!(late.reason(), Some("NOT_HELD"));
    talk.fleet.remove().await
}

/// NB-20
#[tokio::test]
async fn what_a_person_writes_instead_of_deciding_closes_the_calls_and_is_answered_next()
-> Result<()> {
    let talk = Talk::begin().await?;
    talk.ada.chat().reply(talk.id.as_str(), "send an offer").await?;
    talk.held(1).await?;
    let said = talk.ada.chat().reply(talk.id.as_str(), "never mind").await?;
    assert!(said.queued);
    let texts = talk.until_said("As you like.").await?;
    assert_eq!(texts[1..], ["send an offer", "never mind", "I leave it.", "As you like."]);
    assert_eq!(talk.carried_out(), []);
    assert!(talk.page().await?.held.is_empty());

    // Nobody has seen the call yet when the person writes on.
    talk.ada.chat().reply(talk.id.as_str(), "send an offer").await?;
    talk.ada.chat().reply(talk.id.as_str(), "never mind").await?;
    wait_until("both are answered", BOUND, || async {
        let page = talk.page().await?;
        Ok((page.conversation.active_run_id.is_none() && page.messages.len() == 9).then_some(()))
    })
    .await?;
    let texts = talk.until_said("As you like.").await?;
    assert_eq!(texts[5..], ["send an offer", "never mind", "I leave it.", "As you like."]);
    assert_eq!(talk.carried_out(), []);
    talk.fleet.remove().await
}

/// NB-23, NB-33
#[tokio::test]
async fn a_runner_that_is_killed_while_a_call_waits_carries_out_what_is_decided_then() -> Result<()>
{
    let mut talk = Talk::begin().await?;
    talk.fleet.kill("agent-runner")?;
    talk.fleet.spawn("agent-runner", Some("agent.held_shown@1"))?;
    talk.ada.chat().reply(talk.id.as_str(), "send an offer").await?;
    let held = talk.held(1).await?;
    talk.fleet.ended("agent-runner").await?;
    assert_eq!(talk.page().await?.held.len(), 1, "the person still sees it");
    talk.ada.chat().decide(&talk.about(&held[0], ChatDecision::Approve)).await?;
    talk.fleet.spawn("agent-runner", None)?;
    talk.fleet.ready("agent-runner").await?;
    let texts = talk.until_said("The offer is out.").await?;
    assert_eq!(texts.len(), 3);
    assert_eq!(talk.carried_out(), [("offer".to_owned(), json!({"amount": 7}))]);
    let page = talk.page().await?;
    assert!(page.messages.iter().all(|entry| entry.from != ChatAuthor::System));
    talk.fleet.remove().await
}

/// What a person hears of a turn until there is something in the conversation: the pieces of the answer, and who has said that.
async fn heard(facts: &mut Hearing, run: &str) -> Result<(Vec<(u32, u32, String)>, ChatFrom)> {
    let last = |told: &Told| matches!(told, Told::Message(message) if message.message_id == run);
    let (mut pieces, mut from) = (Vec::new(), ChatFrom::Person);
    for told in facts.until("the end of a turn", last).await? {
        match told {
            Told::Progress(progress) if progress.run_id.to_string() == run => {
                assert_eq!(progress.person, Some("ada".parse()?));
                if let Progress::Saying { attempt, seq, text } = progress.doing {
                    pieces.push((attempt, seq, text));
                }
            }
            Told::Message(message) => from = message.from,
            Told::Progress(_) => {}
        }
    }
    Ok((pieces, from))
}

#[tokio::test]
async fn an_answer_is_told_while_it_is_said_and_one_that_is_held_against_rules_is_not() -> Result<()>
{
    let talk = Talk::begin().await?;
    let keys = ["agent.progress.v1.demo.ada", "chat.message.v1.demo.ada"];
    let mut facts = Hearing::start(&talk.fleet, &keys).await?;
    let said = talk.ada.chat().reply(talk.id.as_str(), "say it slowly").await?;
    let (pieces, from) = heard(&mut facts, &said.run_id).await?;
    assert_eq!(from, ChatFrom::Agent);
    assert!(pieces.len() >= 3, "{pieces:?}");
    let numbers: Vec<_> = pieces.iter().map(|(attempt, seq, _)| (*attempt, *seq)).collect();
    assert_eq!(numbers, (1..).take(pieces.len()).map(|seq| (1, seq)).collect::<Vec<_>>());
    let text: String = pieces.into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(text, "One two three four five six seven eight nine ten.");

    // A turn that has failed leaves a message of the fleet.
    let said = talk.ada.chat().reply(talk.id.as_str(), "fail").await?;
    let (pieces, from) = heard(&mut facts, &said.run_id).await?;
    assert_eq!((pieces, from), (Vec::new(), ChatFrom::System));
    let last = talk.page().await?.messages.pop().context("a message")?;
    assert_eq!((last.from, last.text.as_str()), (ChatAuthor::System, "LLM_HTTP_ERROR"));

    let id = written(&talk.fleet, "careful").await?;
    let said = talk.ada.chat().reply(id, "say it slowly").await?;
    assert_eq!(heard(&mut facts, &said.run_id).await?, (Vec::new(), ChatFrom::Agent));
    talk.fleet.remove().await
}

/// NB-20, NB-22, NB-23, NB-24
#[tokio::test]
async fn calls_of_an_agent_that_was_asked_wait_in_the_conversation_and_its_run_goes_on_there()
-> Result<()> {
    let mut talk = Talk::begin().await?;
    let mut facts = Hearing::start(&talk.fleet, &["agent.progress.v1.demo.ada"]).await?;
    let said = talk.ada.chat().reply(talk.id.as_str(), "let the clerk do it").await?;
    let held = talk.held(1).await?;
    assert_eq!((held[0].agent_id.as_deref(), held[0].tool.as_str()), (Some("clerk"), "offer"));
    assert_ne!(held[0].run_id, said.run_id, "it is a call of the clerk");
    let is_held = |told: &Told| {
        matches!(told, Told::Progress(told) if told.run_id.to_string() == held[0].run_id
            && matches!(told.doing, Progress::Held { .. })
            && told.conversation_id.as_ref() == Some(&talk.id))
    };
    facts.until("that a call waits", is_held).await?;
    let approve = talk.about(&held[0], ChatDecision::Approve);
    let error = person(&talk.fleet, "ben")?.chat().decide(&approve).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));

    // It waits while nobody works on it.
    talk.fleet.kill("agent-runner")?;
    let args = Some(to_raw_value(&json!({"amount": 20}))?);
    let edit = ChatDecide { args, ..talk.about(&held[0], ChatDecision::Edit) };
    talk.ada.chat().decide(&edit).await?;
    talk.fleet.spawn("agent-runner", None)?;
    talk.fleet.ready("agent-runner").await?;
    talk.until_said("The clerk has sent it.").await?;
    assert_eq!(talk.carried_out(), [("offer".to_owned(), json!({"amount": 20}))]);
    let late = talk.ada.chat().decide(&approve).await.unwrap_err();
    assert_eq!(late.reason(), Some("NOT_HELD"));

    // What the person writes instead closes it.
    talk.ada.chat().reply(talk.id.as_str(), "let the clerk do it again").await?;
    talk.held(1).await?;
    assert!(talk.ada.chat().reply(talk.id.as_str(), "never mind").await?.queued);
    let texts = talk.until_said("As you like.").await?;
    assert_eq!(texts[texts.len() - 2..], ["The clerk has left it.", "As you like."]);
    assert_eq!(talk.carried_out().len(), 1);
    assert!(talk.page().await?.held.is_empty());
    talk.fleet.remove().await
}
