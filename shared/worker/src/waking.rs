//! Why a runner looks at a run, and what it tells the broker of one that it did not move.
//!
//! Nothing here knows Processes or agents, and nothing is written here.

use std::time::Duration;

use runfleet_broker::Verdict;
use runfleet_store::Finished;

use crate::effects;

/// When a message is looked at again that was not brought to its end and whose run somebody holds.
const HELD_PAUSE: Duration = Duration::from_secs(5);

/// Why a run is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// Something has happened to it.
    Told,
    /// Its message was worked on before, and that did not come to its end.
    Again,
    /// Nothing may have happened.
    Unfounded,
}

impl Came {
    /// By the name of the message that wakes the run; `again`: whether somebody was at that message, or held the run, and was cut
    /// off.
    pub fn of(message_id: &str, again: bool) -> Self {
        match message_id.rsplit(':').next().unwrap_or_default() {
            _ if again => Self::Again,
            effects::RESUMED => Self::Again,
            effects::ALARM => Self::Unfounded,
            _ => Self::Told,
        }
    }
}

/// What becomes of a message whose run somebody else holds; `again`: whether somebody was at that message before.
pub fn of_held(again: bool) -> Verdict {
    if again {
        // Whoever was at it may have stored what nobody has done yet, and whoever holds the run now was not told so: somebody has
        // to come again.
        Verdict::Snooze(HELD_PAUSE)
    } else {
        // Whoever holds the lease moves the run on; if that one is dead, the alarm at the end of the lease wakes it.
        Verdict::Duplicate
    }
}

/// What becomes of a message whose run was to end, by what the ledger has said to that.
pub fn of_finished(done: &Finished) -> Verdict {
    match done {
        Finished::Finished { .. } => Verdict::Done,
        Finished::Ended(_) | Finished::Lost | Finished::Busy => Verdict::Duplicate,
        Finished::Missing => Verdict::Drop("no_such_run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_message_says_why_a_run_is_looked_at() {
        let run = "PR1501JDX3Z8GF0000000000000000";
        for (why, came) in [
            (effects::ALARM, Came::Unfounded),
            (effects::RESUMED, Came::Again),
            ("event", Came::Told),
            ("", Came::Told),
        ] {
            assert_eq!(Came::of(&format!("{run}:{why}"), false), came, "{why}");
            assert_eq!(Came::of(&format!("{run}:{why}"), true), Came::Again, "{why}");
        }
        assert_eq!(Came::of(run, false), Came::Told);
    }
}
