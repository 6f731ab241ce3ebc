//! `processes.start` and `agents.start`: decide, commit in one script, wake the runner, answer. In this order.

use std::time::{Duration, Instant};

use runfleet_broker::{Classify, Confirm, Failure, Inbound, PublishError, Verdict};
use runfleet_contracts::message::Fresh;
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Request};
use runfleet_domain::admission::{self, Plan};
use runfleet_domain::limits::StartLimits;
use runfleet_domain::{MessageId, RunId, RunState, Shard, Source};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{OutcomeJob, StartRun, Started, Verdict as Admission};
use runfleet_worker::effects;
use runfleet_worker::facts::{self, Of};
use serde_json::value::RawValue;
use ulid::Ulid;

use crate::admission::{Decision, decide};
use crate::answer::Caller;
use crate::asked::{self, Asked};
use crate::handler::{Deps, RawRequest, message_id, patience};

/// Largest input that travels with the first message of a run, in bytes.
const FRESH_INPUT_BYTES_MAX: usize = 4_096;

/// One start on its way.
struct Start<'a> {
    deps: &'a Deps,
    caller: &'a Caller,
    message: &'a Inbound<RawRequest>,
    asks: &'a Verified,
    operation: Operation,
    message_id: MessageId,
}

pub(crate) async fn start(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation;
    let message_id = message_id(message);
    let asked = Asked::parse(operation.kind(), &request.payload);
    match (message_id, asked) {
        (Err(error), _) | (_, Err(error)) => {
            Ok(deps.refuse(caller, operation.as_str(), error).await)
        }
        (Ok(message_id), Ok(asked)) => {
            Start { deps, caller, message, asks, operation, message_id }.run(asked).await
        }
    }
}

impl Start<'_> {
    async fn run(&self, asked: Asked) -> Result<Verdict, Failure> {
        let Start { deps, .. } = self;
        let time = patience(self.message);
        let until = Instant::now() + time;
        let deciding = decide(deps, self.asks, &asked, &self.message_id, until);
        let deciding = tokio::time::timeout(time, deciding);
        let decision = match deciding.await {
            Ok(Ok(decision)) => decision,
            Ok(Err(failure)) => return self.postpone(false, failure).await,
            Err(_) => return self.postpone(false, Failure::transient("deciding in time")).await,
        };
        runfleet_faults::point("intake.before_commit");
        let Decision { plan, limits } = decision;
        let input = match &plan {
            Ok(plan) => asked.input(plan).permanent("writing the input")?,
            Err(_) => None,
        };
        let identity = self.asks.claims.identity();
        let input = input.as_deref().map(RawValue::get);
        let command = self.command(&asked, &identity, plan.as_ref().ok(), &limits, input);
        let committing = deps.store.start_run(&command);
        let committing = tokio::time::timeout(patience(self.message), committing);
        let started = match committing.await {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => {
                let maybe_written = error.maybe_written();
                return match Err(error).transient("committing the start") {
                    Err(failure) => self.postpone(maybe_written, failure).await,
                    Ok(never) => never,
                };
            }
            // The script may be on its way: the same message id or key finds what it did.
            Err(_) => return self.postpone(true, Failure::transient("committing in time")).await,
        };
        runfleet_faults::point("intake.committed");
        self.after(started, plan, asked, &limits).await
    }

    async fn after(
        &self,
        started: Started,
        plan: Result<Plan, ErrorBody>,
        asked: Asked,
        limits: &StartLimits,
    ) -> Result<Verdict, Failure> {
        match started {
            Started::Created { run } => {
                let (claims, target) = (&self.asks.claims, asked.target());
                let of = Of { workspace: &claims.workspace, project: &claims.project, target };
                facts::started(&self.deps.publisher, run, of);
                let fresh = plan.ok().and_then(|plan| fresh(&self.asks.claims, asked, &plan));
                self.accepted(run, fresh).await
            }
            Started::Replayed { run, state: RunState::Queued } => self.accepted(run, None).await,
            Started::Replayed { run, .. } => self.answer(run, false).await,
            Started::Duplicate { run, .. } => self.answer(run, true).await,
            Started::DayExceeded { resets_at_ms, .. } if self.waits_for_the_day() => {
                // Looked at again every hour at most, without using up an attempt.
                let wait = Duration::from_millis(resets_at_ms.saturating_sub(now_ms()));
                self.deps.count(self.operation.as_str(), "waits_for_day");
                Ok(Verdict::Snooze(wait))
            }
            refused => {
                let (source, kind) = (self.asks.claims.source, asked.kind());
                let starts = admission::starts_limit(source, kind, limits);
                let error = refusal(&refused, starts, plan.err());
                if error.code == ErrorCode::Retryable {
                    // What a look had found is gone. Nothing was decided, and nothing written.
                    return self.postpone(false, Failure::transient("finding it again")).await;
                }
                Ok(self.deps.refuse(self.caller, self.operation.as_str(), error).await)
            }
        }
    }

    /// A backfill that asked for it is not refused by a daily limit: it is tried again on the next day. Whoever waits for an
    /// answer is told instead.
    fn waits_for_the_day(&self) -> bool {
        let claims = &self.asks.claims;
        claims.source == Source::Batch && claims.wait_for_day && !self.caller.waits()
    }

    async fn postpone(&self, maybe_written: bool, failure: Failure) -> Result<Verdict, Failure> {
        self.deps.postpone(self.caller, self.operation.as_str(), maybe_written, failure).await
    }

    fn command<'a>(
        &'a self,
        asked: &'a Asked,
        identity: &'a str,
        plan: Option<&Plan>,
        limits: &StartLimits,
        input: Option<&'a str>,
    ) -> StartRun<'a> {
        let claims = &self.asks.claims;
        let kind = asked.kind();
        let seconds = plan.and_then(|plan| asked.seconds(plan));
        StartRun {
            run_id: RunId::new(
                kind,
                Shard::of_workspace(claims.workspace.as_str()),
                Ulid::generate(),
            ),
            workspace: &claims.workspace,
            project: &claims.project,
            lane: self.message.lane,
            message_id: &self.message_id,
            key: asked.key(),
            identity,
            target: asked.target(),
            target_version: plan.map_or(0, |plan| plan.version),
            execution: &claims.execution,
            calls_budget: admission::calls_budget(claims.source, limits),
            calls_limit: admission::starts_limit(claims.source, kind, limits),
            batch: claims.source == Source::Batch,
            day_limit: plan.map_or(0, |plan| plan.day_limit),
            verdict: if plan.is_some() { Admission::Accept } else { Admission::Refuse },
            user: claims.user.as_ref(),
            recipient: asked.recipient(),
            hops: plan.map_or(0, |plan| plan.hops),
            depth: plan.map_or(0, |plan| plan.depth),
            chain: claims.chain,
            instance_name: asked.instance_name(),
            input,
            outcome: asked
                .outcome()
                .map(|(job, echo)| OutcomeJob { job, echo: echo.as_deref().map(RawValue::get) }),
            deadline_ms: seconds.map(|seconds| now_ms() + u64::from(seconds) * 1_000),
            traceparent: self.message.traceparent.as_deref(),
        }
    }

    /// The run exists: wake its runner, answer, and wait for the confirm last.
    async fn accepted(&self, run_id: RunId, fresh: Option<Fresh>) -> Result<Verdict, Failure> {
        let (deps, message) = (self.deps, self.message);
        let wake = effects::begin(run_id, fresh, message.lane, message.traceparent.as_deref());
        let wake = wake.permanent("writing the wake-up")?;
        let waking = async {
            let sent = effects::send(&deps.publisher, wake).await;
            runfleet_faults::point("intake.published");
            sent
        };
        // The answer need not wait for the confirm: this request is not acknowledged before it, and the run has an alarm. Both go
        // out together.
        let (sent, verdict) = tokio::join!(waking, self.answer(run_id, false));
        let verdict = verdict?;
        runfleet_faults::point("intake.answered");
        self.confirmed(sent).await?;
        runfleet_faults::point("intake.confirmed");
        Ok(verdict)
    }

    async fn confirmed(&self, sent: Result<Confirm, PublishError>) -> Result<(), Failure> {
        let result = match sent {
            Ok(confirm) => confirm.wait().await,
            Err(error) => Err(error),
        };
        if let Err(PublishError::Refused) = result {
            // The run is accepted and its alarm wakes it later; those behind it wait in front of their commit.
            self.deps.hold_back(self.message.lane);
            return Ok(());
        }
        result.transient("waking the runner")
    }

    async fn answer(&self, run_id: RunId, duplicate: bool) -> Result<Verdict, Failure> {
        self.deps.count(self.operation.as_str(), if duplicate { "duplicate" } else { "ok" });
        let answer = asked::started(run_id, duplicate).permanent("writing the answer")?;
        self.caller.send(&self.deps.publisher, answer.get().as_bytes()).await;
        Ok(Verdict::Done)
    }
}

