//! `spec.policy` of a project: the sections for Processes and agents.

use std::collections::BTreeSet;

use super::ids;
use crate::bounds::{AGENT_RUNS_PER_DAY, AGENT_RUNS_PER_DAY_DEFAULT};
use crate::reader::At;
use runfleet_domain::policy::{AgentPolicy, Policy, ProcessPolicy, Selector, SelectorMode};

const MODES: &[(&str, SelectorMode)] = &[
    ("ALL", SelectorMode::All),
    ("ALL_EXCEPT", SelectorMode::AllExcept),
    ("ONLY", SelectorMode::Only),
];

/// The policy, and whether it is approved.
pub(super) fn read(at: At<'_>) -> Option<(Policy, bool)> {
    let mut fields = at.fields()?;
    let processes = fields.or("processes", None, |at| processes(at).map(Some));
    let agents = fields.or("agents", None, |at| agents(at).map(Some));
    let approved = fields.or("approved", true, |at| at.boolean());
    fields.finish();
    Some((Policy { processes: processes?, agents: agents? }, approved?))
}

fn processes(at: At<'_>) -> Option<ProcessPolicy> {
    let mut fields = at.fields()?;
    let processes = fields.required("processes").and_then(|at| selector(at, "processInfoIds"));
    let allow_system = fields.or("allowSystem", false, |at| at.boolean());
    fields.finish();
    Some(ProcessPolicy { processes: processes?, allow_system: allow_system? })
}

fn agents(at: At<'_>) -> Option<AgentPolicy> {
    let mut fields = at.fields()?;
    let agents = fields.required("agents").and_then(|at| selector(at, "agentIds"));
    let allow_system = fields.or("allowSystem", false, |at| at.boolean());
    let max_runs_per_day =
        fields.or("maxRunsPerDay", AGENT_RUNS_PER_DAY_DEFAULT, |at| at.integer(AGENT_RUNS_PER_DAY));
    let allow_auto_approve = fields.or("allowAutoApprove", false, |at| at.boolean());
    fields.finish();
    Some(AgentPolicy {
        agents: agents?,
        allow_system: allow_system?,
        max_runs_per_day: max_runs_per_day?,
        allow_auto_approve: allow_auto_approve?,
    })
}

fn selector(at: At<'_>, list: &str) -> Option<Selector> {
    let mut fields = at.fields()?;
    let mode = fields.required("mode").and_then(|at| at.word(MODES));
    let ids = fields.or(list, BTreeSet::new(), |at| ids(&at));
    match (mode, ids.as_ref().map(BTreeSet::len)) {
        (Some(SelectorMode::All), Some(1..)) => {
            fields.mistake(format!("must list no {list} when mode is `ALL`"));
        }
        (Some(SelectorMode::Only), Some(0)) => {
            fields.mistake(format!("must list at least one of {list} when mode is `ONLY`"));
        }
        _ => {}
    }
    fields.finish();
    Some(Selector { mode: mode?, ids: ids? })
}
