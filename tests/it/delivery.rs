//! Messages of agents to people: through every sink, within the caps, to whom the start says, and what is told of them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hmac::{Hmac, Mac as _};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::agents::{AgentRunState, Conversation, DeliverTo};
use runfleet_domain::RunId;
use runfleet_store::{ChangeQuietHours, QuietHours};
use runfleet_testkit::wait_until;
use runfleet_tests::{
    BOUND, Jobs, MailServer, Mood, Options, Post, Web, WebAnswer, WebRequest, project,
    sink_documents,
};
use serde_json::{Value, json};
use sha2::Sha256;

/// What the scripted agent writes.
const TEXT: &str = "Grüße, Ada 👩‍👩‍👧 \u{202b}שלום\u{202c} e\u{301} <b> & co";

fn good(_: &WebRequest, _: usize) -> WebAnswer {
    WebAnswer::new(200, json!("ok"))
}

/// A fleet of delivery alone, with its receivers.
async fn post(settings: &[(&str, &str)]) -> Result<(Post, Web, MailServer)> {
    post_with(settings, good).await
}

async fn post_with(
    settings: &[(&str, &str)],
    answers: impl Fn(&WebRequest, usize) -> WebAnswer + Send + Sync + 'static,
) -> Result<(Post, Web, MailServer)> {
    let web = Web::start(answers).await?;
    let mail = MailServer::start(|_| Mood::Good).await?;
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let options =
        Options { without: Post::others(), settings: settings.collect(), ..Options::default() };
    let post = Post::start(sink_documents(&web.url(""), mail.port()), options).await?;
    Ok((post, web, mail))
}

/// The text of a mail in quoted-printable or base64 is not worth a parser: what counts is decoded here by a library.
fn decoded(mail: &str) -> String {
    let (head, body) = mail.split_once("\n\n").unwrap_or((mail, ""));
    if head.contains("base64") {
        let text: String = body.split_whitespace().collect();
        return base64(&text);
    }
    quoted(body)
}