/// What the first message of a Process run repeats of its record; a large input stays in the ledger only. The first thing
/// that an agent's runner does is to claim the run, and that gives it the record.
fn fresh(claims: &Claims, asked: Asked, plan: &Plan) -> Option<Fresh> {
    let Asked::Process(start) = asked else { return None };
    let size = start.input.as_ref().map_or(0, |input| input.get().len());
    (size <= FRESH_INPUT_BYTES_MAX).then(|| Fresh {
        workspace: claims.workspace.clone(),
        project: claims.project.clone(),
        target: start.process,
        target_version: plan.version,
        input: start.input,
        job: start.on_complete.map(|(job, _)| job),
        hops: plan.hops,
        chain: claims.chain,
    })
}

fn limited(limit: u32) -> ErrorBody {
    ErrorBody::new(ErrorCode::RateLimited).with("limit", limit)
}

/// What the caller is told when the ledger made no run.
fn refusal(started: &Started, starts: Option<u32>, admission: Option<ErrorBody>) -> ErrorBody {
    match started {
        Started::Conflict => ErrorBody::new(ErrorCode::IdempotencyConflict),
        Started::OtherTarget => ErrorBody::field("idempotencyKey", "is in use for another target"),
        Started::BudgetExceeded { limit, used } => budget_spent(*limit, *used),
        Started::CallsExceeded => limited(starts.unwrap_or_default()).with("per", "execution"),
        Started::DayExceeded { limit, resets_at_ms } => {
            limited(*limit).with("per", "day").with("resetsAt", *resets_at_ms)
        }
        Started::Revoked => {
            ErrorBody::new(ErrorCode::PermissionDenied).with("reason", "TOKEN_REVOKED")
        }
        Started::Refused
        | Started::Created { .. }
        | Started::Replayed { .. }
        | Started::Duplicate { .. } => admission.unwrap_or_else(|| ErrorBody::retryable(false)),
    }
}

/// The calls of an execution are used up: no later call of it will be let through.
pub(crate) fn budget_spent(limit: u32, used: u32) -> ErrorBody {
    limited(limit).with("budget", "capabilityCalls").with("used", used)
}
