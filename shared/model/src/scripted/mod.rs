//! A model that plays answers from a file, for development and tests.
//!
//! It keeps nothing: what is played is a function of the file and the request alone, so that a run that is taken up again after a
//! crash hears the same.

mod file;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub use self::file::ScriptError;
use self::file::{Called, Failed, Rule, Said, Script, When};
use crate::chat::{Answering, ChatModel, Progress};
use crate::failure::{FailureKind, ModelFailure, TimeoutPhase};
use crate::turn::{Message, Stop, ToolCall, TurnAnswer, TurnRequest, Usage};

/// Bytes that count as one token where a script does not say what was used.
const BYTES_PER_TOKEN: usize = 4;

/// A model that plays answers from a file.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    file: String,
    script: Script,
}

impl ScriptedModel {
    /// Reads the file, of 1 MiB at most. Blocks; for the start of a program.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        Ok(Self { file: path.display().to_string(), script: file::read(path)? })
    }

    /// Reads a script from a text. `file` is what errors call it.
    pub fn from_text(file: &str, text: &str) -> Result<Self, ScriptError> {
        Ok(Self { file: file.to_owned(), script: file::parse(file, text)? })
    }

    async fn play(
        &self,
        request: &TurnRequest,
        progress: Progress<'_>,
    ) -> Result<TurnAnswer, ModelFailure> {
        let Some(rule) = self.script.rules.iter().find(|rule| holds(&rule.when, request)) else {
            tracing::warn!(
                file = self.file,
                turn = request.turn,
                attempt = request.attempt,
                "no rule of the script fits"
            );
            return Err(FailureKind::Refused { status: 404 }.into());
        };
        sleep(Duration::from_millis(rule.delay_ms)).await;
        let said = outcome(rule).await?;
        for word in said.words() {
            if said.word_ms > 0 {
                sleep(Duration::from_millis(said.word_ms)).await;
            }
            progress(word);
        }
        Ok(answer(said, request))
    }
}

impl ChatModel for ScriptedModel {
    fn turn_with<'a>(
        &'a self,
        request: &'a TurnRequest,
        cancel: CancellationToken,
        progress: Progress<'a>,
    ) -> Answering<'a> {
        let end = Instant::now() + request.within;
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(FailureKind::Cancelled.into()),
                answer = self.play(request, progress) => answer,
                () = sleep_until(end) => Err(FailureKind::Timeout(TimeoutPhase::Total).into()),
            }
        })
    }
}

/// What a rule plays.
async fn outcome(rule: &Rule) -> Result<&Said, FailureKind> {
    let wait = |wait: Option<u64>| wait.map(Duration::from_millis);
    Err(match (&rule.answer, rule.failure) {
        (Some(said), _) => return Ok(said),
        (None, Some(Failed::Hang)) => std::future::pending().await,
        (None, Some(Failed::RateLimited { retry_after_ms })) => {
            FailureKind::RateLimited { retry_after: wait(retry_after_ms) }
        }
        (None, Some(Failed::Unavailable { retry_after_ms })) => {
            FailureKind::Unavailable { retry_after: wait(retry_after_ms) }
        }
        (None, Some(Failed::Refused { status })) => FailureKind::Refused { status },
        (None, Some(Failed::Auth)) => FailureKind::Auth,
        (None, Some(Failed::Quota)) => FailureKind::Quota,
        (None, Some(Failed::ContextTooLong)) => FailureKind::ContextTooLong,
        (None, Some(Failed::TooLarge)) => FailureKind::TooLarge,
        (None, Some(Failed::Cut)) => FailureKind::Network,
        (None, Some(Failed::Malformed) | None) => FailureKind::Malformed,
    })
}

fn holds(when: &When, request: &TurnRequest) -> bool {
    let has = |wanted: Option<&String>, text: &str| wanted.is_none_or(|part| text.contains(part));
    when.model.as_ref().is_none_or(|model| *model == request.model)
        && when.turn.is_none_or(|turn| turn == request.turn)
        && when.attempt.is_none_or(|attempt| attempt == request.attempt)
        && has(when.system.as_ref(), &request.system)
        && has(when.user.as_ref(), last_user(request))
        && when.earlier.as_ref().is_none_or(|part| was_said(request, part))
        && when.tool.as_ref().is_none_or(|tool| {
            let Some(Message::Tools { results }) = request.messages.last() else { return false };
            results.iter().any(|result| {
                tool.name.as_ref().is_none_or(|name| *name == result.name)
                    && has(tool.contains.as_ref(), &result.content)
            })
        })
}

fn last_user(request: &TurnRequest) -> &str {
    let texts = request.messages.iter().rev().filter_map(|message| match message {
        Message::User { text } => Some(text.as_str()),
        Message::Assistant { .. } | Message::Tools { .. } => None,
    });
    texts.into_iter().next().unwrap_or_default()
}

/// Whether a text of the user or the model before the last text of the user has this part.
fn was_said(request: &TurnRequest, part: &str) -> bool {
    let texts = request.messages.iter().filter_map(|message| match message {
        Message::User { text } => Some((true, text.as_str())),
        Message::Assistant { text, .. } => Some((false, text.as_str())),
        Message::Tools { .. } => None,
    });
    let texts: Vec<_> = texts.collect();
    let last = texts.iter().rposition(|(user, _)| *user).unwrap_or_default();
    texts.iter().take(last).any(|(_, text)| text.contains(part))
}

fn answer(said: &Said, request: &TurnRequest) -> TurnAnswer {
    let calls = said.tool_calls.iter().enumerate();
    let tool_calls: Vec<_> = calls.map(|(index, call)| made(call, request.turn, index)).collect();
    let usual = if tool_calls.is_empty() { Stop::End } else { Stop::ToolCalls };
    let stop = said.stop.unwrap_or(usual);
    let usage = said.usage.unwrap_or_else(|| guessed(said, &tool_calls, request));
    TurnAnswer { text: said.text.clone(), tool_calls, usage, stop }
}

fn made(call: &Called, turn: u32, index: usize) -> ToolCall {
    let arguments = match &call.arguments {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    let id = call.id.clone().unwrap_or_else(|| format!("call-{turn}-{}", index + 1));
    ToolCall { id, name: call.name.clone(), arguments, signature: None }
}

/// Something that grows with the conversation.
fn guessed(said: &Said, calls: &[ToolCall], request: &TurnRequest) -> Usage {
    let messages = request.messages.iter().map(|message| match message {
        Message::User { text } => text.len(),
        Message::Assistant { text, tool_calls } => text.len() + written(tool_calls),
        Message::Tools { results } => results.iter().map(|result| result.content.len()).sum(),
    });
    let read = request.system.len() + messages.sum::<usize>();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    Usage {
        input_tokens: tokens(read),
        output_tokens: tokens(said.text.len() + written(calls)),
        cached_tokens: 0,
    }
}

fn written(calls: &[ToolCall]) -> usize {
    calls.iter().map(|call| call.name.len() + call.arguments.len()).sum()
}

#[cfg(test)]
mod tests;
