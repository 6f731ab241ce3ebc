//! Calls of scripts, routes, triggers and actions: a request becomes a call of the hosts of the active version, and their answer, which
//! comes as a message of its own, goes to whoever has asked. Nothing waits in between but a timer.
//!
//! The ledger has one record for each call, so that it does not matter which worker takes the answer.

mod end;

use std::sync::Arc;
use std::time::Duration;

use runfleet_broker::{Classify, Failure, Inbound, Outgoing, PublishError, Route, Verdict};
use runfleet_catalog::{Callable, Snapshot};
use runfleet_contracts::host_call::{CallKind, CallProject, HostCall};
use runfleet_contracts::{Claims, ErrorBody, ErrorCode, Reply, Request};
use runfleet_domain::limits::{JOB_CHAIN_MAX, StartLimits};
use runfleet_domain::{Lane, Name, Source, admission};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{BeginCall, CallAttempt, CallBegun, GetRun, Got};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

pub(crate) use self::end::answered;
use self::end::{ending, give_up_in_time};
use crate::answer::Caller;
use crate::handler::{Deps, RawRequest, patience};
use crate::start::budget_spent;

/// Calls whose end one process waits for; more are refused for the moment.
const WAITING_MAX: usize = 50_000;

/// How long a call is offered to the queue of its hosts. Short: a full queue must not hold up other callers.
const OFFER_BOUND: Duration = Duration::from_secs(2);

/// How much longer than its call a token is valid, in seconds.
const TOKEN_MARGIN_SECONDS: u64 = 30;

/// What the name of a call of an action begins with; those of others begin with another letter.
const OF_ACTION: char = 'a';

/// Bounds how many calls a process waits for.
pub(crate) fn waiting() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WAITING_MAX))
}

/// A call on its way to the hosts.
struct Calling<'a> {
    claims: &'a Claims,
    asked: &'a CallProject,
    id: Name,
    version: String,
    callable: Callable,
    input: Box<RawValue>,
    lane: Lane,
}

/// What is known at once about a call.
enum AtOnce {
    /// What the caller is told: it has ended before, or was refused.
    Answer(String),
    Refused(ErrorBody),
    /// The hosts have it.
    Begun(Name, CallAttempt),
}

pub(crate) async fn call(
    deps: &Arc<Deps>,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation.as_str();
    let Ok(permit) = Arc::clone(&deps.waiting).try_acquire_owned() else {
        return Ok(deps.refuse(caller, operation, passing("HOSTS_BUSY", false)).await);
    };
    let calling = begin(deps, message, asks, &request.payload);
    let begun = tokio::time::timeout(patience(message), calling).await;
    match begun.unwrap_or_else(|_| Err(Failure::transient("calling in time"))) {
        Ok(AtOnce::Answer(answer)) => {
            deps.count(operation, "duplicate");
            caller.send(&deps.publisher, answer.as_bytes()).await;
        }
        Ok(AtOnce::Refused(error)) => return Ok(deps.refuse(caller, operation, error).await),
        Ok(AtOnce::Begun(id, attempt)) => {
            deps.count(operation, "ok");
            let (deps, claims) = (Arc::clone(deps), asks.claims.clone());
            tokio::spawn(async move {
                let _permit = permit;
                give_up_in_time(&deps, &claims, &id, &attempt).await;
            });
        }
        Err(failure) => return deps.postpone(caller, operation, true, failure).await,
    }
    Ok(Verdict::Done)
}

/// A refusal that passes.
fn passing(reason: &str, writes_may_have_completed: bool) -> ErrorBody {
    ErrorBody::retryable(writes_may_have_completed).with("reason", reason)
}

