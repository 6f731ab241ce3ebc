//! Messages in quiet hours: kept in the ledger beyond the end of their runs, and sent when they are over, if that is still right.

use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_domain::RunState;
use runfleet_store::{ChangeQuietHours, Claim, Claimed, End};
use runfleet_testkit::wait_until;
use runfleet_tests::{
    BOUND, Options, Platform, Post, Web, WebAnswer, WebRequest, project, sink_documents,
};
use serde_json::Value;

const DENIED: &str =
    "runfleet_delivery_messages_total{result=\"recipient_access_denied\",sink=\"webhook\"}";

fn good(_: &WebRequest, _: usize) -> WebAnswer {
    WebAnswer::new(204, Value::Null)
}

/// CG-073, CG-096, CG-165
#[tokio::test]
async fn a_message_in_quiet_hours_waits_beyond_its_run_and_is_sent_once_if_it_still_may()
-> Result<()> {
    let web = Web::start(good).await?;
    let options = Options { without: Post::others(), ..Options::default() };
    let mut post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    post.people("{id: ada}, {id: ben}").await?;
    post.quiet("ada", true).await?;
    post.quiet("ben", true).await?;
    let [ended, live] = [post.run("hook", "ada").await?, post.run("hook", "ada").await?];
    let opted_out = post.run("hook", "ben").await?;
    for (run, text) in [(ended, "1"), (live, "2"), (opted_out, "3")] {
        // Its run is told at once, and tells that nothing was sent.
        assert_eq!(post.sent(run, "call_1_1", text).await?, "NOT_SENT");
    }
    let store = &post.fleet.store;
    let Claimed::Claimed { inbox, .. } = store.claim_run(ended, Claim::default()).await? else {
        panic!("not claimed");
    };
    assert!(inbox[0].body.contains("SCHEDULED"), "{}", inbox[0].body);
    store.end_run(ended, &End::plain(RunState::TimedOut)).await?;
    store.end_run(opted_out, &End::plain(RunState::TimedOut)).await?;
    post.fleet.kill("delivery")?;
    post.fleet.spawn("delivery", None)?;
    post.fleet.ready("delivery").await?;
    assert_eq!((web.requests("/hook").len(), post.said_to("ada").await?.len()), (0, 0));

    post.quiet("ada", false).await?;
    let (workspace, ben) = (project().0, "ben".parse()?);
    let store = &post.fleet.store;
    let clear = ChangeQuietHours::Clear;
    store.change_chat_settings(&workspace, &ben, Some(true), clear).await?;
    wait_until("what may be sent is in its conversation", BOUND, || async {
        Ok((post.said_to("ada").await?.len() == 2).then_some(()))
    })
    .await?;
    wait_until("every message is decided about", BOUND, || async {
        let denied = post.fleet.metric("delivery", DENIED).await.unwrap_or_default();
        let empty = post.fleet.depth("delivery.interactive").await? == 0;
        Ok((denied > 0.5 && empty).then_some(()))
    })
    .await?;
    let mut said = post.said_to("ada").await?;
    said.sort();
    assert_eq!(said, ["1", "2"]);
    assert_eq!(post.said_to("ben").await?.len(), 0);
    let requests = web.requests("/hook");
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().any(|request| request.key == format!("{ended}.call_1_1")));
    // What ended has told stays; what goes on tells what became of its message.
    assert_eq!(
        (post.word(ended).await?, post.word(live).await?),
        ("NOT_SENT".into(), "SENT".into())
    );
    assert_eq!(post.word(opted_out).await?, "NOT_SENT");
    post.fleet.remove().await
}

/// CG-165
#[tokio::test]
async fn the_service_that_knows_recipients_is_asked_again_when_a_message_is_sent() -> Result<()> {
    let web = Web::start(good).await?;
    let platform = Platform::start().await?;
    let settings = platform.settings(5_000);
    let options = Options { without: Post::others(), settings, ..Options::default() };
    let post = Post::start(sink_documents(&web.url(""), 1), options).await?;
    // Nothing of what the catalog says about people counts.
    post.people("{id: ben}").await?;
    for (fact, expected) in [
        ("recipients.exists", "BLOCKED:RECIPIENT_NOT_FOUND"),
        ("recipients.mayUse", "BLOCKED:RECIPIENT_ACCESS_DENIED"),
        ("recipients.aiSeat", "BLOCKED:RECIPIENT_AI_SEAT_REQUIRED"),
        ("recipients.delivery", "FAILED:DELIVERY_UNAVAILABLE"),
    ] {
        platform.bad(&[]);
        let run = post.run("hook", "ada").await?;
        platform.bad(&[fact]);
        assert_eq!(post.sent(run, "call_1_1", "Hello.").await?, expected, "{fact}");
    }
    assert_eq!(web.requests("/hook").len(), 0);
    let (_, question) = platform.take_asked().pop().context("nobody was asked")?;
    assert_eq!((&question["personnelId"], &question["agentId"]), (&"ada".into(), &"hook".into()));
    // A service that fails decides nothing: it is asked again.
    platform.bad(&[]);
    platform.broken(true);
    let run = post.run("hook", "ada").await?;
    post.send(run, "call_1_1", "Hello.", Duration::from_mins(5)).await?;
    wait_until("the service was asked", BOUND, || async {
        Ok((!platform.take_asked().is_empty()).then_some(()))
    })
    .await?;
    platform.broken(false);
    post.told(run, "call_1_1").await?;
    assert_eq!((post.word(run).await?.as_str(), web.requests("/hook").len()), ("SENT", 1));
    assert!(!post.fleet.logs().contains("platform-s3cret"));
    post.fleet.remove().await
}
