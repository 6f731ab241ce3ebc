//! Tasks that agents carry out: each attempt is a run of its own, which the Process starts, waits for, and ends when it wants it
//! no more.
//!
//! The id of the run is made of the attempt, so asking twice is asking once. Its end comes into the inbox by the script that ends
//! it; here it becomes the answer to the attempt.

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::{Acting, Snapshot};
use runfleet_contracts::AskId;
use runfleet_contracts::agent_run::AgentOutput;
use runfleet_contracts::agents::{AgentInput, AgentStart};
use runfleet_domain::admission::RunAs;
use runfleet_domain::{Name, RunId, RunKind, RunState};
use runfleet_flow::limits::AGENT_GRACE_MS;
use runfleet_flow::{Ask, Event};
use runfleet_store::{ChildStarted, StartChild, attempt_of};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use crate::call::answer::failed;
use crate::perform::Performer;

/// What an agent gets by its name: a header counts before a variable.
const GIVEN: [&str; 5] = ["agentId", "instruction", "variables", "records", "resultSchema"];

/// Codes of a failed run after which another attempt makes sense.
const PASSING: [&str; 5] =
    ["LLM_HTTP_ERROR", "LLM_NETWORK", "SERVER_RESTARTED", "INTERNAL_ERROR", "TIMEOUT"];

/// Who asks.
#[derive(Clone, Copy)]
struct Asking<'a> {
    by: Acting<'a>,
    hops: u32,
    depth: u32,
}

/// The run that an attempt wants.
#[derive(Debug)]
struct Wanted {
    agent: Name,
    version: u32,
    input: AgentInput,
}

impl Performer<'_> {
    /// Starts the run of an agent for an attempt, or tells the Process why there is none.
    pub(crate) async fn ask_agent(&self, ask: &Ask) -> Result<(), Failure> {
        let record = self.record;
        let catalog = &self.deps.catalog;
        let snapshot = catalog.get(&record.workspace).await.transient("loading the catalog")?;
        let wanted = snapshot.as_deref().ok_or("AGENT_NOT_FOUND");
        let deadline_ms = ask.expires_ms.saturating_sub(AGENT_GRACE_MS);
        let deadline_ms = record.deadline_ms.map_or(deadline_ms, |own| own.min(deadline_ms));
        let seconds = deadline_ms.saturating_sub(self.now_ms) / 1_000;
        let by = Acting { project: &record.project, user: record.user.as_ref() };
        let asking = Asking { by, hops: record.hops, depth: record.depth };
        let wanted = wanted.and_then(|snapshot| wanted_by(snapshot, asking, ask, seconds));
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(code) => return self.refuse_agent(ask, code).await,
        };
        let Ok(input) = serde_json::to_string(&wanted.input) else {
            return self.refuse_agent(ask, "INPUT_INVALID").await;
        };
        let start = StartChild {
            fence: Some(self.fence),
            input: Some(&input),
            deadline_ms: Some(deadline_ms),
            hops: record.hops.saturating_sub(1),
            depth: record.depth.saturating_add(1),
            ..self.agent_run(ask, &wanted.agent, wanted.version)
        };
        match self.deps.store.start_child(&start).await.transient("starting a run of an agent")? {
            ChildStarted::Started { run, .. } => {
                runfleet_faults::point("process.child_started");
                self.begin(run).await
            }
            ChildStarted::ParentEnded => Ok(()),
            // Somebody has taken up the run since it was given back, and may not know of this attempt.
            ChildStarted::Lost => Err(Failure::transient("starting a run of an agent")),
            ChildStarted::Full => Err(Failure::transient("the run has too many open children")),
        }
    }

    fn agent_run<'c>(&'c self, ask: &Ask, agent: &'c Name, version: u32) -> StartChild<'c> {
        let (kind, attempt) = (RunKind::Agent, ask.attempt);
        StartChild { kind, attempt, ..self.child(ask.task, agent, version) }
    }

    /// An attempt that comes to nothing, unless its run was started when that was still possible.
    async fn refuse_agent(&self, ask: &Ask, code: &str) -> Result<(), Failure> {
        let record = self.record;
        let run = self.agent_run(ask, &record.target, 0).run_id();
        let made = self.deps.store.load_run(run).await.transient("looking for a started run")?;
        if made.is_some() {
            return self.begin(run).await;
        }
        let id = AskId { run_id: record.id, instance: ask.task, attempt: ask.attempt };
        let (event, trace) = (failed(id, code, false), record.traceparent.as_deref());
        self.deps.answers.tell(id, &event, record.lane, trace).await.map(drop)
    }
}