fn quoted(body: &str) -> String {
    let mut bytes = Vec::new();
    let body = body.replace("=\n", "");
    let mut rest = body.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if let (b'=', [high, low, after @ ..]) = (first, after) {
            let digits = [*high, *low];
            let text = std::str::from_utf8(&digits).unwrap_or_default();
            bytes.push(u8::from_str_radix(text, 16).unwrap_or_default());
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter).unwrap_or_default();
        bits = (bits << 6) | u32::try_from(value).unwrap_or_default();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

async fn ended(client: &Client, run: &str) -> Result<AgentRunState> {
    wait_until("an agent run has ended", BOUND, || async {
        let state = client.agents().get(run).await?;
        Ok(!matches!(state.status.as_str(), "QUEUED" | "RUNNING")).map(|over| over.then_some(state))
    })
    .await
}

fn to_ada() -> DeliverTo {
    DeliverTo { personnel_id: "ada".into(), conversation: None, title: Some("Your deal".into()) }
}

/// CG-070, CG-071, CG-072, CG-073, CG-076, CG-096, CG-097, CG-098, CG-105
#[tokio::test]
async fn an_agent_writes_to_a_person_through_every_sink_and_run_and_job_say_so() -> Result<()> {
    let web = Web::start(good).await?;
    let mail = MailServer::start(|_| Mood::Good).await?;
    let scripts = format!("{}/scripts", env!("CARGO_MANIFEST_DIR"));
    let documents = sink_documents(&web.url(""), mail.port())
        + "---\napiVersion: runfleet/v1\nkind: ModelProvider\nmetadata: {name: played}\n\
           spec: {kind: scripted, script: agents.yaml, models: [played/one]}\n";
    let options = Options {
        settings: vec![("RUNFLEET_MODEL_SCRIPTS_DIR".to_owned(), scripts)],
        without: vec!["process-runner"],
        ..Options::default()
    };
    let post = Post::start(documents, options).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&post.fleet.broker, workspace, name, true);
    let client = post.fleet.client()?;
    for agent in ["own", "hook", "plain", "slack", "most", "mail"] {
        let options = AgentStartOptions::new("tell ada")
            .deliver_to(to_ada())
            .on_result("deal_coached", &json!(7))?;
        let started = client.agents().start(agent, options).await?;
        let state = ended(&client, &started.run_id).await?;
        assert_eq!((state.status.as_str(), state.text.as_deref()), ("COMPLETED", Some("Told.")));
        let delivery = state.delivery.context("nothing is said of the message")?;
        assert_eq!((delivery.status.as_str(), delivery.error_code), ("SENT", None), "{agent}");
        assert!(delivery.new_conversation && delivery.chat_session_id.is_some());
        let run: RunId = started.run_id.parse()?;
        let job = jobs.wait(run.outcome_job(), BOUND).await?;
        let payload: Value = serde_json::from_str(job.payload.get())?;
        let told = &payload["agentRun"]["delivery"];
        assert_eq!(told["status"], "SENT");
        assert_eq!(told["conversationId"], json!(delivery.conversation_id));
        let page = post.conversation(run).await?;
        assert_eq!(page.conversation.title.as_deref(), Some("Your deal"));
        assert_eq!(page.conversation.unread, 1);
        assert_eq!(page.messages.len(), 1, "the last answer is not for the person");
        assert_eq!(page.messages[0].text, TEXT);
        assert_eq!(page.messages[0].note.as_deref(), Some("Ada asked to be told."));
    }
    for path in ["/hook", "/plain", "/slack", "/most"] {
        let requests = web.requests(path);
        assert_eq!(requests.len(), 1, "{path}");
        let text = requests[0].body["text"].as_str().unwrap_or_default();
        let text = if path == "/slack" {
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        } else {
            text.to_owned()
        };
        assert_eq!(text, TEXT, "{path}");
        assert!(!String::from_utf8_lossy(&requests[0].raw).contains("asked to be told"), "{path}");
    }
    assert_eq!(web.requests("/most")[0].body["channel"], "@ada");
    let mails = mail.mails();
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "ada@demo.example"));
    assert_eq!(decoded(&mails[0].text), TEXT);
    assert!(mails[0].text.contains("Subject: Your deal"));

    let options = AgentStartOptions::new("keep quiet").deliver_to(to_ada());
    let started = client.agents().start("own", options).await?;
    let delivery = ended(&client, &started.run_id).await?.delivery.context("nothing is said")?;
    assert_eq!((delivery.status.as_str(), delivery.error_code), ("NOT_SENT", None));
    assert_eq!((delivery.chat_session_id, delivery.conversation_id), (None, None));
    let started = client.agents().start("own", AgentStartOptions::new("keep quiet")).await?;
    assert!(ended(&client, &started.run_id).await?.delivery.is_none());
    post.fleet.remove().await
}

#[tokio::test]
async fn a_webhook_gets_what_it_can_check_and_one_id_for_one_message() -> Result<()> {
    let (post, web, _mail) = post(&[]).await?;
    let run = post.run_with("hook", "ada", Conversation::New, Some("Deal 7")).await?;
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, "SENT");
    let request = &web.requests("/hook")[0];
    assert_eq!(request.key, format!("{run}.call_1_1"));
    let stamp = &request.headers["x-runfleet-timestamp"];
    let mut mac = Hmac::<Sha256>::new_from_slice(post.key().as_bytes())?;
    mac.update(format!("{stamp}.").as_bytes());
    mac.update(&request.raw);
    let mut hex = String::new();
    for byte in mac.finalize().into_bytes() {
        write!(hex, "{byte:02x}")?;
    }
    assert_eq!(request.headers["x-runfleet-signature"], format!("v1={hex}"));
    let body = &request.body;
    assert_eq!((&body["type"], &body["id"]), (&json!("chat.message"), &json!(request.key)));
    assert_eq!((&body["person"]["id"], &body["agent"]["name"]), (&json!("ada"), &json!("Coach")));
    assert_eq!(body["conversation"]["title"], "Deal 7");
    assert_eq!(body["conversation"]["new"], true);
    let logs = post.fleet.logs();
    for secret in [post.key(), "Hello.", &web.url("/hook")] {
        assert!(!logs.contains(secret), "{secret}");
    }
    post.fleet.remove().await
}

