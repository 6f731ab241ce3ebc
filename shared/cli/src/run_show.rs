//! `runfleet run show`: where a run stands, why, and what happens next by when. The ledger's view.

use anyhow::{Context as _, Result, bail};
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_flow::{ActiveElement, AwaitedView, Definition, Doing, RunView};
use runfleet_store::{OutcomeState, RunExplained, RunRecord, Store};

use crate::context::Context;
use crate::{agent_show, tasks};

pub(crate) async fn run(id: &str) -> Result<()> {
    let run_id: RunId = id.parse().with_context(|| format!("`{id}` is not the id of a run"))?;
    let store = Context::load()?.store().await?;
    let Some(explained) = store.explain_run(run_id).await.context("asking the ledger")? else {
        bail!("the ledger has no run {run_id}: it never existed, or it ended more than 8 days ago");
    };
    let mut facts = facts(&explained);
    if let Some(job) = outcome_job(&store, run_id).await? {
        facts.push(("job", job));
    }
    for (name, value) in facts {
        crate::out::line(format_args!("{name:<10} {value}"));
    }
    if let Some(drawing) = drawing(&store, &explained.record).await? {
        crate::out::line(format_args!("\n{}", drawing.trim_end()));
    }
    Ok(())
}

/// The Process of a run that has not ended, as text, with what stands where.
async fn drawing(store: &Store, record: &RunRecord) -> Result<Option<String>> {
    let Ok(Some(view)) = tasks::view(record) else { return Ok(None) };
    if record.id.kind() != RunKind::Process {
        return Ok(None);
    }
    let (workspace, target) = (&record.workspace, &record.target);
    let stored = store.load_definition(RunKind::Process, workspace, target, record.target_version);
    let Some(bpmn) = stored.await.context("loading the definition")? else { return Ok(None) };
    let Ok(definition) = Definition::parse(&bpmn) else { return Ok(None) };
    Ok(Some(definition.describe_at(&|element| marks(&view, element))))
}

/// What stands at an element.
fn marks(view: &RunView, element: &str) -> Vec<String> {
    let here = view.active.iter().filter(|active| active.element == element);
    here.map(|active| format!("{}: {}", active.instance, activity(&active.doing))).collect()
}

fn facts(explained: &RunExplained) -> Vec<(&'static str, String)> {
    let record = &explained.record;
    let mut facts = vec![
        ("run", record.id.to_string()),
        ("state", record.state.public(record.id.kind()).to_owned()),
        ("target", format!("{} version {}", record.target, record.target_version)),
        ("project", format!("{} / {}", record.workspace, record.project)),
        ("identity", record.identity.clone()),
        ("lane", record.lane.to_string()),
        ("budget", format!("{} hops, depth {}, chain {}", record.hops, record.depth, record.chain)),
        ("created", ago(Some(record.created_at_ms), explained.now_ms)),
        ("started", ago(record.started_at_ms, explained.now_ms)),
        ("finished", ago(record.finished_at_ms, explained.now_ms)),
    ];
    if let Some(name) = &record.instance_name {
        facts.push(("name", name.clone()));
    }
    if let Some(error) = &record.error {
        facts.push(("error", format!("{}: {}", error.code, error.message)));
    }
    if record.crashes > 0 {
        facts.push((
            "crashes",
            format!("{} in quarantine since it last got further", record.crashes),
        ));
    }
    facts.push(("outcome", outcome(record)));
    position(record, &mut facts);
    facts.extend(agent_show::facts(record));
    facts.extend(agent_show::cost(record));
    facts.extend(agent_show::messages(record));
    if let Some(parent) = record.parent {
        facts.push(("called by", format!("{} as {}", parent.run_id, parent.instance)));
    }
    if explained.children > 0 {
        facts.push(("has called", format!("{} runs that have not ended", explained.children)));
    }
    facts.push(("inbox", format!("{} events", explained.inbox_events)));
    facts.push(("next", next(explained)));
    if let Some(left) = explained.expires_in {
        facts.push(("forgotten", format!("in {} h", left.as_secs() / 3_600)));
    }
    facts
}

