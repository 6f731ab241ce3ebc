//! Calls against servers on this machine that behave as badly as servers can.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod servers;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use prometheus::Registry;
use runfleet_http::{
    Answer, BreakerConfig, BreakerState, Call, Client, Config, Endpoint, HttpError, Lookup,
    Lookups, Pace, Phase, Reason, Service, Sink,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use servers::{Peer, answer, raw};

/// Long enough for everything that works, on a machine that is busy.
const LONG: Duration = Duration::from_secs(20);

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

fn config(allow: &str) -> Config {
    Config { allow: allow.parse().unwrap(), ..Config::default() }
}

fn service(allow: &str) -> Service {
    Client::new(config(allow), &Registry::new()).unwrap().service("test", None)
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::new(url.parse().unwrap())
}

async fn get(service: &Service, url: &str, within: Duration) -> Result<String, HttpError> {
    let answer = service.call(Call::get(endpoint(url), within)).await?;
    Ok(String::from_utf8(answer.body.to_vec()).unwrap())
}

async fn reason(service: &Service, url: &str) -> Reason {
    get(service, url, LONG).await.unwrap_err().reason()
}

/// A name service that says what it is told to, and something else every time.
struct Script {
    answers: Vec<&'static str>,
    asked: AtomicUsize,
}

impl Script {
    fn new(answers: &[&'static str]) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), asked: AtomicUsize::new(0) })
    }

    fn service(self: &Arc<Self>, allow: &str) -> Service {
        let lookup: Arc<dyn Lookup> = Arc::<Self>::clone(self);
        Client::with_lookup(config(allow), &Registry::new(), &lookup).unwrap().service("test", None)
    }
}

impl Lookup for Script {
    fn lookup(&self, _name: &str) -> Lookups {
        let at = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers[at % self.answers.len()];
        let found = answer.split_whitespace().map(|address| address.parse().unwrap()).collect();
        Box::pin(async move { Ok(found) })
    }
}

#[tokio::test]
async fn json_goes_there_and_comes_back() {
    let peer = Peer::start(answer(200, r#"{"left": true}"#)).await;
    let service = service("127.0.0.1");
    let mut place = endpoint(&peer.url("/facts?q=1"));
    place.bearer = Some(SecretString::from("s3cret"));
    let got: Value = service.post_json(&place, &json!({"workspace": "demo"}), LONG).await.unwrap();
    assert_eq!(got, json!({"left": true}));
    let seen = peer.requests().join("");
    assert!(seen.starts_with("POST /facts?q=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer s3cret\r\n"), "{seen}");
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    assert!(seen.contains("content-length: 20\r\n") && !seen.contains("chunked"), "{seen}");
    assert!(!seen.contains("accept-encoding"), "nothing is offered that would be unpacked: {seen}");
    assert!(seen.ends_with(r#"{"workspace":"demo"}"#), "{seen}");
}

#[tokio::test]
async fn an_answer_that_says_no_is_an_answer_for_whoever_asks_for_any() {
    let said =
        "HTTP/1.1 503 x\r\nretry-after: 7\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
    let peer = Peer::start(raw(said.to_owned())).await;
    let service = service("127.0.0.1");
    let answer = service.exchange(Call::get(endpoint(&peer.url("/")), LONG)).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (503, &b"busy"[..]));
    assert_eq!(answer.retry_after(std::time::SystemTime::now()), Some(Duration::from_secs(7)));
    let error = service.call(Call::get(endpoint(&peer.url("/")), LONG)).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Status(503));
}

#[tokio::test]
async fn the_status_is_told_also_when_the_body_of_a_no_is_too_long_and_a_redirect_is_never_an_answer()
 {
    let service = service("127.0.0.1");
    for (status, bytes, expected) in [
        (404, 100, Ok((404, 100))),
        (404, 101, Ok((404, 0))),
        (200, 101, Err(Reason::TooLarge)),
        (302, 1, Err(Reason::Redirect)),
    ] {
        let peer = Peer::start(answer(status, &"x".repeat(bytes))).await;
        let mut place = endpoint(&peer.url("/"));
        place.answer_bytes_max = 100;
        let got = service.exchange(Call::get(place, LONG)).await;
        let got = got.map(|answer| (answer.status, answer.body.len()));
        assert_eq!(got.map_err(|error| error.reason()), expected, "{status} {bytes}");
    }
}

#[tokio::test]
async fn a_breaker_opens_for_statuses_of_failure_also_when_any_is_an_answer() {
    let peer = Peer::start(answer(500, "")).await;
    let client = Client::new(config("127.0.0.1"), &Registry::new()).unwrap();
    let service = client.service("test", Some(BreakerConfig::default()));
    for _ in 0..5 {
        let answer = service.exchange(Call::get(endpoint(&peer.url("/")), LONG)).await.unwrap();
        assert_eq!(answer.status, 500);
    }
    let error = service.exchange(Call::get(endpoint(&peer.url("/")), LONG)).await.unwrap_err();
    assert_eq!(error.reason(), Reason::OpenCircuit);
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_only_when_it_is_listed() {
    let peer = Peer::start(answer(200, "hello")).await;
    let port = peer.address.port();
    let nothing = service("");
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0", "127.0.0.1."] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            assert_eq!(reason(&nothing, &url).await, Reason::RefusedAddress, "{url}");
        }
    }
    assert_eq!(
        reason(&nothing, &format!("https://localhost:{port}/")).await,
        Reason::RefusedAddress
    );
    assert_eq!(reason(&nothing, &format!("http://localhost:{port}/")).await, Reason::RefusedUrl);
    assert_eq!(
        reason(&service(&format!("localhost:{}", port ^ 1)), &peer.url("/")).await,
        Reason::RefusedAddress
    );
    assert!(peer.requests().is_empty() && peer.connections() == 0);
    for (allow, url) in [
        ("localhost".to_owned(), format!("http://localhost:{port}/")),
        (format!("localhost:{port}"), format!("http://LOCALHOST:{port}/")),
        ("127.0.0.0/8".to_owned(), format!("http://localhost:{port}/")),
        ("127.0.0.1".to_owned(), format!("http://0x7f.1:{port}/")),
        (format!("127.0.0.1:{port}"), peer.url("/")),
    ] {
        assert_eq!(get(&service(&allow), &url, LONG).await.as_deref(), Ok("hello"), "{allow}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_what_is_not_allowed_is_refused() {
    let peer = Peer::start(answer(200, "hello")).await;
    let port = peer.address.port();
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fd00:ec2::254",
        "0.0.0.0",
        "127.0.0.1 10.0.0.1",
    ] {
        let script = Script::new(&[address]);
        let url = format!("https://evil.example:{port}/");
        let error = get(&script.service(""), &url, LONG).await.unwrap_err();
        assert_eq!(error.reason(), Reason::RefusedAddress, "{address}");
        assert!(!error.maybe_sent());
    }
    let metadata = Script::new(&["169.254.169.254"]).service("directory.internal");
    assert_eq!(reason(&metadata, "http://directory.internal/").await, Reason::RefusedAddress);
    let nobody = Script::new(&[""]).service("");
    assert_eq!(reason(&nobody, "https://example.com/").await, Reason::Dns);
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_every_time_and_looked_up_once_for_a_connection()
{
    let peer = Peer::start(|stream| async {
        answer(200, "hello")(stream).await;
    })
    .await;
    let url = format!("http://turning.example:{}/", peer.address.port());
    // Only what is listed: the first answer passes, the second would be this machine by another name.
    let script = Script::new(&["127.0.0.1", "::1", "10.0.0.1"]);
    let service = script.service("127.0.0.1");
    assert_eq!(get(&service, &url, LONG).await.as_deref(), Ok("hello"));
    assert_eq!(
        script.asked.load(Ordering::Relaxed),
        1,
        "one look-up, and the connection went there"
    );
    assert_eq!(reason(&service, &url).await, Reason::RefusedAddress);
    assert_eq!(reason(&service, &url).await, Reason::RefusedAddress);
    assert_eq!(peer.connections(), 1);
    // Of several addresses those that do not pass are never tried.
    let script = Script::new(&["10.255.255.1 127.0.0.1 169.254.169.254"]);
    assert_eq!(get(&script.service("127.0.0.1"), &url, LONG).await.as_deref(), Ok("hello"));
}

#[tokio::test]
async fn a_redirect_is_an_error_and_is_not_followed() {
    let target = Peer::start(answer(200, "inside")).await;
    let to = target.url("/inside");
    for status in [301, 302, 303, 307, 308, 300, 304] {
        let head = format!("HTTP/1.1 {status} x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let peer = Peer::start(servers::raw(head)).await;
        let error = get(&service("127.0.0.1"), &peer.url("/"), LONG).await.unwrap_err();
        assert_eq!((error.reason(), error.maybe_sent()), (Reason::Redirect, true), "{status}");
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn an_answer_that_says_no_is_an_error_with_its_status() {
    for status in [400_u16, 404, 429, 500, 503] {
        let peer = Peer::start(answer(status, "s3cret reasons")).await;
        let error = get(&service("127.0.0.1"), &peer.url("/"), LONG).await.unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert!(error.maybe_sent() && !format!("{error} {error:?}").contains("s3cret"));
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound_and_no_further() {
    let mut place = endpoint("http://127.0.0.1/");
    place.answer_bytes_max = 1_000;
    let mut call = async |peer: Peer| {
        place.url = peer.url("/").parse().unwrap();
        let answer = service("127.0.0.1").call(Call::get(place.clone(), LONG)).await;
        answer.map(|answer| answer.body.len()).map_err(|error| error.reason())
    };
    let exact = answer(200, &"x".repeat(1_000));
    assert_eq!(call(Peer::start(exact).await).await, Ok(1_000));
    let more = answer(200, &"x".repeat(1_001));
    assert_eq!(call(Peer::start(more).await).await, Err(Reason::TooLarge));
    assert_eq!(call(Peer::start(servers::endless).await).await, Err(Reason::TooLarge));
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n".to_owned();
    assert_eq!(call(Peer::start(servers::raw(head)).await).await, Err(Reason::TooLarge));
    // What looks packed is handed over as it is: nothing is ever unpacked.
    let head =
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nbomb".to_owned();
    assert_eq!(call(Peer::start(servers::raw(head)).await).await, Ok(4));
    assert_eq!(call(Peer::start(servers::endless_head).await).await, Err(Reason::Broken));
}

#[tokio::test]
async fn everything_that_hangs_ends_with_the_time_of_the_call() {
    let service = service("127.0.0.1");
    let silent = Peer::start(servers::silent).await;
    let trickling = Peer::start(servers::trickling_head).await;
    let endless = Peer::start(servers::trickling_body).await;
    for (what, peer) in [("silent", silent), ("head", trickling), ("body", endless)] {
        let began = Instant::now();
        let mut call = Call::get(endpoint(&peer.url("/")), SHORT);
        call.endpoint.answer_bytes_max = usize::MAX;
        let error = service.call(call).await.unwrap_err();
        assert_eq!((error.reason(), error.maybe_sent()), (Reason::Timeout, true), "{what}");
        assert!(began.elapsed() >= SHORT && began.elapsed() < LONG, "{what}");
    }
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_ends_in_time_and_nothing_was_sent() {
    let full = servers::full_backlog().await;
    let url = format!("http://{}/", full.address);
    let quick = Config { connect_within: SHORT, ..config("127.0.0.1") };
    let client = Client::new(quick, &Registry::new()).unwrap().service("test", None);
    let error = get(&client, &url, LONG).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Timeout, false));
    // Also when the time of the call is over first, if there is a body to tell by.
    let call = Call::post_json(endpoint(&url), &json!(1), SHORT).unwrap();
    let error = service("127.0.0.1").call(call).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Timeout, false));
    drop(full);
}

#[tokio::test]
async fn a_name_service_that_hangs_ends_with_the_time_of_the_call() {
    struct Hanging;
    impl Lookup for Hanging {
        fn lookup(&self, _name: &str) -> Lookups {
            Box::pin(std::future::pending())
        }
    }
    let lookup: Arc<dyn Lookup> = Arc::new(Hanging);
    let client = Client::with_lookup(config(""), &Registry::new(), &lookup).unwrap();
    let call = Call::post_json(endpoint("https://example.com/"), &json!(1), SHORT).unwrap();
    let error = client.service("test", None).call(call).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Timeout, false));
}

#[tokio::test]
async fn every_broken_connection_has_its_reason() {
    let service = service("127.0.0.1");
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let error = get(&service, &format!("http://{closed}/"), LONG).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Connect, false));
    assert_eq!(error.to_string(), "the HTTP call failed: connect (connection refused)");
    let plain = Peer::start(servers::raw("HTTP/1.1 400 x\r\n\r\n".to_owned())).await;
    let url = plain.url("/").replace("http:", "https:");
    let error = get(&service, &url, LONG).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Tls, false), "{error}");
    for bad in ["", "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"] {
        let peer = Peer::start(servers::raw(bad.to_owned())).await;
        let error = get(&service, &peer.url("/"), LONG).await.unwrap_err();
        assert_eq!((error.reason(), error.maybe_sent()), (Reason::Broken, true), "{bad}");
    }
    let peer = Peer::start(answer(200, "no JSON")).await;
    let error = service
        .post_json::<_, Value>(&endpoint(&peer.url("/")), &json!(1), LONG)
        .await
        .unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Answer, true));
}