/// CG-078
#[tokio::test]
async fn messages_over_a_cap_are_blocked_and_nothing_is_sent() -> Result<()> {
    let (post, web, _mail) = post(&[("RUNFLEET_CHAT_PER_DAY", "5")]).await?;
    let first = post.run("hook", "ada").await?;
    for call in ["call_1_1", "call_1_2", "call_1_3"] {
        assert_eq!(post.sent(first, call, "Hello.").await?, "SENT");
    }
    // The fourth of a run; what was sent counts more in what the run says.
    assert_eq!(post.sent(first, "call_1_4", "Hello.").await?, "SENT");
    assert_eq!(web.requests("/hook").len(), 3);
    let second = post.run("hook", "ada").await?;
    for call in ["call_1_1", "call_1_2"] {
        assert_eq!(post.sent(second, call, "Hello.").await?, "SENT");
    }
    let third = post.run("hook", "ada").await?;
    let blocked = "BLOCKED:RECIPIENT_RATE_LIMITED";
    assert_eq!(post.sent(third, "call_1_1", "Hello.").await?, blocked);
    assert_eq!(web.requests("/hook").len(), 5);
    // Another agent has a day of its own.
    let other = post.run("own", "ada").await?;
    assert_eq!(post.sent(other, "call_1_1", "Hello.").await?, "SENT");
    let blocked =
        "runfleet_delivery_messages_total{result=\"recipient_rate_limited\",sink=\"webhook\"}";
    assert!((post.fleet.metric("delivery", blocked).await? - 2.0).abs() < 0.1);
    post.fleet.remove().await
}

/// CG-165
#[tokio::test]
async fn what_changes_between_start_and_sending_blocks_with_its_code() -> Result<()> {
    let (post, web, _mail) = post(&[]).await?;
    let people = [
        ("{id: ben}", "BLOCKED:RECIPIENT_NOT_FOUND"),
        ("{id: ada, active: false}", "BLOCKED:RECIPIENT_NOT_FOUND"),
        ("{id: ada, mayStart: {agents: [own]}}", "BLOCKED:RECIPIENT_ACCESS_DENIED"),
        ("{id: ada, aiSeat: false}", "BLOCKED:RECIPIENT_AI_SEAT_REQUIRED"),
        ("{id: ada}", "SENT"),
    ];
    for (person, expected) in people {
        let run = post.run("hook", "ada").await?;
        post.people(person).await?;
        assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, expected, "{person}");
    }
    assert_eq!(web.requests("/hook").len(), 1);
    // Without an address there is no mail.
    let run = post.run("mail", "ada").await?;
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, "FAILED:DELIVERY_FAILED");
    post.fleet.remove().await
}

#[tokio::test]
async fn a_person_who_has_opted_out_or_is_not_to_be_disturbed_gets_nothing() -> Result<()> {
    let (post, web, _mail) = post(&[]).await?;
    let (workspace, ada) = (project().0, "ada".parse()?);
    let store = &post.fleet.store;
    let set = async |opt_out, hours| {
        store.change_chat_settings(&workspace, &ada, Some(opt_out), hours).await
    };
    set(true, ChangeQuietHours::Keep).await?;
    let run = post.run("hook", "ada").await?;
    let denied = "BLOCKED:RECIPIENT_ACCESS_DENIED";
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, denied);
    let quiet = QuietHours { from: "00:00".into(), to: "23:59".into(), time_zone: "UTC".into() };
    set(false, ChangeQuietHours::Set(&quiet)).await?;
    let run = post.run("strict", "ada").await?;
    let limited = "BLOCKED:RECIPIENT_RATE_LIMITED";
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, limited);
    assert_eq!(web.requests("/hook").len(), 0);
    set(false, ChangeQuietHours::Clear).await?;
    let run = post.run("hook", "ada").await?;
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, "SENT");
    post.fleet.remove().await
}

