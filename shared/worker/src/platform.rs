//! Services of the platform that know facts about people, money and recipients: where they are, and asking one.
//!
//! It asks and does not decide. What a service answers is neither stored nor logged.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use runfleet_domain::Name;
use runfleet_domain::admission::RecipientFacts;
use runfleet_http::{
    AllowList, BreakerConfig, Client, Config, Endpoint, Guard, HttpError, Service, Url,
};
use runfleet_runtime::Env;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How long a service may take where nobody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a service may take at most: a request without an end of its own is worked on for as long.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// A kind of service, as the operator sees it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its word in metrics and logs.
    pub purpose: &'static str,
    /// The setting with its address.
    pub setting: &'static str,
    /// What the setting means.
    pub meaning: &'static str,
}

/// Who may get messages.
pub const RECIPIENTS: Kind = Kind {
    purpose: "recipients",
    setting: "RUNFLEET_RECIPIENTS_URL",
    meaning: "Service that knows who may get messages; absent: the catalog does.",
};

/// Where services of some kinds are.
#[derive(Debug)]
pub struct Platform<const N: usize> {
    /// Where each of the kinds is, if the operator has said so.
    pub endpoints: [Option<Endpoint>; N],
    kinds: [Kind; N],
    allow: AllowList,
    timeout: Duration,
}

impl<const N: usize> Platform<N> {
    /// Reads all settings.
    pub fn from_env(env: &mut Env, kinds: [Kind; N]) -> Option<Self> {
        let urls = kinds.map(|kind| env.optional::<Url>(kind.setting, kind.meaning));
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
        for (kind, url) in kinds.iter().zip(&urls) {
            let url = url.as_ref().and_then(Option::as_ref);
            let good = guard.as_ref().zip(url).is_none_or(|(guard, url)| guard.admit(url).is_ok());
            env.check(
                good,
                format!("{} must be https without user or password and public, or listed in RUNFLEET_PLATFORM_ALLOW", kind.setting),
            );
        }
        let token = token?;
        if urls.iter().any(Option::is_none) {
            return None;
        }
        let endpoints = urls.map(|url| {
            url.flatten().map(|url| Endpoint { bearer: token.clone(), ..Endpoint::new(url) })
        });
        Some(Self { endpoints, kinds, allow: allow?.unwrap_or_default(), timeout: timeout? })
    }

    /// Prepares the calls of the services that there are, with metrics beside those of `http`.
    pub fn sources(self, http: &Client) -> anyhow::Result<[Option<Source>; N]> {
        let Self { endpoints, kinds, allow, timeout } = self;
        if endpoints.iter().all(Option::is_none) {
            return Ok([const { None }; N]);
        }
        let client = http.beside(Config { allow, connect_within: timeout });
        let client = client.context("preparing calls of the platform")?;
        let mut kinds = kinds.iter();
        Ok(endpoints.map(|endpoint| {
            let (kind, endpoint) = (kinds.next()?, endpoint?);
            let service = client.service(kind.purpose, Some(BreakerConfig::default()));
            Some(Source { service, endpoint, timeout })
        }))
    }
}

/// One service and where it is.
pub struct Source {
    service: Service,
    endpoint: Endpoint,
    timeout: Duration,
}

impl Source {
    /// Asks, and waits until `until` at the longest, and no longer than a service may take.
    pub async fn ask<Q, A>(&self, question: &Q, until: Option<Instant>) -> Result<A, HttpError>
    where
        Q: Serialize,
        A: DeserializeOwned,
    {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let within = left.map_or(self.timeout, |left| left.min(self.timeout));
        self.service.post_json(&self.endpoint, question, within).await
    }
}

/// What the service of [`RECIPIENTS`] is asked: about a person who may get a message of an agent.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecipientQuestion<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The person.
    pub personnel_id: &'a Name,
    /// The agent.
    pub agent_id: &'a Name,
}

/// What that service must answer. Fields that are not known here are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub struct RecipientAnswer {
    delivery: bool,
    exists: bool,
    may_use: bool,
    ai_seat: bool,
}

impl From<RecipientAnswer> for RecipientFacts {
    fn from(answer: RecipientAnswer) -> Self {
        let RecipientAnswer { delivery, exists, may_use, ai_seat } = answer;
        Self { delivery, exists, may_use, ai_seat }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MONEY: Kind =
        Kind { purpose: "billing", setting: "RUNFLEET_BILLING_URL", meaning: "money" };

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        let mut env = Env::from_map(variables.iter().copied());
        let config = Platform::from_env(&mut env, [RECIPIENTS, MONEY]);
        let mistakes = env.finish().err().map(|error| error.mistakes).unwrap_or_default();
        assert!(config.is_some() || !mistakes.is_empty());
        mistakes
    }

    #[test]
    fn addresses_that_may_not_be_called_are_told_before_anything_starts() {
        let none: [String; 0] = [];
        assert_eq!(mistakes(&[]), none);
        assert_eq!(mistakes(&[("RUNFLEET_RECIPIENTS_URL", "https://example.com/facts")]), none);
        let inside = ("RUNFLEET_BILLING_URL", "http://127.0.0.1:1/s3cret");
        assert_eq!(mistakes(&[inside, ("RUNFLEET_PLATFORM_ALLOW", "127.0.0.1:1")]), none);
        let found = mistakes(&[
            inside,
            ("RUNFLEET_RECIPIENTS_URL", "https://s3cret@example.com"),
            ("RUNFLEET_PLATFORM_TIMEOUT_MS", "0"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|text| !text.contains("s3cret")), "{found:?}");
        let found = mistakes(&[("RUNFLEET_RECIPIENTS_URL", "s3cret")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains("s3cret"), "{found:?}");
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
            ("RUNFLEET_RECIPIENTS_URL", "https://example.com/?s3cret"),
            ("RUNFLEET_PLATFORM_TOKEN", "s3cret"),
        ]);
        let config = Platform::from_env(&mut env, [RECIPIENTS, MONEY]).unwrap();
        let [recipients, money] = &config.endpoints;
        assert!(recipients.as_ref().unwrap().bearer.is_some() && money.is_none());
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn a_question_about_a_recipient_has_the_names_that_the_service_expects() {
        let [acme, ada, coach] = ["acme", "ada", "coach"].map(|text| text.parse::<Name>().unwrap());
        let question = RecipientQuestion { workspace: &acme, personnel_id: &ada, agent_id: &coach };
        let expected = json!({"workspace": "acme", "personnelId": "ada", "agentId": "coach"});
        assert_eq!(serde_json::to_value(question).unwrap(), expected);
    }

    #[test]
    fn an_answer_about_a_recipient_must_be_complete_and_may_say_more() {
        let all =
            json!({"delivery": true, "exists": true, "mayUse": false, "aiSeat": true, "x": 1});
        let read = serde_json::from_value::<RecipientAnswer>(all.clone()).unwrap();
        let expected =
            RecipientFacts { delivery: true, exists: true, may_use: false, ai_seat: true };
        assert_eq!(RecipientFacts::from(read), expected);
        for missing in ["delivery", "exists", "mayUse", "aiSeat"] {
            let mut some = all.clone();
            some.as_object_mut().unwrap().remove(missing);
            assert!(serde_json::from_value::<RecipientAnswer>(some).is_err(), "{missing}");
        }
    }
}
