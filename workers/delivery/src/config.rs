//! Settings of delivery.

use std::path::PathBuf;
use std::time::Duration;

use runfleet_domain::limits::{
    CHAT_MESSAGES_PER_DAY, CHAT_MESSAGES_PER_RUN, CHAT_RATE_BURST, CHAT_RATE_PERIOD,
    CHAT_SEND_LEASE,
};
use runfleet_http::AllowList;
use runfleet_runtime::Env;
use runfleet_store::MessageCaps;
use runfleet_worker::Settings;
use runfleet_worker::keys::Places;

use crate::recipients::RecipientsConfig;

/// Shortest lease: longer than a message is worked on.
const LEASE_MIN: Duration = Duration::from_secs(1);

/// Settings of delivery.
#[derive(Debug)]
pub struct Config {
    pub(crate) fleet: Settings,
    pub(crate) caps: MessageCaps,
    pub(crate) lease: Duration,
    pub(crate) allow: AllowList,
    pub(crate) places: Places,
    pub(crate) recipients: RecipientsConfig,
}

impl Config {
    /// Reads all settings.
    pub fn from_env(env: &mut Env) -> Option<Self> {
        let fleet = Settings::from_env(env, "delivery");
        let caps = caps(env);
        let lease = env.millis_or(
            "RUNFLEET_CHAT_LEASE_MS",
            CHAT_SEND_LEASE,
            "How long one attempt to send a message to a person may take before somebody else may take it over.",
        );
        env.check(
            lease.is_none_or(|lease| (LEASE_MIN..=Duration::from_hours(1)).contains(&lease)),
            "RUNFLEET_CHAT_LEASE_MS must be 1000 to 3600000",
        );
        let allow = env.optional::<AllowList>(
            "RUNFLEET_CHAT_ALLOW",
            "Hosts, host:port, addresses and networks that chat sinks may reach although they are not public or not protected; separated by commas.",
        );
        let folder = env.optional::<PathBuf>(
            "RUNFLEET_HTTP_SECRETS_DIR",
            "Folder with the secrets of HTTP tasks and tools, one file WORKSPACE/NAME each; absent: what names a secret fails.",
        );
        let variables = env.or(
            "RUNFLEET_SECRET_VARIABLES",
            String::new(),
            "Environment variables that documents may name as secrets, such as the keys of model providers; separated by commas.",
        );
        let variables = variables.map(|text| {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        });
        let recipients = RecipientsConfig::from_env(env);
        Some(Self {
            fleet: fleet?,
            caps: caps?,
            lease: lease?,
            allow: allow?.unwrap_or_default(),
            places: Places { variables: variables?, folder: folder? },
            recipients: recipients?,
        })
    }
}

fn caps(env: &mut Env) -> Option<MessageCaps> {
    let per_run = env.or(
        "RUNFLEET_CHAT_PER_RUN",
        CHAT_MESSAGES_PER_RUN,
        "Messages to a person that one agent run may send, 1 to 100.",
    );
    let per_day = env.or(
        "RUNFLEET_CHAT_PER_DAY",
        CHAT_MESSAGES_PER_DAY,
        "Messages that one agent may send one person in a UTC day, 1 to 10000.",
    );
    let burst = env.or(
        "RUNFLEET_CHAT_BURST",
        CHAT_RATE_BURST,
        "Messages that one agent may send one person in a row, 1 to 1000; then they are spaced out.",
    );
    let period = env.millis_or(
        "RUNFLEET_CHAT_RATE_MS",
        CHAT_RATE_PERIOD,
        "After how long one more message of an agent to a person becomes possible, 1 to 86400000.",
    );
    for (name, given, max) in [
        ("RUNFLEET_CHAT_PER_RUN", per_run, 100),
        ("RUNFLEET_CHAT_PER_DAY", per_day, 10_000),
        ("RUNFLEET_CHAT_BURST", burst, 1_000),
    ] {
        let good = given.is_none_or(|given| (1..=max).contains(&given));
        env.check(good, format!("{name} must be 1 to {max}"));
    }
    let day = Duration::from_hours(24);
    env.check(
        period.is_none_or(|period| !period.is_zero() && period <= day),
        "RUNFLEET_CHAT_RATE_MS must be 1 to 86400000",
    );
    Some(MessageCaps { per_run: per_run?, per_day: per_day?, burst: burst?, period: period? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once_and_no_value_is() {
        let mut env = Env::from_map([
            ("RUNFLEET_CHAT_PER_RUN", "0"),
            ("RUNFLEET_CHAT_PER_DAY", "10001"),
            ("RUNFLEET_CHAT_LEASE_MS", "999"),
            ("RUNFLEET_CHAT_RATE_MS", "0"),
            ("RUNFLEET_CHAT_ALLOW", "s3cret/x"),
            ("RUNFLEET_RECIPIENTS_URL", "http://127.0.0.1/s3cret"),
        ]);
        assert!(Config::from_env(&mut env).is_none());
        let mistakes = env.finish().unwrap_err().mistakes;
        // Two more are addresses of servers that were not given.
        assert_eq!(mistakes.len(), 8, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| !mistake.contains("s3cret")), "{mistakes:?}");
    }
}
