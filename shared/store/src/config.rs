//! The settings of the store. Reading them from the environment is the caller's business.

use std::time::Duration;

use runfleet_domain::limits::{ALARM_HANDOVER, ALARM_UNCLAIMED, CHAT_RETENTION, LEASE};
use secrecy::SecretString;

use crate::error::StoreError;

/// Longest namespace in characters.
pub const NAMESPACE_CHARS_MAX: usize = 40;

/// Most connections that one store opens.
pub const CONNECTIONS_MAX: usize = 64;

/// Spans that the ledger counts with. Shortened by tests of crashes; the same in every worker of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// How long one claim lasts without renewal.
    pub lease: Duration,
    /// First alarm of a run that nobody has claimed.
    pub alarm_unclaimed: Duration,
    /// First alarm of an outcome that has not become a job, and of a job that has not ended.
    pub alarm_handover: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self { lease: LEASE, alarm_unclaimed: ALARM_UNCLAIMED, alarm_handover: ALARM_HANDOVER }
    }
}

/// How to reach Redis, and how patient to be.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `redis://`, `rediss://`, `redis-sentinel://…?master=NAME` or `redis-cluster://`, with the login in it.
    pub url: SecretString,
    /// Prefix of every key: 1 to 40 lower-case letters, digits and `-`.
    pub namespace: String,
    /// Shared connections, 1 to 64. Each carries any number of commands at a time.
    pub connections: usize,
    /// How long one command may take.
    pub response_timeout: Duration,
    /// How long one operation may take with everything that is tried again.
    pub deadline: Duration,
    /// Spans that the ledger counts with.
    pub timings: Timings,
    /// How long a conversation is kept after its last message, an hour to ten years. The same in every worker of a fleet.
    pub chat_retention: Duration,
    /// Lets tests move the clock of the ledger. Never in production: it costs a read per script.
    pub skew: bool,
}

impl StoreConfig {
    /// The usual settings for one Redis and namespace.
    pub fn new(url: impl Into<SecretString>, namespace: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            namespace: namespace.into(),
            connections: 4,
            response_timeout: Duration::from_secs(2),
            deadline: Duration::from_secs(5),
            timings: Timings::default(),
            chat_retention: CHAT_RETENTION,
            skew: false,
        }
    }

    /// Everything but the URL, which has a parser of its own.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=NAMESPACE_CHARS_MAX).contains(&self.namespace.len())
            || !self.namespace.bytes().all(letters)
        {
            return Err(StoreError::Config(
                "the namespace must be 1 to 40 lower-case letters, digits and `-`",
            ));
        }
        if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            return Err(StoreError::Config("the number of connections must be 1 to 64"));
        }
        if self.response_timeout.is_zero() || self.deadline < self.response_timeout {
            return Err(StoreError::Config(
                "the deadline must not be shorter than the response timeout, which must not be zero",
            ));
        }
        let spans = [self.timings.lease, self.timings.alarm_unclaimed, self.timings.alarm_handover];
        if spans.iter().any(|span| span.as_millis() == 0 || span.as_secs() > 86_400) {
            return Err(StoreError::Config("lease and alarms must be 1 ms to one day"));
        }
        if !(3_600..=10 * 366 * 86_400).contains(&self.chat_retention.as_secs()) {
            return Err(StoreError::Config("conversations are kept for an hour to ten years"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let good = || StoreConfig::new("redis://127.0.0.1", "fleet-1".to_owned());
        assert!(good().check().is_ok());
        for namespace in ["", "Fleet", "a:b", "{a}", &"a".repeat(41)] {
            assert!(StoreConfig { namespace: (*namespace).to_owned(), ..good() }.check().is_err());
        }
        assert!(StoreConfig { connections: 0, ..good() }.check().is_err());
        assert!(StoreConfig { connections: 65, ..good() }.check().is_err());
        assert!(StoreConfig { deadline: Duration::from_secs(1), ..good() }.check().is_err());
        assert!(StoreConfig { response_timeout: Duration::ZERO, ..good() }.check().is_err());
        let timings = Timings { lease: Duration::ZERO, ..Timings::default() };
        assert!(StoreConfig { timings, ..good() }.check().is_err());
        assert!(StoreConfig { chat_retention: Duration::ZERO, ..good() }.check().is_err());
    }

    #[test]
    fn the_settings_do_not_show_the_password() {
        let config = StoreConfig::new("redis://:hunter2@127.0.0.1", "fleet");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
