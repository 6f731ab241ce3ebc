//! A model behind HTTP: the turn in the provider's language, one guarded call, the answer out of its pieces.
//!
//! It repeats nothing, and keeps nothing from one turn to the next.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use runfleet_http::{
    Answer, Call, Endpoint, HeaderMap, HeaderValue, HttpError, Method, Pace, Service, Sink, Url,
    header,
};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::chat::{Answering, ChatModel, Progress};
use crate::draft::Draft;
use crate::failure::{FailureKind, ModelFailure};
use crate::frames::Framer;
use crate::refusal;
use crate::turn::{TurnAnswer, TurnRequest};
use crate::wire::{KeyPlace, Manner, Protocol};

/// How long a provider may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of the call to the first byte of the answer's body. The bound of a new connection is the HTTP client's.
    pub first_byte: Duration,
    /// From one byte to the next.
    pub idle: Duration,
    /// To the end of the answer.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(10),
        }
    }
}

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The language.
    pub protocol: Protocol,
    /// The place; see [`Protocol`] for what follows it.
    pub base_url: Url,
    /// Who asks.
    pub key: Option<SecretString>,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// Most bytes of one answer as it comes over the wire, where the text is a small part of it.
    pub answer_bytes_max: usize,
    /// Whether the answer is asked for piece by piece. Without, the first byte comes when everything is said.
    pub streaming: bool,
}

impl ProviderSettings {
    /// Without a key, with the default bounds, piece by piece.
    pub fn new(protocol: Protocol, base_url: Url) -> Self {
        let (timeouts, answer_bytes_max) = (Timeouts::default(), 8 * 1_024 * 1_024);
        Self { protocol, base_url, key: None, timeouts, answer_bytes_max, streaming: true }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("protocol", &self.protocol)
            .field("host", &self.base_url.host_str())
            .field("key", &self.key.is_some())
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// A model behind HTTP. Cheap to make: one for each key and place.
#[derive(Debug, Clone)]
pub struct HttpModel {
    service: Service,
    settings: ProviderSettings,
}

impl HttpModel {
    /// Asks through `service`. One with a breaker should be used for one provider only, since it counts "too often" as a failure.
    pub fn new(service: Service, settings: ProviderSettings) -> Self {
        Self { service, settings }
    }

    async fn ask(
        &self,
        request: &TurnRequest,
        progress: Progress<'_>,
    ) -> Result<TurnAnswer, ModelFailure> {
        let settings = &self.settings;
        let call = self.call(request)?;
        let pace = Pace { first_byte: settings.timeouts.first_byte, idle: settings.timeouts.idle };
        let mut reader = Reader::new(settings.protocol, progress);
        let answer = self.service.follow(call, pace, &mut reader).await;
        let answer = answer.map_err(|error| {
            reader.failure.map_or_else(|| ModelFailure::of_call(error), ModelFailure::from)
        })?;
        if answer.status >= 300 {
            let wait = retry_after(&answer, SystemTime::now());
            return Err(refusal::of_status(answer.status, &answer.body, wait).into());
        }
        Ok(reader.finish()?)
    }

    fn call(&self, request: &TurnRequest) -> Result<Call, ModelFailure> {
        let settings = &self.settings;
        let unwritten = || ModelFailure::from(FailureKind::NotAllowed);
        let host = settings.base_url.host_str().unwrap_or_default();
        let manner =
            Manner { streaming: settings.streaming, original: settings.protocol.is_original(host) };
        let body = settings.protocol.body(request, manner);
        let url = settings.protocol.url(&settings.base_url, &request.model, settings.streaming);
        let mut endpoint = Endpoint::new(url.ok_or_else(unwritten)?);
        endpoint.answer_bytes_max = settings.answer_bytes_max;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in settings.protocol.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        match (&settings.key, settings.protocol.key_place()) {
            (None, _) => {}
            (key, KeyPlace::Bearer) => endpoint.bearer.clone_from(key),
            (Some(key), KeyPlace::Header(name)) => {
                let mut value =
                    HeaderValue::from_str(key.expose_secret()).map_err(|_| unwritten())?;
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        let body = Bytes::from(body.to_string());
        let within = request.within.min(settings.timeouts.total);
        Ok(Call { method: Method::POST, endpoint, headers, body, within })
    }
}

impl ChatModel for HttpModel {
    fn turn_with<'a>(
        &'a self,
        request: &'a TurnRequest,
        cancel: CancellationToken,
        progress: Progress<'a>,
    ) -> Answering<'a> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(FailureKind::Cancelled.into()),
                answer = self.ask(request, progress) => answer,
            }
        })
    }
}

/// Some say the wait more exactly than the standard's whole seconds.
fn retry_after(answer: &Answer, now: SystemTime) -> Option<Duration> {
    let exact = answer.headers.get("retry-after-ms").and_then(|text| text.to_str().ok());
    let exact = exact.and_then(|text| text.trim().parse().ok()).map(Duration::from_millis);
    exact.filter(|wait| *wait < Duration::from_hours(24)).or_else(|| answer.retry_after(now))
}

/// Reads an answer while it comes.
struct Reader<'a> {
    protocol: Protocol,
    framer: Framer,
    draft: Draft,
    progress: Progress<'a>,
    /// What was wrong with the answer.
    failure: Option<FailureKind>,
}

impl<'a> Reader<'a> {
    fn new(protocol: Protocol, progress: Progress<'a>) -> Self {
        let framer = Framer::new(protocol.framing());
        Self { protocol, framer, draft: Draft::default(), progress, failure: None }
    }

    fn finish(mut self) -> Result<TurnAnswer, FailureKind> {
        let (protocol, draft) = (self.protocol, &mut self.draft);
        // Nothing is left when the last frame was seen.
        self.framer.end(&mut |frame| protocol.read(frame, draft))?;
        let news = self.draft.news();
        if !news.is_empty() {
            (self.progress)(news);
        }
        self.draft.finish(self.framer.is_whole())
    }
}

impl Sink for Reader<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, HttpError> {
        let (protocol, draft) = (self.protocol, &mut self.draft);
        let read = self.framer.push(piece, &mut |frame| protocol.read(frame, draft));
        let news = self.draft.news();
        if !news.is_empty() {
            (self.progress)(news);
        }
        match read {
            Ok(true) => Ok(ControlFlow::Break(())),
            Ok(false) => Ok(ControlFlow::Continue(())),
            Err(kind) => {
                self.failure = Some(kind);
                let large = kind == FailureKind::TooLarge;
                Err(if large { HttpError::too_large() } else { HttpError::answer() })
            }
        }
    }
}
