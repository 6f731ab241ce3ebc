//! Facts about people and money: from the catalog, or from services of the platform where their addresses are set.
//!
//! It asks and does not decide. What a service answers is neither stored nor logged.

mod config;
mod wire;

use std::time::Instant;

use runfleet_broker::{Classify, Failure};
use runfleet_domain::Name;
use runfleet_domain::admission::{BillingFacts, Facts, PersonFacts, RecipientFacts, Wish};
use runfleet_http::Client;
use runfleet_worker::platform::{RecipientAnswer, RecipientQuestion, Source};

pub(crate) use self::config::{FactsConfig, from_env};
use self::wire::{BillingAnswer, BillingQuestion, PersonAnswer, PersonQuestion};

/// Facts under which everything is refused that a fact can refuse.
const BAD: Facts = Facts {
    person: PersonFacts { active: false, account: false, may_start: false, ai_seat: false },
    billing: BillingFacts {
        subscription: false,
        credits: false,
        agent_credits: false,
        model_priced: false,
    },
    recipient: RecipientFacts { delivery: false, exists: false, may_use: false, ai_seat: false },
};

/// What a start is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) workspace: &'a Name,
    pub(crate) project: &'a Name,
    /// The person behind the execution.
    pub(crate) user: Option<&'a Name>,
    pub(crate) wish: &'a Wish<'a>,
    /// The model of the agent.
    pub(crate) model: Option<&'a str>,
}

/// The services that answer instead of the catalog.
pub(crate) struct FactServices {
    directory: Option<Source>,
    billing: Option<Source>,
    recipients: Option<Source>,
}

impl FactServices {
    /// Prepares the client, if there is anything to call.
    pub(crate) fn new(config: FactsConfig, http: &Client) -> anyhow::Result<Self> {
        let [directory, billing, recipients] = config.sources(http)?;
        Ok(Self { directory, billing, recipients })
    }

    /// Whether a service says what a workspace has paid for.
    pub(crate) fn knows_billing(&self) -> bool {
        self.billing.is_some()
    }

    /// The best and the worst that can be found out, where the catalog says `known`. The same twice without services.
    pub(crate) fn bounds(&self, known: Facts) -> [Facts; 2] {
        [Facts::GOOD, BAD].map(|extreme| Facts {
            person: if self.directory.is_some() { extreme.person } else { known.person },
            billing: if self.billing.is_some() { extreme.billing } else { known.billing },
            recipient: if self.recipients.is_some() { extreme.recipient } else { known.recipient },
        })
    }

    /// Asks at once whoever has to say something about this start; the rest is as `known`.
    pub(crate) async fn ask(
        &self,
        about: &About<'_>,
        known: Facts,
        until: Instant,
    ) -> Result<Facts, Failure> {
        let (person, billing, recipient) = tokio::try_join!(
            self.person(about, until),
            self.billing(about, until),
            self.recipient(about, until),
        )?;
        Ok(Facts {
            person: person.unwrap_or(known.person),
            billing: billing.unwrap_or(known.billing),
            recipient: recipient.unwrap_or(known.recipient),
        })
    }

    async fn person(
        &self,
        about: &About<'_>,
        until: Instant,
    ) -> Result<Option<PersonFacts>, Failure> {
        let (Some(source), Some(user)) = (&self.directory, about.user) else { return Ok(None) };
        let question = PersonQuestion {
            workspace: about.workspace,
            project: about.project,
            personnel_id: user,
            kind: about.wish.kind().into(),
            target: about.wish.target,
        };
        let answer: PersonAnswer =
            source.ask(&question, Some(until)).await.transient("asking the directory")?;
        Ok(Some(answer.into()))
    }

    async fn billing(
        &self,
        about: &About<'_>,
        until: Instant,
    ) -> Result<Option<BillingFacts>, Failure> {
        let (Some(source), Some(_)) = (&self.billing, &about.wish.agent) else { return Ok(None) };
        let question = BillingQuestion {
            workspace: about.workspace,
            agent_id: about.wish.target,
            model: about.model,
        };
        let answer: BillingAnswer =
            source.ask(&question, Some(until)).await.transient("asking the billing service")?;
        Ok(Some(answer.into()))
    }

    async fn recipient(
        &self,
        about: &About<'_>,
        until: Instant,
    ) -> Result<Option<RecipientFacts>, Failure> {
        let recipient = about.wish.agent.and_then(|agent| agent.recipient);
        let (Some(source), Some(recipient)) = (&self.recipients, recipient) else {
            return Ok(None);
        };
        let question = RecipientQuestion {
            workspace: about.workspace,
            personnel_id: recipient,
            agent_id: about.wish.target,
        };
        let answer: RecipientAnswer =
            source.ask(&question, Some(until)).await.transient("asking about the recipient")?;
        Ok(Some(answer.into()))
    }
}
