//! Who may get messages, at the moment at which one is sent: from the catalog, or from the service of the platform that knows.
//!
//! It asks and does not decide. What a service answers is neither stored nor logged.

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_domain::Name;
use runfleet_domain::admission::RecipientFacts;
use runfleet_http::Client;
use runfleet_runtime::Env;
use runfleet_worker::platform::{Platform, RECIPIENTS, RecipientAnswer, RecipientQuestion, Source};

/// Nobody may get anything.
const NOBODY: RecipientFacts =
    RecipientFacts { delivery: true, exists: false, may_use: false, ai_seat: false };

/// Where facts about recipients come from instead of the catalog.
#[derive(Debug)]
pub(crate) struct RecipientsConfig(Platform<1>);

impl RecipientsConfig {
    /// Reads all settings.
    pub(crate) fn from_env(env: &mut Env) -> Option<Self> {
        Platform::from_env(env, [RECIPIENTS]).map(Self)
    }
}

/// Who knows.
pub(crate) struct Recipients {
    service: Option<Source>,
}

impl Recipients {
    /// Prepares the client, if there is anything to call.
    pub(crate) fn new(config: RecipientsConfig, client: &Client) -> anyhow::Result<Self> {
        let [service] = config.0.sources(client)?;
        Ok(Self { service })
    }

    /// What is known of a person now.
    pub(crate) async fn facts(
        &self,
        snapshot: Option<&Snapshot>,
        workspace: &Name,
        person: &Name,
        agent: &Name,
    ) -> Result<RecipientFacts, Failure> {
        let Some(service) = &self.service else {
            let known = snapshot.map(|snapshot| snapshot.recipient_facts(person, agent));
            return Ok(known.unwrap_or(NOBODY));
        };
        let question = RecipientQuestion { workspace, personnel_id: person, agent_id: agent };
        let answer: RecipientAnswer =
            service.ask(&question, None).await.transient("asking about the recipient")?;
        Ok(answer.into())
    }
}
