//! Messages to people whose delivery dies, stands still or meets sinks that fail: each comes at most once, and nothing is called sent
//! that a sink has not taken.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runfleet_domain::{RunId, RunState};
use runfleet_store::End;
use runfleet_testkit::wait_until;
use runfleet_tests::{
    BOUND, MailServer, Mood, Options, OwnServers, Post, Web, WebAnswer, WebRequest, sink_documents,
};
use serde_json::Value;

/// How long the run waits for the result of a message.
const LONG: Duration = Duration::from_mins(5);

fn good(_: &WebRequest, _: usize) -> WebAnswer {
    WebAnswer::new(204, Value::Null)
}

/// What may have become of a message whose delivery was cut off.
struct Fate {
    /// The word in the run.
    word: &'static str,
    /// Requests that the receiver may have got, all with one id.
    requests: std::ops::RangeInclusive<usize>,
}

const SENT_ONCE: Fate = Fate { word: "SENT", requests: 1..=1 };
const SENT: Fate = Fate { word: "SENT", requests: 1..=2 };
const IN_LEDGER: Fate = Fate { word: "SENT", requests: 0..=0 };
const UNKNOWN: Fate = Fate { word: "FAILED:DELIVERY_UNAVAILABLE", requests: 1..=1 };
const UNSENT: Fate = Fate { word: "FAILED:DELIVERY_UNAVAILABLE", requests: 0..=0 };

async fn dies(agent: &str, point: &str, fate: Fate) -> Result<()> {
    let web = Web::start(good).await?;
    let mail = MailServer::start(|_| Mood::Good).await?;
    let options = Options {
        fail_at: Some(("delivery", point.to_owned())),
        without: Post::others(),
        ..Options::default()
    };
    let mut post = Post::start(sink_documents(&web.url(""), mail.port()), options).await?;
    let run = post.run(agent, "ada").await?;
    post.send(run, "call_1_1", "Hello.", LONG).await?;
    let status = post.fleet.ended("delivery").await?;
    ensure!(status.signal() == Some(9), "delivery was to be killed at {point}: {status}");
    post.fleet.spawn("delivery", None)?;
    post.told(run, "call_1_1").await?;
    ensure!(post.word(run).await? == fate.word, "{}", post.word(run).await?);
    let requests = web.requests(&format!("/{agent}"));
    let count = requests.len() + mail.mails().len();
    ensure!(fate.requests.contains(&count), "{count} requests");
    ensure!(requests.iter().all(|request| request.key == requests[0].key));
    if fate.word == "SENT" {
        ensure!(post.texts(run).await? == ["Hello."], "{:?}", post.texts(run).await?);
    }
    wait_until("the queue is empty", BOUND, || async {
        Ok((post.fleet.depth("delivery.interactive").await? == 0).then_some(()))
    })
    .await?;
    post.fleet.remove().await
}

macro_rules! kills {
    ($($name:ident: $agent:literal, $point:literal, $fate:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            dies($agent, $point, $fate).await
        }
    )*};
}

kills! {
    delivery_killed_before_it_reserves_sends_once: "plain", "delivery.before_reserve@1", SENT_ONCE;
    delivery_killed_with_a_reservation_never_sends_to_a_sink_without_ids: "plain", "delivery.reserved@1", UNSENT;
    delivery_killed_with_a_reservation_sends_to_a_sink_with_ids: "hook", "delivery.reserved@1", SENT_ONCE;
    delivery_killed_with_a_reservation_still_writes_into_the_conversation: "own", "delivery.reserved@1", IN_LEDGER;
    delivery_killed_after_sending_never_sends_again_without_ids: "plain", "delivery.sent@1", UNKNOWN;
    delivery_killed_after_sending_sends_again_under_the_same_id: "hook", "delivery.sent@1", SENT;
    delivery_killed_after_a_mail_never_sends_it_again: "mail", "delivery.sent@1", UNKNOWN;
    delivery_killed_before_a_mail_never_sends_it: "mail", "delivery.mail_connected@1", UNSENT;
    delivery_killed_with_the_message_marked_tells_the_run: "plain", "delivery.marked@1", SENT_ONCE;
    delivery_killed_with_the_conversation_written_writes_once: "own", "delivery.marked@1", IN_LEDGER;
    delivery_killed_with_the_run_told_wakes_it: "plain", "delivery.told@1", SENT_ONCE;
    delivery_killed_between_wake_up_and_ack_sends_once: "hook", "delivery.woken@1", SENT_ONCE;
    delivery_killed_between_publish_and_confirm_sends_once: "plain", "publisher.sent@1", SENT_ONCE;
}

