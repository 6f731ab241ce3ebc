//! A host of a project for tests of jobs: takes its jobs, says that it has begun, and ends them as the test wants.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use runfleet_broker::{
    Broker, Classify, ConsumerConfig, Failure, HandlerResult, Inbound, LaneConfig, Outgoing,
    Publisher, Route, Verdict,
};
use runfleet_contracts::job::JobFailure;
use runfleet_contracts::{JobAccepted, JobResult, JobRun, Message};
use runfleet_domain::{Lane, Name};
use runfleet_worker::inbox::JobInbox;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

/// What a host does with an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The handler returns.
    Succeeds,
    /// The handler fails, and the next attempt can help.
    AsksAgain,
    /// The handler fails for good.
    Fails,
    /// The attempt begins, and nothing is heard of it any more.
    Hangs,
    /// The message is put aside as one that nobody can carry out.
    GivesUp,
}

/// An attempt as it came.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The job.
    pub run: JobRun,
    /// What its code calls the fleet with.
    pub token: Option<SecretString>,
    /// When it came.
    pub at: Instant,
}

/// A running host. Stopped when it is dropped.
pub struct JobHost {
    attempts: Arc<Mutex<Vec<Attempt>>>,
    stop: CancellationToken,
}

impl JobHost {
    /// Takes the jobs of one project; `ends` says how each attempt ends.
    pub fn start(
        broker: &Broker,
        workspace: Name,
        project: Name,
        ends: impl Fn(&JobRun) -> Ending + Send + Sync + 'static,
    ) -> Self {
        let (attempts, stop) = (Arc::<Mutex<Vec<Attempt>>>::default(), CancellationToken::new());
        let queue = Route::Job { workspace, project }.queue().into_owned();
        let mut config = ConsumerConfig::new(vec![LaneConfig::new(queue, Lane::Interactive, 64)]);
        config.body_bytes_max *= 2;
        let (consumer, publisher) = (broker.consumer(config), broker.publisher());
        let (seen, shutdown, ends) = (Arc::clone(&attempts), stop.clone(), Arc::new(ends));
        tokio::spawn(async move {
            let handler = move |message: Inbound<JobInbox>| {
                let (seen, ends, publisher) =
                    (Arc::clone(&seen), Arc::clone(&ends), publisher.clone());
                async move {
                    let run = message.body.0;
                    let ending = ends(&run);
                    let attempt = Attempt {
                        run: run.clone(),
                        token: message.authorization.clone(),
                        at: Instant::now(),
                    };
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(attempt);
                    end(&publisher, &run, ending).await
                }
            };
            consumer.run::<JobInbox, _, _>(handler, shutdown, Duration::from_secs(1)).await
        });
        Self { attempts, stop }
    }

    /// The attempts that have come, in order; one that came twice is there twice.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many attempts have come.
    pub async fn wait(&self, count: usize, bound: Duration) -> Result<Vec<Attempt>> {
        let began = Instant::now();
        loop {
            let attempts = self.attempts();
            if attempts.len() >= count {
                return Ok(attempts);
            }
            if began.elapsed() > bound {
                bail!("{} of {count} attempts came within {bound:?}", attempts.len());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for JobHost {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn end(publisher: &Publisher, run: &JobRun, ending: Ending) -> HandlerResult {
    if ending == Ending::GivesUp {
        return Ok(Verdict::Park("cannot", "nobody can carry this out".to_owned()));
    }
    let (job_id, attempt) = (run.job_id, run.attempt);
    say(publisher, format!("accepted:{job_id}:{attempt}"), &JobAccepted { job_id, attempt })
        .await?;
    let error = |code: &str, retryable| {
        Some(JobFailure {
            code: Some(code.to_owned()),
            message: Some("s3cret of the payload".to_owned()),
            retryable,
        })
    };
    let error = match ending {
        Ending::Hangs | Ending::GivesUp => return Ok(Verdict::Done),
        Ending::Succeeds => None,
        Ending::AsksAgain => error("RETRYABLE", true),
        Ending::Fails => error("SCRIPT_ERROR", false),
    };
    let result = JobResult { job_id, attempt, succeeded: error.is_none(), error };
    say(publisher, format!("result:{job_id}:{attempt}"), &result).await?;
    Ok(Verdict::Done)
}

async fn say<M: Message>(publisher: &Publisher, id: String, body: &M) -> Result<(), Failure> {
    let message = Outgoing::message(id, body).permanent("writing what a host says")?;
    publisher
        .publish(&Route::JobAnswer(Lane::Interactive), message)
        .await
        .transient("saying something of a job")
}
