//! Tools that start runs: a Process, or another agent. What is started is a run of its own; its end comes into the inbox of
//! the run that waits for it by itself.
//!
//! The id of a started run is made of the call, so the same call starts one run, however often it is made.

use runfleet_agent::limits::APPROVAL_MS;
use runfleet_agent::{Event, Problem, ToolFault};
use runfleet_broker::{Classify, Failure};
use runfleet_catalog::{Snapshot, ToolKind};
use runfleet_contracts::AgentTool;
use runfleet_contracts::agent_run::AgentOutput;
use runfleet_contracts::agents::{AgentInput, ApprovalPolicy};
use runfleet_domain::admission::RunAs;
use runfleet_domain::{Name, RunId, RunKind, RunState};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{ChildStarted, RunRecord, StartChild};
use runfleet_worker::effects;
use runfleet_worker::facts::{self, Of};
use serde_json::{Map, Value, json};

use crate::calls::Live;
use crate::handler::Deps;

/// Calls of one turn have their places below this.
const PLACES: u64 = 1_000;

/// Why nothing is started, as the model is told.
struct Refused(&'static str);

/// What is to be started.
struct Wanted {
    kind: RunKind,
    target: Name,
    version: u32,
    input: String,
    depth: u32,
    seconds: Option<u32>,
    /// Whether the agent does not wait for its end.
    detached: bool,
}

/// Starts what a tool stands for; that the run may is known. An event when the run that asks is told at once; none when it waits
/// for the end of what was started.
pub(super) async fn start(
    deps: &Deps,
    live: &Live,
    tool: &AgentTool,
    kind: &ToolKind,
    arguments: &Map<String, Value>,
) -> Result<Option<Event>, Failure> {
    let call_id = tool.call_id.clone();
    let refused = |why: &str| Event::ToolFailed {
        call_id: call_id.clone(),
        fault: ToolFault::Failed,
        problems: vec![Problem::new("", why)],
    };
    let record = &live.record;
    let Some(instance) = instance_of(&tool.call_id) else {
        return Err(Failure::permanent("numbering a call"));
    };
    let snapshot = deps.catalog.get(&record.workspace).await.transient("loading the catalog")?;
    let wanted = snapshot
        .as_deref()
        .ok_or(Refused("is not there"))
        .and_then(|snapshot| wanted(snapshot, record, kind, arguments));
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(Refused(why)) => return Ok(Some(refused(why))),
    };
    // The person of a turn also decides about calls of the agents that it asks, and of those that these ask. That takes time.
    let asks_in = record.decided_in().filter(|_| wanted.kind == RunKind::Agent);
    let more_ms = if asks_in.is_some() { APPROVAL_MS } else { 0 };
    let own = wanted.seconds.map(|seconds| now_ms() + u64::from(seconds) * 1_000 + more_ms);
    let waits = !wanted.detached;
    let start = StartChild {
        parent: record.id,
        instance,
        attempt: 1,
        fence: None,
        detached: wanted.detached,
        kind: wanted.kind,
        workspace: &record.workspace,
        project: &record.project,
        lane: record.lane,
        identity: &record.identity,
        target: &wanted.target,
        target_version: wanted.version,
        execution: &record.execution,
        user: record.user.as_ref(),
        hops: record.hops.saturating_sub(1),
        depth: wanted.depth,
        chain: record.chain,
        instance_name: None,
        input: Some(&wanted.input),
        // What is started does not outlive the call that waits for it.
        deadline_ms: [own, waits.then_some(tool.deadline)].into_iter().flatten().min(),
        asks_in,
        traceparent: record.traceparent.as_deref(),
    };
    match deps.store.start_child(&start).await.transient("starting a run for a tool")? {
        ChildStarted::Started { run, .. } => {
            runfleet_faults::point("agent.child_started");
            let of = Of { target: &wanted.target, ..Of::record(record) };
            facts::started(&deps.publisher, run, of);
            begin(deps, record, run).await?;
            let output = json!({"status": "success", "content": {"instanceId": run.to_string()}});
            Ok((!waits).then_some(Event::ToolDone { call_id, output }))
        }
        ChildStarted::ParentEnded | ChildStarted::Lost => Ok(None),
        ChildStarted::Full => Err(Failure::transient("the run has too many open children")),
    }
}

async fn begin(deps: &Deps, record: &RunRecord, run: RunId) -> Result<(), Failure> {
    let begin = effects::begin(run, None, record.lane, record.traceparent.as_deref());
    deps.publish(begin.permanent("writing a wake-up")?).await
}

fn wanted(
    snapshot: &Snapshot,
    record: &RunRecord,
    kind: &ToolKind,
    arguments: &Map<String, Value>,
) -> Result<Wanted, Refused> {
    if record.hops == 0 {
        return Err(Refused("cannot be started: the automation budget is used up"));
    }
    match kind {
        ToolKind::ProcessStart { process, wait } => {
            let found = snapshot.process(process).filter(|process| process.is_active());
            let found = found.ok_or(Refused("is not there"))?;
            found.check_input(arguments).map_err(|_| Refused("does not take this input"))?;
            Ok(Wanted {
                kind: RunKind::Process,
                target: process.clone(),
                version: found.version,
                input: Value::Object(arguments.clone()).to_string(),
                depth: record.depth,
                seconds: found.summary.deadline_seconds,
                detached: !wait,
            })
        }
        ToolKind::Agent { agent } => sub_agent(snapshot, record, agent, arguments),
        _ => Err(Refused("is nothing that can be started")),
    }
}

