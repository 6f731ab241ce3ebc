//! Leaves a service alone that fails again and again.
//!
//! Closed: calls are let through. Open: none is, until a pause is over. Half-open: one call is let through as a probe; its end
//! closes the breaker or opens it for twice as long, up to a bound. What ends late, from before the last change, changes nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row that open it; at least 1 is taken.
    pub failures: u32,
    /// The failures must fall into this span; older ones do not count.
    pub window: Duration,
    /// How long it is open for the first time; doubles each time a probe fails.
    pub pause: Duration,
    /// How long it is open at most.
    pub pause_max: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures: 5,
            window: Duration::from_secs(30),
            pause: Duration::from_secs(1),
            pause_max: Duration::from_secs(30),
        }
    }
}

/// How a call ended, as far as a breaker cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The service works, whatever it said.
    Works,
    /// The service failed.
    Failed,
    /// Nothing was learnt: the call was given up, or never left.
    Unknown,
}

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls are let through.
    Closed,
    /// One call is being tried.
    HalfOpen,
    /// No call is let through before the pause is over.
    Open,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Failures in a row, and when the first of them was.
    Closed {
        failures: u32,
        first: Option<Instant>,
    },
    HalfOpen {
        pause: Duration,
    },
    Open {
        until: Instant,
        pause: Duration,
    },
}

/// The rules, with the time passed in.
#[derive(Debug)]
struct Rules {
    config: BreakerConfig,
    state: State,
    /// Raised by each change of the state.
    epoch: u64,
}

impl Rules {
    fn new(config: BreakerConfig) -> Self {
        Self { config, state: State::Closed { failures: 0, first: None }, epoch: 0 }
    }

    fn turn(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }

    /// The epoch of a call that is let through.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        match self.state {
            State::Closed { .. } => {}
            State::Open { until, pause } if now >= until => self.turn(State::HalfOpen { pause }),
            State::Open { .. } | State::HalfOpen { .. } => return None,
        }
        Some(self.epoch)
    }

    fn ended(&mut self, epoch: u64, verdict: Verdict, now: Instant) {
        if epoch != self.epoch {
            return;
        }
        match (self.state, verdict) {
            (State::Closed { .. }, Verdict::Works) => {
                self.state = State::Closed { failures: 0, first: None };
            }
            (State::Closed { failures, first }, Verdict::Failed) => {
                self.failed_once_more(failures, first, now);
            }
            (State::HalfOpen { .. }, Verdict::Works) => {
                self.turn(State::Closed { failures: 0, first: None });
            }
            (State::HalfOpen { pause }, Verdict::Failed) => {
                self.open(now, (pause * 2).min(self.config.pause_max));
            }
            // The probe has told nothing. The next one waits as long as this one did.
            (State::HalfOpen { pause }, Verdict::Unknown) => self.open(now, pause),
            (State::Closed { .. }, Verdict::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    fn failed_once_more(&mut self, failures: u32, first: Option<Instant>, now: Instant) {
        let within = |first: &Instant| now.saturating_duration_since(*first) <= self.config.window;
        let (failures, first) = match first.filter(within) {
            Some(first) => (failures + 1, first),
            None => (1, now),
        };
        if failures >= self.config.failures.max(1) {
            self.open(now, self.config.pause.min(self.config.pause_max));
        } else {
            self.state = State::Closed { failures, first: Some(first) };
        }
    }

    fn open(&mut self, now: Instant, pause: Duration) {
        self.turn(State::Open { until: now + pause, pause });
    }

    fn stands(&self) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
            State::Open { .. } => BreakerState::Open,
        }
    }
}

/// A breaker of one service.
#[derive(Debug)]
pub struct Breaker {
    rules: Mutex<Rules>,
}

impl Breaker {
    /// A closed one.
    pub fn new(config: BreakerConfig) -> Self {
        Self { rules: Mutex::new(Rules::new(config)) }
    }

