//! Named points at which a debug build can be made to die, for crash tests.
//!
//! `RUNFLEET_FAIL_AT=intake.committed` kills the process with `SIGKILL` the first time it passes that point;
//! `intake.committed@3` the third time. Release builds contain nothing of this: [`point`] is empty there.

/// The variable that names the point.
pub const FAIL_AT: &str = "RUNFLEET_FAIL_AT";

/// Passes a named point; dies here if a test wants it.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}

/// Passes a named point; dies here if a test wants it.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    if armed::ARMED.as_ref().is_some_and(|armed| armed.is_due(name)) {
        armed::die();
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub(crate) struct Armed {
        name: String,
        left: AtomicU32,
    }

    pub(crate) static ARMED: LazyLock<Option<Armed>> = LazyLock::new(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "not a setting: it exists in test builds only"
        )]
        let wanted = std::env::var(super::FAIL_AT).ok()?;
        Armed::parse(&wanted)
    });

    impl Armed {
        pub(crate) fn parse(wanted: &str) -> Option<Self> {
            let (name, nth) = wanted.split_once('@').unwrap_or((wanted, "1"));
            Some(Self {
                name: name.to_owned(),
                left: AtomicU32::new(nth.parse().ok().filter(|nth| *nth > 0)?),
            })
        }

        pub(crate) fn is_due(&self, name: &str) -> bool {
            self.name == name && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    /// As `kill -9` from outside: nothing is flushed, closed or given back.
    pub(crate) fn die() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::Armed;

    #[test]
    fn a_point_is_due_exactly_at_its_count() {
        let armed = Armed::parse("a.b@3").unwrap();
        assert!(!armed.is_due("other"));
        let passes: Vec<bool> = (0..5).map(|_| armed.is_due("a.b")).collect();
        assert_eq!(passes, [false, false, true, false, false]);
        assert!(Armed::parse("a.b").unwrap().is_due("a.b"));
        assert!(Armed::parse("a.b@0").is_none());
    }
}
