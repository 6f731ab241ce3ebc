//! Messages: `/v1/messages`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::schema::{is_object, is_strict, system_with_schema};
use super::{Manner, arguments, object, parse, put};
use crate::draft::Draft;
use crate::failure::FailureKind;
use crate::refusal;
use crate::turn::{Message, Stop, TurnRequest};

/// Used that may be written when nobody says how many: the protocol wants a number.
const MAX_TOKENS: u32 = 4_096;

pub(super) fn body(request: &TurnRequest, manner: Manner) -> Value {
    // A message with nothing in it is refused.
    let silent = |message: &&Message| matches!(message, Message::Assistant { text, tool_calls } if text.is_empty() && tool_calls.is_empty());
    let messages = request.messages.iter().filter(|message| !silent(message));
    let messages: Vec<Value> = messages.map(message).collect();
    let most = request.max_tokens.unwrap_or(MAX_TOKENS);
    let mut body = json!({"model": request.model, "max_tokens": most, "messages": messages});
    let (kept, told): (Vec<_>, Vec<_>) =
        request.response_schema.iter().partition(|schema| is_object(schema) && is_strict(schema));
    let system = system_with_schema(request, told.first().copied());
    put(&mut body, "system", (!system.is_empty()).then_some(system));
    if let Some(schema) = kept.first() {
        put(
            &mut body,
            "output_config",
            Some(json!({"format": {"type": "json_schema", "schema": schema}})),
        );
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        });
        put(&mut body, "tools", Some(tools.collect::<Vec<Value>>()));
    }
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "top_p", request.top_p);
    put(&mut body, "stream", manner.streaming.then_some(true));
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, tool_calls } => {
            // An empty block is refused.
            let said = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let calls = tool_calls.iter().map(|call| {
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(call)})
            });
            let content: Vec<Value> = said.into_iter().chain(calls).collect();
            json!({"role": "assistant", "content": content})
        }
        Message::Tools { results } => {
            let content = results.iter().map(|result| {
                let mut block = json!({"type": "tool_result", "tool_use_id": result.call_id,
                    "content": result.content});
                put(&mut block, "is_error", result.failed.then_some(true));
                block
            });
            json!({"role": "user", "content": content.collect::<Vec<Value>>()})
        }
    }
}

/// An event of an answer, or an answer that is one document.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    index: Option<u64>,
    message: Option<Whole>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: Option<Used>,
    error: Option<Box<RawValue>>,
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Whole {
    usage: Option<Used>,
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[expect(clippy::struct_field_names, reason = "the protocol calls them so")]
#[derive(Deserialize)]
struct Used {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

pub(super) fn read(frame: &str, draft: &mut Draft) -> Result<bool, FailureKind> {
    let event: Event = parse(frame)?;
    match event.r#type.as_str() {
        "error" => {
            return Err(refusal::of_error(event.error.as_deref().map_or("", RawValue::get)));
        }
        "message_stop" => return Ok(true),
        "message_start" => count(event.message.and_then(|message| message.usage), draft),
        "content_block_start" => {
            if let Some(block) = event.content_block {
                begin(event.index, &block, draft)?;
            }
        }
        "content_block_delta" => {
            let Some(delta) = event.delta else { return Ok(false) };
            if let Some(text) = delta.text {
                draft.say(&text)?;
            }
            if let Some(json) = delta.partial_json {
                let place = event.index.or(draft.last_place()).ok_or(FailureKind::Malformed)?;
                // Tools that the provider runs itself are none of ours.
                if draft.has(place) {
                    draft.call(place, "", "", &json)?;
                }
            }
        }
        "message_delta" => {
            count(event.usage, draft);
            if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                draft.stop = Some(stop(&reason));
            }
        }
        "message" => {
            count(event.usage, draft);
            for (index, block) in (0..).zip(event.content.into_iter().flatten()) {
                begin(Some(index), &block, draft)?;
                if block.r#type == "tool_use" {
                    draft.call(index, "", "", &arguments(block.input.as_deref())?)?;
                }
            }
            draft.stop = Some(event.stop_reason.as_deref().map_or(Stop::Other, stop));
        }
        // A sign of life, the end of a block, or something newer.
        _ => {}
    }
    Ok(false)
}

/// A block begins. What there is of its input is empty, and comes in pieces.
fn begin(index: Option<u64>, block: &Block, draft: &mut Draft) -> Result<(), FailureKind> {
    match block.r#type.as_str() {
        "text" => draft.say(block.text.as_deref().unwrap_or_default()),
        "tool_use" => {
            let place = index.unwrap_or_else(|| draft.new_place());
            let id = block.id.as_deref().unwrap_or_default();
            draft.call(place, id, block.name.as_deref().unwrap_or_default(), "")
        }
        _ => Ok(()),
    }
}

/// Takes the figures that are told; those that come later replace those that came before.
fn count(tokens: Option<Used>, draft: &mut Draft) {
    let Some(tokens) = tokens else { return };
    if let Some(fresh) = tokens.input_tokens {
        let read = tokens.cache_read_input_tokens.unwrap_or_default();
        let written = tokens.cache_creation_input_tokens.unwrap_or_default();
        draft.usage.cached_tokens = read;
        draft.usage.input_tokens = fresh.saturating_add(read).saturating_add(written);
    }
    if let Some(output) = tokens.output_tokens {
        draft.usage.output_tokens = output;
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::End,
        "tool_use" => Stop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
        "refusal" => Stop::Filtered,
        _ => Stop::Other,
    }
}
