//! The languages of providers: a turn to the body of a request, and frames of an answer to a draft. Pure.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod schema;

use runfleet_http::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::draft::Draft;
use crate::failure::FailureKind;
use crate::frames::Framing;
use crate::turn::{ToolCall, TurnRequest};

/// The language that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Chat completions of `OpenAI`, which many others speak. The base is what `/chat/completions` follows, often `…/v1`.
    OpenaiCompatible,
    /// Messages of Anthropic. The base is what `/v1/messages` follows.
    Anthropic,
    /// Gemini of Google. The base is what `/models/…` follows, often `…/v1beta`.
    Gemini,
    /// Ollama. The base is what `/api/chat` follows.
    Ollama,
}

/// How a key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// As a bearer token.
    Bearer,
    /// In a header of its own.
    Header(&'static str),
}

/// How a request is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Whether the answer is to come piece by piece.
    pub(crate) streaming: bool,
    /// Whether the provider is the one that has made the protocol.
    pub(crate) original: bool,
}

impl Protocol {
    /// Where a turn is asked for; none when the base cannot be followed by anything.
    pub(crate) fn url(self, base: &Url, model: &str, streaming: bool) -> Option<Url> {
        let mut url = base.clone();
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty();
        match self {
            Self::OpenaiCompatible => path.extend(["chat", "completions"]),
            Self::Anthropic => path.extend(["v1", "messages"]),
            Self::Ollama => path.extend(["api", "chat"]),
            Self::Gemini => {
                let verb = if streaming { "streamGenerateContent" } else { "generateContent" };
                path.push("models").push(&format!("{model}:{verb}"))
            }
        };
        drop(path);
        if self == Self::Gemini && streaming {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Some(url)
    }

    /// How a key is shown.
    pub(crate) fn key_place(self) -> KeyPlace {
        match self {
            Self::OpenaiCompatible | Self::Ollama => KeyPlace::Bearer,
            Self::Anthropic => KeyPlace::Header("x-api-key"),
            Self::Gemini => KeyPlace::Header("x-goog-api-key"),
        }
    }

    /// Headers beside those of every request.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
            Self::OpenaiCompatible | Self::Gemini | Self::Ollama => &[],
        }
    }

    /// Whether `host` belongs to whoever has made the protocol.
    pub(crate) fn is_original(self, host: &str) -> bool {
        self == Self::OpenaiCompatible && host == "api.openai.com"
    }

    /// The body of a request.
    pub(crate) fn body(self, request: &TurnRequest, manner: Manner) -> Value {
        match self {
            Self::OpenaiCompatible => openai::body(request, manner),
            Self::Anthropic => anthropic::body(request, manner),
            Self::Gemini => gemini::body(request),
            Self::Ollama => ollama::body(request, manner),
        }
    }

    /// How an answer is cut into frames.
    pub(crate) fn framing(self) -> Framing {
        match self {
            Self::Ollama => Framing::Lines,
            Self::OpenaiCompatible | Self::Anthropic | Self::Gemini => Framing::Events,
        }
    }

    /// Reads one frame into a draft. True when nothing more is expected.
    pub(crate) fn read(self, frame: &str, draft: &mut Draft) -> Result<bool, FailureKind> {
        let ended = match self {
            Self::OpenaiCompatible => openai::read(frame, draft),
            Self::Anthropic => anthropic::read(frame, draft),
            Self::Gemini => gemini::read(frame, draft),
            Self::Ollama => ollama::read(frame, draft),
        }?;
        // An end of nothing is no answer that was cut off.
        draft.frames += u64::from(!ended);
        Ok(ended)
    }
}

/// Reads a frame of JSON.
fn parse<T: DeserializeOwned>(frame: &str) -> Result<T, FailureKind> {
    serde_json::from_str(frame).map_err(|_| FailureKind::Malformed)
}

/// Arguments as JSON text, of providers that send them as text or as JSON.
fn arguments(raw: Option<&RawValue>) -> Result<String, FailureKind> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(text) if text.starts_with('"') => parse(text),
        Some(json) => Ok(json.to_owned()),
    }
}

/// The arguments of an earlier call for providers that want an object: an empty one where the model had written none. What was
/// wrong with them is in the result of the call.
fn object(call: &ToolCall) -> Value {
    let object = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    object.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Puts a value under a name, if there is one.
fn put(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(fields), Some(value)) = (body.as_object_mut(), value) {
        fields.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests;