/// A message waits for the end of quiet hours and is sent after it, while delivery dies at `point` once.
async fn waits_and_dies(point: &str, requests: std::ops::RangeInclusive<usize>) -> Result<()> {
    let web = Web::start(good).await?;
    let options = Options {
        fail_at: Some(("delivery", point.to_owned())),
        without: Post::others(),
        ..Options::default()
    };
    let mut post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    post.quiet("ada", true).await?;
    let run = post.run("hook", "ada").await?;
    post.send(run, "call_1_1", "Hello.", LONG).await?;
    let early = point.starts_with("delivery.put_off") || point.starts_with("delivery.told");
    if early {
        post.fleet.ended("delivery").await?;
        post.fleet.spawn("delivery", None)?;
    }
    post.told(run, "call_1_1").await?;
    post.fleet.store.end_run(run, &End::plain(RunState::TimedOut)).await?;
    post.quiet("ada", false).await?;
    if !early {
        let status = post.fleet.ended("delivery").await?;
        ensure!(status.signal() == Some(9), "delivery was to be killed at {point}: {status}");
        post.fleet.spawn("delivery", None)?;
    }
    wait_until("the message is in its conversation", BOUND, || async {
        Ok((!post.said_to("ada").await?.is_empty()).then_some(()))
    })
    .await?;
    wait_until("nothing is left", BOUND, || async {
        Ok((post.fleet.depth("delivery.interactive").await? == 0).then_some(()))
    })
    .await?;
    ensure!(post.said_to("ada").await? == ["Hello."]);
    let came = web.requests("/hook");
    ensure!(requests.contains(&came.len()), "{} requests", came.len());
    ensure!(came.iter().all(|request| request.key == format!("{run}.call_1_1")));
    ensure!(post.word(run).await? == "NOT_SENT", "what an ended run tells stays");
    post.fleet.remove().await
}

macro_rules! kills_of_what_waits {
    ($($name:ident: $point:literal, $requests:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            waits_and_dies($point, $requests).await
        }
    )*};
}

