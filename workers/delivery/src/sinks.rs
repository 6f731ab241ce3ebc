//! Sinks: from what the catalog declares to one attempt of sending one message. What an attempt means is decided elsewhere.
//!
//! Nothing here is written to the ledger, and no address, key or text reaches a log or an error.

mod mail;
mod web;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runfleet_catalog::{ChatSink, Secretly, SinkKind};
use runfleet_domain::{ConversationId, Name};
use runfleet_http::{AllowList, Breaker, BreakerConfig, Client, Judge, Service};
use runfleet_worker::keys::{self, Places};
use secrecy::SecretString;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::outcome::Outcome;

/// Every word of [`Held::kind`].
pub(crate) const KINDS: [&str; 5] = ["builtin", "webhook", "slack", "mattermost", "smtp"];

/// The lease of a message that only goes into the conversation.
const BUILTIN_LEASE: Duration = Duration::from_secs(10);

/// Sinks kept with their breakers; when full, all are dropped and made again when needed.
const KEPT_MAX: usize = 1_000;

/// A message as a sink gets it. The private note of the agent is not in it.
#[derive(Clone, Copy)]
pub(crate) struct Letter<'a> {
    /// The same for every attempt.
    pub(crate) id: &'a str,
    pub(crate) workspace: &'a Name,
    pub(crate) project: &'a Name,
    pub(crate) agent: &'a Name,
    /// The agent's name for people.
    pub(crate) agent_name: &'a str,
    pub(crate) person: &'a Name,
    /// By what the sink knows the person.
    pub(crate) reach: Option<&'a str>,
    pub(crate) conversation: ConversationId,
    pub(crate) new_conversation: bool,
    pub(crate) title: Option<&'a str>,
    pub(crate) text: &'a str,
    pub(crate) now_ms: u64,
}

/// A sink that is in use.
pub(crate) struct Held {
    workspace: Name,
    sink: ChatSink,
    /// For those that HTTP reaches; with a breaker in it.
    service: Option<Service>,
    /// For the others.
    breaker: Breaker,
    permits: Arc<Semaphore>,
}

impl Held {
    /// How it is reached, as a word for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self.sink.kind {
            SinkKind::Builtin => KINDS[0],
            SinkKind::Webhook { .. } => KINDS[1],
            SinkKind::Slack { .. } => KINDS[2],
            SinkKind::Mattermost { .. } => KINDS[3],
            SinkKind::Smtp(_) => KINDS[4],
        }
    }

    /// Whether the conversation in the ledger is all there is.
    pub(crate) fn is_builtin(&self) -> bool {
        self.sink.kind == SinkKind::Builtin
    }

    /// Whether it does one id once, however often it gets it: the ledger does.
    pub(crate) fn deduplicates(&self) -> bool {
        matches!(self.sink.kind, SinkKind::Builtin | SinkKind::Webhook { deduplicates: true, .. })
    }

    /// How long an attempt may take, of what the settings say: the conversation takes no time worth waiting for, and a sink that
    /// may take longer than a lease would never be tried.
    pub(crate) fn lease(&self, set: Duration) -> Duration {
        if self.is_builtin() { set.min(BUILTIN_LEASE) } else { set.max(self.within() * 2) }
    }

    /// Bound of one attempt.
    pub(crate) fn within(&self) -> Duration {
        Duration::from_secs(self.sink.timeout_seconds.into())
    }

    /// The right to send one message, within the time of one attempt.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let waiting = Arc::clone(&self.permits).acquire_owned();
        timeout(self.within().min(Duration::from_secs(5)), waiting).await.ok()?.ok()
    }
}

/// All sinks.
pub(crate) struct Sinks {
    client: Client,
    judge: Judge,
    places: Places,
    held: Mutex<HashMap<(Name, Name), Arc<Held>>>,
}

impl Sinks {
    /// `client` must have the same list as `allow`.
    pub(crate) fn new(client: Client, allow: AllowList, places: Places) -> Self {
        Self { client, judge: Judge::new(allow), places, held: Mutex::default() }
    }

    /// The sink of a workspace as it is declared now. Its breaker lives until the declaration changes.
    pub(crate) fn of(&self, workspace: &Name, name: &Name, sink: &ChatSink) -> Arc<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (workspace.clone(), name.clone());
        if let Some(found) = held.get(&key).filter(|found| found.sink == *sink) {
            return Arc::clone(found);
        }
        if held.len() >= KEPT_MAX {
            held.clear();
        }
        let made = Arc::new(self.make(workspace, sink));
        held.insert(key, Arc::clone(&made));
        made
    }

    fn make(&self, workspace: &Name, sink: &ChatSink) -> Held {
        let purpose = match sink.kind {
            SinkKind::Webhook { .. } => Some("chat_webhook"),
            SinkKind::Slack { .. } => Some("chat_slack"),
            SinkKind::Mattermost { .. } => Some("chat_mattermost"),
            SinkKind::Builtin | SinkKind::Smtp(_) => None,
        };
        let breaker = BreakerConfig::default();
        let service = purpose.map(|purpose| self.client.service(purpose, Some(breaker)));
        let parallel = usize::try_from(sink.parallel.max(1)).unwrap_or(1);
        Held {
            workspace: workspace.clone(),
            sink: sink.clone(),
            service,
            breaker: Breaker::new(breaker),
            permits: Arc::new(Semaphore::new(parallel)),
        }
    }

    /// One attempt, within the time that the sink has.
    pub(crate) async fn send(&self, held: &Held, letter: &Letter<'_>) -> Outcome {
        match (&held.sink.kind, &held.service) {
            (SinkKind::Webhook { url, key, .. }, Some(service)) => {
                let (Some(url), Some(key)) =
                    (self.read(held, url).await, self.read(held, key).await)
                else {
                    return no_secret();
                };
                web::webhook(service, &url, &key, letter, held.within()).await
            }
            (SinkKind::Slack { url }, Some(service)) => match self.read(held, url).await {
                Some(url) => web::slack(service, &url, letter, held.within()).await,
                None => no_secret(),
            },
            (SinkKind::Mattermost { url }, Some(service)) => match self.read(held, url).await {
                Some(url) => web::mattermost(service, &url, letter, held.within()).await,
                None => no_secret(),
            },
            (SinkKind::Smtp(server), _) => {
                let password = match &server.password {
                    None => None,
                    Some(place) => match self.read(held, place).await {
                        Some(password) => Some(password),
                        None => return no_secret(),
                    },
                };
                let within = held.within();
                mail::send(&self.judge, &held.breaker, server, password, letter, within).await
            }
            // Nobody sends these.
            _ => Outcome::Refused,
        }
    }

    async fn read(&self, held: &Held, place: &Secretly) -> Option<SecretString> {
        let found = keys::read(place, &held.workspace, &self.places).await;
        let told = |error: &keys::NoSecret| {
            tracing::error!(workspace = %held.workspace, problem = error.0, "a chat sink cannot be used");
        };
        found.inspect_err(told).ok()
    }
}

/// Somebody has to put it there; until then nothing was sent.
fn no_secret() -> Outcome {
    Outcome::Refused
}
