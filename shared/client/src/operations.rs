//! Calls that do something to Process runs that exist.

use std::time::Duration;

use runfleet_contracts::Operation;
use runfleet_contracts::operations::{
    AssignTask, CompleteTask, HistoryOf, HistoryPage, MessagePublished, OnRun, PublishMessage,
    RetryRun, RunOperated, SendSignal, SetVariables, SignalSent,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Error, Processes, written};

/// A message for the run that waits for it: its name, and what else it has.
#[derive(Debug, Clone)]
pub struct Message(PublishMessage);

impl Message {
    /// A message of this name as Processes have it: 1 to 255 bytes. It carries nothing and does not wait.
    pub fn new(name: impl Into<String>) -> Self {
        Self(PublishMessage {
            name: name.into(),
            correlation_key: None,
            variables: None,
            time_to_live_seconds: None,
            message_id: None,
        })
    }

    /// The value that tells which run it is for: 1 to 256 bytes.
    #[must_use]
    pub fn correlation_key(mut self, key: impl Into<String>) -> Self {
        self.0.correlation_key = Some(key.into());
        self
    }

    /// What it carries: an object of at most 65,536 bytes as JSON.
    pub fn variables(mut self, variables: &impl Serialize) -> Result<Self, Error> {
        self.0.variables = Some(written(variables)?);
        Ok(self)
    }

    /// How long it waits when no run wants it yet, in whole seconds: at most seven days.
    #[must_use]
    pub fn time_to_live(mut self, wait: Duration) -> Self {
        self.0.time_to_live_seconds = Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX));
        self
    }

    /// Makes two messages one: 1 to 128 printable ASCII characters. Derive it from what the message is about, so that a call
    /// which is made again publishes nothing more.
    #[must_use]
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.0.message_id = Some(id.into());
        self
    }
}

impl Processes<'_> {
    /// Ends a run and every run that it has called. A run that has ended stays as it is; the answer tells its state.
    pub async fn cancel(self, instance_id: &str) -> Result<RunOperated, Error> {
        self.on_run(Operation::ProcessesCancel, instance_id).await
    }

    /// The same, as removed.
    pub async fn delete(self, instance_id: &str) -> Result<RunOperated, Error> {
        self.on_run(Operation::ProcessesDelete, instance_id).await
    }

    /// Holds a run: nothing happens until it is resumed, but its deadline counts.
    pub async fn pause(self, instance_id: &str) -> Result<RunOperated, Error> {
        self.on_run(Operation::ProcessesPause, instance_id).await
    }

    /// Lets a run go on that was held.
    pub async fn resume(self, instance_id: &str) -> Result<RunOperated, Error> {
        self.on_run(Operation::ProcessesResume, instance_id).await
    }

    async fn on_run(self, operation: Operation, instance_id: &str) -> Result<RunOperated, Error> {
        let options = OnRun { instance_id: instance_id.to_owned() };
        self.0.call(operation, written(&options)?).await
    }

    /// Tries again what has failed for good: one incident, or all of the run.
    pub async fn retry(self, instance_id: &str, task: Option<u64>) -> Result<RunOperated, Error> {
        let options = RetryRun { instance_id: instance_id.to_owned(), task };
        self.0.call(Operation::ProcessesRetry, written(&options)?).await
    }

    /// Sets variables of a run, or of one of its sub-processes: an object of at most 65,536 bytes as JSON.
    pub async fn set(
        self,
        instance_id: &str,
        scope: Option<u64>,
        variables: &impl Serialize,
    ) -> Result<RunOperated, Error> {
        let variables = written(variables)?;
        let payload =
            written(&SetVariables { instance_id: instance_id.to_owned(), scope, variables })?;
        SetVariables::parse(&payload)?;
        self.0.call(Operation::ProcessesSet, payload).await
    }

    /// Completes a user task. `variables` is what it gives to the run: an object of at most 65,536 bytes as JSON.
    pub async fn complete_task(
        self,
        instance_id: &str,
        task: u64,
        variables: Option<&RawValue>,
    ) -> Result<RunOperated, Error> {
        let options = CompleteTask {
            instance_id: instance_id.to_owned(),
            task,
            variables: variables.map(ToOwned::to_owned),
        };
        let payload = written(&options)?;
        CompleteTask::parse(&payload)?;
        self.0.call(Operation::ProcessesCompleteTask, payload).await
    }

    /// Gives a user task to a person, or to nobody.
    pub async fn assign_task(
        self,
        instance_id: &str,
        task: u64,
        assignee: Option<&str>,
    ) -> Result<RunOperated, Error> {
        let options = AssignTask {
            instance_id: instance_id.to_owned(),
            task,
            assignee: assignee.map(str::to_owned),
        };
        let payload = written(&options)?;
        AssignTask::parse(&payload)?;
        self.0.call(Operation::ProcessesAssignTask, payload).await
    }

    /// What has happened in a run, oldest first: at most 200 entries, after `from` that are passed over.
    pub async fn history(
        self,
        instance_id: &str,
        from: u32,
        count: Option<u32>,
    ) -> Result<HistoryPage, Error> {
        let options = HistoryOf { instance_id: instance_id.to_owned(), from: Some(from), count };
        let payload = written(&options)?;
        HistoryOf::parse(&payload)?;
        self.0.call(Operation::ProcessesHistory, payload).await
    }

    /// Gives a message to the one run that has waited for it longest, or keeps it for a while.
    pub async fn message(self, message: Message) -> Result<MessagePublished, Error> {
        let payload = written(&message.0)?;
        PublishMessage::parse(&payload)?;
        self.0.call(Operation::ProcessesMessage, payload).await
    }

    /// Gives a signal to every run of the project that waits for it. `variables` is what it carries: an object of at most
    /// 65,536 bytes as JSON.
    pub async fn signal(
        self,
        name: impl Into<String>,
        variables: Option<&RawValue>,
    ) -> Result<SignalSent, Error> {
        let options = SendSignal { name: name.into(), variables: variables.map(ToOwned::to_owned) };
        let payload = written(&options)?;
        SendSignal::parse(&payload)?;
        self.0.call(Operation::ProcessesSignal, payload).await
    }
}