async fn begin(
    deps: &Deps,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    payload: &RawValue,
) -> Result<AtOnce, Failure> {
    let asked = match CallProject::parse(payload) {
        Ok(asked) => asked,
        Err(error) => return Ok(AtOnce::Refused(error)),
    };
    let claims = &asks.claims;
    let (limits, chain, found) = find(deps, claims, &asked).await?;
    // What it calls may write by itself; whoever only reads hands that on.
    let budget = match admission::call(&claims.caller(asks.expired), false, &limits) {
        Ok(_) if claims.chain >= chain => {
            return Ok(AtOnce::Refused(ErrorBody::new(ErrorCode::MaxHopExceeded)));
        }
        Ok(budget) => budget,
        Err(refusal) => return Ok(AtOnce::Refused(refusal.into())),
    };
    if let Some(error) = count(deps, claims, budget).await? {
        return Ok(AtOnce::Refused(error));
    }
    let Some((version, callable)) = found else {
        let missing = ErrorBody::new(ErrorCode::NotFound).with("resource", asked.kind.as_str());
        return Ok(AtOnce::Refused(missing.with("resourceId", asked.name.as_str())));
    };
    let input = match &asked.input {
        Some(input) => input.clone(),
        None => to_raw_value(&()).permanent("writing nothing")?,
    };
    let id = call_id(claims, &asked, &message.message_id).permanent("naming a call")?;
    let calling =
        Calling { claims, asked: &asked, id, version, callable, input, lane: message.lane };
    calling.begin(deps, message).await
}

/// The limits of the project, and what the active version of it says about what is called. What is not in memory is looked up
/// once more: it may have been activated a moment ago.
async fn find(
    deps: &Deps,
    claims: &Claims,
    asked: &CallProject,
) -> Result<(StartLimits, u32, Option<(String, Callable)>), Failure> {
    let look = |snapshot: Option<&Snapshot>| {
        let project = snapshot.and_then(|snapshot| snapshot.project(&claims.project));
        let limits = project.map_or(StartLimits::DEFAULT, |project| project.limits.start());
        let chain = project.map_or(JOB_CHAIN_MAX, |project| project.limits.job_chain);
        let registered = project.and_then(|project| project.registered.as_ref());
        let found = registered.and_then(|version| {
            Some((version.version.clone(), version.callable(asked.kind, &asked.name)?))
        });
        (limits, chain, found)
    };
    let snapshot = deps.catalog.get(&claims.workspace).await.transient("loading the catalog")?;
    let seen = look(snapshot.as_deref());
    if seen.2.is_some() {
        return Ok(seen);
    }
    let fresh = deps.catalog.refresh(&claims.workspace).await.transient("loading the catalog")?;
    Ok(look(fresh.as_deref()))
}

/// Counts a call of the execution that is about no run; an error when it may make no more.
pub(crate) async fn count(
    deps: &Deps,
    claims: &Claims,
    calls_budget: Option<u32>,
) -> Result<Option<ErrorBody>, Failure> {
    let get = GetRun {
        workspace: &claims.workspace,
        project: &claims.project,
        execution: &claims.execution,
        calls_budget,
        run: None,
    };
    match deps.store.get_run(&get).await.transient("counting a call")? {
        Got::BudgetExceeded { limit, used } => Ok(Some(budget_spent(limit, used))),
        Got::Found(_) | Got::Missing => Ok(None),
    }
}