kills_of_what_waits! {
    delivery_killed_with_a_message_put_off_sends_it_once_when_it_is_due: "delivery.put_off@1", 1..=1;
    delivery_killed_with_a_due_message_reserved_sends_it_under_its_id: "delivery.reserved@1", 1..=1;
    delivery_killed_with_a_due_message_sent_sends_it_again_under_its_id: "delivery.sent@1", 1..=2;
    delivery_killed_with_a_due_message_marked_sends_it_once: "delivery.marked@1", 1..=1;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_waits_outlives_restarts_of_both_servers() -> Result<()> {
    let servers = OwnServers::start()?;
    let web = Web::start(good).await?;
    let options = Options {
        servers: Some(servers.addresses()?),
        without: Post::others(),
        ..Options::default()
    };
    let mut post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    post.quiet("ada", true).await?;
    let run = post.run("hook", "ada").await?;
    ensure!(post.sent(run, "call_1_1", "Hello.").await? == "NOT_SENT");
    post.fleet.store.end_run(run, &End::plain(RunState::TimedOut)).await?;
    tokio::task::block_in_place(|| servers.restart_rabbitmq())?;
    tokio::task::block_in_place(|| servers.restart_redis())?;
    post.fleet.ready("delivery").await?;
    post.quiet("ada", false).await?;
    wait_until("the message is in its conversation", BOUND, || async {
        Ok((!post.said_to("ada").await?.is_empty()).then_some(()))
    })
    .await?;
    ensure!(web.requests("/hook").len() == 1);
    post.fleet.remove().await
}

/// The first worker stands still with the message in its hands; a second copy comes to another one.
async fn stands_still(agent: &str) -> Result<(Post, Web, RunId)> {
    let slow = |_: &WebRequest, nth| {
        let after = if nth == 1 { Duration::from_millis(700) } else { Duration::ZERO };
        WebAnswer { status: 204, after, ..WebAnswer::default() }
    };
    let web = Web::start(slow).await?;
    let options = Options { without: Post::others(), ..Options::default() };
    let mut post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    let run = post.run(agent, "ada").await?;
    post.send(run, "call_1_1", "Hello.", LONG).await?;
    let path = format!("/{agent}");
    wait_until("the sink is called", BOUND, || async {
        Ok((!web.requests(&path).is_empty()).then_some(()))
    })
    .await?;
    post.fleet.pause("delivery")?;
    post.fleet.spawn("delivery.2", None)?;
    post.fleet.ready("delivery.2").await?;
    // What a run does that hears nothing; the broker gives it to whoever takes more.
    for _ in 0..400 {
        post.send(run, "call_1_1", "Hello.", LONG).await?;
    }
    post.told(run, "call_1_1").await?;
    post.fleet.resume("delivery")?;
    // The one that stood still comes to its end and says what it knows.
    wait_until("nothing is left", BOUND, || async {
        Ok((post.fleet.depth("delivery.interactive").await? == 0).then_some(()))
    })
    .await?;
    Ok((post, web, run))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stands_still_past_its_lease_sends_nothing_twice() -> Result<()> {
    let (post, web, run) = stands_still("plain").await?;
    ensure!(web.requests("/plain").len() == 1, "{}", web.requests("/plain").len());
    ensure!(post.word(run).await? == "FAILED:DELIVERY_UNAVAILABLE", "{}", post.word(run).await?);
    post.fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_worker_that_stands_still_comes_again_under_the_same_id() -> Result<()> {
    let (post, web, run) = stands_still("hook").await?;
    let requests = web.requests("/hook");
    ensure!(requests.len() == 2, "{}", requests.len());
    ensure!(requests.iter().all(|request| request.key == format!("{run}.call_1_1")));
    ensure!(post.word(run).await? == "SENT");
    ensure!(post.texts(run).await? == ["Hello."]);
    post.fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_takes_a_message_and_never_says_so_gets_it_again_only_if_it_knows_ids()
-> Result<()> {
    let web = Web::start(|_: &WebRequest, nth| {
        let after = if nth == 1 { Duration::from_secs(3) } else { Duration::ZERO };
        WebAnswer { status: 204, after, ..WebAnswer::default() }
    })
    .await?;
    let mail = MailServer::start(|_| Mood::Silent).await?;
    let options = Options { without: Post::others(), ..Options::default() };
    let post = Post::start(sink_documents(&web.url(""), mail.port()), options).await?;
    for (agent, word, requests) in [
        ("plain", "FAILED:DELIVERY_UNAVAILABLE", 1),
        ("hook", "SENT", 2),
        ("slack", "FAILED:DELIVERY_UNAVAILABLE", 1),
        ("mail", "FAILED:DELIVERY_UNAVAILABLE", 1),
    ] {
        let run = post.run(agent, "ada").await?;
        let told = post.sent(run, "call_1_1", "Hello.").await?;
        ensure!(told == word, "{agent}: {told}");
        let came = web.requests(&format!("/{agent}"));
        let count = if agent == "mail" { mail.mails().len() } else { came.len() };
        ensure!(count == requests, "{agent}: {count}");
        ensure!(came.iter().all(|request| request.key == came[0].key), "{agent}");
    }
    post.fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_is_down_is_tried_until_nobody_waits_and_works_when_it_is_back() -> Result<()> {
    let down = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&down);
    let web = Web::start(move |_: &WebRequest, _| {
        let status = if state.load(Ordering::Relaxed) { 429 } else { 204 };
        WebAnswer { status, ..WebAnswer::default() }
    })
    .await?;
    let mail = MailServer::start(|_| Mood::Busy).await?;
    let options = Options {
        without: Post::others(),
        settings: vec![("RUNFLEET_CHAT_PER_DAY".to_owned(), "1".to_owned())],
        ..Options::default()
    };
    let post = Post::start(sink_documents(&web.url(""), mail.port()), options).await?;
    let (hook, letter) = (post.run("hook", "ada").await?, post.run("mail", "ada").await?);
    for run in [hook, letter] {
        post.send(run, "call_1_1", "Hello.", Duration::from_secs(12)).await?;
    }
    for run in [hook, letter] {
        post.told(run, "call_1_1").await?;
        ensure!(post.word(run).await? == "FAILED:DELIVERY_UNAVAILABLE");
    }
    let tries = web.requests("/hook").len();
    ensure!((1..=3).contains(&tries) && mail.connections() >= 1, "{tries}");
    // What was surely not sent uses up no cap: the next one may go.
    down.store(false, Ordering::Relaxed);
    let next = post.run("hook", "ada").await?;
    ensure!(post.sent(next, "call_1_1", "Hello.").await? == "SENT");
    let last = post.run("hook", "ada").await?;
    ensure!(post.sent(last, "call_1_1", "Hello.").await? == "BLOCKED:RECIPIENT_RATE_LIMITED");
    post.fleet.remove().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_knows_nobody_is_believed() -> Result<()> {
    let web = Web::start(good).await?;
    let mail = MailServer::start(|_| Mood::Refuses).await?;
    let options = Options { without: Post::others(), ..Options::default() };
    let post = Post::start(sink_documents(&web.url(""), mail.port()), options).await?;
    let run = post.run("mail", "ada").await?;
    ensure!(post.sent(run, "call_1_1", "Hello.").await? == "FAILED:DELIVERY_FAILED");
    ensure!(mail.mails().is_empty());
    post.fleet.remove().await
}

/// CG-078
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_to_many_people_come_once_each_and_never_beyond_the_caps() -> Result<()> {
    const PEOPLE: usize = 100;
    const EACH: usize = 10;
    const PER_DAY: usize = 8;
    let web = Web::start(good).await?;
    let per_day = PER_DAY.to_string();
    let settings = [
        ("RUNFLEET_CHAT_PER_RUN", "100"),
        ("RUNFLEET_CHAT_PER_DAY", per_day.as_str()),
        ("RUNFLEET_CHAT_BURST", "1000"),
        ("RUNFLEET_CHAT_LEASE_MS", "30000"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = Options { without: Post::others(), settings, ..Options::default() };
    let mut post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    let people: Vec<String> = (0..PEOPLE).map(|person| format!("{{id: p{person}}}")).collect();
    post.people(&people.join(", ")).await?;
    post.fleet.spawn("delivery.2", None)?;
    post.fleet.ready("delivery.2").await?;
    let post = post;
    let one = async |person: usize| {
        let run = post.run("hook", &format!("p{person}")).await?;
        for call in 0..EACH {
            // Every third message comes twice.
            for _ in 0..=usize::from(call % 3 == 0) {
                post.send(run, &format!("call_1_{call}"), &format!("{person} {call}"), LONG)
                    .await?;
            }
        }
        anyhow::Ok(run)
    };
    let runs = stream::iter((0..PEOPLE).map(one)).buffer_unordered(16);
    let runs: Vec<RunId> = runs.try_collect().await?;
    for run in &runs {
        for call in 0..EACH {
            post.told(*run, &format!("call_1_{call}")).await?;
        }
    }
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    let mut of_person: BTreeMap<String, usize> = BTreeMap::new();
    for request in web.requests("/hook") {
        let person = request.body["person"]["id"].as_str().context("nobody")?.to_owned();
        *ids.entry(request.key).or_default() += 1;
        *of_person.entry(person).or_default() += 1;
    }
    ensure!(ids.len() == PEOPLE * PER_DAY, "{} messages", ids.len());
    ensure!(ids.values().all(|count| *count == 1), "a message came twice");
    ensure!(of_person.values().all(|count| *count == PER_DAY), "{of_person:?}");
    for run in runs {
        ensure!(post.conversation(run).await?.messages.len() == PER_DAY);
    }
    post.fleet.remove().await
}
