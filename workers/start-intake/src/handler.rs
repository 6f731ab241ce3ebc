//! One request: who asks, what is asked, which rule answers.

use std::sync::Arc;
use std::time::Duration;

use runfleet_broker::{DecodeError, Failure, Gate, Inbound, Inbox, LaneConfig, Publisher, Verdict};
use runfleet_contracts::request::REQUEST_KIND;
use runfleet_contracts::{CallAnswer, ErrorBody, ErrorCode, Message as _, Operation, Request};
use runfleet_domain::{Lane, MessageId, RunKind};
use runfleet_identity::Verified;
use runfleet_runtime::clock::now_ms;
use runfleet_store::Store;
use runfleet_worker::inbox::unknown_kind;
use runfleet_worker::tokens::Tokens;
use runfleet_worker::{CatalogCache, Fleet};
use tokio::sync::Semaphore;

use crate::answer::Caller;
use crate::data::Sources;
use crate::facts::FactServices;
use crate::key_set::Keys;
use crate::metrics::Metrics;
use crate::{calls, chat, data, enqueue, get, models, operate, projects, start};

/// How long a lane is held back when the next queue is full.
const FULL_PAUSE: Duration = Duration::from_secs(1);

/// How long a request without an end of its own is worked on before it goes back.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is kept of the time of a request for bringing the answer back.
const ANSWER_MARGIN: Duration = Duration::from_millis(250);

/// How long a request may still be worked on: its caller shall have an answer, if only "not now", before it gives up.
pub(crate) fn patience(message: &Inbound<RawRequest>) -> Duration {
    let Some(expires) = message.expires_at_ms else { return PATIENCE };
    let left = Duration::from_millis(expires.saturating_sub(now_ms()));
    left.saturating_sub(ANSWER_MARGIN.min(left / 4)).min(PATIENCE)
}

/// The name of a request, or what is wrong with it.
pub(crate) fn message_id(message: &Inbound<RawRequest>) -> Result<MessageId, ErrorBody> {
    let id = message.message_id.parse::<MessageId>();
    id.map_err(|error| ErrorBody::field("message_id", error.to_string()))
}

/// Which kinds of runs this environment offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered {
    pub(crate) processes: bool,
    pub(crate) agents: bool,
    pub(crate) jobs: bool,
}

impl Offered {
    pub(crate) fn kind(self, kind: RunKind) -> bool {
        match kind {
            RunKind::Process => self.processes,
            RunKind::Agent => self.agents,
        }
    }
}

/// A request that may be unreadable: its caller is told which field is wrong, so reading it is the handler's business.
pub(crate) enum RawRequest {
    /// Somebody asks for something.
    Request(Result<Request, ErrorBody>),
    /// A host has answered a call.
    Answer(Box<CallAnswer>),
}

impl Inbox for RawRequest {
    fn decode(kind: &str, body: &[u8]) -> Result<Self, DecodeError> {
        match kind {
            REQUEST_KIND => Ok(Self::Request(Request::parse(body))),
            CallAnswer::KIND => {
                let answer = CallAnswer::parse(body);
                answer.map(Box::new).map(Self::Answer).map_err(|error| wrong(&error))
            }
            kind => Err(unknown_kind(kind, &[REQUEST_KIND, CallAnswer::KIND])),
        }
    }
}

/// What is wrong with an answer, without a value of it.
fn wrong(error: &ErrorBody) -> DecodeError {
    let fact = |name: &str| error.details.get(name).and_then(|fact| fact.as_str());
    let (field, problem) = (fact("field").unwrap_or_default(), fact("problem").unwrap_or_default());
    DecodeError::Malformed(format!("`{field}` {problem}"))
}

/// What the handler may touch.
pub(crate) struct Deps {
    pub(crate) store: Store,
    pub(crate) publisher: Publisher,
    pub(crate) catalog: CatalogCache,
    pub(crate) offered: Offered,
    pub(crate) facts: FactServices,
    pub(crate) tokens: Tokens,
    pub(crate) sources: Sources,
    pub(crate) waiting: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    keys: Keys,
    gates: Vec<(Lane, Gate)>,
}

