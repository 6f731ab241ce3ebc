//! Who may get messages, at the moment at which one is sent: from the catalog, or from the service of the platform that knows.
//!
//! It asks and does not decide. What a service answers is neither stored nor logged.

use std::time::Duration;

use anyhow::Context as _;
use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_domain::Name;
use runfleet_domain::admission::RecipientFacts;
use runfleet_http::{AllowList, BreakerConfig, Client, Config, Endpoint, Guard, Service, Url};
use runfleet_runtime::Env;
use serde::{Deserialize, Serialize};

/// How long the service may take where nobody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long it may take at most.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// Nobody may get anything.
const NOBODY: RecipientFacts =
    RecipientFacts { delivery: true, exists: false, may_use: false, ai_seat: false };

/// Where facts about recipients come from instead of the catalog.
#[derive(Debug, Default)]
pub(crate) struct RecipientsConfig {
    endpoint: Option<Endpoint>,
    allow: AllowList,
    timeout: Duration,
}

impl RecipientsConfig {
    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        let url = env.optional::<Url>(
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
        let given = url.as_ref().and_then(Option::as_ref);
        env.check(
            guard.as_ref().zip(given).is_none_or(|(guard, url)| guard.admit(url).is_ok()),
            "RUNFLEET_RECIPIENTS_URL must be https without user or password and public, or listed in RUNFLEET_PLATFORM_ALLOW",
        );
        let token = token?;
        let endpoint = url?.map(|url| Endpoint { bearer: token, ..Endpoint::new(url) });
        Some(Self { endpoint, allow: allow?.unwrap_or_default(), timeout: timeout? })
    }
}

/// Who knows.
pub(crate) struct Recipients {
    source: Option<(Service, Endpoint)>,
    timeout: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    workspace: &'a Name,
    personnel_id: &'a Name,
    agent_id: &'a Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
struct Answer {
    delivery: bool,
    exists: bool,
    may_use: bool,
    ai_seat: bool,
}

impl Recipients {
    /// Prepares the client, if there is anything to call.
    pub(crate) fn new(config: RecipientsConfig, client: &Client) -> anyhow::Result<Self> {
        let RecipientsConfig { endpoint, allow, timeout } = config;
        let Some(endpoint) = endpoint else { return Ok(Self { source: None, timeout }) };
        let client = client.beside(Config { allow, connect_within: timeout });
        let client = client.context("preparing calls of the platform")?;
        let service = client.service("recipients", Some(BreakerConfig::default()));
        Ok(Self { source: Some((service, endpoint)), timeout })
    }

    /// What is known of a person now.
    pub(crate) async fn facts(
        &self,
        snapshot: Option<&Snapshot>,
        workspace: &Name,
        person: &Name,
        agent: &Name,
    ) -> Result<RecipientFacts, Failure> {
        let Some((service, endpoint)) = &self.source else {
            let known = snapshot.map(|snapshot| snapshot.recipient_facts(person, agent));
            return Ok(known.unwrap_or(NOBODY));
        };
        let question = Question { workspace, personnel_id: person, agent_id: agent };
        let answer = service.post_json(endpoint, &question, self.timeout).await;
        let Answer { delivery, exists, may_use, ai_seat } =
            answer.transient("asking about the recipient")?;
        Ok(RecipientFacts { delivery, exists, may_use, ai_seat })
    }
}