/// The name of a call. Two calls of an action with one run id of one identity are one; else those of one message.
fn call_id(
    claims: &Claims,
    asked: &CallProject,
    message_id: &str,
) -> Result<Name, runfleet_domain::NameError> {
    let identity = claims.identity();
    let by = match &asked.run_id {
        Some(run_id) => ["run", &asked.name, &identity, run_id],
        None => ["message", &asked.name, &identity, message_id],
    };
    let mut hash = Sha256::new();
    for text in by {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    let digest = hash.finalize();
    let mut number = [0; 16];
    number.copy_from_slice(&digest[..16]);
    let first = if asked.kind == CallKind::Action { OF_ACTION } else { 'c' };
    format!("{first}-{:032x}", u128::from_be_bytes(number)).parse()
}

impl Calling<'_> {
    async fn begin(self, deps: &Deps, message: &Inbound<RawRequest>) -> Result<AtOnce, Failure> {
        let mut within = Duration::from_millis(self.callable.timeout_ms.into());
        if let Some(expires) = message.expires_at_ms {
            // Nobody waits for it after that.
            within = within.min(Duration::from_millis(expires.saturating_sub(now_ms()).max(1)));
        }
        let correlation = message.correlation_id.as_deref().unwrap_or(&message.message_id);
        let begin = BeginCall {
            workspace: &self.claims.workspace,
            project: &self.claims.project,
            call_id: &self.id,
            message_id: &message.message_id,
            input: self.input.get(),
            within,
            reply: message.reply_to.as_deref().map(|to| (to, correlation)),
        };
        let attempt = match deps.store.begin_call(&begin).await.transient("beginning a call")? {
            CallBegun::Begun(attempt) => attempt,
            CallBegun::Ended(answer) => return Ok(AtOnce::Answer(answer)),
            CallBegun::OtherInput => {
                let problem = "names a run that had another input";
                return Ok(AtOnce::Refused(ErrorBody::field("runId", problem)));
            }
            CallBegun::Busy => return Ok(AtOnce::Refused(passing("IN_PROGRESS", true))),
        };
        runfleet_faults::point("intake.call_begun");
        let refused = match self.offer(deps, &attempt).await? {
            Ok(()) => return Ok(AtOnce::Begun(self.id, attempt)),
            Err(error) => error,
        };
        // It has not been called, so that its name is free for the next try.
        let answer = Reply::<()>::Failed(refused.clone());
        let answer = serde_json::to_string(&answer).permanent("writing the answer")?;
        let end = ending(self.claims, &self.id, &attempt, false, &answer);
        // The record as it is would end by itself.
        let _ = deps.store.end_call(&end).await;
        Ok(AtOnce::Refused(refused))
    }

    /// Gives the call to the hosts; an error when none can take it.
    async fn offer(
        &self,
        deps: &Deps,
        attempt: &CallAttempt,
    ) -> Result<Result<(), ErrorBody>, Failure> {
        let claims = self.claims;
        let read_only = claims.read_only || self.callable.read_only;
        let call = HostCall {
            call_id: self.id.clone(),
            attempt: attempt.attempt,
            workspace: claims.workspace.clone(),
            project: claims.project.clone(),
            version: self.version.clone(),
            kind: self.asked.kind,
            name: self.asked.name.clone(),
            input: self.input.clone(),
            run_id: self.run_id(),
            deadline: attempt.deadline_ms,
            answer_key: attempt.answer_key.clone(),
            user: claims.user.clone(),
            read_only,
        };
        let id = format!("{}.{}", self.id, attempt.attempt);
        let mut outgoing = Outgoing::message(id, &call).permanent("writing a call")?;
        outgoing.lane = self.lane;
        outgoing.expires_at_ms = Some(attempt.deadline_ms);
        outgoing.reply_to = Some(Route::StartAnswer(self.lane).queue().into_owned());
        outgoing.authorization = deps.tokens.mint(&Claims {
            source: match self.asked.kind {
                CallKind::Script => Source::Script,
                CallKind::Route => Source::Route,
                CallKind::Trigger => Source::TriggerAfter,
                CallKind::Action => Source::Action,
            },
            execution: self.id.clone(),
            exp: (attempt.deadline_ms / 1_000).saturating_add(TOKEN_MARGIN_SECONDS),
            iat: now_ms() / 1_000,
            version: Some(self.version.clone()),
            read_only,
            chain: claims.chain.saturating_add(1),
            wait_for_day: false,
            // What it enqueues says what has made it, and not who has called that.
            origin: (self.asked.kind == CallKind::Trigger)
                .then(|| format!("trigger:{}", self.asked.name)),
            ..claims.clone()
        });
        let route = Route::HostCall {
            workspace: claims.workspace.clone(),
            project: claims.project.clone(),
            version: self.version.clone(),
        };
        match deps.publisher.publish_within(&route, outgoing, OFFER_BOUND).await {
            Ok(()) => Ok(Ok(())),
            Err(PublishError::NoSuchQueue) => Ok(Err(passing("NO_HOST", false))),
            Err(PublishError::Refused) => Ok(Err(passing("HOSTS_BUSY", false))),
            Err(PublishError::TooLarge) => Ok(Err(ErrorBody::field("input", "is too large"))),
            Err(error @ (PublishError::NotConfirmed | PublishError::NotConnected)) => {
                Err(error).transient("calling a host")
            }
        }
    }

    /// What an action knows its run by.
    fn run_id(&self) -> Option<String> {
        let own = || self.id.to_string();
        (self.asked.kind == CallKind::Action).then(|| self.asked.run_id.clone().unwrap_or_else(own))
    }
}
