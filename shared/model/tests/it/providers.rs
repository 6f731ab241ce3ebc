//! Against an independent mock of providers, in each of their languages.

use std::time::Duration;

use runfleet_model::{
    ChatModel, FailureKind, HttpModel, Message, Protocol, ProviderSettings, Stop, ToolResult,
    ToolSpec, Usage,
};
use secrecy::SecretString;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::mock::Mock;
use crate::{LONG, PROTOCOLS, ask, local, request};

fn models(mock: &Mock) -> Vec<(Protocol, HttpModel)> {
    PROTOCOLS.map(|protocol| (protocol, local(mock.settings(protocol)))).into()
}

fn weather() -> ToolSpec {
    ToolSpec {
        name: "get_weather".to_owned(),
        description: "What the weather is like.".to_owned(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }
}

#[tokio::test]
async fn a_text_comes_piece_by_piece_and_whole_with_what_it_has_used() {
    let mock = Mock::start();
    for protocol in PROTOCOLS {
        for streaming in [true, false] {
            let settings = ProviderSettings { streaming, ..mock.settings(protocol) };
            let (model, mut pieces) = (local(settings), Vec::new());
            let mut progress = |piece: &str| pieces.push(piece.to_owned());
            let asked = request("say hello");
            let answer = model.turn_with(&asked, CancellationToken::new(), &mut progress);
            let answer = answer.await.unwrap();
            let expected = "Hello from the mock, with a text that is longer than one piece.";
            assert_eq!(answer.text, expected, "{protocol:?}");
            assert_eq!(pieces.concat(), expected, "{protocol:?}");
            assert_eq!(answer.stop, Stop::End, "{protocol:?}");
            if protocol != Protocol::Ollama {
                let expected = Usage { input_tokens: 11, output_tokens: 7, cached_tokens: 0 };
                assert_eq!(answer.usage, expected, "{protocol:?} {streaming}");
            }
        }
    }
}

#[tokio::test]
async fn tools_are_called_and_what_they_say_is_read() {
    let mock = Mock::start();
    for (protocol, model) in models(&mock) {
        let mut asked = request("what about the weather?");
        asked.tools = vec![weather()];
        let answer = ask(&model, &asked).await.unwrap();
        assert_eq!(answer.stop, Stop::ToolCalls, "{protocol:?}");
        let calls = answer.tool_calls.iter().map(|call| (&*call.name, &*call.arguments));
        let expected =
            [("get_weather", r#"{"city":"Hanoi"}"#), ("get_weather", r#"{"city":"Huế"}"#)];
        assert_eq!(calls.collect::<Vec<_>>(), expected, "{protocol:?}");
        assert_ne!(answer.tool_calls[0].id, answer.tool_calls[1].id, "{protocol:?}");
        let results = answer.tool_calls.iter().zip(["rain in Hanoi", "rain in Hue"]);
        let results = results.map(|(call, content)| ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: content.to_owned(),
            failed: content.ends_with("Hue"),
        });
        let results = results.collect();
        asked
            .messages
            .push(Message::Assistant { text: answer.text, tool_calls: answer.tool_calls });
        asked.messages.push(Message::Tools { results });
        let answer = ask(&model, &asked).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.stop), ("It rains in both.", Stop::End));
        assert!(answer.tool_calls.is_empty());
    }
}

#[tokio::test]
async fn an_answer_as_json_is_asked_for_where_the_provider_has_a_word_for_it() {
    let mock = Mock::start();
    for (protocol, model) in models(&mock) {
        let mut asked = request("answer as JSON");
        asked.response_schema = Some(json!({"type": "object"}));
        let answer = ask(&model, &asked).await.unwrap();
        // The mock gives another answer when it was asked in the words of chat completions.
        let expected = if protocol == Protocol::OpenaiCompatible { 43 } else { 42 };
        assert_eq!(answer.text, format!("{{\"answer\":{expected}}}"), "{protocol:?}");
    }
    let journal = mock.journal().await;
    assert_eq!(journal.len(), PROTOCOLS.len());
    assert!(journal.iter().all(|entry| entry["response"]["status"] == 200));
}

#[tokio::test]
async fn arguments_are_what_the_model_wrote_and_its_limit_is_told() {
    let mock = Mock::start();
    for (protocol, model) in models(&mock) {
        if matches!(protocol, Protocol::OpenaiCompatible | Protocol::Anthropic) {
            let mut asked = request("bad arguments please");
            asked.tools = vec![weather()];
            let answer = ask(&model, &asked).await.unwrap();
            let written = &answer.tool_calls[0].arguments;
            let unreadable = serde_json::from_str::<serde_json::Value>(written).is_err();
            // The mock repairs what it says in one of the languages.
            assert!(unreadable || protocol == Protocol::Anthropic, "{written}");
        }
        // The mock has no word of Ollama's for it.
        if protocol != Protocol::Ollama {
            let answer = ask(&model, &request("write forever")).await.unwrap();
            assert_eq!(answer.stop, Stop::MaxTokens, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn what_a_provider_refuses_has_a_kind_and_none_of_its_words() {
    let mock = Mock::start();
    let wait = Some(Duration::from_secs(7));
    for (protocol, model) in models(&mock) {
        for (user, expected, retryable) in [
            ("too often", FailureKind::RateLimited { retry_after: wait }, true),
            ("overloaded", FailureKind::Unavailable { retry_after: None }, true),
            ("too long", FailureKind::ContextTooLong, false),
            ("refused", FailureKind::Refused { status: 400 }, false),
            ("garbled", FailureKind::Malformed, false),
            ("dropped", FailureKind::Network, true),
            ("cut off", FailureKind::Network, true),
        ] {
            let failure = ask(&model, &request(user)).await.unwrap_err();
            assert_eq!(failure.kind, expected, "{protocol:?} {user}");
            assert_eq!(failure.retryable, retryable, "{protocol:?} {user}");
            let shown = format!("{failure} {failure:?}");
            assert!(!shown.contains("canary"), "{shown}");
        }
        let mut settings = mock.settings(protocol);
        settings.key = Some(SecretString::from("wrong"));
        let failure = ask(&local(settings), &request("say hello")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_in_the_middle_of_its_answer_ends_at_once() {
    let mock = Mock::start();
    for (protocol, model) in models(&mock) {
        let (cancel, asked) = (CancellationToken::new(), request("slowly"));
        let stopper = cancel.clone();
        let mut heard = 0;
        let mut progress = |_: &str| {
            heard += 1;
            if heard == 2 {
                stopper.cancel();
            }
        };
        let began = std::time::Instant::now();
        let failure = model.turn_with(&asked, cancel, &mut progress).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Cancelled, "{protocol:?}");
        // All of it takes more than a minute.
        assert!(began.elapsed() < LONG / 2, "{protocol:?}");
        assert_eq!(heard, 2, "{protocol:?}");
    }
}
