//! Gemini: `/models/MODEL:streamGenerateContent`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::schema::system_with_schema;
use super::{arguments, object, parse, put};
use crate::draft::Draft;
use crate::failure::FailureKind;
use crate::refusal;
use crate::turn::{Message, Stop, ToolCall, TurnRequest, Usage};

pub(super) fn body(request: &TurnRequest) -> Value {
    let contents: Vec<Value> = request.messages.iter().map(content).collect();
    let mut body = json!({"contents": contents});
    // Most models take either tools or a schema.
    let (kept, told) = match &request.response_schema {
        Some(schema) if request.tools.is_empty() => (Some(schema), None),
        schema => (None, schema.as_ref()),
    };
    let system = system_with_schema(request, told);
    let system = (!system.is_empty()).then(|| json!({"parts": [{"text": system}]}));
    put(&mut body, "systemInstruction", system);
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
        }).collect();
        put(&mut body, "tools", Some(json!([{"functionDeclarations": tools}])));
    }
    let mut settings = json!({});
    put(&mut settings, "temperature", request.temperature);
    put(&mut settings, "topP", request.top_p);
    put(&mut settings, "maxOutputTokens", request.max_tokens);
    put(&mut settings, "responseMimeType", kept.map(|_| "application/json"));
    put(&mut settings, "responseJsonSchema", kept.cloned());
    put(&mut body, "generationConfig", Some(settings));
    body
}

fn content(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "parts": [{"text": text}]}),
        Message::Assistant { text, tool_calls } => {
            let said = (!text.is_empty() || tool_calls.is_empty()).then(|| json!({"text": text}));
            let parts: Vec<Value> = said.into_iter().chain(tool_calls.iter().map(call)).collect();
            json!({"role": "model", "parts": parts})
        }
        Message::Tools { results } => {
            let parts = results.iter().map(|result| {
                let word = if result.failed { "error" } else { "result" };
                json!({"functionResponse": {"name": result.name, "response": {word: result.content}}})
            });
            json!({"role": "user", "parts": parts.collect::<Vec<Value>>()})
        }
    }
}

fn call(call: &ToolCall) -> Value {
    let mut part = json!({"functionCall": {"name": call.name, "args": object(call)}});
    put(&mut part, "thoughtSignature", call.signature.clone());
    part
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<Used>,
    prompt_feedback: Option<Feedback>,
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    function_call: Option<FunctionCall>,
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: String,
    args: Option<Box<RawValue>>,
}

#[expect(clippy::struct_field_names, reason = "the protocol calls them so")]
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Used {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

pub(super) fn read(frame: &str, draft: &mut Draft) -> Result<bool, FailureKind> {
    let chunk: Chunk = parse(frame)?;
    if let Some(error) = chunk.error {
        return Err(refusal::of_error(error.get()));
    }
    if let Some(tokens) = chunk.usage_metadata {
        let said = tokens.candidates_token_count.unwrap_or_default();
        draft.usage = Usage {
            input_tokens: tokens.prompt_token_count.unwrap_or_default(),
            output_tokens: said.saturating_add(tokens.thoughts_token_count.unwrap_or_default()),
            cached_tokens: tokens.cached_content_token_count.unwrap_or_default(),
        };
    }
    if chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
        draft.stop = Some(Stop::Filtered);
    }
    let Some(candidate) = chunk.candidates.and_then(|all| all.into_iter().next()) else {
        return Ok(false);
    };
    let parts = candidate.content.and_then(|content| content.parts);
    for part in parts.into_iter().flatten() {
        take(part, draft)?;
    }
    if let Some(reason) = candidate.finish_reason {
        draft.stop = Some(stop(&reason));
    }
    Ok(false)
}

fn take(part: Part, draft: &mut Draft) -> Result<(), FailureKind> {
    if let Some(text) = part.text.filter(|_| part.thought != Some(true)) {
        draft.say(&text)?;
    }
    if let Some(call) = part.function_call {
        let place = draft.new_place();
        let id = call.id.unwrap_or_default();
        draft.call(place, &id, &call.name, &arguments(call.args.as_deref())?)?;
        if let Some(signature) = part.thought_signature {
            draft.sign(place, signature)?;
        }
    }
    Ok(())
}

fn stop(reason: &str) -> Stop {
    match reason {
        "STOP" => Stop::End,
        "MAX_TOKENS" => Stop::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stop::Filtered,
        _ => Stop::Other,
    }
}
