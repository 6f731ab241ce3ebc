//! `processes.get`: where a run of this project stands, from the ledger.

use runfleet_broker::{Classify, Failure, Verdict};
use runfleet_contracts::request::{ProcessGet, ProcessState};
use runfleet_contracts::{ErrorBody, ErrorCode, Operation, Reply, Request};
use runfleet_domain::RunKind;
use runfleet_identity::Verified;
use runfleet_worker::effects::version_name;

use crate::admission;
use crate::answer::Caller;
use crate::handler::Deps;

const OPERATION: &str = Operation::ProcessesGet.as_str();

/// Longest id repeated in an error, in characters.
const ID_SHOWN_CHARS: usize = 64;

pub(crate) async fn process(
    deps: &Deps,
    caller: &Caller,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let (text, run_id) = match ProcessGet::parse(&request.payload) {
        Ok(parsed) => parsed,
        Err(error) => return Ok(deps.refuse(caller, OPERATION, error).await),
    };
    let snapshot =
        match deps.catalog.get(&asks.claims.workspace).await.transient("loading the catalog") {
            Ok(snapshot) => snapshot,
            Err(failure) => return deps.postpone(caller, OPERATION, false, failure).await,
        };
    if let Err(error) = admission::get_process(asks, snapshot.as_deref()) {
        return Ok(deps.refuse(caller, OPERATION, error).await);
    }
    let found = match run_id.filter(|id| id.kind() == RunKind::Process) {
        Some(run_id) => match deps.store.load_run(run_id).await.transient("loading the run") {
            Ok(found) => found,
            Err(failure) => return deps.postpone(caller, OPERATION, false, failure).await,
        },
        None => None,
    };
    // Another project's run is not there, like one that never was.
    let own = found
        .filter(|run| run.workspace == asks.claims.workspace && run.project == asks.claims.project);
    let Some(run) = own else {
        let shown: String = text.chars().take(ID_SHOWN_CHARS).collect();
        let error = ErrorBody::new(ErrorCode::NotFound)
            .with("resource", "process_instance")
            .with("resourceId", shown);
        return Ok(deps.refuse(caller, OPERATION, error).await);
    };
    let state = ProcessState {
        instance_id: run.id.to_string(),
        process_id: version_name(&run.target, run.target_version),
        process_info_id: run.target.to_string(),
        state: run.state.public(RunKind::Process).to_owned(),
        started_at: run.started_at_ms,
        finished_at: run.finished_at_ms,
    };
    deps.metrics.requests.with_label_values(&[OPERATION, "ok"]).inc();
    caller.tell(&deps.publisher, &Reply::Done(state)).await;
    Ok(Verdict::Done)
}
