//! Settings of tasks that somebody else carries out: HTTP calls and hosts.

use std::path::PathBuf;

use runfleet_broker::{LaneConfig, Route};
use runfleet_domain::Lane;
use runfleet_http::AllowList;
use runfleet_identity::AnswerKeys;
use runfleet_runtime::Env;
use runfleet_worker::TokenSettings;

/// Calls at once, interactive lane.
const PREFETCH: u16 = 64;

/// Calls at once, backfill lane.
const PREFETCH_BACKFILL: u16 = 16;

/// What the part of process-runner is told that asks others.
#[derive(Debug)]
pub(crate) struct CallConfig {
    /// Calls at once, interactive lane.
    pub(crate) prefetch: u16,
    /// Calls at once, backfill lane.
    pub(crate) prefetch_backfill: u16,
    /// What may be called although it is not public.
    pub(crate) allow: AllowList,
    /// Where the secrets of workspaces are.
    pub(crate) secrets: Option<PathBuf>,
    /// By which answers of hosts are known.
    pub(crate) keys: Option<AnswerKeys>,
    /// Where the key of execution tokens is.
    pub(crate) tokens: TokenSettings,
}

impl CallConfig {
    /// The lines of calls with their prefetch.
    pub(crate) fn lanes(&self) -> Vec<LaneConfig> {
        [(Lane::Interactive, self.prefetch), (Lane::Backfill, self.prefetch_backfill)]
            .map(|(lane, prefetch)| LaneConfig::new(Route::Call(lane).queue(), lane, prefetch))
            .into()
    }

    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let prefetch = env.or(
            "RUNFLEET_PREFETCH_CALLS",
            PREFETCH,
            "HTTP calls of tasks at once, interactive lane.",
        );
        let prefetch_backfill = env.or(
            "RUNFLEET_PREFETCH_CALLS_BACKFILL",
            PREFETCH_BACKFILL,
            "HTTP calls of tasks at once, backfill lane.",
        );
        let allow = env.optional::<AllowList>(
            "RUNFLEET_HTTP_ALLOW",
            "Hosts, host:port, addresses and networks that HTTP tasks and tools may call although they are not public or not https; separated by commas.",
        );
        let secrets = env.optional::<PathBuf>(
            "RUNFLEET_HTTP_SECRETS_DIR",
            "Folder with the secrets of HTTP tasks and tools, one file WORKSPACE/NAME each; absent: what names a secret fails.",
        );
        let keys = env.optional_secret(
            "RUNFLEET_ANSWER_KEYS",
            "Keys by which answers of hosts are known, each at least 32 characters, the newest first, separated by commas; absent: an answer is believed that names workspace and project of its run.",
        );
        for (name, prefetch) in [
            ("RUNFLEET_PREFETCH_CALLS", prefetch),
            ("RUNFLEET_PREFETCH_CALLS_BACKFILL", prefetch_backfill),
        ] {
            let good = prefetch.is_none_or(|prefetch| (1..=2_000).contains(&prefetch));
            env.check(good, format!("{name} must be 1 to 2000"));
        }
        let tokens = TokenSettings::from_env(env);
        let keys = keys?.as_ref().map(AnswerKeys::new).transpose();
        env.check(
            keys.is_ok(),
            "RUNFLEET_ANSWER_KEYS must have at least 32 characters in each key",
        );
        Some(Self {
            prefetch: prefetch?,
            prefetch_backfill: prefetch_backfill?,
            allow: allow?.unwrap_or_default(),
            secrets: secrets?,
            keys: keys.ok()?,
            tokens: tokens?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once_and_no_secret_with_them() {
        let mut env = Env::from_map([
            ("RUNFLEET_PREFETCH_CALLS", "0"),
            ("RUNFLEET_PREFETCH_CALLS_BACKFILL", "2001"),
            ("RUNFLEET_HTTP_ALLOW", "s3cret/x"),
            ("RUNFLEET_ANSWER_KEYS", "s3cret"),
        ]);
        assert!(CallConfig::from_env(&mut env).is_none());
        let mistakes = env.finish().unwrap_err().mistakes;
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
        assert!(mistakes.iter().all(|mistake| !mistake.contains("s3cret")), "{mistakes:?}");
    }

    #[test]
    fn nothing_has_to_be_set() {
        let mut env = Env::from_map([("", ""); 0]);
        let config = CallConfig::from_env(&mut env).unwrap();
        assert!(config.keys.is_none() && config.secrets.is_none());
        let key = "s3cret".repeat(6);
        let mut env = Env::from_map([("RUNFLEET_ANSWER_KEYS", key.as_str())]);
        let config = CallConfig::from_env(&mut env).unwrap();
        assert!(config.keys.is_some() && !format!("{config:?}").contains("s3cret"));
    }
}
