//! JSON Schemas of everything that travels, generated from the types. `schema/` holds them for readers and other languages;
//! a test keeps them fresh.

use schemars::{Schema, schema_for};

use crate::agent_run::{AgentResult, AgentTool, AgentTurn};
use crate::agents::{AgentGet, AgentInput, AgentRunState, AgentStart, AgentStarted};
use crate::chat::{
    ChatDecide, ChatDecided, ChatList, ChatListPage, ChatPage, ChatRead, ChatReply, ChatSaid,
    ChatSettings, ChatSettingsNow, HeldCall,
};
use crate::claims::Claims;
use crate::data::{CreateRecord, GetRecord, QueryRecords, RecordFound, RecordsFound, UpdateRecord};
use crate::deliver::DeliverMessage;
use crate::error::{ErrorBody, Reply};
use crate::facts::{AgentProgress, ChatMessage, RunEnded, RunStarted};
use crate::host::{HostAccepted, HostAnswer, HostProgress, HostRequest, ProcessCall};
use crate::host_call::{CallAnswer, CallProject, HostCall};
use crate::job::{EnqueueJob, JobAccepted, JobDue, JobEnqueued, JobResult, JobRun};
use crate::message::{Advance, OutcomeReady, ProcessCompletion};
use crate::models::InvokeModel;
use crate::operations::{
    AssignTask, CompleteTask, HistoryOf, HistoryPage, MessagePublished, OnRun, PublishMessage,
    RetryRun, RunOperated, SendSignal, SetVariables, SignalSent,
};
use crate::projects::{
    ActivateVersion, OpenSession, ProjectShown, RegisterVersion, SessionOpened, ShowProject,
    VersionActivated, VersionRegistered,
};
use crate::request::{ProcessGet, ProcessStart, ProcessStarted, ProcessState, Request};
use crate::run_event::RunEvent;

/// File name (without ending) and schema of each body.
pub fn all() -> Vec<(&'static str, Schema)> {
    let mut all = vec![
        ("request", schema_for!(Request)),
        ("processes.start", schema_for!(ProcessStart)),
        ("processes.start.reply", schema_for!(Reply<ProcessStarted>)),
        ("processes.get", schema_for!(ProcessGet)),
        ("processes.get.reply", schema_for!(Reply<ProcessState>)),
        ("processes.cancel", schema_for!(OnRun)),
        ("processes.cancel.reply", schema_for!(Reply<RunOperated>)),
        ("processes.delete", schema_for!(OnRun)),
        ("processes.delete.reply", schema_for!(Reply<RunOperated>)),
        ("processes.pause", schema_for!(OnRun)),
        ("processes.pause.reply", schema_for!(Reply<RunOperated>)),
        ("processes.resume", schema_for!(OnRun)),
        ("processes.resume.reply", schema_for!(Reply<RunOperated>)),
        ("processes.retry", schema_for!(RetryRun)),
        ("processes.retry.reply", schema_for!(Reply<RunOperated>)),
        ("processes.set", schema_for!(SetVariables)),
        ("processes.set.reply", schema_for!(Reply<RunOperated>)),
        ("processes.completeTask", schema_for!(CompleteTask)),
        ("processes.completeTask.reply", schema_for!(Reply<RunOperated>)),
        ("processes.assignTask", schema_for!(AssignTask)),
        ("processes.assignTask.reply", schema_for!(Reply<RunOperated>)),
        ("processes.history", schema_for!(HistoryOf)),
        ("processes.history.reply", schema_for!(Reply<HistoryPage>)),
        ("processes.message", schema_for!(PublishMessage)),
        ("processes.message.reply", schema_for!(Reply<MessagePublished>)),
        ("processes.signal", schema_for!(SendSignal)),
        ("processes.signal.reply", schema_for!(Reply<SignalSent>)),
        ("agents.start", schema_for!(AgentStart)),
        ("agents.start.reply", schema_for!(Reply<AgentStarted>)),
        ("agents.get", schema_for!(AgentGet)),
        ("agents.get.reply", schema_for!(Reply<AgentRunState>)),
        ("agent-input", schema_for!(AgentInput)),
        ("error", schema_for!(ErrorBody)),
        ("execution-token", schema_for!(Claims)),
        ("run.advance", schema_for!(Advance)),
        ("host.request", schema_for!(HostRequest)),
        ("host.accepted", schema_for!(HostAccepted)),
        ("host.progress", schema_for!(HostProgress)),
        ("host.answer", schema_for!(HostAnswer)),
        ("process.call", schema_for!(ProcessCall)),
        ("agent.turn", schema_for!(AgentTurn)),
        ("agent.tool", schema_for!(AgentTool)),
        ("run-event", schema_for!(RunEvent)),
        ("run.outcome", schema_for!(OutcomeReady)),
        ("job.run", schema_for!(JobRun)),
        ("job.result", schema_for!(JobResult)),
        ("process-completion", schema_for!(ProcessCompletion)),
        ("agent-result", schema_for!(AgentResult)),
    ];
    all.extend(of_projects());
    all
}

