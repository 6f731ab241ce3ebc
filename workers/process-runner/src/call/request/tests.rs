//! Tables: what a task says, and what is sent.

use serde_json::{Value, json};

use super::*;

fn request(variables: &Value) -> Result<Request, Invalid> {
    Request::read(variables.as_object().unwrap(), "PI1:7")
}

/// Method, URL, sorted headers, body.
fn written(variables: &Value) -> String {
    let Request { method, url, headers, body, .. } = request(variables).ok().unwrap();
    let mut lines: Vec<_> = headers
        .iter()
        .filter(|(name, _)| **name != IDEMPOTENCY_KEY)
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.insert(0, format!("{method} {url}"));
    lines.push(String::from_utf8(body).unwrap());
    lines.join("|")
}

#[test]
fn what_a_task_says_is_what_is_sent() {
    for (variables, expected) in [
        (json!({"url": " https://a.example "}), "GET https://a.example/|"),
        (
            json!({"method": "get", "url": "https://a.example/x?a=1#f", "queryParameters":
                {"b": "ü &", "n": 2, "none": null, "l": ["x", true]}}),
            "GET https://a.example/x?a=1&b=%C3%BC+%26&n=2&l=x&l=true|",
        ),
        (
            json!({"method": "POST", "url": "https://a.example", "body": {"n": 1, "t": "ü"}}),
            "POST https://a.example/|content-type: application/json|{\"n\":1,\"t\":\"ü\"}",
        ),
        (
            json!({"method": "put", "url": "https://a.example", "body": "x",
                "headers": {"X-One": "1", "X-Two": 2, "X-None": null}}),
            "PUT https://a.example/|content-type: text/plain; charset=utf-8|x-one: 1|x-two: 2|x",
        ),
        (
            json!({"method": "PATCH", "url": "https://a.example", "body": [1],
                "headers": {"Content-Type": "application/merge-patch+json"}}),
            "PATCH https://a.example/|content-type: application/merge-patch+json|[1]",
        ),
        (
            json!({"method": "POST", "url": "https://a.example", "body": {"a": "x y", "b": 1},
                "headers": {"content-type": "application/x-www-form-urlencoded"}}),
            "POST https://a.example/|content-type: application/x-www-form-urlencoded|a=x+y&b=1",
        ),
        (json!({"method": "DELETE", "url": "http://a.example"}), "DELETE http://a.example/|"),
        (
            json!({"method": "HEAD", "url": "http://a.example", "body": null}),
            "HEAD http://a.example/|",
        ),
    ] {
        assert_eq!(written(&variables), expected, "{variables}");
    }
}

#[test]
fn every_kind_of_authentication_is_written() {
    let with = |authentication: Value| {
        written(&json!({"url": "https://a.example/?x=1", "authentication": authentication}))
    };
    let plain = "GET https://a.example/?x=1|";
    assert_eq!(with(json!({"type": "noAuth"})), plain);
    assert_eq!(with(json!("noAuth")), plain);
    assert_eq!(with(json!(null)), plain);
    assert_eq!(
        with(json!({"type": "basic", "username": "Aladdin", "password": "open sesame"})),
        "GET https://a.example/?x=1|authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==|"
    );
    assert_eq!(
        with(json!({"type": "bearer", "token": "t0"})),
        "GET https://a.example/?x=1|authorization: Bearer t0|"
    );
    let key = |place: &str| json!({"type": "apiKey", "apiKeyLocation": place, "name": "X-Key", "value": "k 1"});
    assert_eq!(with(key("headers")), "GET https://a.example/?x=1|x-key: k 1|");
    assert_eq!(with(key("query")), "GET https://a.example/?x=1&X-Key=k+1|");
}

