//! Where a message goes, as a worker says it.

use std::borrow::Cow;

use runfleet_contracts::address::{START_EXCHANGE, start_key};
use runfleet_domain::{Lane, Name};

use crate::names;

/// A lane of a runner, or the place for runs whose slice was cut off by a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Line {
    /// Somebody waits for it.
    Interactive,
    /// Work pushed in bulk.
    Backfill,
    /// One at a time, so that a run that kills its worker harms nobody else.
    Quarantine,
}

impl Line {
    /// All lines.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Backfill, Self::Quarantine];
}

impl From<Lane> for Line {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Interactive => Self::Interactive,
            Lane::Backfill => Self::Backfill,
        }
    }
}

/// The destination of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Route {
    /// Requests, to start-intake.
    Start(Lane),
    /// Process runs, to process-runner.
    Process(Line),
    /// Agent runs, to agent-runner.
    Agent(Line),
    /// Messages to people, to delivery.
    Deliver(Lane),
    /// Outcomes, to completion-dispatcher.
    Done(Lane),
    /// HTTP calls of Process runs, to process-runner. Apart from its other work, so that no run waits behind a slow server.
    Call(Lane),
    /// Model calls of agent runs, to agent-runner. Apart from its other work, so that no run waits behind a slow model.
    Turn(Lane),
    /// Tool calls of agent runs, to agent-runner. Apart from its other work for the same reason.
    Tool(Lane),
    /// Answers of hosts, to process-runner: the queues of [`Route::Process`] through an exchange that hosts may publish to.
    Answer(Lane),
    /// Answers of hosts, to agent-runner: the queues of [`Route::Agent`] through the same exchange.
    AgentAnswer(Lane),
    /// What hosts say of jobs, to completion-dispatcher: the queues of [`Route::Done`] through the same exchange.
    JobAnswer(Lane),
    /// Jobs of a project, to its hosts.
    Job {
        /// The workspace.
        workspace: Name,
        /// The project.
        project: Name,
    },
    /// Answers of hosts to calls, to start-intake: the queues of [`Route::Start`] through the same exchange.
    StartAnswer(Lane),
    /// Calls of scripts, routes, triggers and actions of a project, to the hosts of one version. The queue is theirs and there only
    /// while one of them is; publishing looks for a consumer first.
    HostCall {
        /// The workspace.
        workspace: Name,
        /// The project.
        project: Name,
        /// The version.
        version: String,
    },
    /// Tasks of the Processes of a project, to its hosts. Apart from its jobs: whoever takes jobs need not know of tasks.
    Task {
        /// The workspace.
        workspace: Name,
        /// The project.
        project: Name,
    },
}

impl Route {
    /// Every route with a queue of its own that is there from the start, which is all but the queues of projects.
    pub fn fixed() -> impl Iterator<Item = Self> {
        let lanes = Lane::ALL.into_iter();
        let lines = Line::ALL.into_iter();
        lanes
            .clone()
            .map(Self::Start)
            .chain(lines.clone().map(Self::Process))
            .chain(lines.map(Self::Agent))
            .chain(lanes.clone().map(Self::Deliver))
            .chain(lanes.clone().map(Self::Done))
            .chain(lanes.clone().map(Self::Call))
            .chain(lanes.clone().map(Self::Turn))
            .chain(lanes.map(Self::Tool))
    }

    /// Whether its queue belongs to a project, and so may be missing.
    pub(crate) fn is_of_project(&self) -> bool {
        matches!(self, Self::Job { .. } | Self::Task { .. } | Self::HostCall { .. })
    }

