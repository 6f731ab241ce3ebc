//! Whether a call is admitted: from who asks, what is asked, what the catalog declares and what is known about people and
//! money, to a plan or to exactly one refusal.
//!
//! The checks run in the order of the variants of [`Refusal`], which is the order that callers can rely on. What is counted
//! (calls, days) and whether a key is held is decided later, by the ledger, in the same script that makes the run.

mod chat;
mod enqueue;
mod facts;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::{Caller, Source};
use crate::id::RunKind;
use crate::limits::StartLimits;
use crate::name::{JobKey, Name};
use crate::policy::Policy;

pub use self::chat::{Turn, change_chat, chat, turn};
pub use self::enqueue::{EnqueuePlan, EnqueueRefusal, EnqueueRules, enqueue, enqueue_bounds};
pub use self::facts::{BillingFacts, CreditsUsed, Facts, PersonFacts, RecipientFacts};

/// What a start asks for, as far as admission needs it.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The Process or agent.
    pub target: &'a Name,
    /// The job that gets the outcome.
    pub job: Option<&'a JobKey>,
    /// What only agents have; none for a Process.
    pub agent: Option<AgentWish<'a>>,
}

impl Wish<'_> {
    /// What the start would make.
    pub fn kind(&self) -> RunKind {
        if self.agent.is_some() { RunKind::Agent } else { RunKind::Process }
    }
}

/// Options that only the start of an agent has.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentWish<'a> {
    /// As whom the agent acts; none leaves it to the default.
    pub run_as: Option<RunAs>,
    /// Whether tool calls are approved without a person.
    pub auto_approve: bool,
    /// Who may get a message.
    pub recipient: Option<&'a Name>,
}

/// As whom an agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunAs {
    /// The person behind the execution that starts it.
    Caller,
    /// The agent's own default identity.
    Agent,
}

/// What the catalog declares about the project and the target.
#[derive(Debug, Clone)]
pub struct Rules<'a> {
    /// Whether this environment offers the kind at all.
    pub enabled: bool,
    /// The policy that was approved for the version of the project that asks.
    pub policy: Option<&'a Policy>,
    /// How much the project may do.
    pub limits: StartLimits,
    /// Whether the active version declares the job of the wish. True without a job.
    pub job_declared: bool,
    /// The target, if it is active.
    pub target: Option<Target>,
}

/// A Process or agent that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its active version.
    pub version: u32,
    /// Whether callers may start it by itself; agents always, Processes when their flow is a normal one.
    pub startable: bool,
    /// Longest time a run may take, in seconds.
    pub deadline_seconds: Option<u32>,
    /// The first input that does not fit its declaration.
    pub bad_input: Option<BadInput>,
}

/// An input that does not fit what the Process declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadInput {
    /// `input.` and the name of the variable.
    pub field: String,
    /// A phrase that completes "`field` …".
    pub problem: &'static str,
}

/// What the commit of an admitted start needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The active version of the target.
    pub version: u32,
    /// Starts of this kind that the project may make in one UTC day.
    pub day_limit: u32,
    /// Automation steps that the run carries: the caller's, less the one that the start uses.
    pub hops: u32,
    /// Agents around what the run does, itself included.
    pub depth: u32,
    /// As whom an agent acts. A Process acts as the caller, or without an initiator.
    pub run_as: RunAs,
    /// Longest time the run may take by its definition, in seconds.
    pub deadline_seconds: Option<u32>,
}

/// Why a call is refused. The first one that holds, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A trigger before a change may not call anything.
    TriggerReadOnly,
    /// A development session that may only read.
    DevelopmentReadOnly,
    /// An action that is declared to only read.
    ReadOnly,
    /// A project key, which is for hosts and runs nothing.
    ProjectKey,
    /// The time of the token is over.
    TokenExpired,
    /// The environment does not offer this kind.
    Disabled(RunKind),
    /// Outcome jobs are not available in local development.
    OutcomeInDevelopment(RunKind),
    /// An execution without a user cannot start an agent as its caller.
    NoCallerToRunAs,
    /// The approved policy has no section for this kind, or the project has no approved policy.
    SectionMissing(RunKind),
    /// The policy does not select the target.
    NotSelected(RunKind),
    /// The policy does not allow executions without a user.
    SystemNotAllowed(RunKind),
    /// The policy does not allow automatic approval, or there is no user.
    AutoApproveNotAllowed,
    /// No step is left of the automation budget.
    NoHopsLeft,
    /// Agents that start agents are nested too deeply.
    TooDeep {
        /// How deep they may be nested.
        limit: u32,
    },
    /// The active version does not declare the outcome job.
    JobNotDeclared(RunKind),
    /// No such Process or agent, or it is not active.
    TargetNotFound(RunKind),
    /// The Process is not of a kind that callers start.
    NotStartable,
    /// The person is not active here, has no account, or was not granted the target.
    PersonMayNot(RunKind),
    /// An input does not fit what the Process declares.
    BadInput(BadInput),
    /// Messages cannot be delivered at the moment.
    DeliveryUnavailable,
    /// The workspace does not know the recipient.
    RecipientNotFound,
    /// The recipient may not use the agent.
    RecipientAccessDenied,
    /// The recipient holds no seat.
    RecipientSeatRequired,
    /// The workspace has no AI plan.
    SubscriptionRequired,
    /// The executing person holds no seat.
    SeatRequired,
    /// The workspace has no credit left.
    InsufficientCredits,
    /// The agent's own credit limit is reached.
    AgentCreditLimit,
    /// The agent's model has no price.
    ModelNotPriced,
}