fn sub_agent(
    snapshot: &Snapshot,
    record: &RunRecord,
    agent: &Name,
    arguments: &Map<String, Value>,
) -> Result<Wanted, Refused> {
    let found = snapshot.agent(agent).filter(|agent| agent.is_active());
    let found = found.ok_or(Refused("is not there"))?;
    let project = snapshot.project(&record.project).ok_or(Refused("is not there"))?;
    if record.depth >= project.limits.agent_depth {
        return Err(Refused("cannot be started: agents are nested too deeply"));
    }
    let own: Option<AgentInput> =
        record.input.as_deref().and_then(|input| serde_json::from_str(input).ok());
    let instruction = arguments.get("instruction").and_then(Value::as_str).unwrap_or_default();
    let input = AgentInput {
        instruction: instruction.to_owned(),
        variables: None,
        records: Vec::new(),
        result_schema: None,
        run_as: own.as_ref().map_or(RunAs::Agent, |own| own.run_as),
        approval_policy: own.map_or(ApprovalPolicy::Deny, |own| own.approval_policy),
        timeout_seconds: found.spec.timeout_seconds.unwrap_or(300),
        deliver_to: None,
    };
    Ok(Wanted {
        kind: RunKind::Agent,
        target: agent.clone(),
        version: found.version,
        seconds: Some(input.timeout_seconds),
        input: serde_json::to_string(&input).map_err(|_| Refused("does not take this input"))?,
        depth: record.depth + 1,
        detached: false,
    })
}

/// The number of a call, `call_<turn>_<place>`, as the instance that a run is started for.
pub(super) fn instance_of(call_id: &str) -> Option<u64> {
    let (turn, place) = call_id.strip_prefix("call_")?.split_once('_')?;
    let (turn, place): (u64, u64) = (turn.parse().ok()?, place.parse().ok()?);
    (place < PLACES).then(|| turn.checked_mul(PLACES)?.checked_add(place)).flatten()
}

/// The question whose answer has brought a call.
pub(crate) fn turn_of(call_id: &str) -> Option<u32> {
    call_id.strip_prefix("call_")?.split_once('_')?.0.parse().ok()
}

/// The call of an instance.
pub(crate) fn call_of(instance: u64) -> String {
    format!("call_{}_{}", instance / PLACES, instance % PLACES)
}

/// What the run that waits is told of the end of what it has started.
pub(crate) fn ended(
    instance: u64,
    run: RunId,
    state: &str,
    output: Option<Map<String, Value>>,
    code: Option<String>,
) -> Event {
    let call_id = call_of(instance);
    if state == RunState::Completed.as_str() {
        let content = match run.kind() {
            RunKind::Process => Value::Object(output.unwrap_or_default()),
            RunKind::Agent => said(output),
        };
        return Event::ToolDone {
            call_id,
            output: json!({"status": "success", "content": content}),
        };
    }
    let word = match run.kind() {
        RunKind::Process => "The Process",
        RunKind::Agent => "The agent",
    };
    let code = code.unwrap_or_else(|| state.to_owned());
    let content = format!("{word} did not come to its end as it should: {code}.");
    Event::ToolDone { call_id, output: json!({"status": "error", "content": content}) }
}

/// What an agent has answered: its result, or its text.
fn said(output: Option<Map<String, Value>>) -> Value {
    let output = output.map(|output| Value::Object(output).to_string());
    let AgentOutput { text, result, .. } = AgentOutput::read(output.as_deref());
    let result = result.and_then(|result| serde_json::from_str(result.get()).ok());
    result.unwrap_or_else(|| text.unwrap_or_default().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_number_name_each_other() {
        for (call, number) in [("call_1_1", 1_001), ("call_12_32", 12_032)] {
            assert_eq!(instance_of(call), Some(number));
            assert_eq!(call_of(number), call);
        }
        assert_eq!(
            (turn_of("call_12_32"), turn_of("call_x_1"), turn_of("call_1")),
            (Some(12), None, None)
        );
        for call in ["", "call_1", "call_x_1", "call_1_1000", "call_99999999999999999_1"] {
            assert_eq!(instance_of(call), None, "{call}");
        }
    }

    #[test]
    fn the_end_of_a_run_is_told_as_the_result_of_its_call() {
        let output = |json: Value| json.as_object().cloned();
        let agent: RunId = "AG1501JDX3Z8GF0000000000000000".parse().unwrap();
        let process: RunId = "PI1501JDX3Z8GF0000000000000000".parse().unwrap();
        let told = |run, state, output| match ended(2_001, run, state, output, Some("CODE".into()))
        {
            Event::ToolDone { call_id, output } if call_id == "call_2_1" => output,
            other => panic!("{other:?}"),
        };
        let end = told(process, "COMPLETED", output(json!({"approved": true})));
        assert_eq!(end, json!({"status": "success", "content": {"approved": true}}));
        let end = told(agent, "COMPLETED", output(json!({"text": "Done.", "usage": null})));
        assert_eq!(end["content"], "Done.");
        let end = told(agent, "COMPLETED", output(json!({"text": "{}", "result": {"n": 1}})));
        assert_eq!(end["content"], json!({"n": 1}));
        assert_eq!(told(process, "FAILED", None)["status"], "error");
    }
}
