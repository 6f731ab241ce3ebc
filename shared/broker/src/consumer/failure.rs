//! The vocabulary of a handler: how it ended, and which kind of failure it was. There is no blanket conversion of errors:
//! every `?` in a handler says which kind it is.

use std::time::Duration;

use crate::route::Route;

/// What a handler returns.
pub type HandlerResult = Result<Verdict, Failure>;

/// The success side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Done now.
    Done,
    /// Was done before.
    Duplicate,
    /// Needs nothing; the closed reason is logged.
    Drop(&'static str),
    /// Look again after about this time, on the next longer rung; does not use up an attempt.
    Snooze(Duration),
    /// Somebody must look at it: the closed reason, and what happened, never with data of the body.
    Park(&'static str, String),
    /// Belongs into another queue, as it is.
    Move(Route),
}

/// The failure side.
#[derive(Debug)]
pub enum Failure {
    /// Passing: tried again on the ladder until the attempts are used up.
    Transient(Trouble),
    /// Will never work: parked.
    Permanent(Trouble),
}

impl Failure {
    /// A passing failure without an error behind it, such as a lost race.
    pub fn transient(doing: &'static str) -> Self {
        Self::Transient(Trouble { doing, source: None })
    }

    /// A lasting failure without an error behind it.
    pub fn permanent(doing: &'static str) -> Self {
        Self::Permanent(Trouble { doing, source: None })
    }

    pub(crate) fn trouble(&self) -> &Trouble {
        match self {
            Self::Transient(trouble) | Self::Permanent(trouble) => trouble,
        }
    }
}

/// What went wrong. Only the fixed words leave the process; the error itself goes into the log.
#[derive(Debug)]
pub struct Trouble {
    doing: &'static str,
    source: Option<anyhow::Error>,
}

impl Trouble {
    /// What was being done, as a fixed phrase.
    pub fn doing(&self) -> &'static str {
        self.doing
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source:#}", self.doing),
            None => f.write_str(self.doing),
        }
    }
}

/// Says at a `?` which kind of failure an error is, and what was being done.
pub trait Classify<T> {
    /// Passing: worth another try.
    fn transient(self, doing: &'static str) -> Result<T, Failure>;
    /// Lasting: another try would end the same.
    fn permanent(self, doing: &'static str) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> Classify<T> for Result<T, E> {
    fn transient(self, doing: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure::Transient(Trouble { doing, source: Some(error.into()) }))
    }

    fn permanent(self, doing: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure::Permanent(Trouble { doing, source: Some(error.into()) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classified_error_says_what_was_done_and_why_it_failed() {
        let failed: Result<(), _> = Err(std::io::Error::other("refused"));
        let failure = failed.transient("loading the run").unwrap_err();
        assert_eq!(failure.trouble().to_string(), "loading the run: refused");
        assert_eq!(failure.trouble().doing(), "loading the run");
        assert!(matches!(failure, Failure::Transient(_)));
        assert!(matches!(Failure::permanent("x"), Failure::Permanent(_)));
    }
}
