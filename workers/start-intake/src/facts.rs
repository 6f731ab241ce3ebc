//! Facts about people and money: from the catalog, or from services of the platform where their addresses are set.
//!
//! It asks and does not decide. What a service answers is neither stored nor logged.

mod config;
mod wire;

use std::time::{Duration, Instant};

use anyhow::Context;
use runfleet_broker::{Classify, Failure};
use runfleet_domain::Name;
use runfleet_domain::admission::{BillingFacts, Facts, PersonFacts, RecipientFacts, Wish};
use runfleet_http::{BreakerConfig, Client, Config, Endpoint, HttpError, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::config::FactsConfig;
use self::wire::{
    BillingAnswer, BillingQuestion, PersonAnswer, PersonQuestion, RecipientAnswer,
    RecipientQuestion,
};

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

/// One service and where it is.
struct Source {
    service: Service,
    endpoint: Endpoint,
}

impl Source {
    async fn ask<Q, A>(&self, question: &Q, within: Duration) -> Result<A, HttpError>
    where
        Q: Serialize,
        A: DeserializeOwned,
    {
        self.service.post_json(&self.endpoint, question, within).await
    }
}

/// The services that answer instead of the catalog; none by default.
#[derive(Default)]
pub(crate) struct FactServices {
    directory: Option<Source>,
    billing: Option<Source>,
    recipients: Option<Source>,
    timeout: Duration,
}

impl FactServices {
    /// Prepares the client, if there is anything to call.
    pub(crate) fn new(config: FactsConfig, http: &Client) -> anyhow::Result<Self> {
        let FactsConfig { directory, billing, recipients, allow, timeout } = config;
        if directory.is_none() && billing.is_none() && recipients.is_none() {
            return Ok(Self::default());
        }
        let client = http
            .beside(Config { allow, connect_within: timeout })
            .context("preparing the HTTP client")?;
        let source = |purpose, endpoint: Option<Endpoint>| {
            let breaker = Some(BreakerConfig::default());
            endpoint.map(|endpoint| Source { service: client.service(purpose, breaker), endpoint })
        };
        Ok(Self {
            directory: source("directory", directory),
            billing: source("billing", billing),
            recipients: source("recipients", recipients),
            timeout,
        })
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
        let within = self.timeout.min(until.saturating_duration_since(Instant::now()));
        let (person, billing, recipient) = tokio::try_join!(
            self.person(about, within),
            self.billing(about, within),
            self.recipient(about, within),
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
        within: Duration,
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
            source.ask(&question, within).await.transient("asking the directory")?;
        Ok(Some(answer.into()))
    }

    async fn billing(
        &self,
        about: &About<'_>,
        within: Duration,
    ) -> Result<Option<BillingFacts>, Failure> {
        let (Some(source), Some(_)) = (&self.billing, &about.wish.agent) else { return Ok(None) };
        let question = BillingQuestion {
            workspace: about.workspace,
            agent_id: about.wish.target,
            model: about.model,
        };
        let answer: BillingAnswer =
            source.ask(&question, within).await.transient("asking the billing service")?;
        Ok(Some(answer.into()))
    }

    async fn recipient(
        &self,
        about: &About<'_>,
        within: Duration,
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
            source.ask(&question, within).await.transient("asking about the recipient")?;
        Ok(Some(answer.into()))
    }
}
