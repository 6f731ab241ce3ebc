//! `processes.start`: decide, commit in one script, wake the runner, answer. In this order.

use runfleet_broker::{Classify, Confirm, Failure, Inbound, PublishError, Verdict};
use runfleet_contracts::message::Fresh;
use runfleet_contracts::request::{ProcessStart, ProcessStarted, ValidProcessStart};
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Operation, Reply, Request};
use runfleet_domain::limits::PROCESS_STARTS_PER_DAY;
use runfleet_domain::{MessageId, NameError, RunId, RunKind, RunState, Shard};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{OutcomeJob, StartRun, Started, Verdict as Admission};
use runfleet_worker::effects;
use serde_json::value::RawValue;
use ulid::Ulid;

use crate::admission::{self, Plan};
use crate::answer::Caller;
use crate::handler::{Deps, RawRequest};

/// Largest input that travels with the first message of a run, in bytes.
const FRESH_INPUT_BYTES_MAX: usize = 4_096;

const OPERATION: &str = Operation::ProcessesStart.as_str();

pub(crate) async fn process(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let start = match ProcessStart::parse(&request.payload) {
        Ok(start) => start,
        Err(error) => return Ok(deps.refuse(caller, OPERATION, error).await),
    };
    let decision = match decide(deps, asks, &start).await {
        Ok(decision) => decision,
        Err(failure) => return deps.postpone(caller, OPERATION, false, failure).await,
    };
    runfleet_faults::point("intake.before_commit");
    let message_id: MessageId = match message.message_id.parse() {
        Ok(id) => id,
        Err(error) => {
            let error: NameError = error;
            return Ok(deps
                .refuse(caller, OPERATION, ErrorBody::field("message_id", error.to_string()))
                .await);
        }
    };
    let identity = asks.claims.identity();
    let command = command(message, &message_id, asks, &identity, &start, decision.as_ref().ok());
    let started = match deps.store.start_run(&command).await {
        Ok(started) => started,
        Err(error) => {
            let maybe_written = error.maybe_written();
            return match Err(error).transient("committing the start") {
                Err(failure) => deps.postpone(caller, OPERATION, maybe_written, failure).await,
                Ok(never) => never,
            };
        }
    };
    runfleet_faults::point("intake.committed");
    match started {
        Started::Created { run } => {
            let fresh = decision.ok().and_then(|plan| fresh(&asks.claims, start, &plan));
            accepted(deps, caller, message, run, fresh).await
        }
        Started::Replayed { run, state: RunState::Queued } => {
            accepted(deps, caller, message, run, None).await
        }
        Started::Replayed { run, .. } => Ok(answer(deps, caller, run, false).await),
        Started::Duplicate { run, .. } => Ok(answer(deps, caller, run, true).await),
        refused => {
            let error = refusal(&refused, decision.err());
            Ok(deps.refuse(caller, OPERATION, error).await)
        }
    }
}

/// The verdict on this start, from the catalog in memory. A target that is not there is looked for once more in the
/// ledger: it may have been applied a moment ago.
async fn decide(
    deps: &Deps,
    asks: &Verified,
    start: &ValidProcessStart,
) -> Result<Result<Plan, ErrorBody>, Failure> {
    let (workspace, now) = (&asks.claims.workspace, now_ms());
    let snapshot = deps.catalog.get(workspace).await.transient("loading the catalog")?;
    let decision = admission::start_process(asks, start, snapshot.as_deref(), now);
    match decision {
        Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::PermissionDenied) => {
            let fresh = deps.catalog.refresh(workspace).await.transient("loading the catalog")?;
            Ok(admission::start_process(asks, start, fresh.as_deref(), now))
        }
        decision => Ok(decision),
    }
}