/// Whether a start may be made.
pub fn start(
    caller: &Caller<'_>,
    wish: &Wish<'_>,
    rules: &Rules<'_>,
    facts: &Facts,
) -> Result<Plan, Refusal> {
    let kind = wish.kind();
    may_write(caller)?;
    may_call(caller, kind, rules.enabled)?;
    if wish.job.is_some() && caller.source == Source::Development {
        return Err(Refusal::OutcomeInDevelopment(kind));
    }
    let run_as = run_as(caller, wish)?;
    let day_limit = policy_allows(caller, wish, rules)?;
    let (hops, depth) = budget(caller, kind, &rules.limits)?;
    if !rules.job_declared {
        return Err(Refusal::JobNotDeclared(kind));
    }
    let target = rules.target.as_ref().ok_or(Refusal::TargetNotFound(kind))?;
    if !target.startable {
        return Err(Refusal::NotStartable);
    }
    let person = &facts.person;
    if caller.user.is_some() && !(person.active && person.account && person.may_start) {
        return Err(Refusal::PersonMayNot(kind));
    }
    if let Some(bad) = &target.bad_input {
        return Err(Refusal::BadInput(bad.clone()));
    }
    if let Some(agent) = &wish.agent {
        recipient_may_get(agent, facts.recipient)?;
        paid_for(caller, facts)?;
    }
    Ok(Plan {
        version: target.version,
        day_limit,
        hops,
        depth,
        run_as,
        deadline_seconds: target.deadline_seconds,
    })
}

/// Whether a call that only asks where a run stands may be made; gives the calls that the execution may make in all.
pub fn get(caller: &Caller<'_>, kind: RunKind, rules: &Rules<'_>) -> Result<Option<u32>, Refusal> {
    may_ask(caller)?;
    may_call(caller, kind, rules.enabled)?;
    let section = rules.policy.is_some_and(|policy| match kind {
        RunKind::Process => policy.processes.is_some(),
        RunKind::Agent => policy.agents.is_some(),
    });
    if !section {
        return Err(Refusal::SectionMissing(kind));
    }
    Ok(calls_budget(caller.source, &rules.limits))
}

/// Whether a call that changes runs of the project may be made: what asking needs, by somebody who may not only read. Gives the
/// calls that the execution may make in all.
pub fn operate(
    caller: &Caller<'_>,
    kind: RunKind,
    rules: &Rules<'_>,
) -> Result<Option<u32>, Refusal> {
    may_write(caller)?;
    get(caller, kind, rules)
}

/// Calls of every kind that one execution may make; none for a backfill, which is not counted.
pub fn calls_budget(source: Source, limits: &StartLimits) -> Option<u32> {
    let calls = &limits.capability_calls;
    match source {
        Source::Batch => None,
        Source::TriggerBefore => Some(calls.before_change),
        Source::TriggerAfter => Some(calls.after_change),
        Source::Job | Source::Schedule => Some(calls.job),
        Source::Script
        | Source::Route
        | Source::Action
        | Source::Webhook
        | Source::Development
        | Source::Host => Some(calls.route),
    }
}

/// Starts of one kind that an execution may call; none for a backfill, which is not counted. Refused starts count too.
pub fn starts_limit(source: Source, kind: RunKind, limits: &StartLimits) -> Option<u32> {
    (source != Source::Batch).then_some(match kind {
        RunKind::Process => limits.process_starts_per_execution,
        RunKind::Agent => limits.agent_starts_per_execution,
    })
}

fn may_write(caller: &Caller<'_>) -> Result<(), Refusal> {
    match (caller.source, caller.read_only) {
        (Source::TriggerBefore, _) => Err(Refusal::TriggerReadOnly),
        (Source::Host, _) => Err(Refusal::ProjectKey),
        (Source::Development, true) => Err(Refusal::DevelopmentReadOnly),
        (_, true) => Err(Refusal::ReadOnly),
        (_, false) => Ok(()),
    }
}

