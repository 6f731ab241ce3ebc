//! Facts as whoever listens to the fleet hears them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_broker::{Heard, Listener};
use runfleet_contracts::Message;
use runfleet_contracts::facts::{AgentProgress, ChatMessage, Fact, RunStarted};
use runfleet_domain::RunId;
use tokio::time::timeout;

use crate::{BOUND, Fleet};

/// Hears facts.
pub struct Hearing {
    listener: Listener,
}

/// A fact about an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// It got further.
    Progress(AgentProgress),
    /// There is a message in a conversation.
    Message(ChatMessage),
}

impl Hearing {
    /// Listens to facts with these routing keys, and comes back when it hears them.
    pub async fn start(fleet: &Fleet, keys: &[&str]) -> Result<Self> {
        let run_id: RunId = "AG1501JDX3Z8GF0000000000000000".parse()?;
        let (workspace, project, target) = ("hearing".parse()?, "test".parse()?, "none".parse()?);
        let sign = RunStarted { run_id, workspace, project, target, at: 0 };
        let keys = keys.iter().map(ToString::to_string).chain([sign.key()]).collect();
        let mut listener = fleet.broker.listen(keys);
        let hears = async {
            loop {
                fleet.broker.publisher().publish_fact(&sign);
                let next = timeout(Duration::from_millis(100), listener.next()).await;
                if next.is_ok_and(|heard| heard.is_some_and(|fact| fact.kind == RunStarted::KIND)) {
                    return;
                }
            }
        };
        timeout(BOUND, hears).await.context("nothing is heard")?;
        Ok(Self { listener })
    }

    /// Everything that is told from now on about agents, up to what is waited for.
    pub async fn until(&mut self, what: &str, last: impl Fn(&Told) -> bool) -> Result<Vec<Told>> {
        let mut all = Vec::new();
        let hearing = async {
            loop {
                let fact = self.listener.next().await.context("the broker is gone")?;
                if let Some(told) = read(&fact)? {
                    all.push(told);
                }
                if all.last().is_some_and(&last) {
                    return Ok::<_, anyhow::Error>(());
                }
            }
        };
        let heard = timeout(BOUND, hearing).await;
        heard.with_context(|| format!("{what} was not told"))??;
        Ok(all)
    }
}

fn read(fact: &Heard) -> Result<Option<Told>> {
    Ok(match fact.kind.as_str() {
        AgentProgress::KIND => Some(Told::Progress(serde_json::from_slice(&fact.body)?)),
        ChatMessage::KIND => Some(Told::Message(serde_json::from_slice(&fact.body)?)),
        _ => None,
    })
}
