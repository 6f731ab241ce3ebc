//! `jobs.enqueue`: a background job of the project, now or for later. Decide, commit, publish, answer. In this order.

use std::time::Duration;

use runfleet_broker::{Classify, Failure, Inbound, PublishError, Verdict};
use runfleet_catalog::{Project, Snapshot};
use runfleet_contracts::job::{EnqueueJob as Options, JobEnqueued, JobTime as Time, ValidEnqueue};
use runfleet_contracts::{ErrorBody, ErrorCode, JobDue, Reply, Request};
use runfleet_domain::admission::{self, EnqueuePlan, EnqueueRefusal, EnqueueRules, enqueue_bounds};
use runfleet_domain::limits::{HOPS_START, JOB_CHAIN_MAX, StartLimits};
use runfleet_domain::{JobId, MessageId, Shard, Source};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{EnqueueJob, Enqueued, JobTime, NewJobOrigin, Verdict as Admission};
use runfleet_worker::effects;
use serde_json::value::RawValue;
use ulid::Ulid;

use crate::answer::Caller;
use crate::handler::{Deps, RawRequest, message_id, patience};
use crate::start::budget_spent;

/// What the catalog says about a job, and what is counted in any case.
struct Decision {
    plan: Result<EnqueuePlan, EnqueueRefusal>,
    limits: StartLimits,
    waiting_max: u32,
    max_attempts: u32,
    timeout_ms: u32,
}

/// One call on its way.
struct Enqueueing<'a> {
    deps: &'a Deps,
    caller: &'a Caller,
    message: &'a Inbound<RawRequest>,
    asks: &'a Verified,
    operation: &'static str,
    id: MessageId,
}

pub(crate) async fn enqueue(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation.as_str();
    let id = message_id(message);
    match (id, Options::parse(&request.payload, now_ms())) {
        (Ok(id), Ok(asked)) => {
            Enqueueing { deps, caller, message, asks, operation, id }.run(&asked).await
        }
        (Err(error), _) | (_, Err(error)) => Ok(deps.refuse(caller, operation, error).await),
    }
}

