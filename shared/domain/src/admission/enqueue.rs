//! Whether an execution may enqueue a background job. No policy is asked: a project's code may use the project's own jobs.

use super::{Refusal, calls_budget, may_write};
use crate::caller::{Caller, Source};
use crate::limits::{ENQUEUES_PER_EXECUTION, StartLimits};

/// What is known about a job that is to be enqueued.
#[derive(Debug, Clone, Copy)]
pub struct EnqueueRules {
    /// Whether this environment offers jobs at all.
    pub enabled: bool,
    /// Whether the active version of the project declares the job.
    pub job_declared: bool,
    /// Links of the job chain that led to the execution.
    pub chain: u32,
    /// Links that a job chain of the project may have.
    pub chain_max: u32,
    /// Steps that an execution of the project may have at most.
    pub hops_max: u32,
}

/// What the commit of an admitted job needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnqueuePlan {
    /// Automation steps of the job: enqueueing spends none.
    pub hops: u32,
    /// Links of its job chain, itself included.
    pub chain: u32,
}

/// Why a job is not enqueued. The first one that holds, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueRefusal {
    /// The execution may not call at all.
    Call(Refusal),
    /// The environment offers no jobs.
    Disabled,
    /// Jobs that enqueue jobs have gone on for too long without an event from outside.
    ChainTooLong {
        /// The links that there may be.
        limit: u32,
        /// The links that there are.
        used: u32,
    },
    /// The active version does not declare the job.
    NotDeclared,
}

/// Whether a job may be enqueued.
pub fn enqueue(caller: &Caller<'_>, rules: &EnqueueRules) -> Result<EnqueuePlan, EnqueueRefusal> {
    may_write(caller).map_err(EnqueueRefusal::Call)?;
    if caller.expired {
        return Err(EnqueueRefusal::Call(Refusal::TokenExpired));
    }
    if !rules.enabled {
        return Err(EnqueueRefusal::Disabled);
    }
    if rules.chain >= rules.chain_max {
        return Err(EnqueueRefusal::ChainTooLong { limit: rules.chain_max, used: rules.chain });
    }
    if !rules.job_declared {
        return Err(EnqueueRefusal::NotDeclared);
    }
    Ok(EnqueuePlan { hops: caller.hops.min(rules.hops_max), chain: rules.chain + 1 })
}

/// Calls of every kind, and jobs, that one execution may make; none for a backfill, which is not counted.
pub fn enqueue_bounds(source: Source, limits: &StartLimits) -> (Option<u32>, Option<u32>) {
    let jobs = (source != Source::Batch).then_some(ENQUEUES_PER_EXECUTION);
    (calls_budget(source, limits), jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: EnqueueRules =
        EnqueueRules { enabled: true, job_declared: true, chain: 2, chain_max: 3, hops_max: 10 };

    fn caller(source: Source) -> Caller<'static> {
        Caller { source, read_only: false, expired: false, user: None, hops: 0, depth: 3 }
    }

    #[test]
    fn enqueueing_spends_no_step_and_adds_a_link_to_the_chain() {
        let plan = enqueue(&caller(Source::Job), &RULES).unwrap();
        assert_eq!(plan, EnqueuePlan { hops: 0, chain: 3 });
        let rich = Caller { hops: 99, ..caller(Source::Job) };
        assert_eq!(enqueue(&rich, &RULES).unwrap().hops, 10);
    }

    #[test]
    fn each_refusal_of_a_job_has_its_place_in_the_order() {
        let mut asks = Caller { read_only: true, expired: true, ..caller(Source::TriggerBefore) };
        let mut rules = EnqueueRules { enabled: false, job_declared: false, chain: 3, ..RULES };
        let told = |asks: &Caller<'_>, rules: &EnqueueRules| enqueue(asks, rules).unwrap_err();
        assert_eq!(told(&asks, &rules), EnqueueRefusal::Call(Refusal::TriggerReadOnly));
        asks.source = Source::Development;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::Call(Refusal::DevelopmentReadOnly));
        asks.source = Source::Action;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::Call(Refusal::ReadOnly));
        asks.read_only = false;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::Call(Refusal::TokenExpired));
        asks.expired = false;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::Disabled);
        rules.enabled = true;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::ChainTooLong { limit: 3, used: 3 });
        rules.chain = 0;
        assert_eq!(told(&asks, &rules), EnqueueRefusal::NotDeclared);
        rules.job_declared = true;
        assert!(enqueue(&asks, &rules).is_ok());
    }

    #[test]
    fn an_execution_enqueues_fifty_jobs_and_a_backfill_is_not_counted() {
        let limits = StartLimits::DEFAULT;
        assert_eq!(enqueue_bounds(Source::Route, &limits), (Some(100), Some(50)));
        assert_eq!(enqueue_bounds(Source::Job, &limits), (Some(1_000), Some(50)));
        assert_eq!(enqueue_bounds(Source::Batch, &limits), (None, None));
    }
}
