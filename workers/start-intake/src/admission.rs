//! Whether a request is admitted: from token, request and catalog to a plan or one refusal. Pure, checks in a fixed order.

use runfleet_catalog::{ProcessDefinition, ProcessKind, Project, Snapshot};
use runfleet_contracts::claims::Source;
use runfleet_contracts::request::ValidProcessStart;
use runfleet_contracts::{Claims, ErrorBody, ErrorCode};
use runfleet_identity::Verified;
use serde_json::{Map, Value};

/// What the commit needs to know about an admitted start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The active version of the target.
    pub(crate) version: u32,
    /// Starts that the execution may call; none for a backfill, which is not counted.
    pub(crate) calls_limit: Option<u32>,
    /// Starts of the project in one UTC day.
    pub(crate) day_limit: u32,
    /// Unix milliseconds by which the run must have ended.
    pub(crate) deadline_ms: Option<u64>,
}

fn denied(reason: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::PermissionDenied).with("reason", reason)
}

/// Whether this start may be made.
pub(crate) fn start_process(
    asks: &Verified,
    start: &ValidProcessStart,
    snapshot: Option<&Snapshot>,
    now_ms: u64,
) -> Result<Plan, ErrorBody> {
    let claims = &asks.claims;
    may_write(claims)?;
    not_expired(asks)?;
    let (snapshot, project) = find_project(claims, snapshot)?;
    project.policy.allows_process(&start.process, claims.user.is_some())?;
    if claims.hops == 0 {
        return Err(ErrorBody::new(ErrorCode::MaxHopExceeded));
    }
    outcome_job(claims, start, project)?;
    let process = find_process(snapshot, start)?;
    if let Some(person) = &claims.user {
        snapshot.person_may_start(person, &start.process)?;
    }
    process.check_input(&input(start)?)?;
    let calls_limit =
        (claims.source != Source::Batch).then_some(project.limits.process_starts_per_execution);
    Ok(Plan {
        version: process.version,
        calls_limit,
        day_limit: project.limits.process_starts_per_day,
        deadline_ms: process
            .summary
            .deadline_seconds
            .map(|seconds| now_ms + u64::from(seconds) * 1_000),
    })
}

/// Whether this execution may ask where a Process run stands.
pub(crate) fn get_process(asks: &Verified, snapshot: Option<&Snapshot>) -> Result<(), ErrorBody> {
    if asks.claims.source == Source::TriggerBefore {
        return Err(denied("TRIGGER_READ_ONLY"));
    }
    not_expired(asks)?;
    let (_, project) = find_project(&asks.claims, snapshot)?;
    Ok(project.policy.allows_processes()?)
}

fn may_write(claims: &Claims) -> Result<(), ErrorBody> {
    match claims.source {
        Source::TriggerBefore => Err(denied("TRIGGER_READ_ONLY")),
        Source::Development if claims.read_only => Err(denied("DEVELOPMENT_SESSION_READ_ONLY")),
        _ if claims.read_only => Err(denied("READ_ONLY")),
        _ => Ok(()),
    }
}

fn not_expired(asks: &Verified) -> Result<(), ErrorBody> {
    if asks.expired { Err(denied("TOKEN_EXPIRED")) } else { Ok(()) }
}

/// A project that is not in the catalog has no policy, so it may use nothing.
fn find_project<'a>(
    claims: &Claims,
    snapshot: Option<&'a Snapshot>,
) -> Result<(&'a Snapshot, &'a Project), ErrorBody> {
    snapshot
        .and_then(|snapshot| Some((snapshot, snapshot.project(&claims.project)?)))
        .ok_or_else(|| denied("PROCESSES_NOT_ALLOWED"))
}

fn outcome_job(
    claims: &Claims,
    start: &ValidProcessStart,
    project: &Project,
) -> Result<(), ErrorBody> {
    let Some((job, _)) = &start.on_complete else { return Ok(()) };
    if claims.source == Source::Development {
        return Err(ErrorBody::new(ErrorCode::NotSupported).with("field", "onComplete"));
    }
    if project.declares(job) {
        return Ok(());
    }
    Err(ErrorBody::field("onComplete.job", "is not declared by the active version of the project"))
}

fn find_process<'a>(
    snapshot: &'a Snapshot,
    start: &ValidProcessStart,
) -> Result<&'a ProcessDefinition, ErrorBody> {
    let missing = || {
        ErrorBody::new(ErrorCode::NotFound)
            .with("resource", "process")
            .with("resourceId", start.process.as_str())
    };
    let process = snapshot
        .process(&start.process)
        .filter(|process| process.is_active())
        .ok_or_else(missing)?;
    if process.summary.kind != ProcessKind::Normal {
        return Err(ErrorBody::field(
            "processInfoId",
            "is not a Process that can be started by itself",
        ));
    }
    Ok(process)
}

