//! `processes.get` and `agents.get`: where a run of this project stands, from the ledger.

use runfleet_broker::{Classify, Failure, Inbound, Verdict};
use runfleet_catalog::Snapshot;
use runfleet_contracts::agent_run::{AgentOutput, error_of};
use runfleet_contracts::agents::{AgentGet, AgentRunError, AgentRunState};
use runfleet_contracts::processes::{ProcessGet, ProcessState};
use runfleet_contracts::{ErrorBody, ErrorCode, Reply, Request};
use runfleet_domain::admission::{self, Refusal, Rules};
use runfleet_domain::limits::StartLimits;
use runfleet_domain::{Caller, RunKind};
use runfleet_identity::Verified;
use runfleet_store::{GetRun, Got, RunRecord};
use runfleet_worker::effects::{delivery, version_name};
use serde_json::value::{RawValue, to_raw_value};

use crate::answer;
use crate::handler::{Deps, RawRequest, patience};
use crate::start::budget_spent;

/// Longest id repeated in an error, in characters.
pub(crate) const ID_SHOWN_CHARS: usize = 64;

pub(crate) async fn get(
    deps: &Deps,
    caller: &answer::Caller,
    message: &Inbound<RawRequest>,
    asks: &Verified,
    request: &Request,
) -> Result<Verdict, Failure> {
    let (kind, operation) = (request.operation.kind(), request.operation.as_str());
    let parsed = match kind {
        RunKind::Process => ProcessGet::parse(&request.payload),
        RunKind::Agent => AgentGet::parse(&request.payload),
    };
    let (text, run) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return Ok(deps.refuse(caller, operation, error).await),
    };
    let asking = async {
        let budget = match budget(deps, asks, kind, admission::get).await? {
            Ok(budget) => budget,
            Err(error) => return Ok(Err(error)),
        };
        let claims = &asks.claims;
        let get = GetRun {
            workspace: &claims.workspace,
            project: &claims.project,
            execution: &claims.execution,
            calls_budget: budget,
            run,
        };
        deps.store.get_run(&get).await.transient("loading the run").map(Ok)
    };
    let got = match tokio::time::timeout(patience(message), asking).await {
        Ok(Ok(Ok(got))) => got,
        Ok(Ok(Err(error))) => return Ok(deps.refuse(caller, operation, error).await),
        Ok(Err(failure)) => return deps.postpone(caller, operation, false, failure).await,
        Err(_) => {
            let failure = Failure::transient("loading the run in time");
            return deps.postpone(caller, operation, false, failure).await;
        }
    };
    match got {
        Got::Found(run) => {
            let answer = state(&run).permanent("writing the answer")?;
            deps.count(operation, "ok");
            caller.send(&deps.publisher, answer.get().as_bytes()).await;
            Ok(Verdict::Done)
        }
        // Another project's run is not there, like one that never was.
        Got::Missing => Ok(deps.refuse(caller, operation, missing(kind, &text)).await),
        Got::BudgetExceeded { limit, used } => {
            Ok(deps.refuse(caller, operation, budget_spent(limit, used)).await)
        }
    }
}

/// The rule that says whether a call about runs that exist may be made.
pub(crate) type Rule = fn(&Caller<'_>, RunKind, &Rules<'_>) -> Result<Option<u32>, Refusal>;

/// Whether this execution may call at all; gives the calls that it may make.
pub(crate) async fn budget(
    deps: &Deps,
    asks: &Verified,
    kind: RunKind,
    rule: Rule,
) -> Result<Result<Option<u32>, ErrorBody>, Failure> {
    let claims = &asks.claims;
    let decide = |snapshot: Option<&Snapshot>| {
        let project = snapshot.and_then(|snapshot| snapshot.project(&claims.project));
        let rules = Rules {
            enabled: deps.offered.kind(kind),
            policy: project.and_then(|project| project.policy_for(claims.version.as_deref())),
            limits: project.map_or(StartLimits::DEFAULT, |project| project.limits.start()),
            job_declared: true,
            target: None,
        };
        rule(&claims.caller(asks.expired), kind, &rules)
    };
    let snapshot = deps.catalog.get(&claims.workspace).await.transient("loading the catalog")?;
    let mut budget = decide(snapshot.as_deref());
    if let Err(Refusal::SectionMissing(_)) = budget {
        // The policy may have been applied a moment ago.
        let fresh = deps.catalog.refresh(&claims.workspace).await;
        budget = decide(fresh.transient("loading the catalog")?.as_deref());
    }
    Ok(budget.map_err(ErrorBody::from))
}

/// The run is not there, or not for this project.
pub(crate) fn missing(kind: RunKind, text: &str) -> ErrorBody {
    let resource = match kind {
        RunKind::Process => "process_instance",
        RunKind::Agent => "agent_run",
    };
    let shown: String = text.chars().take(ID_SHOWN_CHARS).collect();
    ErrorBody::new(ErrorCode::NotFound).with("resource", resource).with("resourceId", shown)
}

fn state(run: &RunRecord) -> Result<Box<RawValue>, serde_json::Error> {
    let word = run.state.public(run.id.kind()).to_owned();
    match run.id.kind() {
        RunKind::Process => to_raw_value(&Reply::Done(ProcessState {
            instance_id: run.id.to_string(),
            process_id: version_name(&run.target, run.target_version),
            process_info_id: run.target.to_string(),
            state: word,
            started_at: run.started_at_ms,
            finished_at: run.finished_at_ms,
        })),
        RunKind::Agent => {
            let AgentOutput { text, result, .. } = AgentOutput::read(run.output.as_deref());
            let error = run.error.as_ref().map(|error| AgentRunError {
                code: error.code.clone(),
                message: error.message.clone(),
            });
            to_raw_value(&Reply::Done(AgentRunState {
                run_id: run.id.to_string(),
                status: word,
                text,
                result,
                error: error_of(run.state, error),
                delivery: run.delivery.as_ref().map(delivery),
            }))
        }
    }
}
