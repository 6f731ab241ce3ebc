//! Background jobs through real workers: enqueued, scheduled, tried again, given up, waiting for a host.

use std::time::Duration;

use anyhow::{Context, Result};
use runfleet_catalog::{Job as Declared, Schedule};
use runfleet_client::{Client, Error, Job, ProcessStartOptions};
use runfleet_contracts::job::JobEnqueued;
use runfleet_contracts::{ErrorBody, ErrorCode};
use runfleet_domain::outcome::DropReason;
use runfleet_domain::{JobId, RunId};
use runfleet_store::{JobRecord, JobState, OutcomeState};
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Ending, Fleet, JobHost, Options, project};
use serde_json::json;

const JOB: &str = "discount_decided";

async fn fleet() -> Result<Fleet> {
    let without = vec!["process-runner", "agent-runner", "delivery"];
    Fleet::start(Options { without, ..Options::default() }).await
}

fn host(
    fleet: &Fleet,
    ends: impl Fn(&runfleet_contracts::JobRun) -> Ending + Send + Sync + 'static,
) -> JobHost {
    let (workspace, project) = project();
    JobHost::start(&fleet.broker, workspace, project, ends)
}

/// A client of one fresh execution of a route.
fn route(fleet: &Fleet) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = runfleet_contracts::claims::Source::Route;
    (claims.hops, claims.chain, claims.depth) = (7, 2, 1);
    claims.user = Some("ada".parse()?);
    Ok(fleet.client()?.token(fleet.token(&claims)?))
}

fn refusal(answer: Result<JobEnqueued, Error>) -> ErrorBody {
    let error = answer.unwrap_err();
    error.body().unwrap_or_else(|| panic!("not a refusal: {error:?}")).clone()
}

