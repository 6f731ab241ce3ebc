//! Reads a request as start-intake does, and holds every reading to what is promised about all of them.

use std::time::{Duration, Instant};

use runfleet_contracts::agents::{AgentGet, AgentStart, ValidAgentStart};
use runfleet_contracts::chat::{ChatDecide, ChatList, ChatRead, ChatReply, ChatSettings};
use runfleet_contracts::data::{CreateRecord, GetRecord, QueryRecords, UpdateRecord};
use runfleet_contracts::host_call::CallProject;
use runfleet_contracts::job::EnqueueJob;
use runfleet_contracts::models::InvokeModel;
use runfleet_contracts::operations::{
    AssignTask, CompleteTask, HistoryOf, OnRun, PublishMessage, RetryRun, SendSignal, SetVariables,
};
use runfleet_contracts::processes::{ProcessGet, ProcessStart, ValidProcessStart};
use runfleet_contracts::projects::{ActivateVersion, OpenSession, RegisterVersion, ShowProject};
use runfleet_contracts::{ErrorBody, ErrorCode, Operation, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

/// Longest time of one reading in a debug build.
const BOUND: Duration = Duration::from_secs(1);

/// Longest error as JSON, in bytes: however large the request, what is told about it is short.
const ERROR_BYTES_MAX: usize = 4_096;

/// The only facts that an error about a request tells.
const FACTS: [&str; 7] = ["field", "problem", "problems", "column", "limit", "size", "path"];

/// A request that was accepted.
#[derive(Debug)]
#[expect(dead_code, reason = "the ids of a get are compared by their debug text")]
pub(crate) enum Accepted {
    Process(ValidProcessStart),
    Agent(Box<ValidAgentStart>),
    Get(String, Option<runfleet_domain::RunId>),
    Operate(String),
}

impl Accepted {
    /// The options of a Process start.
    pub(crate) fn process(self) -> ValidProcessStart {
        match self {
            Self::Process(start) => start,
            other => panic!("{other:?}"),
        }
    }

    /// The options of an agent start.
    pub(crate) fn agent(self) -> ValidAgentStart {
        match self {
            Self::Agent(start) => *start,
            other => panic!("{other:?}"),
        }
    }
}

fn options(operation: Operation, payload: &RawValue) -> Result<Accepted, ErrorBody> {
    let get = |(text, id)| Accepted::Get(text, id);
    match operation {
        Operation::ProcessesStart => ProcessStart::parse(payload).map(Accepted::Process),
        Operation::AgentsStart => AgentStart::parse(payload).map(Box::new).map(Accepted::Agent),
        Operation::ProcessesGet => ProcessGet::parse(payload).map(get),
        Operation::AgentsGet => AgentGet::parse(payload).map(get),
        Operation::ProcessesCancel
        | Operation::ProcessesDelete
        | Operation::ProcessesPause
        | Operation::ProcessesResume => OnRun::parse(payload).map(operate),
        Operation::ProcessesRetry => RetryRun::parse(payload).map(operate),
        Operation::ProcessesSet => SetVariables::parse(payload).map(operate),
        Operation::ProcessesCompleteTask => CompleteTask::parse(payload).map(operate),
        Operation::ProcessesAssignTask => AssignTask::parse(payload).map(operate),
        Operation::ProcessesHistory => HistoryOf::parse(payload).map(operate),
        Operation::ProcessesMessage => PublishMessage::parse(payload).map(operate),
        Operation::ProcessesSignal => SendSignal::parse(payload).map(operate),
        Operation::ChatList => ChatList::parse(payload).map(operate),
        Operation::ChatRead => ChatRead::parse(payload).map(operate),
        Operation::ChatReply => ChatReply::parse(payload).map(operate),
        Operation::ChatDecide => ChatDecide::parse(payload).map(operate),
        Operation::ChatSettings => ChatSettings::parse(payload).map(operate),
        Operation::JobsEnqueue => EnqueueJob::parse(payload, 0).map(operate),
        Operation::ProjectsRegister => RegisterVersion::parse(payload).map(operate),
        Operation::ProjectsActivate => ActivateVersion::parse(payload).map(operate),
        Operation::ProjectsShow => ShowProject::parse(payload).map(operate),
        Operation::ProjectsSession => OpenSession::parse(payload).map(operate),
        Operation::ProjectsCall => CallProject::parse(payload).map(operate),
        Operation::DataGet => GetRecord::parse(payload).map(operate),
        Operation::DataQuery => QueryRecords::parse(payload).map(operate),
        Operation::DataUpdate => UpdateRecord::parse(payload).map(operate),
        Operation::DataCreate => CreateRecord::parse(payload).map(operate),
        Operation::ModelsInvoke => InvokeModel::parse(payload).map(operate),
    }
}

fn operate(options: impl std::fmt::Debug) -> Accepted {
    Accepted::Operate(format!("{options:?}"))
}

fn timed(body: &[u8]) -> (Result<(Request, Accepted), ErrorBody>, Duration) {
    let began = Instant::now();
    let read = Request::parse(body).and_then(|request| {
        options(request.operation, &request.payload).map(|accepted| (request, accepted))
    });
    (read, began.elapsed())
}

/// Reads a body and checks what holds for every body: the bound on time, the form of the error, and that what is accepted
/// is the same after it was written and read again.
pub(crate) fn read(body: &[u8]) -> Result<Accepted, ErrorBody> {
    let (read, mut elapsed) = timed(body);
    for _ in 0..3 {
        // A busy machine may have stopped us in the middle.
        if elapsed >= BOUND {
            elapsed = timed(body).1;
        }
    }
    assert!(elapsed < BOUND, "{elapsed:?} for {} bytes", body.len());
    match read {
        Ok((request, accepted)) => {
            comes_back(&request, &accepted);
            Ok(accepted)
        }
        Err(error) => {
            is_an_error_of_the_contract(&error);
            Err(error)
        }
    }
}

fn is_an_error_of_the_contract(error: &ErrorBody) {
    assert_eq!(error.code, ErrorCode::Validation);
    assert_eq!(error.message, ErrorCode::Validation.text());
    assert!(error.details["field"].is_string() && error.details["problem"].is_string());
    for name in error.details.keys() {
        assert!(FACTS.contains(&name.as_str()), "{name} is told");
    }
    let size = serde_json::to_vec(error).unwrap().len();
    assert!(size <= ERROR_BYTES_MAX, "an error of {size} bytes");
}

/// The options, read without checks and written again.
fn rewritten<T: DeserializeOwned + Serialize>(payload: &RawValue) -> Box<RawValue> {
    to_raw_value(&serde_json::from_str::<T>(payload.get()).unwrap()).unwrap()
}

fn comes_back(request: &Request, accepted: &Accepted) {
    let again = Request::parse(&serde_json::to_vec(request).unwrap()).unwrap();
    assert_eq!(again.operation, request.operation);
    assert_eq!(again.payload.get(), request.payload.get());
    let payload = match request.operation {
        Operation::ProcessesStart => rewritten::<ProcessStart>(&again.payload),
        Operation::AgentsStart => rewritten::<AgentStart>(&again.payload),
        Operation::ProcessesGet => rewritten::<ProcessGet>(&again.payload),
        Operation::AgentsGet => rewritten::<AgentGet>(&again.payload),
        Operation::ProcessesCancel
        | Operation::ProcessesDelete
        | Operation::ProcessesPause
        | Operation::ProcessesResume => rewritten::<OnRun>(&again.payload),
        Operation::ProcessesRetry => rewritten::<RetryRun>(&again.payload),
        Operation::ProcessesSet => rewritten::<SetVariables>(&again.payload),
        Operation::ProcessesCompleteTask => rewritten::<CompleteTask>(&again.payload),
        Operation::ProcessesAssignTask => rewritten::<AssignTask>(&again.payload),
        Operation::ProcessesHistory => rewritten::<HistoryOf>(&again.payload),
        Operation::ProcessesMessage => rewritten::<PublishMessage>(&again.payload),
        Operation::ProcessesSignal => rewritten::<SendSignal>(&again.payload),
        Operation::ChatList => rewritten::<ChatList>(&again.payload),
        Operation::ChatRead => rewritten::<ChatRead>(&again.payload),
        Operation::ChatReply => rewritten::<ChatReply>(&again.payload),
        Operation::ChatDecide => rewritten::<ChatDecide>(&again.payload),
        Operation::ChatSettings => rewritten::<ChatSettings>(&again.payload),
        Operation::JobsEnqueue => rewritten::<EnqueueJob>(&again.payload),
        Operation::ProjectsRegister => rewritten::<RegisterVersion>(&again.payload),
        Operation::ProjectsActivate => rewritten::<ActivateVersion>(&again.payload),
        Operation::ProjectsShow => rewritten::<ShowProject>(&again.payload),
        Operation::ProjectsSession => rewritten::<OpenSession>(&again.payload),
        Operation::ProjectsCall => rewritten::<CallProject>(&again.payload),
        Operation::DataGet => rewritten::<GetRecord>(&again.payload),
        Operation::DataQuery => rewritten::<QueryRecords>(&again.payload),
        Operation::DataUpdate => rewritten::<UpdateRecord>(&again.payload),
        Operation::DataCreate => rewritten::<CreateRecord>(&again.payload),
        Operation::ModelsInvoke => rewritten::<InvokeModel>(&again.payload),
    };
    let again = options(request.operation, &payload).unwrap();
    assert_eq!(format!("{again:?}"), format!("{accepted:?}"));
}

/// The field and the problem that an error tells.
pub(crate) fn told(error: &ErrorBody) -> (&str, &str) {
    (error.details["field"].as_str().unwrap(), error.details["problem"].as_str().unwrap())
}