impl Enqueueing<'_> {
    async fn run(&self, asked: &ValidEnqueue) -> Result<Verdict, Failure> {
        let deciding = tokio::time::timeout(patience(self.message), self.decide(asked));
        let decision = match deciding.await {
            Ok(Ok(decision)) => decision,
            Ok(Err(failure)) => return self.postpone(false, failure).await,
            Err(_) => return self.postpone(false, Failure::transient("deciding in time")).await,
        };
        runfleet_faults::point("intake.before_enqueue");
        let (identity, by) = (self.asks.claims.identity(), self.asks.claims.enqueued_by());
        let command = self.command(asked, &decision, &identity, &by);
        let committing = self.deps.store.enqueue_job(&command);
        let enqueued = match tokio::time::timeout(patience(self.message), committing).await {
            Ok(Ok(enqueued)) => enqueued,
            Ok(Err(error)) => {
                let maybe_written = error.maybe_written();
                return match Err(error).transient("enqueueing the job") {
                    Err(failure) => self.postpone(maybe_written, failure).await,
                    Ok(never) => never,
                };
            }
            // The script may be on its way: the same message id or key finds what it did.
            Err(_) => return self.postpone(true, Failure::transient("enqueueing in time")).await,
        };
        runfleet_faults::point("intake.enqueued");
        match enqueued {
            Enqueued::Created { job, due: false } => self.answer(job, false).await,
            Enqueued::Created { job, due: true } | Enqueued::Replayed { job } => {
                self.due(asked, job).await
            }
            Enqueued::Duplicate { job } => self.answer(job, true).await,
            refused => {
                let error = refusal(&refused, decision.plan.err());
                Ok(self.deps.refuse(self.caller, self.operation, error).await)
            }
        }
    }

    /// Decides by the catalog in memory; what that refuses is looked up once more in the ledger, where it may have been applied
    /// a moment ago.
    async fn decide(&self, asked: &ValidEnqueue) -> Result<Decision, Failure> {
        let (catalog, workspace) = (&self.deps.catalog, &self.asks.claims.workspace);
        let known = catalog.get(workspace).await.transient("loading the catalog")?;
        let decision = self.look(asked, known.as_deref());
        let by_catalog = matches!(
            decision.plan,
            Err(EnqueueRefusal::NotDeclared | EnqueueRefusal::ChainTooLong { .. })
        );
        if !by_catalog {
            return Ok(decision);
        }
        let fresh = catalog.refresh(workspace).await.transient("loading the catalog")?;
        Ok(self.look(asked, fresh.as_deref()))
    }

    fn look(&self, asked: &ValidEnqueue, snapshot: Option<&Snapshot>) -> Decision {
        let claims = &self.asks.claims;
        let project: Option<&Project> =
            snapshot.and_then(|snapshot| snapshot.project(&claims.project));
        let job = project.and_then(|project| project.jobs.get(&asked.job));
        let rules = EnqueueRules {
            enabled: self.deps.offered.jobs,
            job_declared: job.is_some(),
            chain: claims.chain,
            chain_max: project.map_or(JOB_CHAIN_MAX, |project| project.limits.job_chain),
            hops_max: project.map_or(HOPS_START, |project| project.limits.hops),
        };
        Decision {
            plan: admission::enqueue(&claims.caller(self.asks.expired), &rules),
            limits: project.map_or(StartLimits::DEFAULT, |project| project.limits.start()),
            waiting_max: project.map_or(0, |project| project.limits.jobs_waiting),
            max_attempts: job.map_or(1, |job| job.max_attempts),
            timeout_ms: job.map_or(0, |job| job.timeout_ms),
        }
    }

    fn command<'a>(
        &'a self,
        asked: &'a ValidEnqueue,
        decision: &Decision,
        identity: &'a str,
        enqueued_by: &'a str,
    ) -> EnqueueJob<'a> {
        let claims = &self.asks.claims;
        let (calls_budget, calls_limit) = enqueue_bounds(claims.source, &decision.limits);
        let plan = decision.plan.as_ref().ok();
        EnqueueJob {
            id: JobId::new(Shard::of_workspace(claims.workspace.as_str()), Ulid::generate()),
            workspace: &claims.workspace,
            project: &claims.project,
            job: &asked.job,
            origin: NewJobOrigin::Enqueued(asked.payload.as_deref().map(RawValue::get)),
            enqueued_by,
            message_id: &self.id,
            key: asked.key.as_ref(),
            time: match asked.time {
                Time::After(millis) => JobTime::After(Duration::from_millis(millis)),
                Time::At(at) => JobTime::At(at),
            },
            execution: &claims.execution,
            batch: claims.source == Source::Batch,
            calls_budget,
            calls_limit,
            verdict: if plan.is_some() { Admission::Accept } else { Admission::Refuse },
            jobs_waiting_max: decision.waiting_max,
            max_attempts: decision.max_attempts,
            timeout_ms: decision.timeout_ms,
            lane: self.message.lane,
            user: claims.user.as_ref(),
            identity,
            hops: plan.map_or(0, |plan| plan.hops),
            depth: claims.depth,
            chain: plan.map_or(0, |plan| plan.chain),
            traceparent: self.message.traceparent.as_deref(),
        }
    }

    /// The job run exists and is due: have it looked at, answer, and wait for the confirm last.
    async fn due(&self, asked: &ValidEnqueue, job: JobId) -> Result<Verdict, Failure> {
        let (claims, message) = (&self.asks.claims, self.message);
        let due = JobDue {
            job_id: job,
            workspace: claims.workspace.clone(),
            project: claims.project.clone(),
            job: asked.job.clone(),
        };
        let effect = effects::job_due(&due, message.lane, message.traceparent.as_deref());
        let effect = effect.permanent("writing the message of a job")?;
        let sent = effects::send(&self.deps.publisher, effect).await;
        runfleet_faults::point("intake.enqueue_published");
        let verdict = self.answer(job, false).await?;
        let confirmed = match sent {
            Ok(confirm) => confirm.wait().await,
            Err(error) => Err(error),
        };
        if let Err(PublishError::Refused) = confirmed {
            // The job is recorded and its alarm tells of it later; those behind it wait in front of their commit.
            self.deps.hold_back(message.lane);
            return Ok(verdict);
        }
        confirmed.transient("telling of the job")?;
        Ok(verdict)
    }

    async fn answer(&self, job: JobId, duplicate: bool) -> Result<Verdict, Failure> {
        self.deps.count(self.operation, if duplicate { "duplicate" } else { "ok" });
        let enqueued = JobEnqueued { run_id: job.to_string(), duplicate };
        self.caller.tell(&self.deps.publisher, &Reply::Done(enqueued)).await;
        Ok(Verdict::Done)
    }

    async fn postpone(&self, maybe_written: bool, failure: Failure) -> Result<Verdict, Failure> {
        self.deps.postpone(self.caller, self.operation, maybe_written, failure).await
    }
}

