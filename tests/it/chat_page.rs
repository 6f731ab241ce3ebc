//! The chat page over HTTP: it serves the browser that was given a code, and shows what one person may see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use runfleet_cli::dev::chat::{ChatPage, Whose};
use runfleet_client::AgentStartOptions;
use runfleet_contracts::agents::DeliverTo;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Options, project};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

const TEXT: &str = "The offer to Nordwind has been out for a week. Shall I ask for a discount?";
const ANSWER: &str = "Call the customer this week and ask what is missing for a decision.";

/// The page of somebody, and a browser.
struct Browser {
    page: ChatPage,
    codes: Arc<Mutex<Vec<String>>>,
    http: Client,
    cookie: String,
}

impl Browser {
    async fn open(fleet: &Fleet, person: &str) -> Result<Self> {
        let (workspace, project) = project();
        let whose = Whose { workspace, project, person: person.parse()? };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let codes = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&codes);
        let page = ChatPage::start(listener, &fleet.broker, whose, fleet.signer()?, move |code| {
            told.lock().unwrap().push(code.to_owned());
        })?;
        Ok(Self { page, codes, http: Client::new(), cookie: String::new() })
    }

    fn code(&self) -> String {
        self.codes.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn origin(&self) -> String {
        self.page.url().trim_end_matches('/').to_owned()
    }

    fn get(&self, path: &str) -> RequestBuilder {
        let request = self.http.get(format!("{}{path}", self.origin()));
        request.header("cookie", &self.cookie).timeout(BOUND)
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        let request = self.http.post(format!("{}{path}", self.origin()));
        let request = request.header("cookie", &self.cookie).header("origin", self.origin());
        let request = request.header("content-type", "application/json");
        request.body(body.to_string()).timeout(BOUND)
    }

    /// Gives the code that was told last, and keeps the cookie.
    async fn log_in(&mut self) -> Result<()> {
        let answer = self.post("/login", &json!({"code": self.code()})).send().await?;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        let cookie = answer.headers().get("set-cookie").context("a cookie")?.to_str()?;
        cookie.split(';').next().context("a cookie")?.clone_into(&mut self.cookie);
        Ok(())
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.post(path, body).send().await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        Ok(serde_json::from_str(&answer.text().await?)?)
    }
}

/// Waits until a stream has said something.
async fn hears(stream: &mut Response, wanted: &str) -> Result<()> {
    let mut said = String::new();
    let hearing = async {
        while !said.contains(wanted) {
            let piece = stream.chunk().await?.context("the stream has ended")?;
            said.push_str(std::str::from_utf8(&piece)?);
        }
        Ok(())
    };
    timeout(BOUND, hearing).await.with_context(|| format!("{wanted} was not said"))?
}

async fn write_to_ada(fleet: &Fleet) -> Result<()> {
    let to = DeliverTo { personnel_id: "ada".into(), conversation: None, title: None };
    let options = AgentStartOptions::new("Tell Ada about the deal").deliver_to(to);
    fleet.client()?.agents().start("deal-coach", options).await?;
    Ok(())
}

#[tokio::test]
async fn the_chat_page_serves_nobody_but_the_browser_with_the_code() -> Result<()> {
    let without = vec!["agent-runner", "process-runner", "delivery", "completion-dispatcher"];
    let fleet = Fleet::start(Options { without, ..Options::default() }).await?;
    let mut browser = Browser::open(&fleet, "ada").await?;
    for path in ["/", "/chat.js", "/chat.css"] {
        let answer = browser.get(path).send().await?;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = answer.headers()["content-security-policy"].to_str()?;
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let text = answer.text().await?;
        assert!(!text.contains("innerHTML") && !text.contains("://"), "{path}");
    }
    let list = json!({});
    let refused = browser.post("/api/list", &list).send().await?;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(browser.get("/api/events").send().await?.status(), StatusCode::UNAUTHORIZED);
    let wrong = browser.post("/login", &json!({"code": "wrong"})).send().await?;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);

    let used = browser.code();
    browser.log_in().await?;
    assert_eq!(browser.ask("/api/list", &list).await?["conversations"], json!([]));
    assert_ne!(browser.code(), used, "there is a code for the next browser");
    let again = browser.post("/login", &json!({"code": used})).send().await?;
    assert_eq!(again.status(), StatusCode::UNAUTHORIZED, "a code opens once");

    // With the cookie, but not from the page: a browser that was led here by somebody else.
    let foreign = browser.get("/api/events").header("origin", "http://evil.example");
    assert_eq!(foreign.send().await?.status(), StatusCode::FORBIDDEN);
    let renamed = browser.get("/api/events").header("host", "evil.example");
    assert_eq!(renamed.send().await?.status(), StatusCode::MISDIRECTED_REQUEST);
    let url = format!("{}/api/list", browser.origin());
    let blind = browser.http.post(url).header("cookie", &browser.cookie).body("{}");
    assert_eq!(blind.send().await?.status(), StatusCode::FORBIDDEN);
    let large = json!({"conversationId": "x", "text": "x".repeat(200_000)});
    let large = browser.post("/api/reply", &large).send().await?;
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(browser.get("/api/list").send().await?.status(), StatusCode::NOT_FOUND);
    fleet.remove().await
}

/// CG-077, CG-096, NB-22
#[tokio::test]
async fn the_chat_page_shows_its_person_what_comes_and_says_what_they_write() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let mut ada = Browser::open(&fleet, "ada").await?;
    ada.log_in().await?;
    let mut stream = ada.get("/api/events").send().await?;
    hears(&mut stream, "event: hello").await?;
    // Facts are heard from some moment on; the agent writes until then.
    let mut heard = false;
    for _ in 0..6 {
        write_to_ada(&fleet).await?;
        let message = timeout(Duration::from_secs(10), hears(&mut stream, "event: message"));
        heard = message.await.is_ok_and(|heard| heard.is_ok());
        if heard {
            break;
        }
    }
    assert!(heard, "no event has come");
    let listed = ada.ask("/api/list", &json!({})).await?;
    let first = &listed["conversations"][0];
    assert_eq!(first["last"]["text"], TEXT);
    let id = first["conversationId"].as_str().context("an id")?;

    let said = ada.ask("/api/reply", &json!({"conversationId": id, "text": "Not now."})).await?;
    let run = said["runId"].as_str().context("a run")?;
    hears(&mut stream, run).await?;
    let options = json!({"conversationId": id, "markRead": true});
    let page = wait_until("the agent has answered", BOUND, || async {
        let page = ada.ask("/api/read", &options).await?;
        let last = page["messages"].as_array().and_then(|messages| messages.last());
        Ok(last.is_some_and(|last| last["text"] == ANSWER).then_some(page))
    })
    .await?;
    assert!(!page.to_string().contains("Nobody has called"), "the note is shown");
    let listed = ada.ask("/api/list", &json!({})).await?;
    assert_eq!(listed["conversations"][0]["unread"], 0);

    let mut ben = Browser::open(&fleet, "ben").await?;
    ben.log_in().await?;
    let missing = ben.post("/api/read", &options).send().await?;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let body: Value = serde_json::from_str(&missing.text().await?)?;
    assert_eq!(body["code"], "NOT_FOUND");
    fleet.remove().await
}
