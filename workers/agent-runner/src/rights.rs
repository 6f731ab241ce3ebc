//! Whether a run may go on, ask its model and call a tool: by what is declared now, and by what was charged so far. Asked again
//! before each question and each call; decides about nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use runfleet_agent::{Definition, ErrorCode, FoundTool};
use runfleet_broker::{Classify, Failure};
use runfleet_catalog::{Acting, Snapshot, Withdrawn};
use runfleet_domain::admission::CreditsUsed;
use runfleet_store::RunRecord;

use crate::handler::Deps;

/// What is declared for the workspace of a run. None is as good as nothing.
pub(crate) async fn declared(
    deps: &Deps,
    record: &RunRecord,
) -> Result<Option<Arc<Snapshot>>, Failure> {
    deps.catalog.get(&record.workspace).await.transient("loading the catalog")
}

/// Whether the agent is active and the person of the run may use it.
pub(crate) fn may_go_on(snapshot: &Snapshot, record: &RunRecord) -> Result<(), ErrorCode> {
    snapshot.may_go_on(&record.target, record.user.as_ref()).map_err(|withdrawn| match withdrawn {
        Withdrawn::AgentInactive => ErrorCode::AgentInactive,
        Withdrawn::AccessDenied => ErrorCode::AgentAccessDenied,
    })
}

/// Whether the run may ask its model once more: it may go on, and there is money for it.
pub(crate) async fn may_ask(
    deps: &Deps,
    record: &RunRecord,
    definition: &Definition,
    snapshot: &Snapshot,
) -> Result<Result<(), ErrorCode>, Failure> {
    if let Err(code) = may_go_on(snapshot, record) {
        return Ok(Err(code));
    }
    let mut used = CreditsUsed::default();
    if snapshot.limits_credits(&record.target) {
        let sums = deps.store.credits_used(&record.workspace, &record.target).await;
        used = sums.transient("asking what was charged")?;
    }
    Ok(paid_for(snapshot, record, &definition.blueprint().model, used))
}

/// The same order as at a start: plan, seat, credits of the workspace, credits of the agent, price.
fn paid_for(
    snapshot: &Snapshot,
    record: &RunRecord,
    model: &str,
    used: CreditsUsed,
) -> Result<(), ErrorCode> {
    let paid = snapshot.billing_facts(&record.target, used);
    let seat = record.user.as_ref().is_none_or(|user| snapshot.has_seat(user));
    // The run keeps the model that it began with, whatever its agent has by now.
    let billing = snapshot.workspace.billing.as_ref();
    let priced = billing.is_none_or(|billing| billing.prices.contains_key(model));
    let checks = [
        (paid.subscription, ErrorCode::AiSubscriptionRequired),
        (seat, ErrorCode::AiSeatRequired),
        (paid.credits, ErrorCode::InsufficientCredits),
        (paid.agent_credits, ErrorCode::AgentCreditLimitExceeded),
        (priced, ErrorCode::ModelNotPriced),
    ];
    checks.into_iter().find(|(good, _)| !good).map_or(Ok(()), |(_, code)| Err(code))
}

/// Whether the run may call a tool now. What comes from no document is not for documents to take away.
pub(crate) fn may_call(
    snapshot: Option<&Snapshot>,
    record: &RunRecord,
    definition: &Definition,
    tool: &str,
) -> bool {
    let blueprint = definition.blueprint();
    let from_document = blueprint.tools.keys().any(|name| name.as_str() == tool)
        || blueprint.mcp_servers.keys().any(|server| {
            tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with("__"))
        });
    let by = Acting { project: &record.project, user: record.user.as_ref() };
    !from_document || snapshot.is_some_and(|snapshot| snapshot.may_call(by, &record.target, tool))
}

/// The tools of the agent that a run which begins now may not call.
pub(crate) fn denied(
    snapshot: Option<&Snapshot>,
    record: &RunRecord,
    definition: &Definition,
    found: &[FoundTool],
) -> BTreeSet<String> {
    let declared = definition.blueprint().tools.keys().map(ToString::to_string);
    declared
        .chain(found.iter().map(FoundTool::name))
        .filter(|tool| !may_call(snapshot, record, definition, tool))
        .collect()
}
