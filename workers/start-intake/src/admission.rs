//! Brings together what admission decides about: the token, the options, the catalog in memory, and facts about people and
//! money. The rules themselves are in the domain.

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_contracts::ErrorBody;
use runfleet_domain::admission::{self, Facts, Plan, Refusal};
use runfleet_domain::limits::StartLimits;
use runfleet_identity::Verified;
use serde_json::{Map, Value};

use crate::asked::Asked;
use crate::handler::Deps;

/// What was decided about a start, and what is counted in any case.
pub(crate) struct Decision {
    /// The plan, or what the caller is told.
    pub(crate) plan: Result<Plan, ErrorBody>,
    /// The limits of the project.
    pub(crate) limits: StartLimits,
}

/// One look at a start.
struct Look<'a> {
    asks: &'a Verified,
    asked: &'a Asked,
    variables: Option<Map<String, Value>>,
    enabled: bool,
}

impl Look<'_> {
    /// Decides by a snapshot; `facts` replaces what the snapshot knows about people and money.
    fn by(
        &self,
        snapshot: Option<&Snapshot>,
        facts: Option<&Facts>,
    ) -> (Result<Plan, Refusal>, StartLimits) {
        let claims = &self.asks.claims;
        let caller = claims.caller(self.asks.expired);
        let wish = self.asked.wish();
        let nothing;
        let snapshot = if let Some(snapshot) = snapshot {
            snapshot
        } else {
            nothing = Snapshot::nothing(claims.workspace.clone());
            &nothing
        };
        let version = claims.version.as_deref();
        let variables = self.variables.as_ref();
        let rules = snapshot.rules(&claims.project, version, &wish, variables, self.enabled);
        let known;
        let facts = if let Some(facts) = facts {
            facts
        } else {
            known = snapshot.facts(claims.user.as_ref(), &wish);
            &known
        };
        (admission::start(&caller, &wish, &rules, facts), rules.limits)
    }
}

/// Whether a refusal comes from the catalog, which may have changed a moment ago.
fn from_the_catalog(refusal: &Refusal) -> bool {
    !matches!(
        refusal,
        Refusal::TriggerReadOnly
            | Refusal::DevelopmentReadOnly
            | Refusal::ReadOnly
            | Refusal::TokenExpired
            | Refusal::Disabled(_)
            | Refusal::OutcomeInDevelopment(_)
            | Refusal::NoCallerToRunAs
            | Refusal::NoHopsLeft
    )
}

/// Decides about a start. What the catalog in memory refuses is looked up once more in the ledger before it is said: it may
/// have been applied a moment ago.
pub(crate) async fn decide(
    deps: &Deps,
    asks: &Verified,
    asked: &Asked,
) -> Result<Decision, Failure> {
    let variables = match asked.variables() {
        Ok(variables) => variables,
        Err(error) => return Ok(Decision { plan: Err(error), limits: StartLimits::DEFAULT }),
    };
    let look = Look { asks, asked, variables, enabled: deps.offered.kind(asked.kind()) };
    let workspace = &asks.claims.workspace;
    let snapshot = deps.catalog.get(workspace).await.transient("loading the catalog")?;
    let (mut plan, mut limits) = look.by(snapshot.as_deref(), None);
    if plan.as_ref().err().is_some_and(from_the_catalog) {
        let fresh = deps.catalog.refresh(workspace).await.transient("loading the catalog")?;
        (plan, limits) = look.by(fresh.as_deref(), None);
    }
    Ok(Decision { plan: plan.map_err(|refusal| told(refusal, asked)), limits })
}

fn told(refusal: Refusal, asked: &Asked) -> ErrorBody {
    let missing = matches!(refusal, Refusal::TargetNotFound(_));
    let error = ErrorBody::from(refusal);
    if missing { error.with("resourceId", asked.target().as_str()) } else { error }
}
