//! The project's side of a test: takes jobs off the queue and remembers how often each one came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use runfleet_broker::{
    Broker, Classify, ConsumerConfig, Inbound, LaneConfig, Outgoing, Route, Verdict,
};
use runfleet_contracts::{JobResult, JobRun, Message};
use runfleet_domain::{JobId, Lane, Name};
use runfleet_worker::inbox::JobInbox;
use tokio_util::sync::CancellationToken;

type Seen = Arc<Mutex<BTreeMap<JobId, (u32, JobRun)>>>;

/// Stopped when dropped.
pub struct Jobs {
    seen: Seen,
    stop: CancellationToken,
}

impl Jobs {
    /// Takes the jobs of one project; with `report` it tells the dispatcher that each one is done.
    pub fn take(broker: &Broker, workspace: Name, project: Name, report: bool) -> Self {
        let seen = Seen::default();
        let stop = CancellationToken::new();
        let queue = Route::Job { workspace, project }.queue().into_owned();
        let mut config = ConsumerConfig::new(vec![LaneConfig::new(queue, Lane::Interactive, 256)]);
        config.body_bytes_max = 1 << 20;
        let consumer = broker.consumer(config);
        let (map, publisher, shutdown) = (Arc::clone(&seen), broker.publisher(), stop.clone());
        tokio::spawn(async move {
            let handler = move |message: Inbound<JobInbox>| {
                let (map, publisher) = (Arc::clone(&map), publisher.clone());
                async move {
                    let job = message.body.0;
                    let (job_id, attempt) = (job.job_id, job.attempt);
                    let result = JobResult { job_id, attempt, succeeded: true, error: None };
                    map.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .entry(job.job_id)
                        .or_insert((0, job))
                        .0 += 1;
                    if report {
                        let body = serde_json::to_vec(&result).permanent("writing a result")?;
                        let id = format!("result:{}:{}", result.job_id, result.attempt);
                        let message = Outgoing::new(JobResult::KIND, id, body);
                        publisher
                            .publish(&Route::Done(Lane::Interactive), message)
                            .await
                            .transient("reporting")?;
                    }
                    Ok(Verdict::Done)
                }
            };
            consumer.run::<JobInbox, _, _>(handler, shutdown, Duration::from_secs(1)).await
        });
        Self { seen, stop }
    }

    /// The job and how often its message came.
    pub fn get(&self, id: JobId) -> Option<(u32, JobRun)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// How many different jobs have come.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for one job.
    pub async fn wait(&self, id: JobId, bound: Duration) -> Result<JobRun> {
        let began = Instant::now();
        loop {
            if let Some((_, job)) = self.get(id) {
                return Ok(job);
            }
            if began.elapsed() > bound {
                bail!("job {id} did not come within {bound:?}; {} others did", self.count());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
