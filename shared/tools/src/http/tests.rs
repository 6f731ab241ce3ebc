//! HTTP tools against servers on this machine.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{Peer, answer, call, later, service, service_where_names_are, soon};

fn spec(method: &str, url: &str) -> HttpSpec {
    HttpSpec { method: method.to_owned(), url: url.to_owned(), ..HttpSpec::default() }
}

fn tool(spec: HttpSpec) -> HttpTool {
    HttpTool::new(service("127.0.0.1"), Secrets::new(None), spec).unwrap()
}

async fn ask(spec: HttpSpec, arguments: &Value) -> ToolOutcome {
    tool(spec).call(call(arguments), later()).await
}

fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The URL that arguments make, or the argument that is to blame.
fn url(template: &str, arguments: &Value) -> Result<String, String> {
    url_of(&tool(spec("GET", template)), arguments)
}

fn url_of(tool: &HttpTool, arguments: &Value) -> Result<String, String> {
    let secrets = BTreeMap::new();
    let filling = Filling { arguments: arguments.as_object().unwrap(), secrets: &secrets };
    match tool.request("key", filling) {
        Ok(request) => Ok(request.url.to_string()),
        Err(ToolOutcome::Failed { path, .. }) => Err(path),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn arguments_go_where_the_description_says() {
    let peer = Peer::saying(200, "application/json", r#"{"id": 7}"#).await;
    let description = HttpSpec {
        headers: headers(&[("x-tenant", "t-{{tenant}}"), ("x-none", "{{none}}")]),
        body: Some(
            json!({"title": "{{title}}", "note": "by {{who}}", "n": "{{n}}", "m": "{{none}}", "fix": 1}),
        ),
        ..spec("POST", &peer.url("/orders/{{id}}?dry={{dry}}&none={{none}}"))
    };
    let arguments = json!({
        "id": "a/b", "dry": true, "tenant": 5, "title": ["x"], "who": "me", "n": 1.5, "unnamed": "s3cret",
    });
    assert_eq!(ask(description, &arguments).await, ToolOutcome::Done(json!({"id": 7})));
    let seen = peer.requests().join("");
    assert!(seen.starts_with("POST /orders/a%2Fb?dry=true HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("x-tenant: t-5\r\n") && !seen.contains("x-none"), "{seen}");
    assert!(seen.contains("idempotency-key: run:call\r\n"), "{seen}");
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    assert!(seen.ends_with(r#"{"title":["x"],"note":"by me","n":1.5,"fix":1}"#), "{seen}");
}

#[tokio::test]
async fn arguments_without_a_place_go_into_the_query_or_the_body() {
    let peer = Peer::saying(200, "text/plain", "ok").await;
    let arguments = json!({"id": 1, "q": "a&b=c", "tags": ["x", "y"], "gone": null});
    for method in ["GET", "DELETE"] {
        let got = ask(spec(method, &peer.url("/{{id}}?a=1")), &arguments).await;
        assert_eq!(got, ToolOutcome::Done(json!("ok")));
    }
    ask(spec("PUT", &peer.url("/{{id}}")), &arguments).await;
    let seen = peer.requests();
    assert!(seen[0].starts_with("GET /1?a=1&q=a%26b%3Dc&tags=x&tags=y HTTP/1.1\r\n"), "{seen:?}");
    assert!(!seen[0].contains("idempotency-key"), "{seen:?}");
    assert!(seen[1].starts_with("DELETE /1?a=1&q=a%26b%3Dc&tags=x&tags=y "), "{seen:?}");
    assert!(seen[1].contains("idempotency-key: run:call\r\n"), "{seen:?}");
    assert!(seen[2].ends_with(r#"{"q":"a&b=c","tags":["x","y"]}"#), "{seen:?}");
}

#[tokio::test]
async fn secrets_are_put_in_and_neither_told_nor_taken_from_arguments() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("acme")).unwrap();
    for (name, secret) in [("KEY", "s3cret\n"), ("USER", "u"), ("BAD", "a\nb")] {
        std::fs::write(folder.path().join("acme").join(name), secret).unwrap();
    }
    let peer = Peer::saying(200, "text/plain", "ok").await;
    let secrets = Secrets::new(Some(folder.path().to_owned()));
    let make = |description| HttpTool::new(service("127.0.0.1"), secrets.clone(), description);
    let with = |auth| HttpSpec {
        headers: headers(&[("x-key", "k {{secrets.KEY}}")]),
        auth,
        ..spec("POST", &peer.url("/?k={{secrets.KEY}}&q={{q}}"))
    };
    let arguments = json!({"q": "{{secrets.KEY}}", "b": "{{secrets.KEY}}"});
    for (auth, header) in [
        (Auth::Bearer("{{secrets.KEY}}".to_owned()), "Bearer s3cret"),
        (Auth::Basic("{{secrets.USER}}".to_owned(), "p".to_owned()), "Basic dTpw"),
    ] {
        let tool = make(with(auth)).unwrap();
        assert_eq!(tool.call(call(&arguments), later()).await, ToolOutcome::Done(json!("ok")));
        let seen = peer.requests().pop().unwrap();
        assert!(seen.contains(&format!("authorization: {header}\r\n")), "{seen}");
        assert!(
            seen.contains("x-key: k s3cret\r\n") && seen.contains("?k=s3cret&q=%7B%7Bsecrets.KEY"),
            "{seen}"
        );
        assert!(seen.ends_with(r#"{"b":"{{secrets.KEY}}"}"#), "{seen}");
        assert!(!format!("{tool:?}").contains("KEY"));
    }
    for missing in ["NONE", "BAD"] {
        let auth = Auth::Bearer(format!("{{{{secrets.{missing}}}}}"));
        let got = make(with(auth)).unwrap().call(call(&arguments), later()).await;
        assert_eq!(got, ToolOutcome::failed(texts::NOT_SET_UP), "{missing}");
    }
    let mut other = call(&arguments);
    other.caller.workspace = "other".parse().unwrap();
    let got = make(with(Auth::None)).unwrap().call(other, later()).await;
    assert_eq!(got, ToolOutcome::failed(texts::NOT_SET_UP), "a secret belongs to its workspace");
    assert_eq!(peer.requests().len(), 2);
}

#[test]
fn an_argument_stays_in_its_place() {
    const AT: &str = "https://a.example/v1/{{id}}/x?q={{q}}";
    for (id, expected) in [
        ("a b", Ok("a%20b")),
        ("../../admin", Ok("..%2F..%2Fadmin")),
        ("..\\..", Ok("..%5C..")),
        ("a?b#c", Ok("a%3Fb%23c")),
        ("@evil.example", Ok("%40evil.example")),
        ("%2e%2e", Ok("%252e%252e")),
        ("...", Ok("...")),
        ("..", Err("/id")),
        (".", Err("/id")),
        ("", Err("/id")),
    ] {
        let expected = expected.map(|id| format!("https://a.example/v1/{id}/x?q=1"));
        let got = url(AT, &json!({"id": id, "q": 1}));
        assert_eq!(got, expected.map_err(str::to_owned), "{id}");
    }
    // Dots that only become a way out together with what the description has beside them.
    assert_eq!(url("https://a.example/v1/.{{id}}", &json!({"id": "."})), Err("/id".to_owned()));
    assert_eq!(url("https://a.example/v1/%2{{id}}", &json!({"id": "E"})), Err("/id".to_owned()));
    let q = url(AT, &json!({"id": 1, "q": "1&admin=1#x"})).unwrap();
    assert_eq!(q, "https://a.example/v1/1/x?q=1%26admin%3D1%23x");
    assert_eq!(url(AT, &json!({"id": 1})).unwrap(), "https://a.example/v1/1/x");
    assert_eq!(url(AT, &json!({"id": 1, "q": {}})), Err("/q".to_owned()));
    assert_eq!(url(AT, &json!({"id": 1, "q": "x".repeat(URL_BYTES_MAX)})), Err(String::new()));
}

#[test]
fn whatever_an_argument_is_the_host_and_the_folder_stay() {
    let tool = tool(spec("GET", "https://a.example/v1/{{id}}/x?q={{q}}"));
    proptest!(|(id in ".{0,40}", q in ".{0,40}")| {
        if let Ok(got) = url_of(&tool, &json!({"id": id, "q": q})) {
            let got: Url = got.parse().unwrap();
            let segments: Vec<_> = got.path_segments().unwrap().collect();
            prop_assert_eq!(got.host_str(), Some("a.example"));
            prop_assert!(got.scheme() == "https" && got.port().is_none());
            prop_assert!(got.fragment().is_none());
            prop_assert!(segments.len() == 3 && segments[0] == "v1" && segments[2] == "x");
            let pairs: Vec<_> = got.query_pairs().collect();
            prop_assert_eq!(pairs, vec![("q".into(), q.as_str().into())]);
        }
    });
}

#[tokio::test]
async fn an_argument_cannot_add_a_header() {
    let peer = Peer::saying(200, "text/plain", "ok").await;
    let description =
        HttpSpec { headers: headers(&[("x-a", "{{a}}")]), ..spec("GET", &peer.url("/")) };
    for bad in ["x\r\nx-evil: 1", "x\n", "x\0"] {
        let got = ask(description.clone(), &json!({"a": bad})).await;
        assert_eq!(got, ToolOutcome::argument("a", texts::ARGUMENT), "{bad:?}");
    }
    assert!(peer.requests().is_empty());
}

#[test]
fn a_description_that_cannot_be_used_names_its_part() {
    let good = || spec("POST", "https://a.example/");
    let url = |url: &str| HttpSpec { url: url.to_owned(), ..good() };
    let header = |name, value| HttpSpec { headers: headers(&[(name, value)]), ..good() };
    let auth = |text: &str| HttpSpec { auth: Auth::Bearer(text.to_owned()), ..good() };
    let cases = [
        (spec("TRACE", "https://a.example/"), "method"),
        (url("https://{{host}}/"), "url"),
        (url("https://a.example{{x}}/"), "url"),
        (url("{{x}}://a.example/"), "url"),
        (url("https://a.example:{{port}}/"), "url"),
        (url("https://user:pass@a.example/"), "url"),
        (url("https://a.example/#{{x}}"), "url"),
        (url("https://a.example/{{x"), "url"),
        (url("https://a.example/?{{x}}=1"), "url"),
        (url("ftp://a.example/"), "url"),
        (url("https:///x"), "url"),
        (url("a.example"), "url"),
        (header("host", "x"), "headers"),
        (header("authorization", "Bearer {{token}}"), "headers"),
        (header("cookie", "{{x}}"), "headers"),
        (header("bad name", "x"), "headers"),
        (header("x", "{{"), "headers"),
        (auth("{{token}}"), "auth"),
        (HttpSpec { headers: headers(&[("authorization", "x")]), ..auth("x") }, "auth"),
        (HttpSpec { body: Some(json!("{{")), ..good() }, "body"),
        (HttpSpec { body: Some(json!({})), ..spec("GET", "https://a.example/") }, "body"),
    ];
    for (description, part) in cases {
        let what = format!("{} {:?}", description.url, description.headers);
        let made = HttpTool::new(service(""), Secrets::new(None), description);
        assert_eq!(made.err(), Some(HttpMistake(part)), "{what}");
    }
    let many: Vec<_> = (0..=SECRETS_MAX).map(|n| format!("{{{{secrets.K{n}}}}}")).collect();
    let many = many.concat();
    let made = HttpTool::new(service(""), Secrets::new(None), header("x", &many));
    assert_eq!(made.err(), Some(HttpMistake("secrets")));
}

#[tokio::test]
async fn no_trick_with_an_address_gets_a_tool_inside() {
    let peer = Peer::saying(200, "text/plain", "inside").await;
    let port = peer.address.port();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://0:{port}/"),
        format!("https://127.0.0.1.:{port}/"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "http://a.example/".to_owned(),
    ] {
        let tool = HttpTool::new(service(""), Secrets::new(None), spec("POST", &url)).unwrap();
        let got = tool.call(call(&json!({})), later()).await;
        assert_eq!(got, ToolOutcome::failed(texts::REFUSED), "{url}");
    }
    for addresses in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"] {
        let service = service_where_names_are("", addresses);
        let url = format!("https://evil.example:{port}/");
        let tool = HttpTool::new(service, Secrets::new(None), spec("POST", &url)).unwrap();
        let got = tool.call(call(&json!({})), later()).await;
        assert_eq!(got, ToolOutcome::failed(texts::REFUSED), "{addresses}");
    }
    assert!(peer.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inside = Peer::saying(200, "text/plain", "inside").await;
    let to = inside.url("/");
    for status in [301, 302, 303, 307, 308] {
        let head = format!("HTTP/1.1 {status} x\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let peer = Peer::start(move |_| Some(head.clone())).await;
        let got = ask(spec("GET", &peer.url("/")), &json!({})).await;
        assert_eq!(got, ToolOutcome::failed(texts::REDIRECT), "{status}");
    }
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn an_answer_that_says_no_is_told_by_its_kind_alone() {
    for (status, text) in [
        (400, texts::SAID_NO),
        (401, texts::FORBIDDEN),
        (403, texts::FORBIDDEN),
        (404, texts::NOT_FOUND),
        (409, texts::SAID_NO),
        (410, texts::NOT_FOUND),
        (429, texts::BUSY),
        (500, texts::BROKEN),
        (503, texts::BROKEN),
    ] {
        let peer = Peer::saying(status, "text/plain", "s3cret reasons").await;
        for method in ["GET", "POST"] {
            let got = ask(spec(method, &peer.url("/")), &json!({})).await;
            assert_eq!(got, ToolOutcome::failed(text), "{status}");
        }
    }
    for status in [502, 504] {
        let peer = Peer::saying(status, "text/plain", "").await;
        let got = ask(spec("GET", &peer.url("/")), &json!({})).await;
        assert_eq!(got, ToolOutcome::failed(texts::BROKEN));
        let got = ask(spec("POST", &peer.url("/")), &json!({})).await;
        assert_eq!(got, ToolOutcome::Unknown, "a gateway does not know");
    }
}

#[tokio::test]
async fn what_may_have_happened_is_unknown_and_what_cannot_have_is_not() {
    let silent = Peer::start(|_| None).await;
    let cut =
        Peer::start(|_| Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx".to_owned())).await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    for (method, silence, break_off) in [
        ("GET", ToolOutcome::failed(texts::TIME), ToolOutcome::failed(texts::UNREACHABLE)),
        ("POST", ToolOutcome::Unknown, ToolOutcome::Unknown),
        ("DELETE", ToolOutcome::Unknown, ToolOutcome::Unknown),
    ] {
        let made = tool(spec(method, &silent.url("/")));
        assert_eq!(made.call(call(&json!({})), soon()).await, silence, "{method}");
        assert_eq!(ask(spec(method, &cut.url("/")), &json!({})).await, break_off, "{method}");
        let got = ask(spec(method, &closed), &json!({})).await;
        assert_eq!(got, ToolOutcome::failed(texts::UNREACHABLE), "{method}");
    }
}

#[tokio::test]
async fn answers_are_json_or_text_and_bounded() {
    for (kind, body, expected) in [
        ("application/json", "{\"a\":0.1}", ToolOutcome::Done(json!({"a": 0.1}))),
        ("application/problem+json; charset=utf-8", "[1]", ToolOutcome::Done(json!([1]))),
        ("application/json", "{\"a\":", ToolOutcome::Done(json!("{\"a\":"))),
        ("text/html", "<b>ü</b>", ToolOutcome::Done(json!("<b>ü</b>"))),
        ("text/plain", "", ToolOutcome::success(Value::Null)),
    ] {
        let peer = Peer::saying(200, kind, body).await;
        assert_eq!(ask(spec("GET", &peer.url("/")), &json!({})).await, expected, "{kind}");
    }
    let told = r#"{"status":"error","content":{"why":"closed"}}"#;
    let peer = Peer::saying(200, "application/json", told).await;
    let got = ask(spec("GET", &peer.url("/")), &json!({})).await;
    assert_eq!(got, ToolOutcome::error(json!({"why": "closed"})), "what a tool says stays whole");
    let large =
        Peer::start(|_| Some(answer(200, "text/plain", &"x".repeat(ANSWER_BYTES_MAX + 1)))).await;
    let got = ask(spec("GET", &large.url("/")), &json!({})).await;
    assert_eq!(got, ToolOutcome::failed(texts::TOO_LARGE));
}
