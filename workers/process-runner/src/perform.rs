//! Doing what a state calls for: asking hosts, making calls, starting runs, sending messages.
//!
//! Everything may be done again. Ids are derived from the run and the instance, and whoever gets something twice knows it by
//! its id.

use std::time::Duration;

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_contracts::RunEvent;
use runfleet_domain::{MessageId, Name, RunId, RunKind, RunState};
use runfleet_flow::{AGENT_WORK, Ask, Effect};
use runfleet_store::{
    BroadcastSignal, ChildStarted, PublishMessage, Published, RunRecord, SIGNAL_RUNS_AT_ONCE_MAX,
    StartChild, Woken,
};
use runfleet_worker::facts::{self, Of};
use runfleet_worker::{effects, ending};
use serde_json::{Map, Value};

use crate::handler::Deps;

/// How long a message that a Process sends is kept for somebody who waits later.
const MESSAGE_KEPT: Duration = Duration::from_hours(1);

/// Children of one run that are looked through for the one of an instance.
const CHILDREN_MAX: u32 = 1_000;

/// Does what a run calls for.
pub(crate) struct Performer<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) record: &'a RunRecord,
    pub(crate) fence: u64,
    pub(crate) now_ms: u64,
}

/// A call of another Process.
struct Call {
    task: u64,
    process: String,
    input: Map<String, Value>,
    exact: bool,
}