#[tokio::test]
async fn nothing_that_is_printed_shows_a_token_a_query_or_a_body() {
    let service = service("127.0.0.1");
    let mut place = endpoint("http://127.0.0.1:1/s3cret?s3cret=s3cret");
    place.bearer = Some(SecretString::from("s3cret"));
    let call = Call::post_json(place.clone(), "s3cret", LONG).unwrap();
    let mut shown = vec![format!("{call:?} {place:?} {service:?}")];
    let error = service.call(call).await.unwrap_err();
    shown.push(format!("{error} {error:?}"));
    place.bearer = Some(SecretString::from("s3cret\r\nx: y"));
    let error = service.call(Call::get(place, LONG)).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::Request, false));
    shown.push(format!("{error} {error:?}"));
    let peer = Peer::start(answer(200, "s3cret")).await;
    let answer = service.call(Call::get(endpoint(&peer.url("/")), LONG)).await.unwrap();
    shown.push(format!("{answer:?}"));
    assert!(shown.iter().all(|text| !text.contains("s3cret")), "{shown:?}");
}

#[tokio::test]
async fn a_service_that_fails_is_left_alone_and_tried_again_after_a_pause() {
    let works = Arc::new(AtomicUsize::new(0));
    let switch = Arc::clone(&works);
    let peer = Peer::start(move |stream| {
        let status = if switch.load(Ordering::Relaxed) == 0 { 500 } else { 200 };
        answer(status, "ok")(stream)
    })
    .await;
    let registry = Registry::new();
    let client = Client::new(config("127.0.0.1"), &registry).unwrap();
    let pause = Duration::from_millis(400);
    let breaker = BreakerConfig { failures: 3, pause, ..BreakerConfig::default() };
    let service = client.service("test", Some(breaker));
    let url = peer.url("/");
    for _ in 0..3 {
        assert_eq!(reason(&service, &url).await, Reason::Status(500));
    }
    let began = Instant::now();
    let error = get(&service, &url, LONG).await.unwrap_err();
    assert_eq!((error.reason(), error.maybe_sent()), (Reason::OpenCircuit, false));
    assert_eq!(service.breaker(), Some(BreakerState::Open));
    assert!(metrics(&registry).contains("runfleet_http_breaker_state{purpose=\"test\"} 2\n"));
    assert_eq!(peer.connections(), 3, "the service is left alone");
    works.store(1, Ordering::Relaxed);
    while get(&service, &url, LONG).await.is_err() {
        assert!(began.elapsed() < LONG, "the breaker never closes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() > pause / 2);
    assert_eq!(service.breaker(), Some(BreakerState::Closed));
    assert_eq!(peer.connections(), 4, "one probe");
    let text = metrics(&registry);
    assert!(text.contains("runfleet_http_breaker_state{purpose=\"test\"} 0\n"), "{text}");
    for series in [
        r#"runfleet_http_calls_total{purpose="test",result="ok"} 1"#,
        r#"runfleet_http_calls_total{purpose="test",result="status_5xx"} 3"#,
        r#"runfleet_http_calls_total{purpose="test",result="dns"} 0"#,
        r#"runfleet_http_call_duration_seconds_count{purpose="test"} 4"#,
    ] {
        assert!(text.contains(&format!("{series}\n")), "{series} in {text}");
    }
}

fn metrics(registry: &Registry) -> String {
    prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// Keeps what it is given, up to so many bytes.
struct Kept {
    bytes: Vec<u8>,
    enough: usize,
}

impl Sink for Kept {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, HttpError> {
        self.bytes.extend(piece);
        if self.bytes.len() >= self.enough {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

async fn follow(
    service: &Service,
    url: &str,
    within: Duration,
    pace: Pace,
    enough: usize,
) -> (Result<Answer, HttpError>, Vec<u8>) {
    let mut kept = Kept { bytes: Vec::new(), enough };
    let mut call = Call::get(endpoint(url), within);
    // With a body it can be told whether anything was sent.
    call.body = "question".into();
    let answer = service.follow(call, pace, &mut kept).await;
    (answer, kept.bytes)
}

const PATIENT: Pace = Pace { first_byte: LONG, idle: LONG };

#[tokio::test]
async fn a_followed_answer_is_handed_on_up_to_what_is_enough() {
    let service = service("127.0.0.1");
    let peer = Peer::start(answer(200, "hello")).await;
    let (got, bytes) = follow(&service, &peer.url("/"), LONG, PATIENT, usize::MAX).await;
    let got = got.unwrap();
    assert_eq!((got.status, got.body.len(), &bytes[..]), (200, 0, &b"hello"[..]));
    let peer = Peer::start(servers::endless).await;
    let (got, bytes) = follow(&service, &peer.url("/"), LONG, PATIENT, 1_000).await;
    assert_eq!(got.unwrap().status, 200);
    assert!(bytes.len() >= 1_000);
    let (got, bytes) = follow(&service, &peer.url("/"), LONG, PATIENT, usize::MAX).await;
    assert_eq!(got.unwrap_err().reason(), Reason::TooLarge);
    assert!(bytes.len() <= 64 * 1_024);
}

#[tokio::test]
async fn the_body_of_a_no_is_returned_and_not_handed_on_and_a_redirect_is_not_followed() {
    let service = service("127.0.0.1");
    let peer = Peer::start(answer(429, "busy")).await;
    let (got, bytes) = follow(&service, &peer.url("/"), LONG, PATIENT, usize::MAX).await;
    let got = got.unwrap();
    assert_eq!((got.status, &got.body[..], bytes.len()), (429, &b"busy"[..], 0));
    let peer = Peer::start(answer(307, "")).await;
    let (got, _) = follow(&service, &peer.url("/"), LONG, PATIENT, usize::MAX).await;
    assert_eq!(got.unwrap_err().reason(), Reason::Redirect);
}

#[tokio::test]
async fn a_followed_answer_that_hangs_says_for_what_it_was_waited() {
    let service = service("127.0.0.1");
    let first = Pace { first_byte: SHORT, idle: LONG };
    let idle = Pace { first_byte: LONG, idle: SHORT };
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx";
    let silent = Peer::start(servers::silent).await;
    let paused = Peer::start(move |mut stream| async move {
        tokio::io::AsyncWriteExt::write_all(&mut stream, begun.as_bytes()).await.unwrap();
        servers::silent(stream).await;
    })
    .await;
    let trickling = Peer::start(servers::trickling_body).await;
    let full = servers::full_backlog().await;
    let unaccepted = format!("http://{}/", full.address);
    for (url, within, pace, phase) in [
        (silent.url("/"), LONG, first, Phase::FirstByte),
        (silent.url("/"), SHORT, idle, Phase::Total),
        (paused.url("/"), LONG, idle, Phase::Idle),
        (trickling.url("/"), SHORT, PATIENT, Phase::Total),
        (unaccepted, LONG, first, Phase::Connect),
    ] {
        let began = Instant::now();
        let (got, _) = follow(&service, &url, within, pace, usize::MAX).await;
        let error = got.unwrap_err();
        assert_eq!((error.reason(), error.phase()), (Reason::Timeout, Some(phase)));
        assert!(began.elapsed() < LONG / 2, "{phase:?}");
    }
}
