//! Ollama: `/api/chat`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Manner, arguments, object, parse, put};
use crate::draft::Draft;
use crate::failure::FailureKind;
use crate::refusal;
use crate::turn::{Message, Stop, TurnRequest, Usage};

pub(super) fn body(request: &TurnRequest, manner: Manner) -> Value {
    let system = json!({"role": "system", "content": request.system});
    let system = (!request.system.is_empty()).then_some(system);
    let messages = request.messages.iter().flat_map(messages);
    let messages: Vec<Value> = system.into_iter().chain(messages).collect();
    let mut body =
        json!({"model": request.model, "messages": messages, "stream": manner.streaming});
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(|tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        }).collect();
        put(&mut body, "tools", Some(tools));
    }
    put(&mut body, "format", request.response_schema.clone());
    let mut options = json!({});
    put(&mut options, "temperature", request.temperature);
    put(&mut options, "top_p", request.top_p);
    put(&mut options, "num_predict", request.max_tokens);
    put(&mut body, "options", Some(options));
    body
}

fn messages(message: &Message) -> Vec<Value> {
    match message {
        Message::User { text } => vec![json!({"role": "user", "content": text})],
        Message::Assistant { text, tool_calls } => {
            let mut said = json!({"role": "assistant", "content": text});
            if !tool_calls.is_empty() {
                let calls: Vec<Value> = tool_calls
                    .iter()
                    .map(|call| json!({"function": {"name": call.name, "arguments": object(call)}}))
                    .collect();
                put(&mut said, "tool_calls", Some(calls));
            }
            vec![said]
        }
        Message::Tools { results } => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_name": result.name, "content": result.content}))
            .collect(),
    }
}

#[derive(Deserialize)]
struct Chunk {
    message: Option<Part>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<Box<RawValue>>,
}

pub(super) fn read(frame: &str, draft: &mut Draft) -> Result<bool, FailureKind> {
    let chunk: Chunk = parse(frame)?;
    if let Some(error) = chunk.error {
        return Err(refusal::of_error(error.get()));
    }
    if let Some(part) = chunk.message {
        draft.say(part.content.as_deref().unwrap_or_default())?;
        for call in part.tool_calls.into_iter().flatten() {
            let place = draft.new_place();
            let arguments = arguments(call.function.arguments.as_deref())?;
            draft.call(place, &call.id.unwrap_or_default(), &call.function.name, &arguments)?;
        }
    }
    if chunk.done != Some(true) {
        return Ok(false);
    }
    draft.usage = Usage {
        input_tokens: chunk.prompt_eval_count.unwrap_or_default(),
        output_tokens: chunk.eval_count.unwrap_or_default(),
        cached_tokens: 0,
    };
    draft.stop = Some(match chunk.done_reason.as_deref() {
        Some("stop") | None => Stop::End,
        Some("length") => Stop::MaxTokens,
        Some(_) => Stop::Other,
    });
    Ok(true)
}
