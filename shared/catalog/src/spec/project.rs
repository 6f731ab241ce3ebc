//! `kind: Project`: its active version, jobs, policy and limits.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::JobKey;
use runfleet_domain::cron::Cron;
use runfleet_domain::limits::{
    AGENT_DEPTH_MAX, AGENT_STARTS_PER_EXECUTION, HOPS_START, JOB_CHAIN_MAX, JOBS_WAITING_MAX,
    PROCESS_STARTS_PER_DAY, PROCESS_STARTS_PER_EXECUTION,
};
use runfleet_domain::policy::Policy;

use super::policy;
use crate::bounds::{
    AGENT_DEPTH, CAPABILITY_CALLS, DISPLAY_CHARS_MAX, HOPS, JOB_ATTEMPTS, JOB_ATTEMPTS_DEFAULT,
    JOB_CHAIN, JOB_TIMEOUT_MS, JOB_TIMEOUT_MS_DEFAULT, JOBS_MAX, JOBS_WAITING, MODEL_AGENTS_MAX,
    STARTS_PER_DAY, STARTS_PER_EXECUTION, VERSION_CHARS_MAX,
};
use crate::model::{CapabilityCalls, Job, Limits, Project};
use crate::reader::At;
use crate::schedule::{Schedule, Zone};

const STATES: &[(&str, bool)] = &[("enabled", false), ("disabled", true)];

/// A project as its document declares it.
pub(super) struct Declared {
    pub(super) project: Project,
    pub(super) policy_approved: bool,
}

pub(super) fn read(spec: At<'_>) -> Option<Declared> {
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let version = fields.required("version").and_then(|at| version(&at));
    let jobs = fields.or("jobs", BTreeMap::new(), |at| jobs(&at));
    let policy = fields.or("policy", (Policy::default(), true), policy::read);
    let policy_disabled = fields.or("policyState", false, |at| at.word(STATES));
    let limits = fields.or("limits", default_limits(), limits);
    let record_source = fields.or("recordSource", None, |at| at.parse().map(Some));
    let model_agents = fields.or("modelAgents", Vec::new(), |at| {
        at.items(MODEL_AGENTS_MAX)?.iter().map(At::parse).collect()
    });
    fields.finish();
    let (policy, policy_approved) = policy?;
    let project = Project {
        display_name: display_name?,
        version: version?,
        jobs: jobs?,
        policy,
        policies: BTreeMap::new(),
        policy_disabled: policy_disabled?,
        limits: limits?,
        record_source: record_source?,
        model_agents: model_agents?,
        registered: None,
    };
    Some(Declared { project, policy_approved })
}

fn version(at: &At<'_>) -> Option<String> {
    let text = at.text()?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if !(1..=VERSION_CHARS_MAX).contains(&text.len()) || !text.bytes().all(good) {
        at.mistake(format!("must be 1 to {VERSION_CHARS_MAX} characters out of letters, digits, `.`, `_`, `+` and `-`"));
        return None;
    }
    Some(text.to_owned())
}

fn jobs(at: &At<'_>) -> Option<BTreeMap<JobKey, Job>> {
    let mut jobs = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for item in at.items(JOBS_MAX)? {
        let Some((at, key, job)) = job(item) else { continue };
        if !seen.insert(key.as_str().to_ascii_lowercase()) {
            at.mistake("equals the key of a job above (upper and lower case count as equal)");
        }
        jobs.extend(job.map(|job| (key, job)));
    }
    // A job that is left out has left its mistakes.
    Some(jobs)
}

fn job(item: At<'_>) -> Option<(At<'_>, JobKey, Option<Job>)> {
    let mut fields = item.fields()?;
    let at = fields.required("key");
    let key = at.as_ref().and_then(At::parse::<JobKey>);
    let name = fields.or("name", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let timeout_ms =
        fields.or("timeoutMs", JOB_TIMEOUT_MS_DEFAULT, |at| at.integer(JOB_TIMEOUT_MS));
    let max_attempts =
        fields.or("maxAttempts", JOB_ATTEMPTS_DEFAULT, |at| at.integer(JOB_ATTEMPTS));
    let schedule = fields.or("schedule", None, |at| schedule(at).map(Some));
    fields.finish();
    let key = key?;
    let job = || {
        let name = name?.unwrap_or_else(|| key.to_string());
        Some(Job {
            name,
            timeout_ms: timeout_ms?,
            max_attempts: max_attempts?,
            schedule: schedule?,
        })
    };
    let job = job();
    Some((at?, key, job))
}

fn schedule(at: At<'_>) -> Option<Schedule> {
    let mut fields = at.fields()?;
    let cron = fields.required("cron").and_then(|at| at.parse::<Cron>());
    let time_zone = fields.or("timeZone", Zone::utc(), |at| at.parse::<Zone>());
    fields.finish();
    Some(Schedule::new(&cron?, &time_zone?))
}

fn default_limits() -> Limits {
    Limits {
        process_starts_per_day: PROCESS_STARTS_PER_DAY,
        process_starts_per_execution: PROCESS_STARTS_PER_EXECUTION,
        agent_starts_per_execution: AGENT_STARTS_PER_EXECUTION,
        capability_calls: CapabilityCalls::default(),
        hops: HOPS_START,
        agent_depth: AGENT_DEPTH_MAX,
        job_chain: JOB_CHAIN_MAX,
        jobs_waiting: JOBS_WAITING_MAX,
    }
}

fn limits(at: At<'_>) -> Option<Limits> {
    let defaults = default_limits();
    let mut fields = at.fields()?;
    let mut number = |name: &str, default: u32, range: std::ops::RangeInclusive<u32>| {
        fields.or(name, default, |at| at.integer(range))
    };
    let day = number("processStartsPerDay", defaults.process_starts_per_day, STARTS_PER_DAY);
    let processes = number(
        "processStartsPerExecution",
        defaults.process_starts_per_execution,
        STARTS_PER_EXECUTION,
    );
    let agents = number(
        "agentStartsPerExecution",
        defaults.agent_starts_per_execution,
        STARTS_PER_EXECUTION,
    );
    let hops = number("hops", defaults.hops, HOPS);
    let depth = number("agentDepth", defaults.agent_depth, AGENT_DEPTH);
    let chain = number("jobChain", defaults.job_chain, JOB_CHAIN);
    let waiting = number("jobsWaiting", defaults.jobs_waiting, JOBS_WAITING);
    let calls = fields.or("capabilityCalls", defaults.capability_calls, capability_calls);
    fields.finish();
    Some(Limits {
        process_starts_per_day: day?,
        process_starts_per_execution: processes?,
        agent_starts_per_execution: agents?,
        capability_calls: calls?,
        hops: hops?,
        agent_depth: depth?,
        job_chain: chain?,
        jobs_waiting: waiting?,
    })
}

fn capability_calls(at: At<'_>) -> Option<CapabilityCalls> {
    let defaults = CapabilityCalls::default();
    let mut fields = at.fields()?;
    let mut number =
        |name: &str, default: u32| fields.or(name, default, |at| at.integer(CAPABILITY_CALLS));
    let route = number("route", defaults.route);
    let before_change = number("beforeChange", defaults.before_change);
    let after_change = number("afterChange", defaults.after_change);
    let job = number("job", defaults.job);
    fields.finish();
    Some(CapabilityCalls {
        route: route?,
        before_change: before_change?,
        after_change: after_change?,
        job: job?,
    })
}