/// What is active in a run and what it waits for: a line for each.
fn position(record: &RunRecord, facts: &mut Vec<(&'static str, String)>) {
    let view = match tasks::view(record) {
        Ok(Some(view)) => view,
        Ok(None) => return,
        Err(error) => return facts.push(("active", error.to_string())),
    };
    for ActiveElement { element, instance, doing, .. } in &view.active {
        facts.push(("active", format!("{element} ({instance}) {}", activity(doing))));
    }
    for awaited in &view.awaited {
        facts.push(("awaits", expectation(awaited)));
    }
}

/// Whether nothing in a run can go on by itself.
fn only_waits(record: &RunRecord) -> bool {
    let active = tasks::view(record).ok().flatten().map(|view| view.active);
    active.is_some_and(|active| active.iter().all(|element| element.doing != Doing::Ready))
}

fn activity(doing: &Doing) -> String {
    match doing {
        Doing::Ready => "is executed next".to_owned(),
        Doing::Waiting => "waits for an event or a time".to_owned(),
        Doing::Joining => "waits for other paths".to_owned(),
        Doing::Asked { work, attempt } => format!("`{work}` was asked, attempt {attempt}"),
        Doing::Pausing { work, attempt } => {
            format!("`{work}` is asked again later, attempt {attempt} has failed")
        }
        Doing::Incident { work, attempt, code, .. } => {
            format!("INCIDENT {code}: `{work}` has failed for good at attempt {attempt}")
        }
        Doing::Person { assignee: Some(person), .. } => format!("is to be done by {person}"),
        Doing::Person { assignee: None, .. } => "is to be done by a person".to_owned(),
        Doing::Called { process } => format!("has called `{process}`"),
        Doing::Open => "is open".to_owned(),
        Doing::Repeating { total, ended } => format!("{ended} of {total} have ended"),
        _ => "does something that only a newer version knows".to_owned(),
    }
}

fn expectation(awaited: &AwaitedView) -> String {
    match awaited {
        AwaitedView::Time { element, due } => format!("{due} (Unix ms) for {element}"),
        AwaitedView::Message { element, name, key: Some(key) } => {
            format!("message `{name}` with key `{key}` for {element}")
        }
        AwaitedView::Message { element, name, key: None } => {
            format!("message `{name}` for {element}")
        }
        AwaitedView::Signal { element, name } => format!("signal `{name}` for {element}"),
        _ => "something that only a newer version knows".to_owned(),
    }
}

fn outcome(record: &RunRecord) -> String {
    let job = record.job.as_ref().map_or("", |job| job.as_str());
    match record.outcome {
        OutcomeState::None => "no job was named at the start".to_owned(),
        OutcomeState::Pending if record.state.is_final() => {
            format!("waits to become the job `{job}`")
        }
        OutcomeState::Pending => format!("becomes the job `{job}` when the run ends"),
        OutcomeState::Job => format!("has become the job `{job}`"),
        OutcomeState::Dropped(reason) => format!("not delivered to `{job}`: {}", reason.as_str()),
    }
}

/// What the alarm of a live run or of a pending outcome will do, and when.
fn next(explained: &RunExplained) -> String {
    let RunExplained { record, now_ms, .. } = explained;
    let Some(at) = explained.alarm_at_ms else {
        return if record.state.is_final() {
            "nothing: it is over"
        } else {
            "nothing: it has no alarm, which is a fault"
        }
        .into();
    };
    let by = if at > *now_ms {
        format!("in {} s", (at - now_ms) / 1_000)
    } else {
        "now: it is due".to_owned()
    };
    match record.state {
        RunState::Queued => {
            format!("a runner takes it from its queue; if none does, it is put there again {by}")
        }
        RunState::Running if record.lease_until_ms > *now_ms => {
            format!("its runner works on it; if that one is gone, it is taken over {by}")
        }
        RunState::Running if only_waits(record) => {
            format!("it goes on when something of that comes; looked at {by}")
        }
        RunState::Running => {
            format!("a runner continues it; if none does, it is put on its queue again {by}")
        }
        RunState::Paused => format!("it waits to be resumed; looked at {by}"),
        RunState::Completed
        | RunState::Failed
        | RunState::TimedOut
        | RunState::Canceled
        | RunState::Deleted => {
            format!("its outcome is handed over; if that does not happen, it is tried again {by}")
        }
    }
}

async fn outcome_job(store: &Store, run_id: RunId) -> Result<Option<String>> {
    let job = store.load_job(run_id.outcome_job()).await.context("asking the ledger")?;
    Ok(job.map(|job| {
        format!("{} `{}` attempt {}, {}", job.id, job.job, job.attempt, job.state.as_str())
    }))
}

fn ago(at_ms: Option<u64>, now_ms: u64) -> String {
    at_ms.map_or_else(
        || "–".to_owned(),
        |at| format!("{at} (Unix ms), {} s ago", now_ms.saturating_sub(at) / 1_000),
    )
}