    /// The queue behind the route, which is also the routing key.
    pub fn queue(&self) -> Cow<'static, str> {
        let fixed = match self {
            Self::Start(lane) | Self::StartAnswer(lane) => start_key(*lane),
            Self::Process(Line::Interactive) | Self::Answer(Lane::Interactive) => {
                "process-runner.interactive"
            }
            Self::Process(Line::Backfill) | Self::Answer(Lane::Backfill) => {
                "process-runner.backfill"
            }
            Self::Process(Line::Quarantine) => "process-runner.quarantine",
            Self::Agent(Line::Interactive) | Self::AgentAnswer(Lane::Interactive) => {
                "agent-runner.interactive"
            }
            Self::Agent(Line::Backfill) | Self::AgentAnswer(Lane::Backfill) => {
                "agent-runner.backfill"
            }
            Self::Agent(Line::Quarantine) => "agent-runner.quarantine",
            Self::Deliver(Lane::Interactive) => "delivery.interactive",
            Self::Deliver(Lane::Backfill) => "delivery.backfill",
            Self::Done(Lane::Interactive) | Self::JobAnswer(Lane::Interactive) => {
                "completion-dispatcher.interactive"
            }
            Self::Done(Lane::Backfill) | Self::JobAnswer(Lane::Backfill) => {
                "completion-dispatcher.backfill"
            }
            Self::Call(Lane::Interactive) => "process-runner.calls",
            Self::Call(Lane::Backfill) => "process-runner.calls-backfill",
            Self::Turn(Lane::Interactive) => "agent-runner.turns",
            Self::Turn(Lane::Backfill) => "agent-runner.turns-backfill",
            Self::Tool(Lane::Interactive) => "agent-runner.tools",
            Self::Tool(Lane::Backfill) => "agent-runner.tools-backfill",
            Self::Job { workspace, project } => {
                return Cow::Owned(names::job_queue(workspace, project));
            }
            Self::Task { workspace, project } => {
                return Cow::Owned(names::task_queue(workspace, project));
            }
            Self::HostCall { workspace, project, version } => {
                return Cow::Owned(names::call_queue(workspace, project, version));
            }
        };
        Cow::Borrowed(fixed)
    }

    /// The exchange of the route. One per target, because permissions are per exchange.
    pub fn exchange(&self) -> &'static str {
        match self {
            Self::Start(_) => START_EXCHANGE,
            Self::Process(_) | Self::Call(_) => "x.process",
            Self::Agent(_) | Self::Turn(_) | Self::Tool(_) => "x.agent",
            Self::Deliver(_) => "x.deliver",
            Self::Done(_) => "x.done",
            Self::Answer(_) | Self::AgentAnswer(_) | Self::JobAnswer(_) | Self::StartAnswer(_) => {
                names::ANSWER_EXCHANGE
            }
            // The exchange that leads to every queue by its name.
            Self::HostCall { .. } => "",
            Self::Job { .. } => names::JOB_EXCHANGE,
            Self::Task { .. } => names::TASK_EXCHANGE,
        }
    }

    pub(crate) fn target(&self) -> Target {
        match self {
            Self::Start(_) => Target::Start,
            Self::Process(_) => Target::Process,
            Self::Agent(_) => Target::Agent,
            Self::Deliver(_) => Target::Deliver,
            Self::Done(_) => Target::Done,
            Self::Call(_) => Target::Call,
            Self::Turn(_) => Target::Turn,
            Self::Tool(_) => Target::Tool,
            Self::Answer(_) | Self::AgentAnswer(_) | Self::JobAnswer(_) | Self::StartAnswer(_) => {
                Target::Answer
            }
            Self::HostCall { .. } => Target::HostCall,
            Self::Job { .. } => Target::Job,
            Self::Task { .. } => Target::Task,
        }
    }
}

/// What publishes are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Start,
    Process,
    Agent,
    Deliver,
    Done,
    Call,
    Turn,
    Tool,
    Answer,
    Job,
    Task,
    HostCall,
    Retry,
    Dead,
}

impl Target {
    pub(crate) const ALL: [Self; 14] = [
        Self::Start,
        Self::Process,
        Self::Agent,
        Self::Deliver,
        Self::Done,
        Self::Call,
        Self::Turn,
        Self::Tool,
        Self::Answer,
        Self::Job,
        Self::Task,
        Self::HostCall,
        Self::Retry,
        Self::Dead,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Process => "process",
            Self::Agent => "agent",
            Self::Deliver => "deliver",
            Self::Done => "done",
            Self::Call => "call",
            Self::Turn => "turn",
            Self::Tool => "tool",
            Self::Answer => "answer",
            Self::Job => "job",
            Self::Task => "task",
            Self::HostCall => "host_call",
            Self::Retry => "retry",
            Self::Dead => "dead",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_fixed_route_has_a_queue_of_its_own() {
        let queues: HashSet<_> = Route::fixed().map(|route| route.queue()).collect();
        assert_eq!(queues.len(), 18);
        assert_eq!(Route::fixed().count(), 18);
    }

    #[test]
    fn an_answer_comes_to_the_worker_of_its_lane_through_an_exchange_of_its_own() {
        for lane in Lane::ALL {
            for (answer, own) in [
                (Route::Answer(lane), Route::Process(lane.into())),
                (Route::AgentAnswer(lane), Route::Agent(lane.into())),
                (Route::JobAnswer(lane), Route::Done(lane)),
                (Route::StartAnswer(lane), Route::Start(lane)),
            ] {
                assert_eq!(answer.queue(), own.queue());
                assert_ne!(answer.exchange(), own.exchange());
            }
        }
    }
}
