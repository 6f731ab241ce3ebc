//! What an operation asks for, checked: the run it names, and what is to become of it.

use runfleet_contracts::operations::{
    AssignTask, CompleteTask, HistoryOf, NamesRun, OnRun as Named, PublishMessage, RetryRun,
    SendSignal, SetVariables, ValidMessage,
};
use runfleet_contracts::run_event::RunEvent;
use runfleet_contracts::{ErrorBody, Operation};
use runfleet_domain::limits::HISTORY_ENTRIES_AT_ONCE;
use runfleet_domain::{RunId, RunState};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The checked options of an operation.
#[derive(Debug)]
pub(super) enum Asked {
    /// Something about one run.
    OnRun {
        /// What the caller wrote as its id.
        text: String,
        /// The run; none when that is not the id of one.
        run: Option<RunId>,
        /// What is to be done.
        what: OnRun,
    },
    /// A message for whichever run waits for it.
    Message(ValidMessage),
    /// A signal for all runs that wait for it.
    Signal {
        /// Its name.
        name: String,
        /// What it carries.
        variables: Map<String, Value>,
    },
}

/// What is to be done about one run.
#[derive(Debug)]
pub(super) enum OnRun {
    /// It ends, in this state.
    End(RunState),
    /// Nothing happens in it until it is resumed.
    Pause,
    /// It goes on.
    Resume,
    /// It gets an event.
    Tell(RunEvent),
    /// Its history is told.
    History {
        /// Entries to pass over.
        from: u32,
        /// Most entries of the answer.
        count: u32,
    },
}

impl Asked {
    /// Reads and checks the options.
    pub(super) fn parse(operation: Operation, payload: &RawValue) -> Result<Self, ErrorBody> {
        let named = |what| Named::parse(payload).map(|named| on(&named, what));
        match operation {
            Operation::ProcessesCancel => named(OnRun::End(RunState::Canceled)),
            Operation::ProcessesDelete => named(OnRun::End(RunState::Deleted)),
            Operation::ProcessesPause => named(OnRun::Pause),
            Operation::ProcessesResume => named(OnRun::Resume),
            Operation::ProcessesRetry => {
                let options = RetryRun::parse(payload)?;
                Ok(on(&options, OnRun::Tell(RunEvent::Retry { task: options.task })))
            }
            Operation::ProcessesSet => {
                let (options, variables) = SetVariables::parse(payload)?;
                let event = RunEvent::Set { scope: options.scope, variables };
                Ok(on(&options, OnRun::Tell(event)))
            }
            Operation::ProcessesCompleteTask => {
                let (options, variables) = CompleteTask::parse(payload)?;
                let event = RunEvent::UserDone { task: options.task, variables };
                Ok(on(&options, OnRun::Tell(event)))
            }
            Operation::ProcessesAssignTask => {
                let options = AssignTask::parse(payload)?;
                let assignee = options.assignee.clone();
                let event = RunEvent::UserAssigned { task: options.task, assignee };
                Ok(on(&options, OnRun::Tell(event)))
            }
            Operation::ProcessesHistory => {
                let options = HistoryOf::parse(payload)?;
                let from = options.from.unwrap_or(0);
                let count = options.count.unwrap_or(HISTORY_ENTRIES_AT_ONCE);
                Ok(on(&options, OnRun::History { from, count }))
            }
            Operation::ProcessesMessage => PublishMessage::parse(payload).map(Self::Message),
            Operation::ProcessesSignal => {
                SendSignal::parse(payload).map(|(name, variables)| Self::Signal { name, variables })
            }
            // Starts and gets are read elsewhere.
            _ => Err(ErrorBody::field("operation", "is not one about a run that exists")),
        }
    }

    /// The run that is named.
    pub(super) fn run(&self) -> Option<RunId> {
        match self {
            Self::OnRun { run, .. } => *run,
            Self::Message(_) | Self::Signal { .. } => None,
        }
    }

    /// Whether nothing is changed.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self, Self::OnRun { what: OnRun::History { .. }, .. })
    }
}

fn on(named: &impl NamesRun, what: OnRun) -> Asked {
    Asked::OnRun { text: named.text().to_owned(), run: named.run(), what }
}
