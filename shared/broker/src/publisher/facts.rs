//! Facts: what has happened, told to whoever listens. Telling one never waits, is never confirmed and never repeated; a fact that
//! cannot be told at once is gone. Nothing may depend on one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use runfleet_contracts::Fact;
use runfleet_contracts::facts::FACT_BYTES_MAX;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::PublishError;
use crate::names::FACTS_EXCHANGE;
use crate::outgoing::{fact_properties, short};
use crate::session::{Session, Shared};

/// Facts that wait to be written; what comes while so many wait is gone.
const WAITING_MAX: usize = 4_096;

/// When a channel is opened again after the broker has closed it, as it does when the exchange is missing or may not be used.
const REOPEN_AFTER: Duration = Duration::from_secs(10);

/// What is told within this time after a group is written goes with the next one, so that client library and broker are woken up once
/// for all of it. What is told after a pause goes at once.
const EVERY: Duration = Duration::from_millis(10);

/// Facts in one group.
const GROUP_MAX: usize = 256;

/// A fact on its way.
pub(crate) struct Told {
    key: ShortString,
    kind: ShortString,
    body: Vec<u8>,
}

impl Told {
    pub(crate) fn new<F: Fact>(fact: &F) -> Result<Self, PublishError> {
        let body = serde_json::to_vec(fact).map_err(|_| PublishError::TooLarge)?;
        if body.len() > FACT_BYTES_MAX {
            return Err(PublishError::TooLarge);
        }
        Ok(Self { key: short(fact.key())?, kind: short(F::KIND)?, body })
    }
}

/// The way from publishers to the task that writes.
pub(crate) fn way() -> (mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    mpsc::channel(WAITING_MAX)
}

/// Writes facts in their order until nobody can tell any more.
pub(crate) async fn run(shared: Arc<Shared>, app_id: ShortString, mut facts: mpsc::Receiver<Told>) {
    let sessions = shared.sessions();
    let mut writer = Writer { held: None, not_before: Instant::now() };
    let mut group = Vec::with_capacity(GROUP_MAX);
    while facts.recv_many(&mut group, GROUP_MAX).await > 0 {
        let session = sessions.borrow().clone();
        let channel = match &session {
            Some(session) => writer.channel(session).await,
            None => None,
        };
        let bound = shared.config.rpc_timeout;
        for written in write(channel.as_ref(), &app_id, group.drain(..), bound).await {
            shared.metrics.fact(written);
        }
        sleep(EVERY).await;
    }
}

/// Writes a group, and says of each fact whether it was written. All are queued before the first one is waited for.
async fn write(
    channel: Option<&Channel>,
    app_id: &ShortString,
    group: impl ExactSizeIterator<Item = Told>,
    bound: Duration,
) -> Vec<bool> {
    let Some(channel) = channel else { return vec![false; group.len()] };
    let writing = join_all(group.map(|fact| async move {
        let properties = fact_properties(fact.kind, app_id.clone());
        let options = BasicPublishOptions::default();
        let writing =
            channel.basic_publish(FACTS_EXCHANGE.into(), fact.key, options, &fact.body, properties);
        matches!(timeout(bound, writing).await, Ok(Ok(_)))
    }));
    writing.await
}

struct Writer {
    held: Option<(Weak<Session>, Channel)>,
    not_before: Instant,
}

impl Writer {
    /// A channel of this session for nothing but facts, so that an exchange that is not there stops nothing else.
    async fn channel(&mut self, session: &Arc<Session>) -> Option<Channel> {
        // While the broker takes nothing, a fact gets old.
        if *session.blocked.borrow() {
            return None;
        }
        if let Some((of, channel)) = &self.held {
            let same = of.upgrade().is_some_and(|of| Arc::ptr_eq(&of, session));
            if same && channel.status().connected() {
                return Some(channel.clone());
            }
            if same {
                tracing::warn!(
                    "the broker takes no facts; is `x.facts` there, and may it be written to?"
                );
                self.not_before = Instant::now() + REOPEN_AFTER;
            }
            self.held = None;
        }
        if Instant::now() < self.not_before {
            return None;
        }
        let opened = session.publish.channel().await;
        if opened.is_err() {
            self.not_before = Instant::now() + REOPEN_AFTER;
        }
        let channel = opened.ok()?;
        self.held = Some((Arc::downgrade(session), channel.clone()));
        Some(channel)
    }
}
