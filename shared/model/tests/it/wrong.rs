//! Against servers that hang, trickle, break off, never end, lie, or lead elsewhere.

use std::time::{Duration, Instant};

use runfleet_model::{
    FailureKind, HttpModel, ModelFailure, Protocol, ProviderSettings, Stop, TimeoutPhase, Timeouts,
    Usage,
};

use serde_json::{Value, json};

use crate::peers::{Peer, Then, full};
use crate::{LONG, PROTOCOLS, SHORT, ask, local, request, service, settings};

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";

/// Text without an end, as one of the pieces that a provider sends.
fn piece(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiCompatible => {
            "data: {\"choices\":[{\"delta\":{\"content\":\"more\"}}]}\n\n"
        }
        Protocol::Anthropic => {
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\
             \"text\":\"more\"}}\n\n"
        }
        Protocol::Gemini => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"more\"}]}}]}\r\n\r\n"
        }
        Protocol::Ollama => "{\"message\":{\"content\":\"more\"},\"done\":false}\n",
    }
}

async fn kind(model: &HttpModel) -> FailureKind {
    let failure: ModelFailure = ask(model, &request("hello")).await.unwrap_err();
    failure.kind
}

#[tokio::test]
async fn everything_that_hangs_ends_in_time_and_says_for_what_was_waited() {
    let first = Timeouts { first_byte: SHORT, idle: LONG, total: LONG };
    let idle = Timeouts { first_byte: LONG, idle: SHORT, total: LONG };
    let total = Timeouts { first_byte: LONG, idle: LONG, total: SHORT };
    let place = full().await;
    for protocol in PROTOCOLS {
        let silent = Peer::start("", "", Then::Hang).await;
        let head = Peer::start(EVENTS, "", Then::Hang).await;
        let begun = Peer::start(EVENTS, piece(protocol), Then::Hang).await;
        let pause = Then::Repeat(Duration::from_millis(20));
        let trickle = Peer::start(EVENTS, piece(protocol), pause).await;
        let comments = Peer::start(EVENTS, ": wait\n\n", pause).await;
        for (url, timeouts, phase) in [
            (place.url.clone(), first, TimeoutPhase::Connect),
            (silent.url(), first, TimeoutPhase::FirstByte),
            (head.url(), first, TimeoutPhase::FirstByte),
            (begun.url(), idle, TimeoutPhase::Idle),
            (trickle.url(), total, TimeoutPhase::Total),
            (comments.url(), total, TimeoutPhase::Total),
        ] {
            if protocol == Protocol::Ollama && url == comments.url() {
                continue;
            }
            let model = local(ProviderSettings { timeouts, ..settings(protocol, &url) });
            let began = Instant::now();
            assert_eq!(kind(&model).await, FailureKind::Timeout(phase), "{protocol:?}");
            assert!(began.elapsed() < LONG / 2, "{protocol:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn the_time_of_a_request_counts_when_it_is_shorter_than_that_of_the_provider() {
    let silent = Peer::start("", "", Then::Hang).await;
    let model = local(settings(Protocol::Anthropic, &silent.url()));
    let mut asked = request("hello");
    asked.within = SHORT;
    let failure = ask(&model, &asked).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout(TimeoutPhase::Total));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    for protocol in PROTOCOLS {
        let announced = "HTTP/1.1 200 OK\r\ncontent-length: 100000";
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked";
        let chunk = format!("{:x}\r\n{}\r\n", piece(protocol).len(), piece(protocol));
        for (head, part) in
            [(announced, piece(protocol)), (chunked, chunk.as_str()), (EVENTS, piece(protocol))]
        {
            let peer = Peer::start(head, part, Then::Close).await;
            let model = local(settings(protocol, &peer.url()));
            assert_eq!(kind(&model).await, FailureKind::Network, "{protocol:?} {head}");
        }
    }
}

#[tokio::test]
async fn ten_megabytes_are_too_large_and_what_never_ends_is_not_read_for_long() {
    const TEN: usize = 10 * 1_024 * 1_024;
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: {TEN}");
    let ten = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{}\"}}}}]}}", "x".repeat(TEN));
    let document = format!("{{\"x\":\"{}", "x".repeat(60_000));
    let line = format!("data: {}", "x".repeat(60_000));
    let comments = ": wait\n\n".repeat(10_000);
    let no = "HTTP/1.1 500 no\r\nconnection: close";
    let endless = Then::Repeat(Duration::ZERO);
    for protocol in PROTOCOLS {
        let pieces = piece(protocol).repeat(1_000);
        let unavailable = FailureKind::Unavailable { retry_after: None };
        for (name, head, part, then, expected) in [
            ("announced", announced.as_str(), "{", Then::Hang, FailureKind::TooLarge),
            ("ten megabytes", EVENTS, ten.as_str(), Then::Close, FailureKind::TooLarge),
            ("a document", EVENTS, document.as_str(), endless, FailureKind::TooLarge),
            ("a line", EVENTS, line.as_str(), endless, FailureKind::TooLarge),
            ("pieces", EVENTS, pieces.as_str(), endless, FailureKind::TooLarge),
            ("comments", EVENTS, comments.as_str(), endless, FailureKind::TooLarge),
            ("a no", no, line.as_str(), endless, unavailable),
        ] {
            let peer = Peer::start(head, part, then).await;
            let comments = name == "comments" && protocol == Protocol::Ollama;
            let expected = if comments { FailureKind::Malformed } else { expected };
            let model = local(settings(protocol, &peer.url()));
            assert_eq!(kind(&model).await, expected, "{protocol:?} {name}");
            // The system takes megabytes off the hands of a server that nobody reads.
            assert!(peer.sent() < 32 * 1_024 * 1_024, "{protocol:?} {name}: {}", peer.sent());
        }
    }
}

#[tokio::test]
async fn what_is_not_the_protocol_is_malformed() {
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    let html = "<!doctype html>\n<html><body>Sign in to the network</body></html>\n";
    for protocol in PROTOCOLS {
        for part in [
            "",
            "{}",
            "{\"hello\":1}",
            "[1,2]",
            "{\"choices\": 7, \"type\": 7, \"candidates\": 7, \"message\": 7}",
            "{\"choices\": [",
            "data: nonsense\n\n",
            "data: {\"choices\":{}, \"type\":1, \"candidates\":{}}\n\n",
            "data: [DONE]",
            html,
            deep.as_str(),
        ] {
            let peer = Peer::start(EVENTS, part, Then::Close).await;
            let model = local(settings(protocol, &peer.url()));
            let got = kind(&model).await;
            // Ollama's pieces are documents: one of them alone may be the start of an answer.
            let cut = protocol == Protocol::Ollama && part.starts_with('{');
            let as_expected = got == FailureKind::Malformed || (cut && got == FailureKind::Network);
            assert!(as_expected, "{protocol:?} {part:.40}: {got:?}");
        }
    }
    let peer = Peer::start("SSH-2.0-OpenSSH_9.2", "", Then::Close).await;
    let model = local(settings(Protocol::Anthropic, &peer.url()));
    assert_eq!(kind(&model).await, FailureKind::Network);
}

#[tokio::test]
async fn no_call_leaves_what_is_allowed() {
    let elsewhere = Peer::start(EVENTS, "", Then::Close).await;
    let nowhere = service("");
    for protocol in PROTOCOLS {
        for status in [301, 302, 303, 307, 308] {
            let head = format!(
                "HTTP/1.1 {status} x\r\nlocation: {}/x\r\ncontent-length: 0",
                elsewhere.url()
            );
            let peer = Peer::start(&head, "", Then::Close).await;
            let model = local(settings(protocol, &peer.url()));
            assert_eq!(kind(&model).await, FailureKind::NotAllowed, "{protocol:?} {status}");
            assert_eq!(peer.connections(), 1);
        }
        for url in [
            elsewhere.url(),
            elsewhere.url().replace("http:", "https:"),
            elsewhere.url().replace("127.0.0.1", "user:secret@127.0.0.1"),
            "http://169.254.169.254/latest".to_owned(),
            "https://[fd00:ec2::254]/v1".to_owned(),
            "http://example.com/v1".to_owned(),
            "file:///etc/passwd".to_owned(),
            "data:text/plain,x".to_owned(),
        ] {
            let model = HttpModel::new(nowhere.clone(), settings(protocol, &url));
            assert_eq!(kind(&model).await, FailureKind::NotAllowed, "{protocol:?} {url}");
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_model_name_stays_one_part_of_the_path() {
    let answer = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
    let peer = Peer::start(EVENTS, answer, Then::Close).await;
    let model = local(settings(Protocol::Gemini, &format!("{}/v1beta/", peer.url())));
    let mut asked = request("hello");
    asked.model = "../../admin?x=1#y".to_owned();
    ask(&model, &asked).await.unwrap();
    let sent = peer.requests().pop().unwrap();
    let path =
        "POST /v1beta/models/..%2F..%2Fadmin%3Fx=1%23y:streamGenerateContent?alt=sse HTTP/1.1";
    assert!(sent.starts_with(path), "{sent}");
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_has_its_kind() {
    let unavailable = FailureKind::Unavailable { retry_after: None };
    for (protocol, error, expected) in [
        (
            Protocol::OpenaiCompatible,
            "data: {\"error\":{\"code\":429}}\n\n",
            FailureKind::RateLimited { retry_after: None },
        ),
        (
            Protocol::Anthropic,
            "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            unavailable,
        ),
        (
            Protocol::Gemini,
            "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}\n\n",
            unavailable,
        ),
        (Protocol::Ollama, "{\"error\":\"the runner has gone\"}\n", unavailable),
    ] {
        let part = format!("{}{error}", piece(protocol));
        let peer = Peer::start(EVENTS, &part, Then::Hang).await;
        assert_eq!(kind(&local(settings(protocol, &peer.url()))).await, expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_wait_is_read_in_seconds_and_more_exactly_and_never_longer_than_a_day() {
    for (headers, expected) in [
        ("retry-after: 7", Some(Duration::from_secs(7))),
        ("retry-after: 7\r\nretry-after-ms: 1500", Some(Duration::from_millis(1_500))),
        ("retry-after-ms: 99999999999999", None),
        ("retry-after: 99999999999999", Some(Duration::from_hours(24))),
        ("retry-after: soon", None),
    ] {
        let head = format!("HTTP/1.1 429 no\r\n{headers}\r\ncontent-length: 0");
        let peer = Peer::start(&head, "", Then::Close).await;
        let model = local(settings(Protocol::OpenaiCompatible, &peer.url()));
        let expected = FailureKind::RateLimited { retry_after: expected };
        assert_eq!(kind(&model).await, expected, "{headers}");
    }
}

#[tokio::test]
async fn an_answer_ends_with_its_last_piece_although_the_connection_stays_open() {
    let openai = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\
        \"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n";
    let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
        {\"input_tokens\":3,\"cache_read_input_tokens\":4,\"cache_creation_input_tokens\":2,\
        \"output_tokens\":1}}}\n\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"content_block_start\",\
        \"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\
        \"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":\
        {\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let ollama = "{\"message\":{\"content\":\"Hi\"},\"done\":false}\n{\"done\":true,\"done_reason\":\
        \"stop\",\"prompt_eval_count\":9,\"eval_count\":2}\n";
    for (protocol, part, cached_tokens) in [
        (Protocol::OpenaiCompatible, openai, 4),
        (Protocol::Anthropic, anthropic, 4),
        (Protocol::Ollama, ollama, 0),
    ] {
        let peer = Peer::start(EVENTS, part, Then::Hang).await;
        let answer = ask(&local(settings(protocol, &peer.url())), &request("hello")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.stop), ("Hi", Stop::End), "{protocol:?}");
        let expected = Usage { input_tokens: 9, output_tokens: 2, cached_tokens };
        assert_eq!(answer.usage, expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_schema_is_given_to_the_provider_or_told_to_the_model() {
    let closed = json!({"type": "object", "additionalProperties": false, "required": ["answer"],
        "properties": {"answer": {"type": "integer"}}});
    let open = json!({"type": "object", "properties": {"answer": {"type": "integer"}}});
    let told = "fits the JSON Schema below";
    for (protocol, place, open_place) in [
        (
            Protocol::OpenaiCompatible,
            "/response_format/json_schema/schema",
            "/response_format/json_schema/schema",
        ),
        (Protocol::Anthropic, "/output_config/format/schema", ""),
        (
            Protocol::Gemini,
            "/generationConfig/responseJsonSchema",
            "/generationConfig/responseJsonSchema",
        ),
        (Protocol::Ollama, "/format", "/format"),
    ] {
        for (schema, place) in [(&closed, place), (&open, open_place)] {
            let peer = Peer::start("HTTP/1.1 500 no\r\ncontent-length: 0", "", Then::Close).await;
            let mut asked = request("hello");
            asked.response_schema = Some(schema.clone());
            ask(&local(settings(protocol, &peer.url())), &asked).await.unwrap_err();
            let sent = peer.requests().pop().unwrap();
            let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
            if place.is_empty() {
                assert!(body["system"].as_str().unwrap().contains(told), "{protocol:?} {body}");
            } else {
                assert_eq!(body.pointer(place), Some(schema), "{protocol:?} {body}");
                assert!(!sent.contains(told), "{protocol:?} {sent}");
            }
            if protocol == Protocol::OpenaiCompatible {
                assert_eq!(body["response_format"]["json_schema"]["strict"], schema == &closed);
            }
        }
    }
}