/// What an attempt wants, or the code with which it has failed.
fn wanted_by(
    snapshot: &Snapshot,
    asking: Asking<'_>,
    ask: &Ask,
    seconds: u64,
) -> Result<Wanted, &'static str> {
    let mut payload = Map::new();
    for name in GIVEN {
        let header = ask.headers.iter().find(|(key, _)| key == name).map(|(_, text)| text);
        let value = match (name, header) {
            ("resultSchema", Some(text)) => serde_json::from_str(text).ok(),
            (_, Some(text)) => Some(Value::from(text.as_str())),
            (_, None) => ask.variables.get(name).filter(|value| !value.is_null()).cloned(),
        };
        payload.extend(value.map(|value| (name.to_owned(), value)));
    }
    let payload = to_raw_value(&payload).map_err(|_| "INPUT_INVALID")?;
    let start = AgentStart::parse(&payload).map_err(|_| "INPUT_INVALID")?;
    if asking.hops == 0 {
        return Err("MAX_HOP_EXCEEDED");
    }
    let agent = snapshot.agent(&start.agent).filter(|agent| agent.is_active());
    let agent = agent.ok_or("AGENT_NOT_FOUND")?;
    let project = snapshot.project(asking.by.project).ok_or("AGENT_ACCESS_DENIED")?;
    if asking.depth >= project.limits.agent_depth {
        return Err("AGENT_DEPTH_EXCEEDED");
    }
    if !snapshot.may_start_agent(asking.by, &start.agent) {
        return Err("AGENT_ACCESS_DENIED");
    }
    let run_as = if asking.by.user.is_some() { RunAs::Caller } else { RunAs::Agent };
    let timeout_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
    let input = AgentInput { run_as, timeout_seconds, ..start.input };
    Ok(Wanted { version: agent.version, agent: start.agent, input })
}

