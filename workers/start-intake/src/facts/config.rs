//! Settings of the services that know facts.

use std::time::Duration;

use runfleet_http::{AllowList, Endpoint, Guard, Url};
use runfleet_runtime::Env;

/// How long a service may take where nobody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a service may take at most: a request without an end of its own is worked on for as long.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// Where facts come from instead of the catalog.
#[derive(Debug, Default)]
pub(crate) struct FactsConfig {
    pub(crate) directory: Option<Endpoint>,
    pub(crate) billing: Option<Endpoint>,
    pub(crate) recipients: Option<Endpoint>,
    pub(crate) allow: AllowList,
    /// How long each of them may take.
    pub(crate) timeout: Duration,
}

impl FactsConfig {
    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let directory = env.optional(
            "RUNFLEET_DIRECTORY_URL",
            "Service that knows the rights of people; absent: the catalog does.",
        );
        let billing = env.optional(
            "RUNFLEET_BILLING_URL",
            "Service that knows plans, credits and prices; absent: the catalog does.",
        );
        let recipients = env.optional(
            "RUNFLEET_RECIPIENTS_URL",
            "Service that knows who may get messages; absent: the catalog does.",
        );
        let token = env.optional_secret(
            "RUNFLEET_PLATFORM_TOKEN",
            "Bearer token for the services of the platform.",
        );
        let allow = env.optional::<AllowList>(
            "RUNFLEET_PLATFORM_ALLOW",
            "Hosts, host:port, addresses and networks that may be called although they are not public or not https; separated by commas.",
        );
        let timeout = env.millis_or(
            "RUNFLEET_PLATFORM_TIMEOUT_MS",
            TIMEOUT,
            "How long a service of the platform may take to answer, 1 to 20000.",
        );
        env.check(
            timeout.is_none_or(|timeout| !timeout.is_zero() && timeout <= TIMEOUT_MAX),
            "RUNFLEET_PLATFORM_TIMEOUT_MS must be 1 to 20000",
        );
        let guard = allow.clone().map(|allow| Guard::new(allow.unwrap_or_default()));
        for (name, url) in [
            ("RUNFLEET_DIRECTORY_URL", &directory),
            ("RUNFLEET_BILLING_URL", &billing),
            ("RUNFLEET_RECIPIENTS_URL", &recipients),
        ] {
            let url: Option<&Url> = url.as_ref().and_then(Option::as_ref);
            let good = guard.as_ref().zip(url).is_none_or(|(guard, url)| guard.admit(url).is_ok());
            env.check(
                good,
                format!("{name} must be https without user or password and public, or listed in RUNFLEET_PLATFORM_ALLOW"),
            );
        }
        let token = token?;
        let endpoint = |url: Option<Url>| {
            url.map(|url| Endpoint { bearer: token.clone(), ..Endpoint::new(url) })
        };
        Some(Self {
            directory: endpoint(directory?),
            billing: endpoint(billing?),
            recipients: endpoint(recipients?),
            allow: allow?.unwrap_or_default(),
            timeout: timeout?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        let mut env = Env::from_map(variables.iter().copied());
        let config = FactsConfig::from_env(&mut env);
        let mistakes = env.finish().err().map(|error| error.mistakes).unwrap_or_default();
        assert!(config.is_some() || !mistakes.is_empty());
        mistakes
    }

    #[test]
    fn addresses_that_may_not_be_called_are_told_before_anything_starts() {
        let none: [String; 0] = [];
        assert_eq!(mistakes(&[]), none);
        assert_eq!(mistakes(&[("RUNFLEET_DIRECTORY_URL", "https://example.com/facts")]), none);
        let inside = ("RUNFLEET_BILLING_URL", "http://127.0.0.1:1/s3cret");
        assert_eq!(mistakes(&[inside, ("RUNFLEET_PLATFORM_ALLOW", "127.0.0.1:1")]), none);
        let found = mistakes(&[
            inside,
            ("RUNFLEET_DIRECTORY_URL", "https://s3cret@example.com"),
            ("RUNFLEET_RECIPIENTS_URL", "s3cret"),
            ("RUNFLEET_PLATFORM_TIMEOUT_MS", "0"),
        ]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|text| !text.contains("s3cret")), "{found:?}");
        let found = mistakes(&[("RUNFLEET_PLATFORM_ALLOW", "ok, s3cret/x")]);
        assert_eq!(
            found,
            [
                "RUNFLEET_PLATFORM_ALLOW is not valid: entry 2 is not a host, host:port, address or network"
            ]
        );
    }

    #[test]
    fn no_token_is_shown() {
        let mut env = Env::from_map([
            ("RUNFLEET_DIRECTORY_URL", "https://example.com/?s3cret"),
            ("RUNFLEET_PLATFORM_TOKEN", "s3cret"),
        ]);
        let config = FactsConfig::from_env(&mut env).unwrap();
        assert!(config.directory.as_ref().unwrap().bearer.is_some());
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