async fn ended(fleet: &Fleet, run_id: &str) -> Result<JobRecord> {
    let id: JobId = run_id.parse()?;
    wait_until("the job has ended", BOUND, || async {
        let job = fleet.store.load_job(id).await?.context("no such job")?;
        Ok(job.state.is_final().then_some(job))
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_enqueued_runs_and_its_code_can_enqueue_another() -> Result<()> {
    let fleet = fleet().await?;
    let host = host(&fleet, |_| Ending::Succeeds);
    let client = route(&fleet)?;
    let wish = || Job::new(JOB).idempotency_key("order:7").payload(&json!({"order": 7}));
    let first = client.jobs().enqueue(wish()?).await?;
    assert!(!first.duplicate);
    let again = client.jobs().enqueue(wish()?).await?;
    assert_eq!((again.run_id == first.run_id, again.duplicate), (true, true));
    let came = host.wait(1, BOUND).await?.remove(0);
    assert_eq!(came.run.payload.get(), r#"{"order":7}"#);
    assert_eq!((came.run.attempt, came.run.max_attempts, came.run.timeout_ms), (1, 5, 30_000));
    assert_eq!((came.run.hops, came.run.chain, came.run.depth), (7, 3, 1));
    assert_eq!((came.run.enqueued_by.as_str(), came.run.source.as_str()), ("http", "enqueue"));
    assert_eq!((came.run.version.as_deref(), came.run.run_at), (Some("1"), None));
    assert_eq!(came.run.user.as_ref().map(ToString::to_string).as_deref(), Some("ada"));
    assert_eq!(ended(&fleet, &first.run_id).await?.state, JobState::Succeeded);

    // The code of the job calls the fleet with the token that came with its message.
    let token = came.token.context("no token")?;
    let client = fleet.client()?.token(token);
    let second = client.jobs().enqueue(Job::new("count_done")).await?;
    let came = host.wait(2, BOUND).await?.remove(1);
    assert_eq!(came.run.job_id.to_string(), second.run_id);
    assert_eq!(came.run.enqueued_by, format!("job:{JOB}"));
    assert_eq!((came.run.hops, came.run.chain, came.run.depth), (7, 4, 1));
    assert_eq!((came.run.payload.get(), came.run.max_attempts), ("null", 3));
    assert_eq!(ended(&fleet, &second.run_id).await?.state, JobState::Succeeded);

    let later = client.jobs().enqueue(Job::new(JOB).delay(Duration::from_secs(2))).await?;
    let came = host.wait(3, BOUND).await?.remove(2);
    assert_eq!(came.run.job_id.to_string(), later.run_id);
    let at = came.run.run_at.context("no time")?;
    assert!(at >= came.run.enqueued_at + 2_000 && runfleet_runtime::clock::now_ms() >= at);
    ended(&fleet, &later.run_id).await?;
    assert_eq!(host.attempts().len(), 3);
    fleet.remove().await
}

#[tokio::test]
async fn what_may_not_be_enqueued_is_refused_with_its_reason() -> Result<()> {
    let fleet = fleet().await?;
    let client = route(&fleet)?;
    let error = refusal(client.jobs().enqueue(Job::new("nobody_has_this")).await);
    assert_eq!((error.code, &error.details["field"]), (ErrorCode::Validation, &json!("job")));
    for _ in 0..49 {
        client.jobs().enqueue(Job::new(JOB)).await?;
    }
    let error = refusal(client.jobs().enqueue(Job::new(JOB)).await);
    assert_eq!(error.code, ErrorCode::RateLimited);
    assert_eq!(
        (&error.details["budget"], &error.details["limit"], &error.details["used"]),
        (&json!("jobs.enqueue"), &json!(50), &json!(50))
    );
    let mut claims = fleet.claims();
    claims.chain = 1_000;
    let client = client.token(fleet.token(&claims)?);
    let error = refusal(client.jobs().enqueue(Job::new(JOB)).await);
    assert_eq!(error.details["budget"], json!("jobChain"));
    claims.source = runfleet_contracts::claims::Source::TriggerBefore;
    let client = client.token(fleet.token(&claims)?);
    let error = refusal(client.jobs().enqueue(Job::new(JOB)).await);
    assert_eq!(error.details["reason"], json!("TRIGGER_READ_ONLY"));
    fleet.remove().await
}

/// CG-110
#[tokio::test]
async fn an_attempt_is_tried_again_when_that_can_help_and_only_then() -> Result<()> {
    let fleet = fleet().await?;
    let declared =
        Declared { name: "Short".to_owned(), timeout_ms: 1_000, max_attempts: 2, schedule: None };
    fleet.declare("short", declared).await?;
    let host = host(&fleet, |run| match (run.job.as_str(), run.attempt) {
        ("short", _) => Ending::Hangs,
        ("count_done", _) => Ending::Fails,
        (_, 1) => Ending::AsksAgain,
        _ => Ending::Succeeds,
    });
    let client = fleet.client()?;
    let short = client.jobs().enqueue(Job::new("short")).await?;
    let fails = client.jobs().enqueue(Job::new("count_done")).await?;
    let again = client.jobs().enqueue(Job::new(JOB)).await?;
    let record = ended(&fleet, &fails.run_id).await?;
    assert_eq!((record.state, record.attempt), (JobState::Failed, 1));
    assert_eq!(record.last_error.as_deref(), Some("SCRIPT_ERROR"));
    let record = ended(&fleet, &again.run_id).await?;
    assert_eq!((record.state, record.attempt), (JobState::Succeeded, 2));
    let of = |id: &str| {
        let of = |attempt: &runfleet_tests::Attempt| attempt.run.job_id.to_string() == id;
        host.attempts().into_iter().filter(of).collect::<Vec<_>>()
    };
    let attempts = of(&again.run_id);
    assert_eq!(attempts.iter().map(|came| came.run.attempt).collect::<Vec<_>>(), [1, 2]);
    assert!(attempts[1].at - attempts[0].at >= Duration::from_secs(4));
    // Nothing is heard of this one: twice its time, the wait for a result, and the back-off.
    let record = ended(&fleet, &short.run_id).await?;
    assert_eq!((record.state, record.attempt), (JobState::Failed, 2));
    assert_eq!(record.last_error.as_deref(), Some("JOB_TIMEOUT"));
    assert_eq!(of(&short.run_id).len(), 2);
    assert!(!fleet.logs().contains("s3cret"));
    fleet.remove().await
}

#[tokio::test]
async fn an_attempt_is_judged_by_the_version_and_the_person_that_are_active_when_it_is_due()
-> Result<()> {
    let fleet = fleet().await?;
    let declared = |timeout_ms| Declared {
        name: "Changes".to_owned(),
        timeout_ms,
        max_attempts: 1,
        schedule: None,
    };
    let host = host(&fleet, |_| Ending::Succeeds);
    let client = fleet.client()?;
    let later = |job: &str| Job::new(job).delay(Duration::from_millis(2_500));
    fleet.declare("changes", declared(1_000)).await?;
    let changed = client.jobs().enqueue(later("changes")).await?;
    fleet.declare("changes", declared(2_000)).await?;
    let came = host.wait(1, BOUND).await?.remove(0);
    assert_eq!((came.run.job_id.to_string(), came.run.timeout_ms), (changed.run_id.clone(), 2_000));
    ended(&fleet, &changed.run_id).await?;
    let gone = client.jobs().enqueue(later("changes")).await?;
    let of_ada = route(&fleet)?.jobs().enqueue(later(JOB)).await?;
    // The documents of the example are applied again, without that job and without that person.
    fleet
        .apply_bundle(|bundle| bundle.people.values_mut().for_each(|person| person.active = false))
        .await?;
    let record = ended(&fleet, &gone.run_id).await?;
    assert_eq!(record.last_error.as_deref(), Some("JOB_NOT_DECLARED"));
    let left = ended(&fleet, &of_ada.run_id).await?;
    assert_eq!(left.last_error.as_deref(), Some("JOB_ACTOR_UNAVAILABLE"));
    assert_eq!((record.state, left.state, left.attempt), (JobState::Failed, JobState::Failed, 1));
    assert_eq!(host.attempts().len(), 1);
    fleet.remove().await
}

#[tokio::test]
async fn a_job_that_no_host_can_carry_out_fails_instead_of_waiting_for_ever() -> Result<()> {
    let fleet = fleet().await?;
    let _host = host(&fleet, |_| Ending::GivesUp);
    let job = fleet.client()?.jobs().enqueue(Job::new(JOB)).await?;
    let record = ended(&fleet, &job.run_id).await?;
    assert_eq!((record.state, record.attempt), (JobState::Failed, 1));
    assert_eq!(record.last_error.as_deref(), Some("JOB_GIVEN_UP"));
    fleet.remove().await
}

#[tokio::test]
async fn jobs_of_a_project_without_a_host_wait_visibly_and_run_once_when_one_comes() -> Result<()> {
    let fleet = fleet().await?;
    let client = fleet.client()?;
    for _ in 0..3 {
        client.jobs().enqueue(Job::new(JOB)).await?;
    }
    wait_until("it is visible", BOUND, || async {
        let without =
            fleet.metric("completion-dispatcher", "runfleet_projects_without_host").await?;
        let waiting = fleet.metric("completion-dispatcher", "runfleet_jobs_waiting").await?;
        Ok((without > 0.5 && waiting > 2.5).then_some(()))
    })
    .await?;
    // By now their alarms have rung: no copy has been put into the queue.
    let (workspace, name) = project();
    let page = fleet.store.list_jobs(&workspace, &name, 10).await?;
    assert_eq!((page.waiting, page.jobs.len()), (3, 3));
    let host = host(&fleet, |_| Ending::Succeeds);
    for job in &page.jobs {
        ended(&fleet, &job.id.to_string()).await?;
    }
    assert_eq!(host.attempts().len(), 3);
    fleet.remove().await
}

/// CG-115, CG-117
#[tokio::test]
async fn an_outcome_beyond_the_waiting_jobs_of_a_project_is_dropped_with_its_reason_and_counted()
-> Result<()> {
    let without = vec!["agent-runner", "delivery", "completion-dispatcher"];
    let mut fleet = Fleet::start(Options { without, ..Options::default() }).await?;
    fleet.apply_changed(|project| project.limits.jobs_waiting = 2).await?;
    fleet.spawn("completion-dispatcher", None)?;
    fleet.ready("completion-dispatcher").await?;
    let client = fleet.client()?;
    let mut runs = Vec::new();
    for amount in 0..5 {
        let options = ProcessStartOptions::default()
            .input(&json!({"amount": amount}))?
            .on_complete(JOB, &0)?;
        let started = client.processes().start("approve-discount", options).await?;
        runs.push(started.instance_id.parse::<RunId>()?);
    }
    let outcomes = wait_until("every outcome was dealt with", BOUND, || async {
        let mut found = Vec::new();
        for run in &runs {
            found.push(fleet.store.load_run(*run).await?.context("a run has vanished")?.outcome);
        }
        Ok((!found.contains(&OutcomeState::Pending)).then_some(found))
    })
    .await?;
    let dropped = OutcomeState::Dropped(DropReason::TooManyJobsWaiting);
    let count = |state| outcomes.iter().filter(|outcome| **outcome == state).count();
    assert_eq!((count(OutcomeState::Job), count(dropped)), (2, 3), "{outcomes:?}");
    let dropped = r#"runfleet_outcomes_total{result="TOO_MANY_JOBS_WAITING"}"#;
    assert!((fleet.metric("completion-dispatcher", dropped).await? - 3.0).abs() < 0.1);
    // Those that were not dropped come, and make room.
    let host = host(&fleet, |_| Ending::Succeeds);
    for (run, outcome) in runs.iter().zip(&outcomes) {
        if *outcome == OutcomeState::Job {
            ended(&fleet, &run.outcome_job().to_string()).await?;
        }
    }
    assert_eq!(host.attempts().len(), 2);
    fleet.remove().await
}

#[tokio::test]
async fn a_schedule_makes_one_run_a_minute_however_many_dispatchers_there_are() -> Result<()> {
    let without = vec!["process-runner", "agent-runner", "delivery", "completion-dispatcher"];
    let mut fleet = Fleet::start(Options { without, ..Options::default() }).await?;
    let schedule = Some(Schedule::parse("* * * * *", Some("Asia/Kathmandu"))?);
    let declared =
        Declared { name: "Tick".to_owned(), timeout_ms: 1_000, max_attempts: 1, schedule };
    fleet.declare("tick", declared).await?;
    let host = host(&fleet, |_| Ending::Succeeds);
    // Not over the end of a minute: the next one would make a run as well.
    let left = 60_000 - runfleet_runtime::clock::now_ms() % 60_000;
    if left < 25_000 {
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
    for dispatcher in
        ["completion-dispatcher", "completion-dispatcher.2", "completion-dispatcher.3"]
    {
        fleet.spawn(dispatcher, None)?;
    }
    for dispatcher in
        ["completion-dispatcher", "completion-dispatcher.2", "completion-dispatcher.3"]
    {
        fleet.ready(dispatcher).await?;
    }
    let came = host.wait(1, BOUND).await?.remove(0);
    assert_eq!((came.run.source.as_str(), came.run.enqueued_by.as_str()), ("schedule", "schedule"));
    assert_eq!((came.run.user, came.run.hops, came.run.chain), (None, 10, 1));
    ended(&fleet, &came.run.job_id.to_string()).await?;
    // Every dispatcher has looked at this minute by now; a second run would have come.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(host.attempts().len(), 1);
    fleet.remove().await
}
