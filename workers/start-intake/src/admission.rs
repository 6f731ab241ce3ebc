//! Brings together what admission decides about: the token, the options, the catalog in memory, and facts about people and
//! money. The rules themselves are in the domain.

use std::sync::Arc;
use std::time::Instant;

use runfleet_broker::{Classify, Failure};
use runfleet_catalog::Snapshot;
use runfleet_contracts::ErrorBody;
use runfleet_domain::admission::{self, CreditsUsed, Facts, Plan, Refusal, Rules, Wish};
use runfleet_domain::limits::StartLimits;
use runfleet_domain::{MessageId, Name, RunKind, Source};
use runfleet_identity::Verified;
use runfleet_store::FindStart;
use serde_json::{Map, Value};

use crate::asked::Asked;
use crate::facts::{About, FactServices};
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

/// What is said about a start without asking anybody.
struct Seen {
    /// The answer if services know only good things: what is refused here is refused by the catalog.
    best: Result<Plan, Refusal>,
    /// Whether services can change it. What is refused first is told first, so also a refusal may have to wait for them.
    open: bool,
}

impl Look<'_> {
    /// Decides by a snapshot, as far as that can be done without asking anybody.
    fn see(&self, services: &FactServices, snapshot: &Snapshot, used: CreditsUsed) -> Seen {
        let wish = self.asked.wish();
        let rules = self.rules(snapshot, &wish);
        let known = snapshot.facts(self.asks.claims.user.as_ref(), &wish, used);
        let [best, worst] = services.bounds(known);
        let told = self.by(&wish, &rules, &best);
        let open = best != worst && self.by(&wish, &rules, &worst) != told;
        Seen { best: told, open }
    }

    fn by(&self, wish: &Wish<'_>, rules: &Rules<'_>, facts: &Facts) -> Result<Plan, Refusal> {
        let caller = self.asks.claims.caller(self.asks.expired);
        admission::start(&caller, wish, rules, facts)
    }

    fn rules<'s>(&self, snapshot: &'s Snapshot, wish: &Wish<'_>) -> Rules<'s> {
        let claims = &self.asks.claims;
        let version = claims.version.as_deref();
        snapshot.rules(&claims.project, version, wish, self.variables.as_ref(), self.enabled)
    }

    fn limits(&self, snapshot: &Snapshot) -> StartLimits {
        let project = snapshot.project(&self.asks.claims.project);
        project.map_or(StartLimits::DEFAULT, |project| project.limits.start())
    }
}

/// Whether a refusal comes from the catalog, which may have changed a moment ago.
fn from_the_catalog(refusal: &Refusal) -> bool {
    !matches!(
        refusal,
        Refusal::TriggerReadOnly
            | Refusal::DevelopmentReadOnly
            | Refusal::ReadOnly
            | Refusal::ProjectKey
            | Refusal::TokenExpired
            | Refusal::Disabled(_)
            | Refusal::OutcomeInDevelopment(_)
            | Refusal::NoCallerToRunAs
            | Refusal::NoHopsLeft
    )
}

/// Decides about a start, until `until` at most. What the catalog in memory refuses is looked up once more in the ledger before
/// it is said: it may have been applied a moment ago.
pub(crate) async fn decide(
    deps: &Deps,
    asks: &Verified,
    asked: &Asked,
    message_id: &MessageId,
    until: Instant,
) -> Result<Decision, Failure> {
    let variables = match asked.variables() {
        Ok(variables) => variables,
        Err(error) => return Ok(Decision { plan: Err(error), limits: StartLimits::DEFAULT }),
    };
    let look = Look { asks, asked, variables, enabled: deps.offered.kind(asked.kind()) };
    let workspace = &asks.claims.workspace;
    let or_nothing = |found: Option<Arc<Snapshot>>| {
        found.unwrap_or_else(|| Arc::new(Snapshot::nothing(workspace.clone())))
    };
    let mut snapshot =
        or_nothing(deps.catalog.get(workspace).await.transient("loading the catalog")?);
    let mut used = credits_used(deps, asked.kind(), asked.target(), workspace, &snapshot).await?;
    let mut seen = look.see(&deps.facts, &snapshot, used);
    if seen.best.as_ref().err().is_some_and(from_the_catalog) {
        let fresh = deps.catalog.refresh(workspace).await.transient("loading the catalog")?;
        snapshot = or_nothing(fresh);
        used = credits_used(deps, asked.kind(), asked.target(), workspace, &snapshot).await?;
        seen = look.see(&deps.facts, &snapshot, used);
    }
    let limits = look.limits(&snapshot);
    if !seen.open {
        return Ok(Decision { plan: seen.best.map_err(|refusal| told(refusal, asked)), limits });
    }
    if is_known(deps, asks, asked, message_id, &limits).await? {
        // The commit finds it again and tells it. Should it be gone by then, no run is made without having asked.
        return Ok(Decision { plan: Err(ErrorBody::retryable(false)), limits });
    }
    let wish = asked.wish();
    let user = asks.claims.user.as_ref();
    let about = About {
        workspace,
        project: &asks.claims.project,
        user,
        wish: &wish,
        model: snapshot.agent(wish.target).map(|agent| agent.model.as_str()),
    };
    let facts = deps.facts.ask(&about, snapshot.facts(user, &wish, used), until).await?;
    let plan = look.by(&wish, &look.rules(&snapshot, &wish), &facts);
    Ok(Decision { plan: plan.map_err(|refusal| told(refusal, asked)), limits })
}

/// What the ledger says was charged, where that can refuse a start and no service knows about money.
pub(crate) async fn credits_used(
    deps: &Deps,
    kind: RunKind,
    agent: &Name,
    workspace: &Name,
    snapshot: &Snapshot,
) -> Result<CreditsUsed, Failure> {
    let limited = kind == RunKind::Agent && snapshot.limits_credits(agent);
    if !limited || deps.facts.knows_billing() {
        return Ok(CreditsUsed::default());
    }
    deps.store.credits_used(workspace, agent).await.transient("asking what was charged")
}

/// Whether the ledger has an answer already, so that nobody need be asked: a run of this message or key, or a limit that is met.
async fn is_known(
    deps: &Deps,
    asks: &Verified,
    asked: &Asked,
    message_id: &MessageId,
    limits: &StartLimits,
) -> Result<bool, Failure> {
    let claims = &asks.claims;
    let identity = claims.identity();
    let find = FindStart {
        workspace: &claims.workspace,
        project: &claims.project,
        kind: asked.kind(),
        message_id,
        key: asked.key(),
        identity: &identity,
        target: asked.target(),
        execution: &claims.execution,
        calls_budget: admission::calls_budget(claims.source, limits),
        calls_limit: admission::starts_limit(claims.source, asked.kind(), limits),
        batch: claims.source == Source::Batch,
    };
    let found = deps.store.find_start(&find).await.transient("looking for an earlier start")?;
    Ok(found.is_some())
}

fn told(refusal: Refusal, asked: &Asked) -> ErrorBody {
    let missing = matches!(refusal, Refusal::TargetNotFound(_));
    let error = ErrorBody::from(refusal);
    if missing { error.with("resourceId", asked.target().as_str()) } else { error }
}
