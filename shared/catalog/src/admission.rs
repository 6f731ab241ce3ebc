//! What a snapshot tells admission: what is declared about a project and a target, and what is known about people and money.

use runfleet_domain::Name;
use runfleet_domain::admission::{
    BadInput, BillingFacts, CreditsUsed, Facts, PersonFacts, RecipientFacts, Rules, Target, Wish,
};
use runfleet_domain::limits::StartLimits;
use serde_json::{Map, Value};

use crate::model::{Person, Project};
use crate::snapshot::Snapshot;
use crate::summary::ProcessKind;

impl Snapshot {
    /// What is declared about a project and a target. An unknown project has no policy and the limits of one that sets none.
    /// `version` is the version of the project that asks; none means the active one. Without `input` there is none.
    pub fn rules<'a>(
        &'a self,
        project: &Name,
        version: Option<&str>,
        wish: &Wish<'_>,
        input: Option<&Map<String, Value>>,
        enabled: bool,
    ) -> Rules<'a> {
        let project = self.project(project);
        let target = match wish.agent {
            None => self.process_target(wish.target, input),
            Some(_) => self.agent_target(wish.target),
        };
        Rules {
            enabled,
            policy: project.and_then(|project| project.policy_for(version)),
            limits: project.map_or(StartLimits::DEFAULT, |project| project.limits.start()),
            job_declared: wish
                .job
                .is_none_or(|job| project.is_some_and(|project: &Project| project.declares(job))),
            target,
        }
    }

    fn process_target(&self, id: &Name, input: Option<&Map<String, Value>>) -> Option<Target> {
        let process = self.process(id).filter(|process| process.is_active())?;
        let none = Map::new();
        let bad_input = process
            .check_input(input.unwrap_or(&none))
            .err()
            .map(|problem| BadInput { field: problem.field, problem: problem.problem });
        Some(Target {
            version: process.version,
            startable: process.summary.kind == ProcessKind::Normal,
            deadline_seconds: process.summary.deadline_seconds,
            bad_input,
        })
    }

    fn agent_target(&self, id: &Name) -> Option<Target> {
        let agent = self.agent(id).filter(|agent| agent.is_active())?;
        Some(Target {
            version: agent.version,
            startable: true,
            deadline_seconds: None,
            bad_input: None,
        })
    }

    /// Everything that is known about a start, with what the ledger says was charged. What has no meaning for it is good.
    pub fn facts(&self, user: Option<&Name>, wish: &Wish<'_>, used: CreditsUsed) -> Facts {
        let mut facts = Facts::GOOD;
        if let Some(user) = user {
            facts.person = self.person_facts(user, wish);
        }
        if let Some(agent) = &wish.agent {
            facts.billing = self.billing_facts(wish.target, used);
            if let Some(recipient) = agent.recipient {
                facts.recipient = self.recipient_facts(recipient, wish.target);
            }
        }
        facts
    }

    /// A person who starts something. Somebody whom the workspace does not know has nothing.
    pub fn person_facts(&self, id: &Name, wish: &Wish<'_>) -> PersonFacts {
        let Some(person) = self.person(id) else {
            return PersonFacts { active: false, account: false, may_start: false, ai_seat: false };
        };
        let may_start = match wish.agent {
            None => person.may_start_processes.covers(wish.target),
            Some(_) => self.may_use(id, person, wish.target),
        };
        PersonFacts {
            active: person.active,
            account: person.account,
            may_start,
            ai_seat: person.ai_seat,
        }
    }

    /// A person may use an agent when the person may and the agent lets them.
    fn may_use(&self, id: &Name, person: &Person, agent: &Name) -> bool {
        person.may_use_agents.covers(agent)
            && self.agent(agent).is_none_or(|agent| agent.spec.users.covers(id))
    }

    /// What is left of what the workspace has paid for, after what was charged.
    pub fn billing_facts(&self, agent: &Name, used: CreditsUsed) -> BillingFacts {
        let Some(billing) = &self.workspace.billing else { return Facts::GOOD.billing };
        let agent = self.agent(agent);
        let left = |given: Option<u32>, used: u64| {
            given.is_none_or(|given| used < u64::from(given) * CreditsUsed::PER_CREDIT)
        };
        BillingFacts {
            subscription: billing.subscription,
            credits: left(billing.credits, used.workspace),
            agent_credits: agent.is_none_or(|agent| left(agent.credit_limit, used.agent)),
            model_priced: agent.is_none_or(|agent| billing.prices.contains_key(&agent.model)),
        }
    }

    /// Whether it matters what was charged: the credits of the workspace or of the agent are limited.
    pub fn limits_credits(&self, agent: &Name) -> bool {
        let limit = self.agent(agent).and_then(|agent| agent.credit_limit);
        let billing = self.workspace.billing.as_ref();
        billing.is_some_and(|billing| billing.credits.is_some() || limit.is_some())
    }

    /// A person who may get a message of an agent.
    pub fn recipient_facts(&self, person: &Name, agent: &Name) -> RecipientFacts {
        let found: Option<&Person> = self.person(person).filter(|person| person.active);
        RecipientFacts {
            delivery: self.workspace.delivery,
            exists: found.is_some(),
            may_use: found.is_some_and(|found| self.may_use(person, found, agent)),
            ai_seat: found.is_some_and(|person| person.ai_seat),
        }
    }
}
