//! What each language makes of one conversation, and of the odd things that providers send.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::turn::{Message, Stop, ToolResult, ToolSpec, TurnAnswer, Usage};

const MANNER: Manner = Manner { streaming: true, original: false };

/// A conversation with everything in it.
fn conversation() -> TurnRequest {
    let call = |id: &str, arguments: &str, signature: Option<&str>| ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: arguments.to_owned(),
        signature: signature.map(str::to_owned),
    };
    let result = |id: &str, content: &str, failed| ToolResult {
        call_id: id.to_owned(),
        name: "look".to_owned(),
        content: content.to_owned(),
        failed,
    };
    let tool = ToolSpec {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let calls = vec![call("c1", r#"{"at":1}"#, Some("sign")), call("c2", "{\"at\"", None)];
    TurnRequest {
        model: "m".to_owned(),
        system: "Be brief.".to_owned(),
        messages: vec![
            Message::User { text: "Hi".to_owned() },
            Message::Assistant { text: String::new(), tool_calls: calls },
            Message::Tools { results: vec![result("c1", "one", false), result("c2", "no", true)] },
            Message::Assistant { text: "Done.".to_owned(), tool_calls: Vec::new() },
        ],
        tools: vec![tool],
        temperature: Some(0.5),
        top_p: Some(0.25),
        max_tokens: Some(9),
        within: Duration::from_secs(1),
        ..TurnRequest::default()
    }
}

#[test]
fn a_conversation_in_the_words_of_chat_completions() {
    let body = Protocol::OpenaiCompatible.body(&conversation(), MANNER);
    let function = |arguments| json!({"name": "look", "arguments": arguments});
    assert_eq!(
        body,
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": function("{\"at\":1}")},
                    {"id": "c2", "type": "function", "function": function("{\"at\"")},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "one"},
                {"role": "tool", "tool_call_id": "c2", "content": "no"},
                {"role": "assistant", "content": "Done."},
            ],
            "tools": [{"type": "function", "function":
                {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}],
            "temperature": 0.5,
            "top_p": 0.25,
            "max_tokens": 9,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
    let manner = Manner { streaming: false, original: true };
    let body = Protocol::OpenaiCompatible.body(&conversation(), manner);
    assert_eq!(body["max_completion_tokens"], 9);
    assert!(body.get("max_tokens").is_none() && body.get("stream").is_none());
}

#[test]
fn a_conversation_in_the_words_of_messages() {
    assert_eq!(
        Protocol::Anthropic.body(&conversation(), MANNER),
        json!({
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": true},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
            ],
            "system": "Be brief.",
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
            "temperature": 0.5,
            "top_p": 0.25,
            "stream": true,
        })
    );
}

#[test]
fn a_conversation_in_the_words_of_gemini_shows_signatures_again() {
    assert_eq!(
        Protocol::Gemini.body(&conversation(), MANNER),
        json!({
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "sign"},
                    {"functionCall": {"name": "look", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "one"}}},
                    {"functionResponse": {"name": "look", "response": {"error": "no"}}},
                ]},
                {"role": "model", "parts": [{"text": "Done."}]},
            ],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [
                {"name": "look", "description": "Looks.", "parametersJsonSchema": {"type": "object"}}]}],
            "generationConfig": {"temperature": 0.5, "topP": 0.25, "maxOutputTokens": 9},
        })
    );
    let mut request = conversation();
    request.response_schema = Some(json!({"type": "string"}));
    let body = Protocol::Gemini.body(&request, MANNER);
    let system = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
    assert!(system.starts_with("Be brief.\n\n") && system.ends_with(r#"{"type":"string"}"#));
    assert!(body["generationConfig"].get("responseJsonSchema").is_none());
}

#[test]
fn a_conversation_in_the_words_of_ollama() {
    assert_eq!(
        Protocol::Ollama.body(&conversation(), MANNER),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"function": {"name": "look", "arguments": {"at": 1}}},
                    {"function": {"name": "look", "arguments": {}}},
                ]},
                {"role": "tool", "tool_name": "look", "content": "one"},
                {"role": "tool", "tool_name": "look", "content": "no"},
                {"role": "assistant", "content": "Done."},
            ],
            "stream": true,
            "tools": [{"type": "function", "function":
                {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}}],
            "options": {"temperature": 0.5, "top_p": 0.25, "num_predict": 9},
        })
    );
}

#[test]
fn a_turn_has_its_place_below_any_base() {
    let url = |protocol: Protocol, base: &str, streaming| {
        protocol.url(&base.parse().unwrap(), "a/b", streaming).map(String::from)
    };
    for (protocol, base, expected) in [
        (Protocol::OpenaiCompatible, "https://h/v1/", "https://h/v1/chat/completions"),
        (Protocol::OpenaiCompatible, "https://h/v1?v=2", "https://h/v1/chat/completions?v=2"),
        (Protocol::Anthropic, "https://h", "https://h/v1/messages"),
        (Protocol::Ollama, "http://h:1/x", "http://h:1/x/api/chat"),
        (Protocol::Gemini, "https://h/v1beta", "https://h/v1beta/models/a%2Fb:generateContent"),
    ] {
        assert_eq!(url(protocol, base, false).as_deref(), Some(expected));
    }
    assert_eq!(url(Protocol::Gemini, "data:x", true), None);
}

