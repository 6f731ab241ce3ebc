//! When a message that failed for a passing reason is tried again.
//!
//! Waits are made of five shared retry queues ("rungs") with fixed delays; a schedule picks a rung for an attempt.

use std::time::Duration;

/// One of the shared retry queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// 5 seconds.
    S5,
    /// 30 seconds.
    S30,
    /// 2 minutes.
    M2,
    /// 10 minutes.
    M10,
    /// 1 hour.
    H1,
}

impl Rung {
    /// All rungs, shortest first.
    pub const ALL: [Self; 5] = [Self::S5, Self::S30, Self::M2, Self::M10, Self::H1];

    /// How long a message stays on this rung.
    pub fn delay(self) -> Duration {
        match self {
            Self::S5 => Duration::from_secs(5),
            Self::S30 => Duration::from_secs(30),
            Self::M2 => Duration::from_mins(2),
            Self::M10 => Duration::from_mins(10),
            Self::H1 => Duration::from_hours(1),
        }
    }

    /// The word used in exchange and queue names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::S5 => "5s",
            Self::S30 => "30s",
            Self::M2 => "2m",
            Self::M10 => "10m",
            Self::H1 => "1h",
        }
    }

    /// The shortest rung that waits at least `wait`; the longest one if none does.
    pub fn at_least(wait: Duration) -> Self {
        Self::ALL.into_iter().find(|rung| rung.delay() >= wait).unwrap_or(Self::H1)
    }
}

/// Attempts before a message is parked.
pub const ATTEMPTS_MAX: u32 = 8;

/// The rung after attempt number `attempt` (the first is 1) has failed, or none when the budget is used up.
///
/// `spread` is any number drawn by the caller: one attempt in five goes to the neighbouring longer rung, so that messages
/// that failed together do not all come back together.
pub fn rung_after(attempt: u32, spread: u32) -> Option<Rung> {
    if attempt >= ATTEMPTS_MAX {
        return None;
    }
    let step = usize::try_from(attempt.max(1) - 1).unwrap_or(usize::MAX);
    let later = usize::from(spread.is_multiple_of(5));
    let last = Rung::ALL.len() - 1;
    Rung::ALL.get((step + later).min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_seconds_to_an_hour_and_then_the_message_is_parked() {
        let rungs: Vec<_> = (1..=9).map(|attempt| rung_after(attempt, 1)).collect();
        let expected = [
            Some(Rung::S5),
            Some(Rung::S30),
            Some(Rung::M2),
            Some(Rung::M10),
            Some(Rung::H1),
            Some(Rung::H1),
            Some(Rung::H1),
            None,
            None,
        ];
        assert_eq!(rungs, expected);
    }

    #[test]
    fn one_in_five_waits_on_the_longer_neighbour() {
        let longer = (0..100).filter(|spread| rung_after(1, *spread) == Some(Rung::S30)).count();
        assert_eq!(longer, 20);
        assert_eq!(rung_after(7, 0), Some(Rung::H1));
    }

    #[test]
    fn a_wish_to_wait_is_met_by_the_next_longer_rung() {
        assert_eq!(Rung::at_least(Duration::ZERO), Rung::S5);
        assert_eq!(Rung::at_least(Duration::from_secs(6)), Rung::S30);
        assert_eq!(Rung::at_least(Duration::from_hours(9)), Rung::H1);
    }
}