/// What hosts register and answer, and what code of projects asks for beside runs.
fn of_projects() -> Vec<(&'static str, Schema)> {
    vec![
        ("projects.register", schema_for!(RegisterVersion)),
        ("projects.register.reply", schema_for!(Reply<VersionRegistered>)),
        ("projects.activate", schema_for!(ActivateVersion)),
        ("projects.activate.reply", schema_for!(Reply<VersionActivated>)),
        ("projects.show", schema_for!(ShowProject)),
        ("projects.show.reply", schema_for!(Reply<ProjectShown>)),
        ("projects.session", schema_for!(OpenSession)),
        ("projects.session.reply", schema_for!(Reply<SessionOpened>)),
        ("projects.call", schema_for!(CallProject)),
        ("projects.call.reply", schema_for!(Reply<serde_json::Value>)),
        ("data.get", schema_for!(GetRecord)),
        ("data.get.reply", schema_for!(Reply<RecordFound>)),
        ("data.query", schema_for!(QueryRecords)),
        ("data.query.reply", schema_for!(Reply<RecordsFound>)),
        ("data.update", schema_for!(UpdateRecord)),
        ("data.update.reply", schema_for!(Reply<RecordFound>)),
        ("data.create", schema_for!(CreateRecord)),
        ("data.create.reply", schema_for!(Reply<RecordFound>)),
        ("models.invoke", schema_for!(InvokeModel)),
        ("models.invoke.reply", schema_for!(Reply<AgentStarted>)),
        ("host.call", schema_for!(HostCall)),
        ("host.callanswer", schema_for!(CallAnswer)),
        ("chat.message", schema_for!(ChatMessage)),
        ("agent.progress", schema_for!(AgentProgress)),
        ("run.started", schema_for!(RunStarted)),
        ("run.ended", schema_for!(RunEnded)),
        ("deliver.message", schema_for!(DeliverMessage)),
        ("chat.list", schema_for!(ChatList)),
        ("chat.list.reply", schema_for!(Reply<ChatListPage>)),
        ("chat.read", schema_for!(ChatRead)),
        ("chat.read.reply", schema_for!(Reply<ChatPage>)),
        ("chat.reply", schema_for!(ChatReply)),
        ("chat.reply.reply", schema_for!(Reply<ChatSaid>)),
        ("chat.decide", schema_for!(ChatDecide)),
        ("chat.decide.reply", schema_for!(Reply<ChatDecided>)),
        ("chat.settings", schema_for!(ChatSettings)),
        ("chat.settings.reply", schema_for!(Reply<ChatSettingsNow>)),
        ("held-call", schema_for!(HeldCall)),
        ("job.accepted", schema_for!(JobAccepted)),
        ("job.due", schema_for!(JobDue)),
        ("jobs.enqueue", schema_for!(EnqueueJob)),
        ("jobs.enqueue.reply", schema_for!(Reply<JobEnqueued>)),
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_schemas_are_those_of_the_types() {
        for (name, schema) in super::all() {
            let path = format!("{}/schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let stored = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(text, stored, "{name}: UPDATE_GOLDEN=1 rewrites it");
        }
    }
}