fn read_all(protocol: Protocol, frames: &[Value]) -> Result<TurnAnswer, FailureKind> {
    let mut draft = Draft::default();
    for frame in frames {
        if protocol.read(&frame.to_string(), &mut draft)? {
            break;
        }
    }
    draft.finish(false)
}

fn calls(answer: &TurnAnswer) -> Vec<(&str, &str, &str)> {
    let calls = answer.tool_calls.iter();
    calls.map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

#[test]
fn chat_completions_are_read_also_without_indexes_and_with_texts_in_parts() {
    let delta = |delta: Value| json!({"choices": [{"delta": delta, "finish_reason": null}]});
    let part =
        |function: Value| delta(json!({"content": null, "tool_calls": [{"function": function}]}));
    let answer = read_all(
        Protocol::OpenaiCompatible,
        &[
            delta(
                json!({"role": "assistant", "content": [{"type": "text", "text": "Let me "}, {"text": "look."}]}),
            ),
            part(json!({"name": "a", "arguments": "{\"x\""})),
            part(json!({"arguments": ":1}"})),
            part(json!({"name": "b", "arguments": {"y": 12_345_678_901_234_567_890_u64}})),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": null}),
            json!({"choices": null, "usage": {"prompt_tokens": 1, "completion_tokens": null}}),
        ],
    );
    let answer = answer.unwrap();
    let expected = [("call-1", "a", "{\"x\":1}"), ("call-2", "b", "{\"y\":12345678901234567890}")];
    assert_eq!(calls(&answer), expected);
    assert_eq!(answer.text, "Let me look.");
    assert_eq!(answer.usage, Usage { input_tokens: 1, ..Usage::default() });
    let refused = read_all(
        Protocol::OpenaiCompatible,
        &[
            delta(json!({"refusal": "I will "})),
            delta(json!({"refusal": "not."})),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ],
    );
    let refused = refused.unwrap();
    assert_eq!((refused.text.as_str(), refused.stop), ("I will not.", Stop::Filtered));
}

#[test]
fn messages_are_read_with_thoughts_left_out_and_inputs_in_pieces() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let answer = read_all(
        Protocol::Anthropic,
        &[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}),
            start(0, json!({"type": "thinking", "thinking": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hmm"})),
            delta(0, json!({"type": "signature_delta", "signature": "s"})),
            start(1, json!({"type": "tool_use", "id": "t1", "name": "a", "input": {}})),
            start(2, json!({"type": "tool_use", "id": "t2", "name": "b", "input": {}})),
            start(3, json!({"type": "server_tool_use", "id": "t3", "name": "web"})),
            delta(3, json!({"type": "input_json_delta", "partial_json": "{}"})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"x\":"})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "1}"})),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "something_newer"}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 8}}),
            json!({"type": "message_stop"}),
            json!({"type": "error", "error": {"type": "never_read"}}),
        ],
    );
    let answer = answer.unwrap();
    assert_eq!(calls(&answer), [("t1", "a", "{\"x\":1}"), ("t2", "b", "{}")]);
    assert_eq!((answer.text.as_str(), answer.stop), ("", Stop::ToolCalls));
    assert_eq!(answer.usage, Usage { input_tokens: 5, output_tokens: 8, cached_tokens: 0 });
}

#[test]
fn gemini_is_read_with_thoughts_left_out_signatures_kept_and_blocks_told() {
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let answer = read_all(
        Protocol::Gemini,
        &[
            parts(json!([{"text": "hmm", "thought": true}, {"text": "Now."}])),
            parts(
                json!([{"functionCall": {"name": "a", "args": {"x": 1}}, "thoughtSignature": "s"}]),
            ),
            parts(json!([{"functionCall": {"name": "a"}}])),
            json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 4,
            "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "cachedContentTokenCount": 1}}),
        ],
    );
    let answer = answer.unwrap();
    assert_eq!(calls(&answer), [("call-1", "a", "{\"x\":1}"), ("call-2", "a", "{}")]);
    assert_eq!(answer.tool_calls[0].signature.as_deref(), Some("s"));
    assert_eq!((answer.text.as_str(), answer.stop), ("Now.", Stop::ToolCalls));
    assert_eq!(answer.usage, Usage { input_tokens: 4, output_tokens: 5, cached_tokens: 1 });
    let blocked = [json!({"promptFeedback": {"blockReason": "SAFETY"}})];
    assert_eq!(read_all(Protocol::Gemini, &blocked).unwrap().stop, Stop::Filtered);
}

#[test]
fn what_a_provider_would_refuse_is_not_sent_to_it() {
    let silence = Message::Assistant { text: String::new(), tool_calls: Vec::new() };
    let mut request = TurnRequest { messages: vec![silence], ..TurnRequest::default() };
    request.response_schema = Some(json!({"type": "string"}));
    let body = Protocol::OpenaiCompatible.body(&request, MANNER);
    assert_eq!(body["messages"][1]["content"], "");
    let told = body["messages"][0]["content"].as_str().unwrap();
    assert!(told.ends_with(r#"{"type":"string"}"#) && body.get("response_format").is_none());
    let body = Protocol::Anthropic.body(&request, MANNER);
    assert_eq!(body["messages"], json!([]));
    assert!(body["system"].is_string() && body.get("output_config").is_none());
}
