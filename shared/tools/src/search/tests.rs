//! Web search against a service on this machine.

use super::*;
use crate::testing::{Peer, answer, call, later, service};

fn search(url: &str) -> WebSearch {
    let http = HttpSpec { method: "GET".to_owned(), url: url.to_owned(), ..HttpSpec::default() };
    let spec = SearchSpec { http, results: "/results".to_owned() };
    WebSearch::new(service("127.0.0.1"), Secrets::new(None), spec).unwrap()
}

#[tokio::test]
async fn several_queries_are_asked_at_once_and_told_in_their_order() {
    let peer = Peer::start(|request| {
        let line = request.lines().next().unwrap_or_default();
        if line.contains("q=bad") {
            return Some(answer(500, "text/plain", "s3cret"));
        }
        let results = json!({"results": [
            {"title": line, "url": "https://a.example/", "content": "x".repeat(5_000), "more": "m"},
            {"title": "no address"},
            {"name": "two", "link": "https://b.example/", "description": "y"},
            {"title": "three", "url": "https://c.example/"},
        ]});
        Some(answer(200, "application/json", &results.to_string()))
    })
    .await;
    let tool = search(&peer.url("/search?q={{query}}&n={{limit}}&format=json"));
    let queries: Vec<String> = (0..7).map(|n| format!("q {n}&x")).chain(["bad".into()]).collect();
    let arguments = json!({"queries": queries, "resultsPerQuery": 2});
    let ToolOutcome::Done(got) = tool.call(call(&arguments), later()).await else { panic!() };
    let told = got["content"].as_array().unwrap();
    assert_eq!(told.len(), 8);
    for (at, told) in told.iter().take(7).enumerate() {
        assert_eq!(told["query"], format!("q {at}&x"));
        let title = format!("GET /search?q=q%20{at}%26x&n=2&format=json HTTP/1.1");
        assert_eq!(told["results"][0]["title"], title);
        assert_eq!(told["results"][0]["snippet"].as_str().unwrap().len(), SNIPPET_BYTES_MAX);
        assert_eq!(told["results"][0].get("more"), None);
        let two = json!({"title": "two", "url": "https://b.example/", "snippet": "y"});
        assert_eq!(told["results"][1], two);
        assert_eq!(told["results"].as_array().unwrap().len(), 2);
    }
    assert_eq!(told[7], json!({"query": "bad", "error": texts::BROKEN}));
}

#[tokio::test]
async fn a_search_of_which_nothing_came_has_failed() {
    for (status, body, text) in [
        (429, "", texts::BUSY),
        (200, "{}", texts::UNREADABLE),
        (200, r#"{"results": {}}"#, texts::UNREADABLE),
    ] {
        let peer = Peer::saying(status, "application/json", body).await;
        let tool = search(&peer.url("/?q={{query}}"));
        let got = tool.call(call(&json!({"queries": ["a", "b"]})), later()).await;
        assert_eq!(got, ToolOutcome::failed(text), "{status} {body}");
    }
}

#[tokio::test]
async fn queries_are_bounded() {
    let tool = search("http://127.0.0.1:1/?q={{query}}");
    for (arguments, path) in [
        (json!({}), "/queries"),
        (json!({"queries": []}), "/queries"),
        (json!({"queries": [" "]}), "/queries"),
        (json!({"queries": [1]}), "/queries"),
        (json!({"queries": vec!["x"; QUERIES_MAX + 1]}), "/queries"),
        (json!({"queries": ["x".repeat(QUERY_CHARS_MAX + 1)]}), "/queries"),
        (json!({"queries": ["x"], "resultsPerQuery": 21}), "/resultsPerQuery"),
    ] {
        let expected = ToolOutcome::Failed { path: path.to_owned(), message: texts::ARGUMENT };
        assert_eq!(tool.call(call(&arguments), later()).await, expected, "{arguments}");
    }
}

#[test]
fn a_service_that_is_not_only_read_is_no_search() {
    let http = HttpSpec {
        method: "POST".to_owned(),
        url: "https://a.example/".to_owned(),
        ..HttpSpec::default()
    };
    let spec = SearchSpec { http, results: "/results".to_owned() };
    let made = WebSearch::new(service(""), Secrets::new(None), spec.clone());
    assert_eq!(made.err(), Some(HttpMistake("method")));
    let http = HttpSpec { method: "GET".to_owned(), ..spec.http };
    let made = WebSearch::new(
        service(""),
        Secrets::new(None),
        SearchSpec { http, results: "x".to_owned() },
    );
    assert_eq!(made.err(), Some(HttpMistake("results")));
}