/// CG-079, NB-34
#[tokio::test]
async fn a_conversation_goes_on_or_is_opened_as_the_start_says() -> Result<()> {
    let (post, _web, _mail) = post(&[]).await?;
    let first = post.run_with("own", "ada", Conversation::Latest, Some("One")).await?;
    post.sent(first, "call_1_1", "1").await?;
    post.sent(first, "call_1_2", "2").await?;
    let next = post.run_with("own", "ada", Conversation::Latest, Some("Two")).await?;
    post.sent(next, "call_1_1", "3").await?;
    let new = post.run_with("own", "ada", Conversation::New, Some("Three")).await?;
    post.sent(new, "call_1_1", "4").await?;
    assert_eq!(post.texts(first).await?, ["1", "2", "3"]);
    assert_eq!(post.texts(new).await?, ["4"]);
    let title = async |run| anyhow::Ok(post.conversation(run).await?.conversation.title);
    assert_eq!(title(next).await?.as_deref(), Some("One"));
    assert_eq!(title(new).await?.as_deref(), Some("Three"));
    let opened =
        async |run| anyhow::Ok(post.delivery(run).await?.is_some_and(|it| it.new_conversation));
    assert!(opened(first).await? && !opened(next).await? && opened(new).await?);
    post.fleet.remove().await
}

#[tokio::test]
async fn a_sink_that_asks_for_a_pause_gets_it_and_then_the_message_once() -> Result<()> {
    let (post, web, _mail) = post_with(&[], |_, nth| match nth {
        1 => WebAnswer { status: 429, retry_after: Some(4), ..WebAnswer::default() },
        _ => WebAnswer::new(204, Value::Null),
    })
    .await?;
    let began = Instant::now();
    let run = post.run("slack", "ada").await?;
    assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, "SENT");
    let requests = web.requests("/slack");
    assert_eq!(requests.len(), 2);
    assert!(requests[1].at.duration_since(requests[0].at) >= Duration::from_secs(4));
    assert!(began.elapsed() < BOUND);
    post.fleet.remove().await
}

#[tokio::test]
async fn what_a_sink_says_decides_what_the_run_is_told() -> Result<()> {
    let (post, web, _mail) = post_with(&[], |request, _| {
        let status = request.body["text"].as_str().and_then(|text| text.parse().ok());
        WebAnswer {
            status: status.unwrap_or(500),
            retry_after: Some(3_600),
            ..WebAnswer::default()
        }
    })
    .await?;
    let failed = "FAILED:DELIVERY_FAILED";
    let unavailable = "FAILED:DELIVERY_UNAVAILABLE";
    for (agent, status, expected, requests) in [
        ("slack", "404", failed, 1),
        ("plain", "401", failed, 1),
        // It wants an hour, for which nobody waits.
        ("slack", "429", unavailable, 1),
        // It may have done it: not again.
        ("plain", "500", unavailable, 1),
        ("hook", "503", unavailable, 1),
        ("most", "302", failed, 1),
    ] {
        let before = web.requests(&format!("/{agent}")).len();
        let run = post.run(agent, "ada").await?;
        assert_eq!(post.sent(run, "call_1_1", status).await?, expected, "{agent} {status}");
        let after = web.requests(&format!("/{agent}")).len();
        assert_eq!(after - before, requests, "{agent} {status}");
    }
    post.fleet.remove().await
}
