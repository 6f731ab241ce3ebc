//! The life of a run as a pure transition table, shared by Processes and agents.
//!
//! The ledger stores the words of [`RunState::as_str`]; callers see [`RunState::public`], which differs by kind. Final
//! states absorb everything: whoever ends a run first wins.

use crate::id::RunKind;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunState {
    /// Accepted, no runner has worked on it yet.
    Queued,
    /// A runner has begun.
    Running,
    /// Held by a person; nothing happens until it is resumed.
    Paused,
    /// Ended as drawn or as asked.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended because its time was over.
    TimedOut,
    /// Ended by a person or by the platform.
    Canceled,
    /// Removed by a person.
    Deleted,
}

/// What happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunEvent {
    /// A runner claims it.
    Claim,
    /// It goes on later: a slice was used up or it waits for something.
    Checkpoint,
    /// A person holds it.
    Pause,
    /// A person lets it go on.
    Resume,
    /// It reached its end.
    Complete,
    /// It was stopped by an error.
    Fail,
    /// Its time is over.
    TimeOut,
    /// Somebody cancelled it.
    Cancel,
    /// Somebody removed it.
    Delete,
}

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The run has moved on; the event comes too late. Acknowledge it.
    #[error("the run has moved on")]
    Stale,
    /// The event cannot happen in this state: a fault of ours, or a forged message.
    #[error("the event cannot happen in this state")]
    Impossible,
}

impl RunState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Canceled,
        Self::Deleted,
    ];

    /// Whether nothing can change any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Paused => false,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Canceled | Self::Deleted => {
                true
            }
        }
    }

    /// The word in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::TimedOut => "TIMED_OUT",
            Self::Canceled => "CANCELED",
            Self::Deleted => "DELETED",
        }
    }

    /// The state that [`RunState::as_str`] names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// What callers see. A Process has no time-out of its own word: it is `FAILED`; an agent run has no `PAUSED`.
    pub fn public(self, kind: RunKind) -> &'static str {
        match (kind, self) {
            (RunKind::Process, Self::Queued) => "NOT_STARTED",
            (RunKind::Process, Self::TimedOut) => "FAILED",
            (RunKind::Agent, Self::Paused) => "RUNNING",
            (RunKind::Agent, Self::TimedOut) => "TIMEOUT",
            (RunKind::Agent, Self::Canceled | Self::Deleted) => "CANCELLED",
            (
                RunKind::Process | RunKind::Agent,
                Self::Queued
                | Self::Running
                | Self::Paused
                | Self::Completed
                | Self::Failed
                | Self::Canceled
                | Self::Deleted,
            ) => self.as_str(),
        }
    }

    /// The next state, or why there is none.
    pub fn on(self, event: RunEvent) -> Result<Self, Rejection> {
        use RunEvent as E;
        use RunState as S;
        match (self, event) {
            (S::Completed | S::Failed | S::TimedOut | S::Canceled | S::Deleted, _) => {
                Err(Rejection::Stale)
            }
            (S::Queued | S::Running | S::Paused, E::Cancel) => Ok(S::Canceled),
            (S::Queued | S::Running | S::Paused, E::Delete) => Ok(S::Deleted),
            (S::Queued | S::Running | S::Paused, E::TimeOut) => Ok(S::TimedOut),
            (S::Queued | S::Running, E::Claim | E::Checkpoint) | (S::Paused, E::Resume) => {
                Ok(S::Running)
            }
            (S::Queued | S::Running, E::Complete) => Ok(S::Completed),
            (S::Queued | S::Running | S::Paused, E::Fail) => Ok(S::Failed),
            (S::Queued | S::Running, E::Pause) => Ok(S::Paused),
            // A slice that was under way when the run was paused: its result is dropped, it is computed again later.
            (S::Paused, E::Claim | E::Checkpoint | E::Complete | E::Pause)
            | (S::Running, E::Resume) => Err(Rejection::Stale),
            (S::Queued, E::Resume) => Err(Rejection::Impossible),
        }
    }
}

impl RunEvent {
    /// Every event.
    pub const ALL: [Self; 9] = [
        Self::Claim,
        Self::Checkpoint,
        Self::Pause,
        Self::Resume,
        Self::Complete,
        Self::Fail,
        Self::TimeOut,
        Self::Cancel,
        Self::Delete,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_table_is_the_golden_one() {
        let table: String = RunState::ALL
            .into_iter()
            .flat_map(|state| RunEvent::ALL.into_iter().map(move |event| (state, event)))
            .map(|(state, event)| match state.on(event) {
                Ok(next) => format!("{state:?} + {event:?} -> {next:?}\n"),
                Err(rejection) => format!("{state:?} + {event:?} -> {rejection:?}\n"),
            })
            .collect();
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/run_transitions.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(golden, &table).unwrap();
        }
        assert_eq!(table, std::fs::read_to_string(golden).unwrap(), "UPDATE_GOLDEN=1 rewrites it");
    }

    #[test]
    fn a_final_state_absorbs_every_event() {
        for state in RunState::ALL.into_iter().filter(|state| state.is_final()) {
            for event in RunEvent::ALL {
                assert_eq!(state.on(event), Err(Rejection::Stale));
            }
        }
    }

    #[test]
    fn every_live_run_can_be_ended_by_a_person() {
        for state in RunState::ALL.into_iter().filter(|state| !state.is_final()) {
            assert_eq!(state.on(RunEvent::Cancel), Ok(RunState::Canceled));
        }
    }

    /// CG-030, CG-090
    #[test]
    fn words_are_read_back_and_public_words_are_the_contracts() {
        for state in RunState::ALL {
            assert_eq!(RunState::from_word(state.as_str()), Some(state));
        }
        let public = |kind| RunState::ALL.map(|state| state.public(kind));
        assert_eq!(
            public(RunKind::Process),
            [
                "NOT_STARTED",
                "RUNNING",
                "PAUSED",
                "COMPLETED",
                "FAILED",
                "FAILED",
                "CANCELED",
                "DELETED"
            ]
        );
        assert_eq!(
            public(RunKind::Agent),
            [
                "QUEUED",
                "RUNNING",
                "RUNNING",
                "COMPLETED",
                "FAILED",
                "TIMEOUT",
                "CANCELLED",
                "CANCELLED"
            ]
        );
    }
}
