//! Whether a person's calls about their own conversations are admitted, and what they write in them is answered.

use super::{Facts, Refusal, Rules, calls_budget, may_call, may_write, paid_for};
use crate::caller::{Caller, Source};
use crate::id::RunKind;

/// What the run of an admitted turn needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The active version of the agent.
    pub version: u32,
    /// Automation steps that the run carries: the caller's, less the one that the turn uses.
    pub hops: u32,
}

/// Whether a call about the conversations of the caller's own user may be made; gives the calls that the execution may make in
/// all. The policy of the project says nothing about them: they are the person's.
pub fn chat(caller: &Caller<'_>, kind: RunKind, rules: &Rules<'_>) -> Result<Option<u32>, Refusal> {
    if caller.source == Source::TriggerBefore {
        return Err(Refusal::TriggerReadOnly);
    }
    may_call(caller, kind, rules.enabled)?;
    Ok(calls_budget(caller.source, &rules.limits))
}

/// The same for one that changes something in them.
pub fn change_chat(
    caller: &Caller<'_>,
    kind: RunKind,
    rules: &Rules<'_>,
) -> Result<Option<u32>, Refusal> {
    may_write(caller)?;
    chat(caller, kind, rules)
}

/// Whether an agent answers what the caller's user writes in a conversation: what a start needs of the person and the
/// workspace, whatever the policy of the project.
pub fn turn(caller: &Caller<'_>, rules: &Rules<'_>, facts: &Facts) -> Result<Turn, Refusal> {
    let kind = RunKind::Agent;
    let hops = caller.hops.min(rules.limits.hops).checked_sub(1).ok_or(Refusal::NoHopsLeft)?;
    let target = rules.target.as_ref().ok_or(Refusal::TargetNotFound(kind))?;
    let person = &facts.person;
    if !(person.active && person.account && person.may_start) {
        return Err(Refusal::PersonMayNot(kind));
    }
    paid_for(caller, facts)?;
    Ok(Turn { version: target.version, hops })
}
