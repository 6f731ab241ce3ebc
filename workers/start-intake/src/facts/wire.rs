//! What the services of the platform are asked about starts, and what they must answer. Fields that are not known here are ignored.

use runfleet_domain::admission::{BillingFacts, PersonFacts};
use runfleet_domain::{Name, RunKind};
use serde::{Deserialize, Serialize};

/// What would be started.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Process,
    Agent,
}

impl From<RunKind> for Kind {
    fn from(kind: RunKind) -> Self {
        match kind {
            RunKind::Process => Self::Process,
            RunKind::Agent => Self::Agent,
        }
    }
}

/// About a person who starts something.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonQuestion<'a> {
    pub(super) workspace: &'a Name,
    pub(super) project: &'a Name,
    pub(super) personnel_id: &'a Name,
    pub(super) kind: Kind,
    pub(super) target: &'a Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub(super) struct PersonAnswer {
    active: bool,
    account: bool,
    may_start: bool,
    ai_seat: bool,
}

impl From<PersonAnswer> for PersonFacts {
    fn from(answer: PersonAnswer) -> Self {
        let PersonAnswer { active, account, may_start, ai_seat } = answer;
        Self { active, account, may_start, ai_seat }
    }
}

/// About what a workspace has paid for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BillingQuestion<'a> {
    pub(super) workspace: &'a Name,
    pub(super) agent_id: &'a Name,
    pub(super) model: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub(super) struct BillingAnswer {
    subscription: bool,
    credits: bool,
    agent_credits: bool,
    model_priced: bool,
}

impl From<BillingAnswer> for BillingFacts {
    fn from(answer: BillingAnswer) -> Self {
        let BillingAnswer { subscription, credits, agent_credits, model_priced } = answer;
        Self { subscription, credits, agent_credits, model_priced }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn questions_have_the_names_that_the_services_expect() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let (demo, shop, ada, coach) = (name("demo"), name("shop"), name("ada"), name("coach"));
        let person = PersonQuestion {
            workspace: &demo,
            project: &shop,
            personnel_id: &ada,
            kind: RunKind::Agent.into(),
            target: &coach,
        };
        let expected = json!({
            "workspace": "demo", "project": "shop", "personnelId": "ada", "kind": "agent", "target": "coach"
        });
        assert_eq!(serde_json::to_value(person).unwrap(), expected);
        let billing =
            BillingQuestion { workspace: &demo, agent_id: &coach, model: Some("scripted/echo") };
        let expected = json!({"workspace": "demo", "agentId": "coach", "model": "scripted/echo"});
        assert_eq!(serde_json::to_value(billing).unwrap(), expected);
    }

    #[test]
    fn answers_must_be_complete_and_may_say_more() {
        let read = |value: serde_json::Value| serde_json::from_value::<PersonAnswer>(value);
        let all =
            json!({"active": true, "account": true, "mayStart": true, "aiSeat": true, "x": 1});
        assert!(read(all.clone()).is_ok());
        for missing in ["active", "account", "mayStart", "aiSeat"] {
            let mut some = all.clone();
            some.as_object_mut().unwrap().remove(missing);
            assert!(read(some.clone()).is_err(), "{missing}");
            some[missing] = json!("true");
            assert!(read(some).is_err(), "{missing} as text");
        }
    }
}
