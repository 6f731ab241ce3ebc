//! Calls to a server on this machine, with their answers in a real ledger.

use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus::Registry;
use runfleet_broker::Verdict;
use runfleet_contracts::ProcessCall;
use runfleet_http::{Client, Config};
use runfleet_store::End;
use runfleet_worker::inbox::Only;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::testing::{World, asked, message};

/// Answers every request with the same bytes after a while.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(answer: &'static str, after: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut part = vec![0; 8_192];
                let size = stream.read(&mut part).await.unwrap_or_default();
                seen.lock().unwrap().push(String::from_utf8_lossy(&part[..size]).into_owned());
                tokio::time::sleep(after).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { url, requests, task }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the run asks for, as a test wants it; counts how often it was looked for.
struct Given {
    asked: Option<Asked>,
    looked: AtomicUsize,
}

impl Asks for Given {
    async fn asked(&self, _record: &RunRecord, task: u64) -> Result<Option<Asked>, Failure> {
        self.looked.fetch_add(1, Ordering::Relaxed);
        Ok(self.asked.clone().filter(|asked| asked.task == task))
    }
}

fn caller(
    world: &World,
    allow: &str,
    secrets: Secrets,
    asked: Option<Asked>,
) -> Arc<Caller<Given>> {
    let config = Config { allow: allow.parse().unwrap(), ..Config::default() };
    let client = Client::new(config, &Registry::new()).unwrap();
    Arc::new(Caller {
        answers: Arc::clone(&world.answers),
        service: client.service("connector", None),
        secrets,
        asks: Given { asked, looked: AtomicUsize::new(0) },
        calling: Mutex::default(),
    })
}

async fn take(caller: &Arc<Caller<Given>>, record: &RunRecord) -> Verdict {
    let body = ProcessCall { run_id: record.id, instance: 7, attempt: 1, deadline: 0 };
    handle(Arc::clone(caller), message().with(Only(body))).await.unwrap()
}

const NONE: fn() -> Secrets = || Secrets::new(None);

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\
                    connection: close\r\n\r\n{\"paid\":true}";

const BUSY: &str =
    "HTTP/1.1 503 x\r\nretry-after: 7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_with_its_secrets_and_its_answer_is_stored_once() {
    let world = World::new(None).await;
    let server = Server::start(GOOD, Duration::ZERO).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("acme")).unwrap();
    std::fs::write(folder.path().join("acme/KEY"), "k1").unwrap();
    let variables = json!({"method": "POST", "url": server.url, "body": {"order": 5},
        "authentication": {"type": "bearer", "token": "{{secrets.KEY}}"}});
    let secrets = Secrets::new(Some(folder.path().to_owned()));
    let caller = caller(&world, "127.0.0.1", secrets, Some(asked("http", &variables)));
    let record = world.run().await;
    assert_eq!(take(&caller, &record).await, Verdict::Done);
    // The message comes again, since the runner died before it was acknowledged.
    assert_eq!(take(&caller, &record).await, Verdict::Duplicate);
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests[0].starts_with("POST /x HTTP/1.1\r\n"), "{requests:?}");
    assert!(requests[0].contains("authorization: Bearer k1\r\n"), "{requests:?}");
    assert!(requests[0].contains(&format!("idempotency-key: {}:7\r\n", record.id)));
    let answer = json!({"status": 200, "headers": {"content-type": "application/json"},
        "body": {"paid": true}});
    let events = world.inbox(record.id).await;
    assert_eq!(events, [RunEvent::TaskDone { task: 7, attempt: 1, answer }]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_twice_at_once_makes_one_call() {
    let world = World::new(None).await;
    let server = Server::start(GOOD, Duration::from_millis(300)).await;
    let asked = asked("http", &json!({"url": server.url}));
    let caller = caller(&world, "127.0.0.1", NONE(), Some(asked));
    let record = world.run().await;
    let (one, other) = tokio::join!(take(&caller, &record), take(&caller, &record));
    assert_eq!([one, other], [Verdict::Done, Verdict::Duplicate]);
    assert_eq!(server.requests().len(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_of_a_call_is_told_to_the_run_by_its_code() {
    let world = World::new(None).await;
    let busy = Server::start(BUSY, Duration::ZERO).await;
    let slow = Server::start(GOOD, Duration::from_mins(1)).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = |url: &str| json!({"url": url});
    for (allow, variables, code, retry, wait) in [
        ("127.0.0.1", url(&busy.url), "HTTP_STATUS_503", true, Some(7_000)),
        ("", url(&busy.url), "HTTP_REFUSED", false, None),
        ("127.0.0.1", url(&format!("http://{closed}/")), "HTTP_UNREACHABLE", true, None),
        (
            "127.0.0.1",
            json!({"url": slow.url, "readTimeoutInSeconds": 0.2}),
            "HTTP_TIMEOUT",
            true,
            None,
        ),
        ("", url("nonsense"), "HTTP_REQUEST_INVALID_URL", false, None),
        ("", url("https://a.example/{{secrets.KEY}}"), "SECRET_MISSING", false, None),
    ] {
        let caller = caller(&world, allow, NONE(), Some(asked("http", &variables)));
        let record = world.run().await;
        assert_eq!(take(&caller, &record).await, Verdict::Done, "{code}");
        let failed = RunEvent::TaskFailed {
            task: 7,
            attempt: 1,
            code: code.to_owned(),
            retry,
            retry_after_ms: wait,
        };
        assert_eq!(world.inbox(record.id).await, [failed]);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_does_not_ask_for_any_more_is_not_called() {
    let world = World::new(None).await;
    let server = Server::start(GOOD, Duration::ZERO).await;
    let now = asked("http", &json!({"url": server.url}));
    let later = Asked { attempt: 2, ..now.clone() };
    let over = Asked { expires_ms: now_ms(), ..now.clone() };
    let record = world.run().await;
    for (asked, verdict) in [
        (None, Verdict::Duplicate),
        (Some(later), Verdict::Duplicate),
        (Some(Asked { task: 8, ..now.clone() }), Verdict::Duplicate),
        (Some(over), Verdict::Drop("too_late")),
    ] {
        let caller = caller(&world, "127.0.0.1", NONE(), asked);
        assert_eq!(take(&caller, &record).await, verdict);
    }
    let caller = caller(&world, "127.0.0.1", NONE(), Some(now));
    world.store.pause_run(record.id).await.unwrap();
    assert_eq!(take(&caller, &record).await, Verdict::Drop("paused"));
    world.store.end_run(record.id, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(take(&caller, &record).await, Verdict::Drop("run_ended"));
    assert_eq!(caller.asks.looked.load(Ordering::Relaxed), 0);
    assert!(server.requests().is_empty());
    world.end().await;
}