impl Deps {
    pub(crate) fn new(
        fleet: &Fleet,
        keys: Keys,
        facts: FactServices,
        lanes: &[LaneConfig],
        offered: Offered,
        (tokens, sources): (Tokens, Sources),
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            catalog: fleet.catalog.clone(),
            metrics: Metrics::new(&fleet.process.registry)?,
            offered,
            tokens,
            sources,
            waiting: calls::waiting(),
            keys,
            facts,
            gates: lanes.iter().map(|lane| (lane.lane, lane.gate.clone())).collect(),
        })
    }

    /// The next queue of a lane is full: nothing more is taken from that lane for a moment, so that further starts wait in
    /// front of their commit and not behind it.
    pub(crate) fn hold_back(&self, lane: Lane) {
        tracing::warn!(%lane, "the next queue is full, taking nothing from this lane for a moment");
        for (_, gate) in self.gates.iter().filter(|(of, _)| *of == lane) {
            gate.close_for(FULL_PAUSE);
        }
    }

    /// Counts an answer.
    pub(crate) fn count(&self, operation: &str, result: &str) {
        self.metrics.requests.with_label_values(&[operation, result]).inc();
    }

    /// Refuses for good, and counts it.
    pub(crate) async fn refuse(
        &self,
        caller: &Caller,
        operation: &str,
        error: ErrorBody,
    ) -> Verdict {
        self.count(operation, error.code.as_str());
        caller.refuse(&self.publisher, error).await
    }

    /// Postpones, and counts it.
    pub(crate) async fn postpone(
        &self,
        caller: &Caller,
        operation: &str,
        writes_may_have_completed: bool,
        failure: Failure,
    ) -> Result<Verdict, Failure> {
        let error = ErrorBody::retryable(writes_may_have_completed);
        self.postpone_as(caller, operation, error, failure).await
    }

    /// Postpones, and tells the caller what is in the way.
    pub(crate) async fn postpone_as(
        &self,
        caller: &Caller,
        operation: &str,
        error: ErrorBody,
        failure: Failure,
    ) -> Result<Verdict, Failure> {
        self.count(operation, error.code.as_str());
        caller.postpone(&self.publisher, error, failure).await
    }
}

pub(crate) async fn handle(
    deps: Arc<Deps>,
    message: Inbound<RawRequest>,
) -> Result<Verdict, Failure> {
    let now = now_ms();
    if message.expires_at_ms.is_some_and(|expires| expires < now) {
        // Its caller has given up on it. Doing it now would surprise everybody.
        return Ok(Verdict::Drop("expired"));
    }
    let caller = Caller::new(
        message.reply_to.as_deref(),
        message.correlation_id.as_deref(),
        &message.message_id,
    );
    let request = match &message.body {
        RawRequest::Request(Ok(request)) => request,
        RawRequest::Request(Err(error)) => {
            return Ok(deps.refuse(&caller, "unreadable", error.clone()).await);
        }
        RawRequest::Answer(answer) => {
            return calls::answered(&deps, answer, message.redelivered).await;
        }
    };
    let operation = request.operation.as_str();
    let asks = match identify(&deps, &message, now) {
        Ok(asks) => asks,
        Err(error) => return Ok(deps.refuse(&caller, operation, error).await),
    };
    match request.operation {
        Operation::ProcessesStart | Operation::AgentsStart => {
            start::start(&deps, &caller, &message, &asks, request).await
        }
        Operation::ProcessesGet | Operation::AgentsGet => {
            get::get(&deps, &caller, &message, &asks, request).await
        }
        Operation::ProcessesCancel
        | Operation::ProcessesDelete
        | Operation::ProcessesPause
        | Operation::ProcessesResume
        | Operation::ProcessesRetry
        | Operation::ProcessesSet
        | Operation::ProcessesCompleteTask
        | Operation::ProcessesAssignTask
        | Operation::ProcessesHistory
        | Operation::ProcessesMessage
        | Operation::ProcessesSignal => {
            operate::operate(&deps, &caller, &message, &asks, request).await
        }
        Operation::ChatList
        | Operation::ChatRead
        | Operation::ChatReply
        | Operation::ChatDecide
        | Operation::ChatSettings => chat::chat(&deps, &caller, &message, &asks, request).await,
        Operation::JobsEnqueue => enqueue::enqueue(&deps, &caller, &message, &asks, request).await,
        Operation::ModelsInvoke => models::invoke(&deps, &caller, &message, &asks, request).await,
        Operation::ProjectsRegister
        | Operation::ProjectsActivate
        | Operation::ProjectsShow
        | Operation::ProjectsSession => {
            projects::projects(&deps, &caller, &message, &asks, request).await
        }
        Operation::ProjectsCall => calls::call(&deps, &caller, &message, &asks, request).await,
        Operation::DataGet
        | Operation::DataQuery
        | Operation::DataUpdate
        | Operation::DataCreate => data::records(&deps, &caller, &message, &asks, request).await,
    }
}

fn identify(deps: &Deps, message: &Inbound<RawRequest>, now: u64) -> Result<Verified, ErrorBody> {
    let denied = |reason: &str| ErrorBody::new(ErrorCode::PermissionDenied).with("reason", reason);
    let token = message.authorization.as_ref().ok_or_else(|| denied("TOKEN_MISSING"))?;
    let verifier = Arc::clone(&deps.keys.borrow());
    verifier.verify(token, now).map_err(|error| {
        tracing::debug!(%error, "a token is not believed");
        denied("TOKEN_INVALID")
    })
}
