//! Stands in for agent-runner where delivery is measured alone: hears that runs are woken, and why. Changes nothing in the ledger.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use runfleet_broker::{ConsumerConfig, Inbound, LaneConfig, Line, Route, Verdict};
use runfleet_domain::{Lane, RunId};
use runfleet_worker::inbox::AdvanceInbox;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::Fleet;

/// How long somebody waits for the result of a message.
pub(super) const LONG: Duration = Duration::from_mins(1);

/// Messages in hand at once.
const PREFETCH: u16 = 256;

type Expected = Arc<Mutex<HashMap<String, oneshot::Sender<Instant>>>>;

/// Hears until it is dropped.
pub(super) struct Ears {
    expected: Expected,
    stop: CancellationToken,
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The result of one message, which is to come.
pub(super) struct Told(oneshot::Receiver<Instant>);

impl Told {
    /// When the run was woken with it; an error after [`LONG`].
    pub(super) async fn wait(self) -> Result<Instant> {
        let told = tokio::time::timeout(LONG, self.0).await;
        told.with_context(|| format!("not told within {LONG:?}"))?.context("nobody hears")
    }
}

impl Ears {
    /// Takes the messages that wake agent runs.
    pub(super) fn open(fleet: &Fleet) -> Self {
        let (expected, stop) = (Expected::default(), CancellationToken::new());
        let queue = Route::Agent(Line::Interactive).queue().into_owned();
        let lane = LaneConfig::new(queue, Lane::Interactive, PREFETCH);
        let consumer = fleet.broker.consumer(ConsumerConfig::new(vec![lane]));
        let (map, shutdown) = (Arc::clone(&expected), stop.clone());
        tokio::spawn(async move {
            let handler = move |message: Inbound<AdvanceInbox>| {
                let now = Instant::now();
                let waiting = lock(&map).remove(&message.message_id);
                if let Some(waiting) = waiting {
                    // Who waited may be gone by now.
                    let _ = waiting.send(now);
                }
                async { Ok(Verdict::Done) }
            };
            consumer.run::<AdvanceInbox, _, _>(handler, shutdown, Duration::from_secs(1)).await
        });
        Self { expected, stop }
    }

    /// Listens for the next time at which `run` is told the result of `call`. To be asked for before the call is made.
    pub(super) fn expect(&self, run: RunId, call: &str) -> Told {
        let (sender, told) = oneshot::channel();
        lock(&self.expected).insert(format!("advance:{run}:tool:{call}"), sender);
        Told(told)
    }
}

fn lock(
    expected: &Expected,
) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Instant>>> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}