impl Performer<'_> {
    /// Does everything, in order.
    pub(crate) async fn perform(&self, effects: Vec<Effect>) -> Result<(), Failure> {
        for effect in effects {
            match effect {
                Effect::Ask(ask) => {
                    self.ask(ask).await?;
                    runfleet_faults::point("process.asked");
                }
                Effect::Call { task, process, input, exact } => {
                    self.call(Call { task, process, input, exact }).await?;
                }
                Effect::CancelCall { task } => {
                    self.call_off(|instance| instance == task).await?;
                    runfleet_faults::point("process.called_off");
                }
                Effect::Message { by, name, key, variables } => {
                    self.message(by, &name, key.as_deref(), &variables).await?;
                    runfleet_faults::point("process.message_sent");
                }
                Effect::Signal { by, name, variables } => {
                    self.signal(by, &name, &variables).await?;
                    runfleet_faults::point("process.signal_sent");
                }
                _ => return Err(Failure::transient("an effect that this runner does not know")),
            }
        }
        Ok(())
    }

    async fn ask(&self, ask: Ask) -> Result<(), Failure> {
        if ask.expires_ms <= self.now_ms {
            return Ok(());
        }
        if ask.work == AGENT_WORK {
            return self.ask_agent(&ask).await;
        }
        self.deps.answers.ask(self.record, &ask).await
    }

    /// Starts the run of a called Process, or tells the caller why there is none.
    async fn call(&self, call: Call) -> Result<(), Failure> {
        let record = self.record;
        if record.hops == 0 {
            return self.refuse(&call, "MAX_HOP_EXCEEDED").await;
        }
        let Ok(target) = call.process.parse::<Name>() else {
            return self.refuse(&call, "PROCESS_NOT_FOUND").await;
        };
        let snapshot =
            self.deps.catalog.get(&record.workspace).await.transient("loading the catalog")?;
        let found = snapshot.as_deref().and_then(|snapshot| active(snapshot, &target));
        let Some((version, deadline_seconds, declared)) = found else {
            return self.refuse(&call, "PROCESS_NOT_FOUND").await;
        };
        let mut input = call.input.clone();
        if !call.exact {
            input.retain(|name, _| declared.contains(name));
        }
        let Ok(text) = serde_json::to_string(&input) else {
            return self.refuse(&call, "INPUT_INVALID").await;
        };
        if text.len() > runfleet_domain::limits::INPUT_BYTES_MAX {
            return self.refuse(&call, "INPUT_INVALID").await;
        }
        let own =
            deadline_seconds.map(|seconds| self.now_ms.saturating_add(u64::from(seconds) * 1_000));
        let start = StartChild {
            fence: Some(self.fence),
            input: Some(&text),
            // A called run does not outlive the one that waits for it.
            deadline_ms: [own, record.deadline_ms].into_iter().flatten().min(),
            hops: record.hops - 1,
            ..self.child(call.task, &target, version)
        };
        match self.deps.store.start_child(&start).await.transient("starting a called Process")? {
            ChildStarted::Started { run, .. } => {
                runfleet_faults::point("process.child_started");
                let of = Of { target: &target, ..Of::record(record) };
                facts::started(&self.deps.publisher, run, of);
                self.begin(run).await
            }
            ChildStarted::ParentEnded => Ok(()),
            // Somebody has taken up the run since it was given back, and may not know of this call.
            ChildStarted::Lost => Err(Failure::transient("starting a called Process")),
            ChildStarted::Full => Err(Failure::transient("the run has too many open children")),
        }
    }

    /// Wakes a run that was called.
    pub(crate) async fn begin(&self, run: RunId) -> Result<(), Failure> {
        let trace = self.record.traceparent.as_deref();
        let begin = effects::begin(run, None, self.record.lane, trace);
        self.deps.publish(begin.permanent("writing a wake-up")?).await
    }

    pub(crate) fn child<'c>(&'c self, task: u64, target: &'c Name, version: u32) -> StartChild<'c> {
        let record = self.record;
        StartChild {
            parent: record.id,
            instance: task,
            attempt: 1,
            fence: None,
            detached: false,
            kind: RunKind::Process,
            workspace: &record.workspace,
            project: &record.project,
            lane: record.lane,
            identity: &record.identity,
            target,
            target_version: version,
            execution: &record.execution,
            user: record.user.as_ref(),
            hops: 0,
            depth: record.depth,
            chain: record.chain,
            instance_name: None,
            input: None,
            deadline_ms: None,
            asks_in: None,
            traceparent: record.traceparent.as_deref(),
        }
    }

    /// A call that comes to nothing ends at once, like a called run that has failed.
    async fn refuse(&self, call: &Call, code: &str) -> Result<(), Failure> {
        let record = self.record;
        let nobody = self.child(call.task, &record.target, record.target_version).run_id();
        // What can be called may have changed since this call was made for the first time.
        let made = self.deps.store.load_run(nobody).await.transient("looking for a called run")?;
        if made.is_some() {
            return self.begin(nobody).await;
        }
        let event = RunEvent::ChildEnded {
            task: call.task,
            run: nobody,
            state: RunState::Failed.as_str().to_owned(),
            output: None,
            code: Some(code.to_owned()),
        };
        let id = format!("refused:{}", call.task);
        self.deps.tell(record, &id, &event).await
    }

    /// Ends the runs that were called by instances which want them no more.
    pub(crate) async fn call_off(&self, unwanted: impl Fn(u64) -> bool) -> Result<(), Failure> {
        let store = &self.deps.store;
        let children = store.open_children(self.record.id, CHILDREN_MAX).await;
        for child in children.transient("listing the children of a run")? {
            if unwanted(child.instance) {
                ending::call_off(store, &self.deps.publisher, child.run_id).await?;
            }
        }
        Ok(())
    }

    async fn message(
        &self,
        by: u64,
        name: &str,
        key: Option<&str>,
        variables: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let id = self.sent_id(by)?;
        let json = serde_json::to_string(variables).permanent("writing a message")?;
        let (workspace, project) = (&self.record.workspace, &self.record.project);
        let message = PublishMessage {
            workspace,
            project,
            name,
            key,
            variables_json: &json,
            id: &id,
            ttl: MESSAGE_KEPT,
        };
        match self.deps.store.publish_message(&message).await.transient("sending a message")? {
            Published::Delivered { to, .. } => self.wake(&to).await,
            Published::Buffered { .. } | Published::Nobody => Ok(()),
            Published::Full => Err(Failure::transient("whoever gets the message can take no more")),
        }
    }

    async fn signal(
        &self,
        by: u64,
        name: &str,
        variables: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let id = self.sent_id(by)?;
        let json = serde_json::to_string(variables).permanent("writing a signal")?;
        let (workspace, project) = (&self.record.workspace, &self.record.project);
        let signal = BroadcastSignal { workspace, project, name, variables_json: &json, id: &id };
        let (mut after, mut full) = (None, 0);
        loop {
            let page =
                self.deps.store.broadcast_signal(&signal, SIGNAL_RUNS_AT_ONCE_MAX, after).await;
            let page = page.transient("sending a signal")?;
            for woken in &page.woken {
                self.wake(woken).await?;
            }
            full += page.full;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if full == 0 { Ok(()) } else { Err(Failure::transient("a run can take no more signals")) }
    }

    fn sent_id(&self, by: u64) -> Result<MessageId, Failure> {
        format!("sent:{}:{by}", self.record.id).parse().permanent("making an id")
    }

    async fn wake(&self, woken: &Woken) -> Result<(), Failure> {
        ending::wake(&self.deps.publisher, woken).await
    }
}

/// Version, deadline and declared inputs of a Process that can be called.
fn active(snapshot: &Snapshot, target: &Name) -> Option<(u32, Option<u32>, Vec<String>)> {
    let process = snapshot.process(target).filter(|process| process.is_active())?;
    let declared = process.summary.inputs.iter().map(|input| input.name.clone()).collect();
    Some((process.version, process.summary.deadline_seconds, declared))
}