/// Whether code of a project may call something that is no run: other code of the project, or records. `writes` says whether
/// that may change anything. Gives the calls that the execution may make in all.
pub fn call(
    caller: &Caller<'_>,
    writes: bool,
    limits: &StartLimits,
) -> Result<Option<u32>, Refusal> {
    if writes { may_write(caller) } else { may_ask(caller) }?;
    if caller.expired {
        return Err(Refusal::TokenExpired);
    }
    Ok(calls_budget(caller.source, limits))
}

fn may_ask(caller: &Caller<'_>) -> Result<(), Refusal> {
    match caller.source {
        Source::TriggerBefore => Err(Refusal::TriggerReadOnly),
        Source::Host => Err(Refusal::ProjectKey),
        _ => Ok(()),
    }
}

fn may_call(caller: &Caller<'_>, kind: RunKind, enabled: bool) -> Result<(), Refusal> {
    if caller.expired {
        return Err(Refusal::TokenExpired);
    }
    if enabled { Ok(()) } else { Err(Refusal::Disabled(kind)) }
}

fn run_as(caller: &Caller<'_>, wish: &Wish<'_>) -> Result<RunAs, Refusal> {
    match (wish.agent.and_then(|agent| agent.run_as), caller.user) {
        (Some(RunAs::Caller), None) => Err(Refusal::NoCallerToRunAs),
        (Some(run_as), _) => Ok(run_as),
        (None, Some(_)) => Ok(RunAs::Caller),
        (None, None) => Ok(RunAs::Agent),
    }
}

/// Whether the policy allows the start; gives the starts of this kind in one day.
fn policy_allows(caller: &Caller<'_>, wish: &Wish<'_>, rules: &Rules<'_>) -> Result<u32, Refusal> {
    let kind = wish.kind();
    let policy = rules.policy.ok_or(Refusal::SectionMissing(kind))?;
    let (selector, allow_system, day_limit) = match &wish.agent {
        None => policy.processes.as_ref().map(|section| {
            (&section.processes, section.allow_system, rules.limits.process_starts_per_day)
        }),
        Some(_) => policy
            .agents
            .as_ref()
            .map(|section| (&section.agents, section.allow_system, section.max_runs_per_day)),
    }
    .ok_or(Refusal::SectionMissing(kind))?;
    if !selector.picks(wish.target) {
        return Err(Refusal::NotSelected(kind));
    }
    if caller.user.is_none() && !allow_system {
        return Err(Refusal::SystemNotAllowed(kind));
    }
    let auto_approve = wish.agent.is_some_and(|agent| agent.auto_approve);
    let allowed = policy.agents.as_ref().is_some_and(|section| section.allow_auto_approve);
    if auto_approve && !(allowed && caller.user.is_some()) {
        return Err(Refusal::AutoApproveNotAllowed);
    }
    Ok(day_limit)
}

/// Hops and depth that the run carries.
fn budget(caller: &Caller<'_>, kind: RunKind, limits: &StartLimits) -> Result<(u32, u32), Refusal> {
    let hops = caller.hops.min(limits.hops).checked_sub(1).ok_or(Refusal::NoHopsLeft)?;
    match kind {
        RunKind::Process => Ok((hops, caller.depth)),
        RunKind::Agent if caller.depth >= limits.agent_depth => {
            Err(Refusal::TooDeep { limit: limits.agent_depth })
        }
        RunKind::Agent => Ok((hops, caller.depth + 1)),
    }
}

fn recipient_may_get(wish: &AgentWish<'_>, facts: RecipientFacts) -> Result<(), Refusal> {
    if wish.recipient.is_none() {
        return Ok(());
    }
    if !facts.delivery {
        return Err(Refusal::DeliveryUnavailable);
    }
    if !facts.exists {
        return Err(Refusal::RecipientNotFound);
    }
    if !facts.may_use {
        return Err(Refusal::RecipientAccessDenied);
    }
    if facts.ai_seat { Ok(()) } else { Err(Refusal::RecipientSeatRequired) }
}

fn paid_for(caller: &Caller<'_>, facts: &Facts) -> Result<(), Refusal> {
    let billing = &facts.billing;
    if !billing.subscription {
        return Err(Refusal::SubscriptionRequired);
    }
    if caller.user.is_some() && !facts.person.ai_seat {
        return Err(Refusal::SeatRequired);
    }
    if !billing.credits {
        return Err(Refusal::InsufficientCredits);
    }
    if !billing.agent_credits {
        return Err(Refusal::AgentCreditLimit);
    }
    if billing.model_priced { Ok(()) } else { Err(Refusal::ModelNotPriced) }
}
