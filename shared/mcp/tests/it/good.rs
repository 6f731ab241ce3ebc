//! What works: listing, calling, sessions, several calls at once.

use runfleet_mcp::{McpFailure, Transport};
use runfleet_tools::{RESULT_BYTES_MAX, ToolOutcome, texts};
use serde_json::json;

use crate::fixture::{
    Log, call, http, http_at, later, lives, server_with, service, soon, stdio, until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_of_a_program_are_listed_and_called() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    let tools = server.tools(later()).await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.len(), 11, "all of two pages but the bad name: {names:?}");
    assert_eq!((names[0], tools[0].description.as_str()), ("echo", "d echo"));
    let echo = call(&server, "echo", &json!({"a": [1, "ü"]}), later()).await;
    assert_eq!(echo, ToolOutcome::success(json!({"got": {"a": [1, "ü"]}})));
    let fail = call(&server, "fail", &json!({}), later()).await;
    assert_eq!(fail, ToolOutcome::error(json!("it did not work")));
    let picture = call(&server, "picture", &json!({}), later()).await;
    assert_eq!(picture, ToolOutcome::success(json!([{"left out": "image"}, "seen"])));
    let unknown = call(&server, "unknown", &json!({}), later()).await;
    assert_eq!(unknown, ToolOutcome::failed(texts::SAID_NO), "no words of the server");
    assert_eq!((log.count("initialize\""), log.count("pid")), (1, 1), "one connection");
    let first = &log.lines()[1];
    assert!(first.contains("2025-06-18") && first.contains("runfleet"), "{first}");
    assert_eq!(log.count("notifications/initialized"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gets_nothing_of_the_environment_of_the_worker() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    let ToolOutcome::Done(got) = call(&server, "environment", &json!({}), later()).await else {
        panic!("no answer")
    };
    let names = got["content"].as_str().unwrap();
    assert!(names.contains("PATH") && names.contains("TOKEN"), "{names}");
    assert!(!names.contains("CARGO") && !names.contains("HOME"), "{names}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_find_their_questions_in_any_order() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    server.tools(later()).await.unwrap();
    let slow = json!({"seconds": 1});
    let (quick, fast) = (json!({"n": 1}), json!({"n": 2}));
    let (slow, quick, fast) = tokio::join!(
        call(&server, "slow", &slow, later()),
        call(&server, "echo", &quick, later()),
        call(&server, "echo", &fast, later()),
    );
    assert_eq!(slow, ToolOutcome::success(json!("slow")));
    assert_eq!(quick, ToolOutcome::success(json!({"got": {"n": 1}})));
    assert_eq!(fast, ToolOutcome::success(json!({"got": {"n": 2}})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_asks_is_answered() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    let got = call(&server, "ping", &json!({}), later()).await;
    assert_eq!(got, ToolOutcome::success(json!("pinged")));
    until("the ping is answered", || log.count(r#""id": "q1", "result": {}"#) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_kept_until_the_server_says_that_it_is_another() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    for _ in 0..3 {
        assert_eq!(server.tools(later()).await.unwrap().len(), 11);
    }
    assert_eq!(log.count("tools/list\""), 2, "two pages, once");
    call(&server, "change", &json!({}), later()).await;
    // What the server says by itself comes before the answer to what is asked next.
    call(&server, "echo", &json!({}), later()).await;
    assert_eq!(server.tools(later()).await.unwrap().len(), 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_is_not_offered_is_neither_listed_nor_called() {
    let log = Log::new();
    let other = http(&log).await;
    let transport = Transport::Http {
        service: service("127.0.0.1"),
        url: other.url.parse().unwrap(),
        headers: [].into(),
    };
    let only = ["echo".to_owned(), "fail".to_owned()].into();
    let server = server_with(transport, Some(only));
    let tools = server.tools(later()).await.unwrap();
    let tools: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["echo", "fail"]);
    let got = call(&server, "slow", &json!({}), later()).await;
    assert_eq!(got, ToolOutcome::failed(texts::NOT_FOUND));
    assert_eq!(log.count("tools/call"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_has_a_session_a_version_and_its_headers() {
    let log = Log::new();
    let other = http(&log).await;
    let server = http_at(&other.url, "127.0.0.1");
    assert_eq!(server.tools(later()).await.unwrap().len(), 11);
    let echo = call(&server, "echo", &json!({"a": 1}), later()).await;
    assert_eq!(echo, ToolOutcome::success(json!({"got": {"a": 1}})));
    let headers: Vec<_> =
        log.lines().into_iter().filter(|line| line.starts_with("headers")).collect();
    assert!(!headers[0].contains("mcp-session-id") && headers[0].contains("s3cret"));
    for line in &headers[1..] {
        assert!(line.contains(r#""mcp-session-id": "s-"#), "{line}");
        assert!(line.contains(r#""mcp-protocol-version": "2025-06-18""#), "{line}");
        assert!(line.contains("application/json, text/event-stream"), "{line}");
    }
    assert!(!format!("{server:?}").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_over_is_begun_again_and_nothing_is_done_twice() {
    let log = Log::new();
    let other = http(&log).await;
    let server = http_at(&other.url, "127.0.0.1");
    // This call makes the server forget its sessions.
    call(&server, "stall", &json!({}), later()).await;
    let echo = call(&server, "echo", &json!({"a": 1}), later()).await;
    assert_eq!(echo, ToolOutcome::success(json!({"got": {"a": 1}})));
    assert_eq!((log.count("initialize\""), log.count(r#""name": "echo""#)), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_cut_to_what_a_run_takes_in() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    let got = call(&server, "large", &json!({"bytes": 500_000}), later()).await;
    let ToolOutcome::Done(got) = got else { panic!("no answer") };
    assert_eq!(got["status"], "success");
    assert!(got.to_string().len() <= RESULT_BYTES_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_and_all_that_it_started_end_with_the_server() {
    let log = Log::new();
    let server = stdio("family", &log);
    server.tools(later()).await.unwrap();
    let ids = [log.ids("pid"), log.ids("child")].concat();
    assert!(ids.len() == 2 && ids.iter().all(|id| lives(*id)), "{ids:?}");
    drop(server);
    until("all have ended", || ids.iter().all(|id| !lives(*id))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_come_in_time_is_unknown_and_the_server_is_told() {
    let log = Log::new();
    let server = stdio("stdio", &log);
    server.tools(later()).await.unwrap();
    let got = call(&server, "slow", &json!({"seconds": 2}), soon()).await;
    assert_eq!(got, ToolOutcome::Unknown);
    until("the server is told", || log.count("notifications/cancelled") == 1).await;
    let echo = call(&server, "echo", &json!({}), later()).await;
    assert_eq!(echo, ToolOutcome::success(json!({"got": {}})), "the others still work");
    assert_eq!(server.tools(later()).await.map(|tools| tools.len()), Ok::<_, McpFailure>(11));
}
