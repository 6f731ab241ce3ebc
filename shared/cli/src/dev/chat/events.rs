//! Facts about the person's conversations, told to every page that listens. They say that there is something to read; texts of
//! conversations do not travel here, but for what an agent is saying right now.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use runfleet_broker::{Broker, Heard};
use runfleet_contracts::Message;
use runfleet_contracts::facts::{AgentProgress, ChatMessage};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::Whose;
use super::answer::{Answer, Content, content, refused};

/// Pages that listen at once.
const STREAMS_MAX: usize = 16;

/// Events that a page may be behind; one that is further behind is told to look for itself.
const BEHIND_MAX: usize = 128;

/// Silence after which a sign of life is sent.
const BEAT: Duration = Duration::from_secs(15);

/// How long a page listens; it comes again by itself.
const LISTENS_FOR: Duration = Duration::from_mins(10);

/// How long a page may take for one event.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// Where events come from.
pub(super) struct Events {
    tell: broadcast::Sender<Bytes>,
    hearing: JoinHandle<()>,
}

impl Events {
    /// Hears the facts about a person.
    pub(super) fn hear(broker: &Broker, whose: &Whose) -> Self {
        let Whose { workspace, person, .. } = whose;
        let key = |kind: &str| format!("{kind}.{workspace}.{person}");
        let mut heard = broker.listen(vec![key(ChatMessage::KIND), key(AgentProgress::KIND)]);
        let tell = broadcast::Sender::new(BEHIND_MAX);
        let (told, whose) = (tell.clone(), whose.clone());
        let hearing = tokio::spawn(async move {
            while let Some(fact) = heard.next().await {
                if let Some((event, data)) = event(&fact, &whose) {
                    // Nobody may listen.
                    let _ = told.send(line(event, &data));
                }
            }
        });
        Self { tell, hearing }
    }

    /// A stream of events for a page.
    pub(super) fn stream(&self) -> Answer {
        if self.tell.receiver_count() >= STREAMS_MAX {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "too many pages listen");
        }
        let (send, pieces) = mpsc::channel(1);
        tokio::spawn(forward(self.tell.subscribe(), send));
        content(StatusCode::OK, "text/event-stream", Content::Pieces(pieces))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

/// What a page is told about a fact, if it is one about a conversation of the person.
fn event(fact: &Heard, whose: &Whose) -> Option<(&'static str, Value)> {
    if fact.kind == ChatMessage::KIND {
        let fact: ChatMessage = serde_json::from_slice(&fact.body).ok()?;
        let ours = fact.person == whose.person && fact.workspace == whose.workspace;
        return ours.then(|| ("message", json!({"conversationId": fact.conversation_id})));
    }
    if fact.kind != AgentProgress::KIND {
        return None;
    }
    let fact: AgentProgress = serde_json::from_slice(&fact.body).ok()?;
    // A project may have the name of a person.
    let ours = fact.person.as_ref() == Some(&whose.person) && fact.workspace == whose.workspace;
    let conversation = fact.conversation_id.filter(|_| ours)?;
    Some((
        "progress",
        json!({"conversationId": conversation, "runId": fact.run_id, "turn": fact.turn, "doing": fact.doing}),
    ))
}

/// An event as it is written. JSON has no line breaks of its own.
fn line(event: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

/// Passes events on until the page is gone, too slow, or has listened for long enough.
async fn forward(mut events: broadcast::Receiver<Bytes>, page: mpsc::Sender<Bytes>) {
    let until = Instant::now() + LISTENS_FOR;
    let mut next = Bytes::from_static(b"retry: 2000\nevent: hello\ndata: {}\n\n");
    loop {
        if !matches!(timeout(TAKEN_WITHIN, page.send(next)).await, Ok(Ok(()))) {
            return;
        }
        let beat = Instant::now() + BEAT;
        next = tokio::select! {
            () = page.closed() => return,
            event = timeout_at(beat.min(until), events.recv()) => match event {
                Ok(Ok(event)) => event,
                Ok(Err(RecvError::Lagged(_))) => line("lost", &json!({})),
                Ok(Err(RecvError::Closed)) => return,
                Err(_) if Instant::now() >= until => return,
                Err(_) => Bytes::from_static(b": still here\n\n"),
            },
        };
    }
}