#[test]
fn what_makes_no_sense_is_named_by_its_part() {
    let url = "https://a.example";
    let auth = |authentication: Value| json!({"url": url, "authentication": authentication});
    let many: Map<String, Value> = (0..=FIELDS_MAX).map(|n| (format!("h{n}"), json!(1))).collect();
    for (variables, invalid) in [
        (json!({}), URL),
        (json!({"url": 1}), URL),
        (json!({"url": "a.example"}), URL),
        (json!({"url": "ftp://a.example"}), URL),
        (json!({"url": "file:///etc/passwd"}), URL),
        (json!({"url": "https://u:p@a.example"}), URL),
        (json!({"url": format!("{url}/{}", "x".repeat(URL_BYTES_MAX))}), URL),
        (json!({"url": url, "method": "TRACE"}), METHOD),
        (json!({"url": url, "method": 1}), METHOD),
        (json!({"url": url, "headers": []}), HEADERS),
        (json!({"url": url, "headers": many}), HEADERS),
        (json!({"url": url, "headers": {"a b": "1"}}), HEADERS),
        (json!({"url": url, "headers": {"a": "1\r\nb: 2"}}), HEADERS),
        (json!({"url": url, "headers": {"a": {}}}), HEADERS),
        (json!({"url": url, "headers": {"a": 1, "A": 2}}), HEADERS),
        (json!({"url": url, "headers": {"Host": "b.example"}}), HEADERS),
        (json!({"url": url, "headers": {"Transfer-Encoding": "chunked"}}), HEADERS),
        (json!({"url": url, "queryParameters": "a=1"}), QUERY),
        (json!({"url": url, "queryParameters": {"a": {}}}), QUERY),
        (json!({"url": url, "queryParameters": {"a": "x".repeat(URL_BYTES_MAX)}}), QUERY),
        (json!({"url": url, "body": 1}), BODY),
        (
            json!({"url": url, "method": "POST", "body": [1],
            "headers": {"content-type": "application/x-www-form-urlencoded"}}),
            BODY,
        ),
        (json!({"url": url, "readTimeoutInSeconds": "soon"}), TIMEOUT),
        (json!({"url": url, "readTimeoutInSeconds": -1}), TIMEOUT),
        (json!({"url": url, "connectionTimeoutInSeconds": []}), TIMEOUT),
        (auth(json!({})), AUTHENTICATION),
        (auth(json!({"type": "oauth-client-credentials-flow"})), AUTHENTICATION),
        (auth(json!({"type": "basic", "username": "u"})), AUTHENTICATION),
        (auth(json!({"type": "basic", "username": "u:", "password": ""})), AUTHENTICATION),
        (auth(json!({"type": "bearer", "token": "a\nb"})), AUTHENTICATION),
        (auth(json!({"type": "apiKey", "name": "k", "value": "v"})), AUTHENTICATION),
        (
            auth(
                json!({"type": "apiKey", "apiKeyLocation": "headers", "name": "Host", "value": "v"}),
            ),
            AUTHENTICATION,
        ),
        (
            auth(json!({"type": "apiKey", "apiKeyLocation": "cookie", "name": "k", "value": "v"})),
            AUTHENTICATION,
        ),
    ] {
        assert_eq!(request(&variables).err(), Some(invalid), "{variables}");
        let code = invalid.code();
        assert!(code.len() <= 64 && code.starts_with("HTTP_REQUEST_INVALID_"), "{code}");
    }
}

#[test]
fn a_call_has_the_least_of_the_times_that_are_given() {
    let left = Duration::from_secs(40);
    for (connect, read, expected) in [
        (Value::Null, Value::Null, 40),
        (json!(20), Value::Null, 40),
        (json!("2"), json!(" 8 "), 10),
        (json!(0), json!(7.0), 7),
        (json!(0), json!(0), 40),
        (json!(1e300), json!(1e300), 0),
        (json!(300), json!(300), 40),
    ] {
        let variables = json!({"url": "https://a.example",
            "connectionTimeoutInSeconds": connect, "readTimeoutInSeconds": read});
        match request(&variables) {
            Ok(request) => {
                let within = request.into_call(left).within;
                assert_eq!(within, Duration::from_secs(expected), "{variables}");
            }
            Err(invalid) => assert_eq!((invalid, expected), (TIMEOUT, 0), "{variables}"),
        }
    }
    let request = request(&json!({"url": "https://a.example"})).ok().unwrap();
    assert_eq!(request.into_call(Duration::from_hours(1)).within, CALL_MAX);
}

#[test]
fn every_attempt_says_which_task_it_is_for_unless_the_process_says_so_itself() {
    let key = |variables: &Value| {
        let headers = request(variables).ok().unwrap().headers;
        headers[IDEMPOTENCY_KEY].to_str().unwrap().to_owned()
    };
    assert_eq!(key(&json!({"url": "https://a.example"})), "PI1:7");
    let own = json!({"url": "https://a.example", "headers": {"Idempotency-Key": "order:7"}});
    assert_eq!(key(&own), "order:7");
}