fn used_up(budget: &str, limit: u32, used: u32) -> ErrorBody {
    ErrorBody::new(ErrorCode::RateLimited)
        .with("budget", budget)
        .with("limit", limit)
        .with("used", used)
}

/// What the caller is told when no job run was made.
fn refusal(enqueued: &Enqueued, refused: Option<EnqueueRefusal>) -> ErrorBody {
    match (enqueued, refused) {
        (Enqueued::BudgetExceeded { limit, used }, _) => budget_spent(*limit, *used),
        (Enqueued::CallsExceeded { limit, used }, _) => used_up("jobs.enqueue", *limit, *used),
        (Enqueued::Revoked, _) => {
            ErrorBody::new(ErrorCode::PermissionDenied).with("reason", "TOKEN_REVOKED")
        }
        (Enqueued::Full { limit, used }, _) => used_up("jobsWaiting", *limit, *used),
        (_, Some(EnqueueRefusal::Call(refusal))) => refusal.into(),
        (_, Some(EnqueueRefusal::Disabled)) => ErrorBody::new(ErrorCode::JobsDisabled),
        (_, Some(EnqueueRefusal::ChainTooLong { limit, used })) => used_up("jobChain", limit, used),
        (_, Some(EnqueueRefusal::NotDeclared)) => {
            ErrorBody::field("job", "is not declared by the active version of the project")
        }
        (_, None) => ErrorBody::retryable(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_a_job_has_its_code_and_its_facts() {
        let used = |enqueued, refused| {
            let error = refusal(&enqueued, refused);
            let fact = |name: &str| error.details.get(name).map(ToString::to_string);
            (error.code.as_str(), fact("budget").or(fact("field")).or(fact("reason")))
        };
        let text = |text: &str| Some(format!("\"{text}\""));
        let refused = |refusal| used(Enqueued::Refused, Some(refusal));
        let full = Enqueued::Full { limit: 10_000, used: 10_000 };
        assert_eq!(used(full, None), ("RATE_LIMITED", text("jobsWaiting")));
        let calls = Enqueued::CallsExceeded { limit: 50, used: 50 };
        assert_eq!(used(calls, None), ("RATE_LIMITED", text("jobs.enqueue")));
        let budget = Enqueued::BudgetExceeded { limit: 100, used: 100 };
        assert_eq!(used(budget, None), ("RATE_LIMITED", text("capabilityCalls")));
        let revoked = used(Enqueued::Revoked, Some(EnqueueRefusal::NotDeclared));
        assert_eq!(revoked, ("PERMISSION_DENIED", text("TOKEN_REVOKED")));
        assert_eq!(refused(EnqueueRefusal::Disabled), ("JOBS_DISABLED", None));
        assert_eq!(refused(EnqueueRefusal::NotDeclared), ("VALIDATION_ERROR", text("job")));
        let chain = EnqueueRefusal::ChainTooLong { limit: 1_000, used: 1_000 };
        assert_eq!(refused(chain), ("RATE_LIMITED", text("jobChain")));
        let denied = EnqueueRefusal::Call(admission::Refusal::TriggerReadOnly);
        assert_eq!(refused(denied), ("PERMISSION_DENIED", text("TRIGGER_READ_ONLY")));
    }
}