    /// Lets a call through, or not. A permit that is dropped without a verdict counts as [`Verdict::Unknown`].
    pub fn admit(&self) -> Option<Permit<'_>> {
        let epoch = self.with(|rules| rules.admit(Instant::now()))?;
        Some(Permit { breaker: self, epoch, verdict: Verdict::Unknown })
    }

    /// Where it stands.
    pub fn state(&self) -> BreakerState {
        self.with(|rules| rules.stands())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Rules) -> T) -> T {
        // Nothing in here can leave the rules half changed.
        f(&mut self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call that was let through.
#[derive(Debug)]
pub struct Permit<'a> {
    breaker: &'a Breaker,
    epoch: u64,
    verdict: Verdict,
}

impl Permit<'_> {
    /// The call has ended.
    pub fn ended(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.breaker.with(|rules| rules.ended(self.epoch, self.verdict, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Clock {
        rules: Rules,
        now: Instant,
    }

    impl Clock {
        fn new() -> Self {
            let config = BreakerConfig {
                failures: 3,
                window: 10 * SECOND,
                pause: SECOND,
                pause_max: 3 * SECOND,
            };
            Self { rules: Rules::new(config), now: Instant::now() }
        }

        fn call(&mut self, verdict: Verdict) -> bool {
            let admitted = self.rules.admit(self.now);
            if let Some(epoch) = admitted {
                self.rules.ended(epoch, verdict, self.now);
            }
            admitted.is_some()
        }

        fn fail(&mut self, times: u32) {
            for _ in 0..times {
                assert!(self.call(Verdict::Failed));
            }
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_after_a_probe_that_works() {
        let mut clock = Clock::new();
        clock.fail(2);
        assert!(clock.call(Verdict::Works));
        clock.fail(2);
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
        clock.fail(1);
        assert_eq!(clock.rules.stands(), BreakerState::Open);
        assert!(!clock.call(Verdict::Works));
        clock.now += SECOND;
        let probe = clock.rules.admit(clock.now).unwrap();
        assert_eq!(clock.rules.stands(), BreakerState::HalfOpen);
        assert!(!clock.call(Verdict::Works), "there is one probe at a time");
        clock.rules.ended(probe, Verdict::Works, clock.now);
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
        clock.fail(2);
        assert_eq!(clock.rules.stands(), BreakerState::Closed, "counting begins anew");
    }

    #[test]
    fn failures_that_lie_far_apart_do_not_open_it() {
        let mut clock = Clock::new();
        for _ in 0..10 {
            clock.fail(1);
            clock.now += 6 * SECOND;
        }
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
    }

    #[test]
    fn the_pause_doubles_up_to_its_bound_and_is_short_again_after_it_closed() {
        let mut clock = Clock::new();
        clock.fail(3);
        for pause in [1, 2, 3, 3] {
            let tick = Duration::from_millis(1);
            let almost = (pause * SECOND).saturating_sub(tick);
            clock.now += almost;
            assert!(!clock.call(Verdict::Works), "{pause}");
            clock.now += tick;
            clock.fail(1);
        }
        clock.now += 3 * SECOND;
        assert!(clock.call(Verdict::Works));
        clock.fail(3);
        clock.now += SECOND;
        assert!(clock.call(Verdict::Works));
    }

    #[test]
    fn a_probe_that_is_given_up_makes_room_for_the_next_one_after_the_same_pause() {
        let mut clock = Clock::new();
        clock.fail(3);
        clock.now += SECOND;
        assert!(clock.call(Verdict::Unknown));
        assert!(!clock.call(Verdict::Works));
        clock.now += SECOND;
        assert!(clock.call(Verdict::Works));
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
    }

    #[test]
    fn what_ends_late_changes_nothing() {
        let mut clock = Clock::new();
        let late = clock.rules.admit(clock.now).unwrap();
        clock.fail(3);
        clock.rules.ended(late, Verdict::Works, clock.now);
        assert_eq!(clock.rules.stands(), BreakerState::Open);
        clock.now += SECOND;
        let probe = clock.rules.admit(clock.now).unwrap();
        clock.rules.ended(late, Verdict::Failed, clock.now);
        assert_eq!(clock.rules.stands(), BreakerState::HalfOpen);
        clock.rules.ended(probe, Verdict::Works, clock.now);
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
    }

    #[test]
    fn a_service_that_is_down_for_an_hour_is_asked_twice_a_minute_and_found_when_it_is_back() {
        let rules = Rules::new(BreakerConfig::default());
        let mut clock = Clock { rules, now: Instant::now() };
        let tick = Duration::from_millis(100);
        let asked = (0..36_000).filter(|_| {
            clock.now += tick;
            clock.call(Verdict::Failed)
        });
        assert!((100..=130).contains(&asked.count()));
        let until_found = (0..).take_while(|_| {
            clock.now += tick;
            !clock.call(Verdict::Works)
        });
        assert!(until_found.count() <= 300);
        assert_eq!(clock.rules.stands(), BreakerState::Closed);
    }

    #[test]
    fn a_permit_that_is_dropped_has_told_nothing() {
        let breaker = Breaker::new(BreakerConfig { failures: 1, ..BreakerConfig::default() });
        drop(breaker.admit().unwrap());
        assert_eq!(breaker.state(), BreakerState::Closed);
        breaker.admit().unwrap().ended(Verdict::Failed);
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.admit().is_none());
    }
}
