//! Wakes what is overdue: takes due alarms from every shard and publishes their messages again.
//!
//! The script that takes an alarm also pushes it ahead, so two sweepers never work on the same one and a sweeper that dies
//! here only delays it.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use prometheus::IntCounterVec;
use runfleet_broker::Publisher;
use runfleet_contracts::{DeliverMessage, JobDue, OutcomeReady};
use runfleet_domain::Shard;
use runfleet_store::{AlarmSet, Due, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::effects::{self, Effect};

/// Alarms taken from one shard at a time.
const BATCH: u32 = 64;

/// Shards that are swept at the same time: their questions go to Redis together.
const AT_ONCE: usize = 8;

/// Sweeps one set of alarms in all shards until it is told to stop.
pub(crate) struct Sweeper {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    /// Whether there is a session with the broker. Without one no alarm is taken: taking it puts it far ahead, and what only
    /// the broker's absence has held up would come late.
    pub(crate) connected: watch::Receiver<bool>,
    pub(crate) set: AlarmSet,
    pub(crate) every: Duration,
    pub(crate) woken: IntCounterVec,
}

impl Sweeper {
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        // Replicas that started together must not sweep together.
        let mut wait = self.every.mul_f64(rand::random_range(0.1..1.0));
        while shutdown.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
            let sweeper = &self;
            let sweeping = stream::iter(Shard::all()).for_each_concurrent(AT_ONCE, |shard| {
                let wanted = !shutdown.is_cancelled() && *sweeper.connected.borrow();
                async move {
                    if wanted {
                        sweeper.sweep(shard).await;
                    }
                }
            });
            sweeping.await;
            wait = self.every.mul_f64(rand::random_range(0.9..1.1));
        }
    }

    /// Takes batches until less than a full one is due.
    async fn sweep(&self, shard: Shard) {
        loop {
            let due = match self.store.due_alarms(shard, self.set, BATCH).await {
                Ok(due) => due,
                Err(error) => {
                    tracing::warn!(%error, "sweeping alarms failed");
                    return;
                }
            };
            let taken = due.len();
            join_all(due.into_iter().map(|due| self.wake(due))).await;
            if taken < BATCH as usize || !*self.connected.borrow() {
                return;
            }
        }
    }

    async fn wake(&self, due: Due) {
        let (kind, effect) = match effect_of(&due) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(%error, "an alarm could not be turned into a message");
                return;
            }
        };
        let result = match effects::publish(&self.publisher, effect).await {
            Ok(()) => "published",
            Err(error) => {
                tracing::warn!(%error, kind, "waking something overdue failed; its alarm will ring again");
                "failed"
            }
        };
        self.woken.with_label_values(&[kind, result]).inc();
    }
}

fn effect_of(due: &Due) -> Result<(&'static str, Effect), effects::EffectError> {
    Ok(match due {
        Due::Advance { run_id, lane, traceparent, cut_off: true, .. } => (
            "advance",
            effects::quarantine(*run_id, effects::ALARM, *lane, traceparent.as_deref())?,
        ),
        Due::Advance { run_id, lane, traceparent, .. } => {
            ("advance", effects::advance(*run_id, effects::ALARM, *lane, traceparent.as_deref())?)
        }
        Due::Outcome { run_id, workspace, project, job, hops, chain, lane, traceparent } => {
            let ready = OutcomeReady {
                run_id: *run_id,
                workspace: workspace.clone(),
                project: project.clone(),
                job: job.clone(),
                hops: *hops,
                chain: *chain,
            };
            ("outcome", effects::outcome(&ready, *lane, traceparent.as_deref())?)
        }
        Due::Job { job_id, workspace, project, job, lane, traceparent } => {
            let due = JobDue {
                job_id: *job_id,
                workspace: workspace.clone(),
                project: project.clone(),
                job: job.clone(),
            };
            ("job", effects::job_due(&due, *lane, traceparent.as_deref())?)
        }
        Due::Message(due) => {
            let deliver = DeliverMessage {
                run_id: due.run_id,
                call_id: due.call_id.clone(),
                message: due.text.clone(),
                note: due.note.clone(),
                deadline: due.until_ms,
            };
            ("message", effects::deliver(&deliver, due.lane, due.traceparent.as_deref())?)
        }
    })
}