/// What the end of a run of an agent means to the Process that has started it. None when no attempt of the instance has made that
/// run.
pub(crate) fn ended(
    process: RunId,
    task: u64,
    run: RunId,
    state: &str,
    output: Option<Map<String, Value>>,
    code: Option<String>,
) -> Option<Event> {
    let attempt = attempt_of(process, task, run)?;
    let fault = |code: String, retry| {
        let after_ms = None;
        Event::TaskFailed { task, attempt, code, retry, after_ms }
    };
    if state != RunState::Completed.as_str() {
        let code = code.unwrap_or_else(|| state.to_owned());
        let retry = PASSING.contains(&code.as_str());
        return Some(fault(code, retry));
    }
    let Some(output) = output else {
        return Some(fault("TASK_ANSWER_TOO_LARGE".to_owned(), false));
    };
    let output = Value::Object(output).to_string();
    let AgentOutput { text, result, usage } = AgentOutput::read(Some(&output));
    let result = result.and_then(|result| serde_json::from_str::<Value>(result.get()).ok());
    let answer = json!({"text": text, "result": result, "usage": usage});
    Some(Event::TaskDone { task, attempt, answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false}"#;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn snapshot(mode: &str) -> Snapshot {
        let person =
            |active: bool| json!({"account": true, "active": active, "mayStartProcesses": "all"});
        let policy = json!({"agents": {"agents": {"mode": mode, "ids": ["coach"]}, "allowSystem": true,
            "maxRunsPerDay": 1, "allowAutoApprove": false}});
        let limits = json!({"processStartsPerDay": 1, "processStartsPerExecution": 1, "jobsWaiting": 1,
            "agentDepth": 2});
        let snapshot = json!({"format": 1, "revision": 1, "workspace": {"id": "acme"},
            "people": {"ada": person(true), "ben": person(false)},
            "projects": {"shop": {"version": "1", "jobs": {}, "policy": policy, "limits": limits}},
            "processes": {},
            "agents": {"coach": {"state": "active", "version": 3, "model": "m"},
                "off": {"state": "inactive", "version": 1, "model": "m"}}});
        Snapshot::from_json(snapshot.to_string().as_bytes()).unwrap()
    }

    fn ask(headers: &[(&str, &str)], variables: &Value) -> Ask {
        Ask {
            task: 7,
            attempt: 1,
            element: "t".to_owned(),
            work: "runfleet:agent".to_owned(),
            headers: headers
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            variables: variables.as_object().cloned().unwrap_or_default(),
            expires_ms: 1,
        }
    }

    fn wants(ask: &Ask, user: Option<&str>, hops: u32, depth: u32) -> Result<Wanted, &'static str> {
        let (project, user) = (name("shop"), user.map(name));
        let by = Acting { project: &project, user: user.as_ref() };
        wanted_by(&snapshot("ONLY"), Asking { by, hops, depth }, ask, 90)
    }

    #[test]
    fn headers_and_variables_of_a_task_are_the_options_of_its_agent() {
        let headers = [("agentId", "coach"), ("resultSchema", SCHEMA)];
        let variables = json!({"agentId": "other", "instruction": "Look.", "variables": {"deal": 7},
            "records": [{"objectSlug": "deal", "recordId": "7"}], "unrelated": 1});
        let wanted = wants(&ask(&headers, &variables), Some("ada"), 1, 1).unwrap();
        assert_eq!((wanted.agent.as_str(), wanted.version), ("coach", 3));
        let input = serde_json::to_value(&wanted.input).unwrap();
        assert_eq!(
            (&input["instruction"], &input["variables"]),
            (&json!("Look."), &json!({"deal": 7}))
        );
        assert_eq!(input["records"][0]["recordId"], "7");
        assert_eq!(input["resultSchema"], serde_json::from_str::<Value>(SCHEMA).unwrap());
        assert_eq!((&input["runAs"], &input["timeoutSeconds"]), (&json!("caller"), &json!(90)));
        let system = wants(&ask(&headers, &variables), None, 1, 1).unwrap();
        assert_eq!(serde_json::to_value(&system.input).unwrap()["runAs"], "agent");
    }

    #[test]
    fn what_stands_against_a_run_of_an_agent_has_a_fixed_word() {
        let of = |agent: &str, instruction: &str| {
            ask(&[("agentId", agent)], &json!({"instruction": instruction}))
        };
        let code = |ask: &Ask, user, hops, depth| wants(ask, user, hops, depth).unwrap_err();
        assert_eq!(code(&of("coach", " "), None, 1, 0), "INPUT_INVALID");
        assert_eq!(code(&of("a b", "Look."), None, 1, 0), "INPUT_INVALID");
        assert_eq!(code(&of("coach", "Look."), None, 0, 0), "MAX_HOP_EXCEEDED");
        assert_eq!(code(&of("nobody", "Look."), None, 1, 0), "AGENT_NOT_FOUND");
        assert_eq!(code(&of("off", "Look."), None, 1, 0), "AGENT_NOT_FOUND");
        assert_eq!(code(&of("coach", "Look."), None, 1, 2), "AGENT_DEPTH_EXCEEDED");
        assert_eq!(code(&of("coach", "Look."), Some("ben"), 1, 0), "AGENT_ACCESS_DENIED");
        let project = name("shop");
        let asking = Asking { by: Acting { project: &project, user: None }, hops: 1, depth: 0 };
        let denied = wanted_by(&snapshot("ALL_EXCEPT"), asking, &of("coach", "Look."), 90);
        assert_eq!(denied.unwrap_err(), "AGENT_ACCESS_DENIED");
    }

    #[test]
    fn the_end_of_a_run_is_the_answer_to_the_attempt_that_has_started_it() {
        let process: RunId = "PI1501JDX3Z8GF0000000000000000".parse().unwrap();
        let (workspace, target) = (name("acme"), name("coach"));
        let run = |attempt| {
            StartChild {
                parent: process,
                instance: 7,
                attempt,
                fence: None,
                detached: false,
                kind: RunKind::Agent,
                workspace: &workspace,
                project: &target,
                lane: runfleet_domain::Lane::Interactive,
                identity: "",
                target: &target,
                target_version: 1,
                execution: &target,
                user: None,
                hops: 0,
                depth: 0,
                chain: 0,
                instance_name: None,
                input: None,
                deadline_ms: None,
                asks_in: None,
                traceparent: None,
            }
            .run_id()
        };
        let output = json!({"text": "Hello.", "result": {"n": 1}}).as_object().cloned();
        let told = ended(process, 7, run(2), "COMPLETED", output.clone(), None);
        let answer = json!({"text": "Hello.", "result": {"n": 1}, "usage": null});
        assert_eq!(told, Some(Event::TaskDone { task: 7, attempt: 2, answer }));
        assert_eq!(ended(process, 8, run(2), "COMPLETED", output, None), None);
        for (state, code, expected, again) in [
            ("FAILED", Some("MAX_TURNS"), "MAX_TURNS", false),
            ("FAILED", Some("LLM_NETWORK"), "LLM_NETWORK", true),
            ("CANCELED", None, "CANCELED", false),
            ("COMPLETED", None, "TASK_ANSWER_TOO_LARGE", false),
        ] {
            let told = ended(process, 7, run(1), state, None, code.map(str::to_owned));
            let Some(Event::TaskFailed { attempt: 1, code, retry, .. }) = told else {
                panic!("{told:?}")
            };
            assert_eq!((code.as_str(), retry), (expected, again));
        }
    }
}
