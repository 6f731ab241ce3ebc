//! A host of the example project in Rust, as small as a host can be: it takes jobs, runs a handler, and says what became of them. It
//! measures nothing; who starts it looks at the clock.

use std::sync::Arc;
use std::time::Duration;

use runfleet_broker::{
    Classify, ConsumerConfig, Failure, Inbound, LaneConfig, Outgoing, Publisher, Route, Verdict,
};
use runfleet_contracts::agent_run::AgentResult;
use runfleet_contracts::message::ProcessCompletion;
use runfleet_contracts::{JobAccepted, JobResult, JobRun, Message};
use runfleet_domain::{JobId, Lane};
use runfleet_worker::inbox::JobInbox;
use tokio_util::sync::CancellationToken;

use crate::Fleet;
use crate::fleet::project;

/// Jobs in hand at once.
const PREFETCH: u16 = 256;

/// What a host says of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Nothing at all.
    Nothing,
    /// How each attempt has ended.
    Results,
    /// That an attempt has begun, and how it has ended.
    Everything,
}

/// A running host. It takes no more jobs when this is dropped: those are for who comes next.
pub(super) struct Host {
    stop: CancellationToken,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Host {
    /// Takes the jobs of the example project. `handler` is the handler of all of them; `told` hears of each job whose result the
    /// broker has, or that the host says nothing of. Each word of the host waits until the broker has the one before.
    pub(super) fn start<H, T>(fleet: &Fleet, says: Says, handler: H, told: T) -> Self
    where
        H: Fn(&JobRun) + Send + Sync + 'static,
        T: Fn(&JobRun) + Send + Sync + 'static,
    {
        let (workspace, project) = project();
        let stop = CancellationToken::new();
        let queue = Route::Job { workspace, project }.queue().into_owned();
        let lane = LaneConfig::new(queue, Lane::Interactive, PREFETCH);
        let consumer = fleet.broker.consumer(ConsumerConfig::new(vec![lane]));
        let (publisher, shutdown) = (fleet.broker.publisher(), stop.clone());
        let project = Arc::new((handler, told));
        tokio::spawn(async move {
            let work = move |message: Inbound<JobInbox>| {
                let (project, publisher) = (Arc::clone(&project), publisher.clone());
                async move {
                    let (job, (handler, told)) = (message.body.0, &*project);
                    let (job_id, attempt) = (job.job_id, job.attempt);
                    if says == Says::Everything {
                        let id = format!("accepted:{job_id}:{attempt}");
                        say(&publisher, id, &JobAccepted { job_id, attempt }).await?;
                    }
                    handler(&job);
                    if says != Says::Nothing {
                        let id = format!("result:{job_id}:{attempt}");
                        say(&publisher, id, &done(job_id, attempt)).await?;
                    }
                    told(&job);
                    Ok(Verdict::Done)
                }
            };
            consumer.run::<JobInbox, _, _>(work, shutdown, Duration::from_secs(1)).await
        });
        Self { stop }
    }
}

/// What a host says of a job that it has done.
pub(super) const fn done(job_id: JobId, attempt: u32) -> JobResult {
    JobResult { job_id, attempt, succeeded: true, error: None }
}

async fn say<M: Message>(publisher: &Publisher, id: String, body: &M) -> Result<(), Failure> {
    let message = Outgoing::message(id, body).permanent("writing what a host says")?;
    publisher
        .publish(&Route::JobAnswer(Lane::Interactive), message)
        .await
        .transient("saying something of a job")
}

/// How the run of an outcome job has ended, in the word of its kind.
pub(super) fn ending(job: &JobRun) -> String {
    let payload = job.payload.get();
    let process = serde_json::from_str::<ProcessCompletion>(payload).map(|it| it.process.state);
    let agent = || serde_json::from_str::<AgentResult>(payload).map(|it| it.agent_run.status);
    process.or_else(|_| agent()).unwrap_or_else(|_| "without an outcome".to_owned())
}
