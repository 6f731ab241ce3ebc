//! `kind: Project`: its active version, jobs, policy and limits.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::JobKey;
use runfleet_domain::limits::{
    JOBS_WAITING_MAX, PROCESS_STARTS_PER_DAY, PROCESS_STARTS_PER_EXECUTION,
};

use super::policy;
use crate::bounds::{
    DISPLAY_CHARS_MAX, JOB_ATTEMPTS, JOB_ATTEMPTS_DEFAULT, JOB_TIMEOUT_MS, JOB_TIMEOUT_MS_DEFAULT,
    JOBS_MAX, JOBS_WAITING, STARTS_PER_DAY, STARTS_PER_EXECUTION, VERSION_CHARS_MAX,
};
use crate::model::{Job, Limits, Project};
use crate::policy::Policy;
use crate::reader::At;

const LIMITS: Limits = Limits {
    process_starts_per_day: PROCESS_STARTS_PER_DAY,
    process_starts_per_execution: PROCESS_STARTS_PER_EXECUTION,
    jobs_waiting: JOBS_WAITING_MAX,
};

pub(super) fn read(spec: At<'_>) -> Option<Project> {
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let version = fields.required("version").and_then(|at| version(&at));
    let jobs = fields.or("jobs", BTreeMap::new(), |at| jobs(&at));
    let policy = fields.or("policy", Policy::default(), policy::read);
    let limits = fields.or("limits", LIMITS, limits);
    fields.finish();
    Some(Project {
        display_name: display_name?,
        version: version?,
        jobs: jobs?,
        policy: policy?,
        limits: limits?,
    })
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
    if let Some(schedule) = fields.optional("schedule") {
        // Better refused than accepted and never run.
        schedule.mistake("is not supported yet");
    }
    fields.finish();
    let key = key?;
    let job = || {
        let name = name?.unwrap_or_else(|| key.to_string());
        Some(Job { name, timeout_ms: timeout_ms?, max_attempts: max_attempts? })
    };
    let job = job();
    Some((at?, key, job))
}

fn limits(at: At<'_>) -> Option<Limits> {
    let mut fields = at.fields()?;
    let day = fields
        .or("processStartsPerDay", LIMITS.process_starts_per_day, |at| at.integer(STARTS_PER_DAY));
    let execution =
        fields.or("processStartsPerExecution", LIMITS.process_starts_per_execution, |at| {
            at.integer(STARTS_PER_EXECUTION)
        });
    let waiting = fields.or("jobsWaiting", LIMITS.jobs_waiting, |at| at.integer(JOBS_WAITING));
    fields.finish();
    Some(Limits {
        process_starts_per_day: day?,
        process_starts_per_execution: execution?,
        jobs_waiting: waiting?,
    })
}
