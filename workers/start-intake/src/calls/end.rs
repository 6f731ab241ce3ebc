//! The end of a call: by the answer of a host, or by its time.

use std::time::Duration;

use runfleet_broker::{Classify, Failure, Verdict};
use runfleet_contracts::host_call::{CallAnswer, CallCode, CallFailure, CallOutcome};
use runfleet_contracts::{Claims, Reply};
use runfleet_domain::Name;
use runfleet_domain::limits::RETENTION;
use runfleet_runtime::clock::now_ms;
use runfleet_store::{CallAttempt, CallEnded, EndCall};

use super::OF_ACTION;
use crate::answer::Caller;
use crate::handler::Deps;

/// How long an answer may be on its way after the deadline of its call.
const ON_ITS_WAY: Duration = Duration::from_millis(250);

/// How long the answer of a call is kept that is no action, or that has failed: a request is not sent again later.
const KEPT: Duration = Duration::from_mins(2);

/// What ends an attempt before its host has.
pub(super) fn ending<'a>(
    claims: &'a Claims,
    id: &'a Name,
    attempt: &'a CallAttempt,
    done: bool,
    answer: &'a str,
) -> EndCall<'a> {
    EndCall {
        workspace: &claims.workspace,
        project: &claims.project,
        call_id: id,
        attempt: attempt.attempt,
        answer_key: &attempt.answer_key,
        done,
        answer,
        keep: KEPT,
    }
}

/// Ends a call that has got no answer in time, and tells its caller. When this process dies before, the caller's own patience ends.
pub(super) async fn give_up_in_time(
    deps: &Deps,
    claims: &Claims,
    id: &Name,
    attempt: &CallAttempt,
) {
    let left = Duration::from_millis(attempt.deadline_ms.saturating_sub(now_ms()));
    tokio::time::sleep(left + ON_ITS_WAY).await;
    let mut failure = CallFailure::of(CallCode::Timeout);
    // Whatever it has done is not known.
    failure.writes_may_have_completed = true;
    let Ok(answer) = serde_json::to_string(&Reply::<()>::Failed(failure.told())) else { return };
    let end = ending(claims, id, attempt, false, &answer);
    match deps.store.end_call(&end).await {
        Ok(CallEnded::Ended(to)) => {
            deps.metrics.calls.with_label_values(&["timeout"]).inc();
            reply(deps, to, &answer).await;
        }
        Ok(CallEnded::Known { .. } | CallEnded::Missing) => {}
        Err(error) => tracing::warn!(%error, "a call without an answer could not be ended"),
    }
}

async fn reply(deps: &Deps, to: Option<(String, String)>, answer: &str) {
    let Some((to, correlation)) = to else { return };
    Caller::to(to, correlation).send(&deps.publisher, answer.as_bytes()).await;
}

/// Takes the answer of a host.
pub(crate) async fn answered(
    deps: &Deps,
    answer: &CallAnswer,
    redelivered: bool,
) -> Result<Verdict, Failure> {
    let (done, told, result) = match &answer.outcome {
        CallOutcome::Ok(value) => (
            true,
            serde_json::to_string(&Reply::Done(value)).permanent("writing the answer")?,
            "ok",
        ),
        CallOutcome::Failed(failure) => {
            let told = Reply::<()>::Failed(failure.told());
            (false, serde_json::to_string(&told).permanent("writing the answer")?, "failed")
        }
    };
    let of_action = answer.call_id.as_str().starts_with(OF_ACTION);
    let end = EndCall {
        workspace: &answer.workspace,
        project: &answer.project,
        call_id: &answer.call_id,
        attempt: answer.attempt,
        answer_key: &answer.answer_key,
        done,
        answer: &told,
        keep: if done && of_action { RETENTION } else { KEPT },
    };
    match deps.store.end_call(&end).await.transient("ending a call")? {
        CallEnded::Ended(to) => {
            runfleet_faults::point("intake.call_ended");
            deps.metrics.calls.with_label_values(&[result]).inc();
            reply(deps, to, &told).await;
            Ok(Verdict::Done)
        }
        CallEnded::Known { to, answer } => {
            if redelivered {
                // Whoever had it may have died before telling.
                reply(deps, to, &answer).await;
            }
            Ok(Verdict::Duplicate)
        }
        CallEnded::Missing => Ok(Verdict::Drop("answer_of_no_call")),
    }
}