fn input(start: &ValidProcessStart) -> Result<Map<String, Value>, ErrorBody> {
    let Some(input) = &start.input else { return Ok(Map::new()) };
    serde_json::from_str(input.get()).map_err(|_| ErrorBody::field("input", "must be an object"))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use runfleet_contracts::claims::AUDIENCE;
    use runfleet_contracts::request::ProcessStart;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
        let snapshot = json!({
            "format": 1,
            "revision": 1,
            "workspace": {"id": "demo"},
            "people": {},
            "projects": {"shop": {
                "version": "1",
                "jobs": {"discount_decided": {"name": "Decided", "timeoutMs": 30_000, "maxAttempts": 5}},
                "policy": {"processes": {"processes": {"mode": "ALL", "ids": []}, "allowSystem": true}},
                "limits": {"processStartsPerDay": 1_000, "processStartsPerExecution": 20, "jobsWaiting": 10_000},
            }},
            "processes": {"approve-discount": {
                "state": "active",
                "version": 3,
                "sha256": "0".repeat(64),
                "summary": {
                    "id": "p",
                    "kind": "normal",
                    "inputs": [{"name": "amount", "type": "number", "required": true}],
                    "outputs": [],
                },
            }},
        });
        Snapshot::from_json(snapshot.to_string().as_bytes()).unwrap()
    });

    fn asks() -> Verified {
        let project = SNAPSHOT.projects.keys().next().unwrap().clone();
        let claims = Claims {
            aud: AUDIENCE.into(),
            exp: 10,
            iat: 0,
            workspace: SNAPSHOT.workspace.id.clone(),
            project,
            execution: "e".parse().unwrap(),
            source: Source::Script,
            user: None,
            read_only: false,
            hops: 10,
            depth: 0,
            chain: 0,
            version: None,
            wait_for_day: false,
        };
        Verified { claims, expired: false }
    }

    fn start(options: &Value) -> ValidProcessStart {
        ProcessStart::parse(&to_raw_value(options).unwrap()).unwrap()
    }

    fn good() -> ValidProcessStart {
        start(
            &json!({"processInfoId": "approve-discount", "input": {"amount": 1}, "onComplete": {"job": "discount_decided"}}),
        )
    }

    fn refused(
        change: impl FnOnce(&mut Verified),
        start: &ValidProcessStart,
    ) -> (ErrorCode, String) {
        let mut asks = asks();
        change(&mut asks);
        let error = start_process(&asks, start, Some(&SNAPSHOT), 0).unwrap_err();
        let fact = |name: &str| {
            error.details.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        (error.code, fact("reason") + &fact("field"))
    }

    #[test]
    fn a_good_start_is_admitted_with_the_limits_of_its_project() {
        let plan = start_process(&asks(), &good(), Some(&SNAPSHOT), 0).unwrap();
        assert_eq!(plan.calls_limit, Some(20));
        assert_eq!(plan.day_limit, 1_000);
        assert_eq!(plan.version, 3);
    }

    #[test]
    fn a_backfill_is_not_counted_per_execution() {
        let mut asks = asks();
        asks.claims.source = Source::Batch;
        assert_eq!(start_process(&asks, &good(), Some(&SNAPSHOT), 0).unwrap().calls_limit, None);
    }

    #[test]
    fn each_refusal_has_its_code_and_reason() {
        let start_of = |options: Value| start(&options);
        let denied = |reason: &str| (ErrorCode::PermissionDenied, reason.to_owned());
        let good = good();
        assert_eq!(
            refused(|asks| asks.claims.source = Source::TriggerBefore, &good),
            denied("TRIGGER_READ_ONLY")
        );
        assert_eq!(refused(|asks| asks.claims.read_only = true, &good), denied("READ_ONLY"));
        assert_eq!(refused(|asks| asks.expired = true, &good), denied("TOKEN_EXPIRED"));
        assert_eq!(
            refused(|asks| asks.claims.project = "other".parse().unwrap(), &good),
            denied("PROCESSES_NOT_ALLOWED")
        );
        assert_eq!(refused(|asks| asks.claims.hops = 0, &good).0, ErrorCode::MaxHopExceeded);
        assert_eq!(
            refused(|asks| asks.claims.source = Source::Development, &good).0,
            ErrorCode::NotSupported
        );
        let stranger = |asks: &mut Verified| asks.claims.user = Some("nobody".parse().unwrap());
        assert_eq!(refused(stranger, &good), denied("PROCESS_START_DENIED"));
        let unknown = start_of(json!({"processInfoId": "nothing"}));
        assert_eq!(refused(|_| {}, &unknown).0, ErrorCode::NotFound);
        let job = start_of(
            json!({"processInfoId": "approve-discount", "onComplete": {"job": "nothing"}}),
        );
        assert_eq!(refused(|_| {}, &job), (ErrorCode::Validation, "onComplete.job".into()));
        let input =
            start_of(json!({"processInfoId": "approve-discount", "input": {"amount": "much"}}));
        assert_eq!(refused(|_| {}, &input), (ErrorCode::Validation, "input.amount".into()));
    }

    #[test]
    fn an_unknown_workspace_may_nothing() {
        let error = start_process(&asks(), &good(), None, 0).unwrap_err();
        assert_eq!(error.details["reason"], "PROCESSES_NOT_ALLOWED");
        assert!(get_process(&asks(), None).is_err());
        assert!(get_process(&asks(), Some(&SNAPSHOT)).is_ok());
    }
}