fn command<'a>(
    message: &'a Inbound<RawRequest>,
    message_id: &'a MessageId,
    asks: &'a Verified,
    identity: &'a str,
    start: &'a ValidProcessStart,
    plan: Option<&Plan>,
) -> StartRun<'a> {
    let claims = &asks.claims;
    StartRun {
        run_id: RunId::new(
            RunKind::Process,
            Shard::of_workspace(claims.workspace.as_str()),
            Ulid::generate(),
        ),
        workspace: &claims.workspace,
        project: &claims.project,
        lane: message.lane,
        message_id,
        key: start.key.as_ref(),
        identity,
        target: &start.process,
        target_version: plan.map_or(0, |plan| plan.version),
        execution: &claims.execution,
        calls_budget: None,
        calls_limit: plan.map_or(Some(u32::MAX), |plan| plan.calls_limit),
        batch: false,
        day_limit: plan.map_or(PROCESS_STARTS_PER_DAY, |plan| plan.day_limit),
        verdict: if plan.is_some() { Admission::Accept } else { Admission::Refuse },
        user: claims.user.as_ref(),
        // A start uses one step; admission has seen to it that there is one.
        hops: claims.hops.saturating_sub(1),
        depth: claims.depth,
        chain: claims.chain,
        instance_name: start.instance_name.as_deref(),
        input: start.input.as_deref().map(RawValue::get),
        outcome: start
            .on_complete
            .as_ref()
            .map(|(job, echo)| OutcomeJob { job, echo: echo.as_deref().map(RawValue::get) }),
        deadline_ms: plan.and_then(|plan| plan.deadline_ms),
        traceparent: message.traceparent.as_deref(),
    }
}

/// What the first message of the run repeats of its record; a large input stays in the ledger only.
fn fresh(claims: &Claims, start: ValidProcessStart, plan: &Plan) -> Option<Fresh> {
    let size = start.input.as_ref().map_or(0, |input| input.get().len());
    (size <= FRESH_INPUT_BYTES_MAX).then(|| Fresh {
        workspace: claims.workspace.clone(),
        project: claims.project.clone(),
        target: start.process,
        target_version: plan.version,
        input: start.input,
        job: start.on_complete.map(|(job, _)| job),
        hops: claims.hops.saturating_sub(1),
        chain: claims.chain,
    })
}

/// The run exists: wake its runner, answer, and wait for the confirm last.
async fn accepted(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    run_id: RunId,
    fresh: Option<Fresh>,
) -> Result<Verdict, Failure> {
    let wake = effects::begin(run_id, fresh, message.lane, message.traceparent.as_deref());
    let sent = effects::send(&deps.publisher, wake.permanent("writing the wake-up")?).await;
    runfleet_faults::point("intake.published");
    // The answer need not wait for the confirm: this request is not acknowledged before it, and the run has an alarm.
    let verdict = answer(deps, caller, run_id, false).await;
    runfleet_faults::point("intake.answered");
    confirmed(deps, message, sent).await?;
    runfleet_faults::point("intake.confirmed");
    Ok(verdict)
}

async fn confirmed(
    deps: &Deps,
    message: &Inbound<RawRequest>,
    sent: Result<Confirm, PublishError>,
) -> Result<(), Failure> {
    let result = match sent {
        Ok(confirm) => confirm.wait().await,
        Err(error) => Err(error),
    };
    if let Err(PublishError::Refused) = result {
        // The run is accepted and its alarm wakes it later; those behind it wait in front of their commit.
        deps.hold_back(message.lane);
        return Ok(());
    }
    result.transient("waking the runner")
}

async fn answer(deps: &Deps, caller: &Caller, run_id: RunId, duplicate: bool) -> Verdict {
    let result = if duplicate { "duplicate" } else { "ok" };
    deps.metrics.requests.with_label_values(&[OPERATION, result]).inc();
    let started = ProcessStarted { instance_id: run_id.to_string(), duplicate };
    caller.tell(&deps.publisher, &Reply::Done(started)).await;
    Verdict::Done
}

fn refusal(started: &Started, admission: Option<ErrorBody>) -> ErrorBody {
    match started {
        Started::Conflict => ErrorBody::new(ErrorCode::IdempotencyConflict),
        Started::OtherTarget => ErrorBody::field("idempotencyKey", "is in use for another target"),
        Started::CallsExceeded => ErrorBody::new(ErrorCode::RateLimited).with("per", "execution"),
        Started::DayExceeded { limit, resets_at_ms } => ErrorBody::new(ErrorCode::RateLimited)
            .with("limit", *limit)
            .with("per", "day")
            .with("resetsAt", *resets_at_ms),
        // Not answered to a start without a budget that is not of a batch.
        Started::BudgetExceeded { limit, used } => ErrorBody::new(ErrorCode::RateLimited)
            .with("budget", "capabilityCalls")
            .with("limit", *limit)
            .with("used", *used),
        Started::Revoked
        | Started::Refused
        | Started::Created { .. }
        | Started::Replayed { .. }
        | Started::Duplicate { .. } => admission.unwrap_or_else(|| ErrorBody::retryable(false)),
    }
}
