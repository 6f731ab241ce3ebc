//! What people and code do to Process runs that exist: end, hold, correct, tell, look back. Decide, commit, publish, answer. In
//! this order.
//!
//! Each of it is done once for a message id where doing it twice would show: events have an id that is derived from it. What is
//! cut off in between is found and published again by the repetition.

mod asked;
pub(crate) mod event_id;
mod publish;
mod run;

use runfleet_broker::{Classify, Failure, Inbound, PublishError, Verdict};
use runfleet_contracts::{ErrorBody, Operation, Reply, Request};
use runfleet_domain::admission;
use runfleet_domain::{MessageId, RunKind};
use runfleet_identity::Verified;
use runfleet_store::{GetRun, Got, Woken};
use runfleet_worker::effects;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use self::asked::Asked;
use crate::answer::Caller;
use crate::get::{budget, missing};
use crate::handler::{Deps, RawRequest, message_id, patience};
use crate::start::budget_spent;

/// Why a run is woken that has got an event.
const TOLD: &str = "operation";

/// What the caller is told.
pub(crate) enum Done {
    /// It was done.
    Answer(Box<RawValue>),
    /// It was done in part, and the same request does the rest later: who waits for an answer decides about that.
    InPart(Box<RawValue>, &'static str),
    /// It was not, and never will be.
    Refused(ErrorBody),
    /// It was not, for a passing reason. Nothing was written.
    NotNow(ErrorBody, &'static str),
}

impl Done {
    /// Something is full that empties by itself.
    pub(crate) fn no_room(reason: &str, doing: &'static str) -> Self {
        Self::NotNow(ErrorBody::retryable(false).with("reason", reason), doing)
    }
}

/// A passing fault, and whether something may have been written before it.
pub(crate) struct Trouble {
    maybe_written: bool,
    failure: Failure,
}

/// Says of a failure whether something may have been written before it.
pub(crate) trait Written<T> {
    /// Nothing was.
    fn before_writing(self) -> Result<T, Trouble>;
    /// Something may have been.
    fn after_writing(self) -> Result<T, Trouble>;
}

impl<T> Written<T> for Result<T, Failure> {
    fn before_writing(self) -> Result<T, Trouble> {
        self.map_err(|failure| Trouble { maybe_written: false, failure })
    }

    fn after_writing(self) -> Result<T, Trouble> {
        self.map_err(|failure| Trouble { maybe_written: true, failure })
    }
}

/// One operation on its way.
struct Operating<'a> {
    deps: &'a Deps,
    message: &'a Inbound<RawRequest>,
    asks: &'a Verified,
    id: MessageId,
}

pub(crate) async fn operate(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation.as_str();
    let id = message_id(message);
    let (id, asked) = match (id, Asked::parse(request.operation, &request.payload)) {
        (Ok(id), Ok(asked)) => (id, asked),
        (Err(error), _) | (_, Err(error)) => {
            return Ok(deps.refuse(caller, operation, error).await);
        }
    };
    let operating = Operating { deps, message, asks, id };
    conclude(deps, caller, message, request.operation, operating.run(asked)).await
}

/// Carries it out as long as its caller waits, and says how it went.
pub(crate) async fn conclude(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    operation: Operation,
    doing: impl Future<Output = Result<Done, Trouble>>,
) -> Result<Verdict, Failure> {
    let operation = operation.as_str();
    let done = tokio::time::timeout(patience(message), doing).await;
    let late =
        Err(Trouble { maybe_written: true, failure: Failure::transient("doing it in time") });
    match done.unwrap_or(late) {
        Ok(Done::InPart(_, doing)) if !caller.waits() => Err(Failure::transient(doing)),
        Ok(Done::Answer(answer) | Done::InPart(answer, _)) => {
            deps.count(operation, "ok");
            caller.send(&deps.publisher, answer.get().as_bytes()).await;
            runfleet_faults::point("intake.operation_answered");
            Ok(Verdict::Done)
        }
        Ok(Done::Refused(error)) => Ok(deps.refuse(caller, operation, error).await),
        Ok(Done::NotNow(error, doing)) => {
            deps.postpone_as(caller, operation, error, Failure::transient(doing)).await
        }
        Err(Trouble { maybe_written, failure }) => {
            deps.postpone(caller, operation, maybe_written, failure).await
        }
    }
}

impl Operating<'_> {
    async fn run(&self, asked: Asked) -> Result<Done, Trouble> {
        let rule = if asked.only_reads() { admission::get } else { admission::operate };
        let budget = budget(self.deps, self.asks, RunKind::Process, rule).await;
        let calls_budget = match budget.before_writing()? {
            Ok(budget) => budget,
            Err(error) => return Ok(Done::Refused(error)),
        };
        let claims = &self.asks.claims;
        let get = GetRun {
            workspace: &claims.workspace,
            project: &claims.project,
            execution: &claims.execution,
            calls_budget,
            run: asked.run(),
        };
        let got = self.deps.store.get_run(&get).await.transient("loading the run");
        match (got.before_writing()?, asked) {
            (Got::BudgetExceeded { limit, used }, _) => {
                Ok(Done::Refused(budget_spent(limit, used)))
            }
            (Got::Found(record), Asked::OnRun { what, .. }) => self.on_run(&record, what).await,
            (_, Asked::Message(message)) => self.publish(message).await,
            (_, Asked::Signal { name, variables }) => self.broadcast(&name, &variables).await,
            // Another project's run is not there, like one that never was.
            (_, Asked::OnRun { text, .. }) => Ok(Done::Refused(missing(RunKind::Process, &text))),
        }
    }

    /// Wakes the runner of a run that has got something to do: `why` is a word for the id of the message. When its queue is full,
    /// the run's alarm wakes it later.
    async fn wake(&self, woken: &Woken, why: &str) -> Result<(), Failure> {
        let wake = effects::advance(woken.run_id, why, woken.lane, woken.traceparent.as_deref());
        let wake = wake.permanent("writing the wake-up")?;
        match effects::publish(&self.deps.publisher, wake).await {
            Err(PublishError::Refused) => {
                self.deps.hold_back(self.message.lane);
                Ok(())
            }
            published => published.transient("waking the runner"),
        }
    }
}

pub(crate) fn answer<T: Serialize>(data: T) -> Result<Done, Trouble> {
    let answer = to_raw_value(&Reply::Done(data)).permanent("writing the answer");
    answer.after_writing().map(Done::Answer)
}
