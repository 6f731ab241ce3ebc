//! Chat completions: `/chat/completions`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::schema::{is_object, is_strict, system_with_schema};
use super::{Manner, arguments, parse, put};
use crate::draft::Draft;
use crate::failure::FailureKind;
use crate::refusal;
use crate::turn::{Message, Stop, TurnRequest, Usage};

pub(super) fn body(request: &TurnRequest, manner: Manner) -> Value {
    // The original takes schemas of objects only.
    let (given, told): (Vec<_>, Vec<_>) =
        request.response_schema.iter().partition(|schema| is_object(schema));
    let system = system_with_schema(request, told.first().copied());
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system}));
    let messages = request.messages.iter().flat_map(messages);
    let messages: Vec<Value> = system.into_iter().chain(messages).collect();
    let mut body = json!({"model": request.model, "messages": messages});
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(|tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        }).collect();
        put(&mut body, "tools", Some(tools));
    }
    if let Some(schema) = given.first() {
        let format = json!({"name": "answer", "schema": schema, "strict": is_strict(schema)});
        put(
            &mut body,
            "response_format",
            Some(json!({"type": "json_schema", "json_schema": format})),
        );
    }
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "top_p", request.top_p);
    // The original takes the old name no more for its newer models; others know only that one.
    let most = if manner.original { "max_completion_tokens" } else { "max_tokens" };
    put(&mut body, most, request.max_tokens);
    if manner.streaming {
        put(&mut body, "stream", Some(true));
        put(&mut body, "stream_options", Some(json!({"include_usage": true})));
    }
    body
}

fn messages(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({"role": "user", "content": text})],
        Message::Assistant { text, tool_calls } => {
            let silent = text.is_empty() && !tool_calls.is_empty();
            let content = if silent { Value::Null } else { text.as_str().into() };
            let mut said = json!({"role": "assistant", "content": content});
            if !tool_calls.is_empty() {
                let calls: Vec<Value> = tool_calls.iter().map(|call| {
                    let function = json!({"name": call.name, "arguments": call.arguments});
                    json!({"id": call.id, "type": "function", "function": function})
                }).collect();
                put(&mut said, "tool_calls", Some(calls));
            }
            vec![said]
        }
        Message::Tools { results } => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_call_id": result.call_id, "content": result.content}))
            .collect(),
    }
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Used>,
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Part>,
    message: Option<Part>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<Value>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Used {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

pub(super) fn read(frame: &str, draft: &mut Draft) -> Result<bool, FailureKind> {
    if frame == "[DONE]" {
        return Ok(true);
    }
    let chunk: Chunk = parse(frame)?;
    if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
        return Err(refusal::of_error(error.get()));
    }
    if let Some(tokens) = chunk.usage {
        let kept = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
        draft.usage = Usage {
            input_tokens: tokens.prompt_tokens.unwrap_or_default(),
            output_tokens: tokens.completion_tokens.unwrap_or_default(),
            cached_tokens: kept.unwrap_or_default(),
        };
    }
    // Only one choice is asked for.
    let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else {
        return Ok(false);
    };
    let whole = choice.message.is_some();
    if let Some(part) = choice.delta.or(choice.message) {
        take(part, draft)?;
    }
    let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
    if whole || reason.is_some() {
        // What was said about a refusal before is not taken back.
        draft.stop = draft.stop.filter(|stop| *stop == Stop::Filtered);
        draft.stop.get_or_insert(stop(reason.as_deref()));
    }
    Ok(false)
}

fn take(part: Part, draft: &mut Draft) -> Result<(), FailureKind> {
    match part.content {
        Some(Value::String(text)) => draft.say(&text)?,
        Some(Value::Array(parts)) => {
            for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                draft.say(text)?;
            }
        }
        _ => {}
    }
    if let Some(refusal) = part.refusal.filter(|refusal| !refusal.is_empty()) {
        draft.say(&refusal)?;
        draft.stop = Some(Stop::Filtered);
    }
    for call in part.tool_calls.into_iter().flatten() {
        let id = call.id.unwrap_or_default();
        let name = call.function.as_ref().and_then(|function| function.name.clone());
        let name = name.unwrap_or_default();
        let raw = call.function.as_ref().and_then(|function| function.arguments.as_deref());
        // Some send no index: whatever has a name begins a call.
        let begins = !name.is_empty();
        let place = call.index.or_else(|| draft.last_place().filter(|_| !begins));
        let place = place.unwrap_or_else(|| draft.new_place());
        draft.call(place, &id, &name, &arguments(raw)?)?;
    }
    Ok(())
}

fn stop(reason: Option<&str>) -> Stop {
    match reason {
        Some("stop") => Stop::End,
        Some("tool_calls" | "function_call") => Stop::ToolCalls,
        Some("length") => Stop::MaxTokens,
        Some("content_filter") => Stop::Filtered,
        _ => Stop::Other,
    }
}
