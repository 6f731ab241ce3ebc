//! `models.invoke`: a model call of project code is the start of an agent that the project has for it, decided, charged and bounded as
//! any start. Whoever asks looks for the answer with `agents.get`.

use runfleet_broker::{Classify, Failure, Inbound, Verdict};
use runfleet_catalog::Snapshot;
use runfleet_contracts::models::InvokeModel;
use runfleet_contracts::{ErrorBody, ErrorCode, Operation, Request};
use runfleet_identity::Verified;
use serde_json::value::to_raw_value;

use crate::answer::Caller;
use crate::handler::{Deps, RawRequest};
use crate::start;

pub(crate) async fn invoke(
    deps: &Deps,
    caller: &Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let operation = request.operation.as_str();
    let options = match InvokeModel::parse(&request.payload) {
        Ok(options) => options,
        Err(error) => return Ok(deps.refuse(caller, operation, error).await),
    };
    let claims = &asks.claims;
    let find = |snapshot: Option<&Snapshot>| {
        snapshot?.model_agent(&claims.project, options.model.as_deref()).cloned()
    };
    let looking = async {
        let known = deps.catalog.get(&claims.workspace).await.transient("loading the catalog")?;
        if let Some(agent) = find(known.as_deref()) {
            return Ok(Some(agent));
        }
        // It may have been applied a moment ago.
        let fresh = deps.catalog.refresh(&claims.workspace).await;
        fresh.transient("loading the catalog").map(|fresh| find(fresh.as_deref()))
    };
    let agent = match looking.await {
        Ok(Some(agent)) => agent,
        Ok(None) => {
            let missing = ErrorBody::new(ErrorCode::NotFound).with("resource", "model");
            return Ok(deps.refuse(caller, operation, missing).await);
        }
        Err(failure) => return deps.postpone(caller, operation, false, failure).await,
    };
    let start = options.start(agent.as_str()).permanent("writing the start")?;
    let payload = to_raw_value(&start).permanent("writing the start")?;
    let request = Request { operation: Operation::AgentsStart, payload };
    start::start(deps, caller, message, asks, &request).await
}
